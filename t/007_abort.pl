# What an abort does about sandboxes: each unwinding has a budget of its own, each
# launch its own settings, and whatever goes wrong, the backend stays a good citizen.
#
# Every part is a pair: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;
use Time::HiRes qw(time);

# A locale whose word for WARNING cannot be said in LATIN1, made for this test.
$ENV{LOCPATH} = PostgreSQL::Test::Utils::tempdir();
my $locale = 'ru_RU.UTF-8';
my $has_localedef = system("localedef -i ru_RU -f UTF-8 '$ENV{LOCPATH}/$locale' >/dev/null 2>&1") == 0;

my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "sbx_router.abort_cleanup_timeout = '60s'\n");
$sbx->register('pool');
my $s = $sbx->user('pool', 'key');
my $admin = $sbx->user('pool', 'key');
my $result;
my @warnings;

sub provision { return $s->value('SELECT sbx_provision()') }
sub count_alive { return scalar(my @alive = $sbx->alive) }
sub is_alive { return scalar grep { $_ eq $_[0] } $sbx->alive }

# Start over: nothing anywhere.
sub clean
{
	$sbx->reset;
	$admin->value('TRUNCATE sbx_mapping');
	return $sbx->mark;
}

# PL/pgSQL that provisions and catches what comes then.
my $caught = q{
	BEGIN
		PERFORM sbx_provision();
		RAISE EXCEPTION 'inner';
	EXCEPTION WHEN raise_exception THEN
		NULL;
	END;};

#
# R3: the budget of one unwinding is not used up by another
#

$s->value(q{SET sbx_router.abort_cleanup_timeout = '1s'});

# One hanging delete takes all of the first budget.
sub hang_once
{
	clean();
	$sbx->fault(op => 'delete', action => 'hang');
	return;
}

hang_once();
$s->query('BEGIN');
my $a = provision();
$result = $s->query("DO \$\$ BEGIN $caught END \$\$");
is(scalar(@warnings = $result->warnings), 1, 'R3: a block is rolled back, its delete hangs: a warning');
$result = $s->query('ROLLBACK');
is(scalar(@warnings = $result->warnings), 0, 'R3 must fire: a later ROLLBACK has a budget of its own: no warning')
  or diag $result->everything;
ok(!is_alive($a), 'R3 must fire: and destroys');

hang_once();
$s->query('BEGIN');
$a = provision();
$s->query('SAVEPOINT one');
provision();
$result = $s->query('ROLLBACK TO one');
is(scalar(@warnings = $result->warnings), 1, 'R3: ROLLBACK TO, its delete hangs: a warning');
$result = $s->query('ROLLBACK');
is(scalar(@warnings = $result->warnings), 0, 'R3 must fire: the ROLLBACK after it has a budget of its own')
  or diag $result->everything;
ok(!is_alive($a), 'R3 must fire: and destroys');

# The same within one statement, with work between the two.
hang_once();
$result = $s->query("DO \$\$ BEGIN PERFORM sbx_provision(); $caught PERFORM pg_sleep(0.3); RAISE 'outer' USING ERRCODE = 'ZZ001'; END \$\$");
is($result->sqlstate, 'ZZ001', 'R3b: a statement that fails after a block in it was rolled back');
is(scalar(@warnings = $result->warnings), 1, 'R3b must fire: one statement: only the delete that hung is warned of')
  or diag $result->everything;
is(count_alive(), 1, 'R3b must fire: one statement: the other sandbox is destroyed');

# The session ends while it is idle in its transaction.
hang_once();
my $leaver = $sbx->user('pool', 'key');
$leaver->value(q{SET sbx_router.abort_cleanup_timeout = '1s'});
$leaver->query('BEGIN');
$a = $leaver->value('SELECT sbx_provision()');
$leaver->value("DO \$\$ BEGIN $caught END \$\$");
my $place = $sbx->log_place;
$leaver->value(q{SET idle_in_transaction_session_timeout = '300ms'});
$sbx->wait_ended($leaver->pid);
ok(!is_alive($a), 'R3b must fire: a session that is ended while idle in its transaction: its sandbox is destroyed');
unlike($sbx->log_since($place), qr/could not destroy sandbox "$a"/, 'R3b must fire: no warning in the log');

# The same right after the block, without any other statement or pause.
hang_once();
$leaver = $sbx->user('pool', 'key');
$leaver->value(q{SET sbx_router.abort_cleanup_timeout = '1s'});
$leaver->query('BEGIN');
$a = $leaver->value('SELECT sbx_provision()');
$leaver->value("DO \$\$ BEGIN $caught END \$\$");
$place = $sbx->log_place;
$leaver->vanish;
$sbx->wait_ended($leaver->pid);
ok(!is_alive($a), 'R3b must fire: a client that vanishes after the block: its sandbox is destroyed');
unlike($sbx->log_since($place), qr/could not destroy sandbox "$a"/, 'R3b must fire: no warning in the log');

# One unwinding, many levels: one budget.
clean();
$sbx->fault(op => 'delete', action => 'hang', times => 99);
$s->query('BEGIN');
provision();
for (1 .. 15)
{
	$s->query("SAVEPOINT s$_");
	provision();
}
my $started = time;
$result = $s->query('ROLLBACK');
cmp_ok(time - $started, '<', 8, 'R3 must not fire: one ROLLBACK of many savepoints has one budget, not one each');
is(scalar(@warnings = $result->warnings), 16, 'R3 must not fire: with a warning for each sandbox');

clean();
$sbx->fault(op => 'delete', action => 'hang', times => 99);
my $nested = 'NULL;';
$nested = "BEGIN PERFORM sbx_provision(); $nested RAISE 'inner'; END;" for 1 .. 12;
$started = time;
$result = $s->query("DO \$\$ BEGIN $nested END \$\$");
cmp_ok(time - $started, '<', 8, 'R3 must not fire: nor has one statement of many blocks that all fail');

# More than are under way at once: one that hangs takes the turn of no other.
clean();
$s->value(q{SET sbx_router.abort_cleanup_timeout = '3s'});
$s->query('BEGIN');
$s->query(q{SELECT sbx_provision_many('{}', 60)}) foreach 1 .. 2;
is(count_alive(), 120, 'R3c: a hundred and twenty are launched');
$sbx->fault(op => 'delete', action => 'hang');
$result = $s->query('ROLLBACK');
is(scalar(@warnings = $result->warnings), 1, 'R3c must fire: only the delete that hung is warned of')
  or diag scalar(@warnings) . ' warnings';
is(count_alive(), 1, 'R3c must fire: all others are destroyed');

# A cancel cuts the rest of all levels, not of each.
clean();
$s->value(q{SET sbx_router.abort_cleanup_timeout = '60s'});
$s->query('BEGIN');
for (1 .. 20)
{
	$s->query("SAVEPOINT s$_");
	provision();
}
$sbx->fault(op => 'delete', action => 'hang', times => 99);
my $rollback = $sbx->mark;
$s->send('ROLLBACK');
poll('the first delete arrives', sub { grep { $_->{op} eq 'delete' } $sbx->requests($rollback) });
$started = time;
$admin->value('SELECT pg_cancel_backend($1)', $s->pid);
$result = $s->wait;
cmp_ok(time - $started, '<', 6, 'R3d must fire: a cancelled ROLLBACK of many savepoints has half a second, not one each');
is(scalar(@warnings = $result->warnings), 20, 'R3d must not fire: with a warning for each sandbox');
$sbx->clear_faults;
$s->value('RESET sbx_router.abort_cleanup_timeout');

#
# R4: settings are those of the launch
#

# A new connection for each delete, so that the address is looked at again.
sub fresh_connection { $sbx->fault(op => 'delete', action => 'close-reused', n => 2, times => 9); return }

$s->value(q{CREATE FUNCTION open_one() RETURNS text LANGUAGE sql SET sbx_router.allow_private_addresses = on
	AS 'SELECT sbx_provision()'});
$s->value('SET sbx_router.allow_private_addresses = off');
my %launch = (
	'SET of a function' => sub { $s->value('SELECT open_one()') },
	'SET before and off again' => sub {
		$s->value('SET sbx_router.allow_private_addresses = on');
		my $id = provision();
		$s->value('SET sbx_router.allow_private_addresses = off');
		return $id;
	});
foreach my $how (sort keys %launch)
{
	clean();
	fresh_connection();
	$s->query('BEGIN');
	$a = $launch{$how}->();
	$result = $s->query('ROLLBACK');
	is(scalar(@warnings = $result->warnings), 0, "R4 must fire: $how: ROLLBACK has no warning")
	  or diag $result->everything;
	ok(!is_alive($a), "R4 must fire: $how: and destroys");
}

my $mark = clean();
$s->query('BEGIN');
$s->value('SELECT open_one()');
$s->query('ROLLBACK');

# Under another name, because a connection that is kept is not looked at again.
$sbx->{url} =~ s/127\.0\.0\.1/localhost/;
$s->value('SELECT sbx_update_provider($1, settings => $2)', 'pool', qq({"apiUrl":"${\$sbx->api}"}));
$result = $s->query('SELECT sbx_provision()');
$sbx->{url} =~ s/localhost/127.0.0.1/;
$s->value('SELECT sbx_update_provider($1, settings => $2)', 'pool', qq({"apiUrl":"${\$sbx->api}"}));
is($result->sqlstate, 'SB005', 'R4 must not fire: the setting does not outlive its launch');
like($result->hint, qr/address is not allowed/, 'R4 must not fire: the address is denied');
is($sbx->creates($mark), 1, 'R4 must not fire: nothing was sent');
$s->value('RESET sbx_router.allow_private_addresses');

#
# R5: a warning that cannot be given
#

# Someone whose ROLLBACK leaves a sandbox behind.
sub left_over
{
	my (@settings) = @_;
	my $session = $sbx->user('pool', 'key');

	clean();
	$session->value($_) foreach @settings, q{SET sbx_router.abort_cleanup_timeout = '300ms'};
	$session->query('BEGIN');
	my $id = $session->value('SELECT sbx_provision()');
	$sbx->fault(op => 'delete', action => 'hang', times => 9);
	my $log = $sbx->log_place;
	my $rollback = $session->query('ROLLBACK');
	return ($session, $id, $rollback, $sbx->log_since($log));
}

# Can it be cancelled, and ended?
sub check_interruptible
{
	my ($session, $what) = @_;

	# Errors that can be told.
	$session->value($_) foreach 'RESET lc_messages', 'SET client_encoding = UTF8', q{SET statement_timeout = '200ms'};
	is($session->query('SELECT pg_sleep(5)')->sqlstate, '57014', "$what: statement_timeout works");
	$session->value('SET statement_timeout = 0');
	$session->send('SELECT pg_sleep(8)');
	poll('the statement runs',
		sub { $admin->value(q{SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'}, $session->pid) });
	$admin->value('SELECT pg_terminate_backend($1)', $session->pid);
	is($session->wait->sqlstate, '57P01', "$what: pg_terminate_backend works");
	return;
}

my ($session, $id, $log);
SKIP:
{
	skip "the locale $locale cannot be made here", 5 unless $has_localedef;
	my $probe = $sbx->session;
	skip "the server does not take the locale $locale", 5 if $probe->query("SET lc_messages = '$locale'")->error;
	$result = $probe->query(q{DO $$ BEGIN RAISE WARNING 'x'; END $$});
	skip 'the server has no Russian messages', 5 if ($result->{notices}[0]{S} // '') eq 'WARNING';

	($session, $id, $result, $log) = left_over("SET lc_messages = '$locale'", 'SET client_encoding = LATIN1');
	ok(!$result->error && !$result->closed, 'R5 must fire: a warning cannot be told: the ROLLBACK ends well');
	ok(is_alive($id), 'R5 must fire: a sandbox is left');
	like($log, qr/could not destroy sandbox "$id"/, 'R5 must fire: at least the log says so');
	check_interruptible($session, 'R5 must fire');
}
($session, $id, $result, $log) = left_over();
is(scalar(@warnings = $result->warnings), 1, 'R5 must not fire: a warning that can be told is told');
my @told = $log =~ /(could not destroy sandbox "$id")/g;
is(scalar @told, 1, 'R5 must not fire: once in the log');
check_interruptible($session, 'R5 must not fire');

done_testing();
