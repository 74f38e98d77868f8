# R12: what the server itself says about a statement with a key in it quotes the
# statement.  The client may hear that; the server log must not have it.
#
# Every key begins with "sbxkey-" and names the way it was given, as in t/005.
use strict;
use warnings;

use SbxTest;
use Test::More;

my $sbx = SbxTest->new(
	conf => qq{
log_statement = all
log_duration = on
log_min_duration_statement = 0
log_parameter_max_length = -1
log_parameter_max_length_on_error = -1
log_error_verbosity = verbose
log_min_messages = debug1
log_min_error_statement = debug1
session_preload_libraries = sbx_router
});
$sbx->register('pool');
$sbx->session->value('CREATE TABLE plain (line text)');

# The ways ("open-quote", ...) whose keys are in a text.
sub leaks
{
	my %found;

	$found{$1} = 1 while ($_[0] // '') =~ /sbxkey-([a-z0-9]+(?:-[a-z0-9]+)*)/g;
	return join ' ', sort keys %found;
}

#
# Must fire: the log has nothing of it
#

# SQLSTATE and the statement; KEY is the key.
my %quoted = (
	'open-quote' => [ '42601', q{SELECT sbx_set_credential('pool', 'KEY)} ],
	'open-dollar' => [ '42601', q{SELECT sbx_set_credential('pool', $x$KEY)} ],
	'adjacent' => [ '42601', q{SELECT sbx_set_credential('pool', 'x' 'KEY')} ],
	'double-quotes' => [ '42703', q{SELECT sbx_set_credential('pool', "KEY")} ],
	'bare' => [ '42P01', q{SELECT sbx_set_credential('pool', "KEY".x)} ],
	'as-int' => [ '22P02', q{SELECT sbx_set_credential('pool', 'KEY'::int)} ],
	'as-jsonb' => [ '22P02', q{SELECT sbx_set_credential('pool', 'KEY'::jsonb)} ],
	'as-date' => [ '22007', q{SELECT sbx_set_credential('pool', 'KEY'::date)} ],
	'as-function' => [ '42883', q{SELECT sbx_set_credential('pool', "KEY"())} ],
	'as-type' => [ '42704', q{SELECT sbx_set_credential('pool', 'x'::"KEY")} ],
	'bad-byte' => [ '22021', q{SELECT sbx_set_credential('pool', E'KEY\xff')} ],
	'local' => [ '22P02', q{SELECT sbx_set_local_credential('pool', 'KEY'::int)} ],
	'view' => [ '22P02', q{INSERT INTO sbx_credential_input VALUES ('KEY'::jsonb)} ],
	'view-column' => [ '42703', q{INSERT INTO sbx_credential_input ("KEY") VALUES ('x')} ],
	'in-do' => [ '22P02', q{DO $$ BEGIN PERFORM sbx_set_credential('pool', 'KEY'::int); END $$} ],
	'in-execute' => [ '42601', q{DO $$ BEGIN EXECUTE 'SELECT sbx_set_credential(''pool'', ''KEY)'; END $$} ],
	'prepared' => [ undef, q{PREPARE give AS SELECT sbx_set_credential($1, $2); EXECUTE give('pool', 'KEY')} ],
	'prepared-bad' => [ 'SB013', q{PREPARE give AS SELECT sbx_set_credential($1, $2); EXECUTE give('pool', 'KEY x')} ],
	'prepared-alone' => [ undef, q{EXECUTE given('pool', 'KEY')} ],
	'explained' => [ undef, q{EXPLAIN SELECT sbx_set_credential('pool', 'KEY')} ]);

foreach my $way (sort keys %quoted)
{
	my ($state, $sql) = @{ $quoted{$way} };
	my $session = $sbx->session;

	$session->value('PREPARE given AS SELECT sbx_set_credential($1, $2)');
	my $place = $sbx->log_place;
	my $result = $session->query($sql =~ s/KEY/sbxkey-$way/r);
	$session->value('SELECT 1');
	my $log = $sbx->log_since($place);
	is($result->sqlstate, $state, "R12 must fire: $way: the client is told what is wrong") or diag $result->everything;
	is(leaks($log), '', "R12 must fire: $way: not in the server log") or diag $log;
	like($log, qr/$state/, "R12 must fire: $way: but the log has its SQLSTATE") if defined $state;
	unlike($log, qr/PANIC|terminated by signal/, "R12 must fire: $way: no crash");
	$session->finish;
}

#
# Must not fire: other statements are logged in full, before and after
#

my $session = $sbx->session;
foreach my $round ('before', 'after')
{
	my %plain = (
		'plain-open-quote' => q{INSERT INTO plain VALUES ('KEY)},
		'plain-as-int' => q{SELECT 'KEY'::int},
		'plain-column' => q{SELECT "KEY" FROM plain},
		'plain-fine' => q{INSERT INTO plain VALUES ('KEY')},
		'plain-runtime' => q{SELECT 'KEY', 1 / (random() * 0)::int});
	foreach my $way (sort keys %plain)
	{
		my $place = $sbx->log_place;
		$session->query($plain{$way} =~ s/KEY/sbxkey-$way/r);
		$session->value('SELECT 1');
		is(leaks($sbx->log_since($place)), $way, "R12 must not fire: $way, $round: is in the server log");
	}
	$session->query(q{SELECT sbx_set_credential('pool', 'sbxkey-between'::int)});
}

# Errors of another kind keep their message, and lose only the statement.
my $place = $sbx->log_place;
$session->query(q{SELECT sbx_set_credential('pool', 'sbxkey-other-error'), pg_terminate_backend(pg_backend_pid())});
$sbx->wait_ended($session->pid);
my $log = $sbx->log_since($place);
like($log, qr/FATAL:  57P01: terminating connection due to administrator command/,
	'R12 must not fire: a reason to end is logged as ever');
is(leaks($log), '', 'R12 must fire: without the key');

done_testing();
