# Keys reach the provider and nothing else: no log, no table, no WAL, no
# statistics, no activity, no dump, however they are given.
#
# Every key begins with "sbxkey-" and names the way it was given, so that one
# search finds all of them and says which way leaked.
use strict;
use warnings;

use File::Find;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

# Both are optional parts of the server.
sub installed
{
	my ($library) = @_;
	my $folder = `pg_config --pkglibdir`;

	chomp $folder;
	return -e "$folder/$library.so";
}

my $statements = installed('pg_stat_statements');
my $explain = installed('auto_explain');
my $preload = join ',', ($statements ? 'pg_stat_statements' : ()), ($explain ? 'auto_explain' : ());

my $sbx = SbxTest->new(
	conf => qq{
shared_preload_libraries = '$preload'
restart_after_crash = on
log_statement = all
log_duration = on
log_min_duration_statement = 0
log_parameter_max_length = -1
log_parameter_max_length_on_error = -1
log_error_verbosity = verbose
log_min_messages = debug1
log_min_error_statement = debug1
track_activity_query_size = 16kB
} . (   $explain
		? qq{
auto_explain.log_min_duration = 0
auto_explain.log_analyze = on
auto_explain.log_verbose = on
auto_explain.log_nested_statements = on
}
		: '')
	  . ($statements ? "pg_stat_statements.track = all\n" : ''));
my $node = $sbx->node;
$sbx->register('pool');
my $watch = $sbx->session;
$watch->value('CREATE EXTENSION pg_stat_statements') if $statements;

my $copy =
  q{COPY sbx_credential_input FROM STDIN WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')};

#
# Where a key could be found
#

# The ways ("copy-valid", ...) whose keys are in a text.
sub leaks
{
	my ($text) = @_;
	my %found;

	$found{$1} = 1 while ($text // '') =~ /sbxkey-([a-z0-9]+(?:-[a-z0-9]+)*)/g;
	return join ' ', sort keys %found;
}

sub server_log { return $sbx->log_since($_[0] // 0) }

sub activity
{
	return $watch->value(
		q{SELECT string_agg(query, E'\n') FROM pg_stat_activity WHERE pid <> pg_backend_pid()});
}

sub statistics
{
	return $statements
	  ? $watch->value(q{SELECT string_agg(query, E'\n') FROM pg_stat_statements})
	  : '';
}

# Every file of the data directory, as one list of ways.
sub files
{
	my %found;

	find(
		{
			no_chdir => 1,
			wanted => sub {
				return unless -f $_ && open my $file, '<:raw', $_;
				local $/;
				my $bytes = <$file>;
				$found{$_} = 1 foreach split / /, leaks($bytes);
			}
		},
		$node->data_dir);
	return join ' ', sort keys %found;
}

sub dump_all
{
	my $text;

	IPC::Run::run([ 'pg_dump', '-h', $node->host, '-p', $node->port, 'postgres' ], '>', \$text)
	  or die 'pg_dump failed';
	return $text;
}

#
# The search works
#

my $control = $sbx->session;
$control->value(q{CREATE TABLE diary AS SELECT 'sbxkey-control-table'::text AS line});
$control->value(q{DO $$ BEGIN PERFORM 'sbxkey-control-do'; END $$});
is(leaks(activity()), 'control-do', 'control: pg_stat_activity is looked at');
like(leaks(server_log()), qr/control-do control-table/, 'control: the server log is looked at');
is(leaks(dump_all()), 'control-table', 'control: the dump is looked at');
like(leaks(statistics()), qr/control-do/, 'control: pg_stat_statements is looked at')
  if $statements;
$control->finish;

#
# The ways to give a key
#

# The session uses the pool with the key that it was given.
sub check_usable
{
	my ($session, $way) = @_;

	is($session->value('SELECT string_agg(provider, $1) FROM sbx_credentials', ','),
		'pool', "$way: the key is there");
	my $id = $session->value('SELECT sbx_provision()');
	is($session->value("SELECT sbx_destroy('$id')"), 't', "$way: and good for the provider");
	return;
}

# Literals are kept out as far as possible, and no further: what fails before our
# code is reached is seen in the activity, and pg_stat_statements keeps a DO.
my %excused = ('literal-unknown-function' => 'activity', 'literal-do' => 'statistics');

sub check_clean
{
	my ($way, $place) = @_;
	my $excused = $excused{$way} // '';

	is(leaks(server_log($place)), '', "$way: not in the server log");
	is(leaks(activity()), '', "$way: not in pg_stat_activity") if $excused ne 'activity';
	unlike(statistics(), qr/sbxkey-$way/, "$way: not in pg_stat_statements")
	  if $statements && $excused ne 'statistics';
	return;
}

sub document
{
	my ($way) = @_;

	return qq({"provider":"pool","credential":"sbxkey-$way"});
}

my @preloaded = (options => '-c session_preload_libraries=sbx_router');

# sub: given a new session and the key, hand it over; returns the result.
my %valid = (
	'copy-csv' => sub { $_[0]->copy_in($copy, document('copy-csv') . "\n") },
	'copy-object' => sub {
		$_[0]->copy_in($copy,
			qq({"provider":"pool","credential":{"apiKey":"$_[1]"},"scope":"session"}\n));
	},
	'copy-text' =>
	  sub { $_[0]->copy_in('COPY sbx_credential_input FROM STDIN', document('copy-text') . "\n") },
	'bind-secret' => sub { $_[0]->execute('SELECT sbx_set_credential($1, $2)', 'pool', $_[1]) },
	'bind-text' =>
	  sub { $_[0]->execute('SELECT sbx_set_credential($1, $2::text::sbx_secret)', 'pool', $_[1]) },
	'bind-object' => sub {
		$_[0]->execute('SELECT sbx_set_credential($1, $2)', 'pool', qq({"apiKey":"$_[1]"}));
	},
	'bind-view' =>
	  sub { $_[0]->execute('INSERT INTO sbx_credential_input VALUES ($1)', document('bind-view')) },
	'bind-function' => sub { $_[0]->execute('SELECT give($1)', $_[1]) });
my %valid_preloaded = (
	'literal' => sub { $_[0]->query("SELECT sbx_set_credential('pool', '$_[1]')") },
	'literal-view' => sub {
		$_[0]->query("INSERT INTO sbx_credential_input VALUES ('" . document('literal-view') . "')");
	},
	'literal-do' =>
	  sub { $_[0]->query("DO \$\$ BEGIN PERFORM sbx_set_credential('pool', '$_[1]'); END \$\$") },
	'literal-first' =>
	  sub { $_[0]->query("SELECT 1; SELECT sbx_set_credential('pool', '$_[1]'); SELECT 2") });

$watch->value(
	q{CREATE FUNCTION give(key sbx_secret) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN PERFORM sbx_set_credential('pool', key); END $$});

foreach my $way (sort keys %valid, sort keys %valid_preloaded)
{
	my $session = $sbx->session($valid_preloaded{$way} ? @preloaded : ());
	my $place = $sbx->log_place;
	my $result = ($valid{$way} // $valid_preloaded{$way})->($session, "sbxkey-$way");

	ok(!$result->error, "$way: succeeds") or diag $result->everything;
	check_clean($way, $place);
	check_usable($session, $way);
	$session->finish;
}

# For the transaction only.
{
	my $session = $sbx->session;
	my $place = $sbx->log_place;

	$session->query('BEGIN');
	$session->execute('SELECT sbx_set_local_credential($1, $2)', 'pool', 'sbxkey-bind-local');
	check_clean('bind-local', $place);
	check_usable($session, 'bind-local');
	$session->query('COMMIT');
	is($session->value('SELECT count(*) FROM sbx_credentials'),
		0, 'bind-local: gone with its transaction');
	$session->query('BEGIN');
	$session->copy_in($copy,
		qq({"provider":"pool","credential":"sbxkey-copy-local","scope":"local"}\n));
	check_clean('copy-local', $place);
	check_usable($session, 'copy-local');
	$session->query('ROLLBACK');
	is($session->value('SELECT count(*) FROM sbx_credentials'),
		0, 'copy-local: gone with its transaction');
	$session->finish;
}

#
# The same ways with something wrong: an error shows as much as it can
#

my %invalid = (
	'copy-no-json' => sub { $_[0]->copy_in($copy, qq({"provider":"pool","credential":"$_[1]\n)) },
	'copy-two-columns' =>
	  sub { $_[0]->copy_in($copy, document('copy-two-columns') . "\x02more\n") },
	'copy-open-quote' => sub { $_[0]->copy_in($copy, "\x01" . document('copy-open-quote') . "\n") },
	'copy-default-csv' => sub {
		$_[0]->copy_in('COPY sbx_credential_input FROM STDIN WITH (FORMAT csv)',
			document('copy-default-csv') . "\n");
	},
	'copy-other-spelling' => sub {
		$_[0]->copy_in(q{COPY U&"sbx_credential\005Finput" FROM STDIN WITH (FORMAT csv)},
			document('copy-other-spelling') . "\n");
	},
	'copy-unknown-pool' =>
	  sub { $_[0]->copy_in($copy, qq({"provider":"none","credential":"$_[1]"}\n)) },
	'copy-no-pool' => sub { $_[0]->copy_in($copy, qq({"credential":"$_[1]"}\n)) },
	'copy-unknown-member' =>
	  sub { $_[0]->copy_in($copy, qq({"provider":"pool","credential":"x","$_[1]":1}\n)) },
	'copy-unknown-field' =>
	  sub { $_[0]->copy_in($copy, qq({"provider":"pool","credential":{"$_[1]":"x"}}\n)) },
	'copy-blank' => sub { $_[0]->copy_in($copy, qq({"provider":"pool","credential":"$_[1] x"}\n)) },
	'copy-scope' =>
	  sub { $_[0]->copy_in($copy, qq({"provider":"pool","credential":"$_[1]","scope":"$_[1]"}\n)) },
	'copy-second-line' => sub { $_[0]->copy_in($copy, document('copy-first-line') . "\n$_[1]\n") },
	'copy-bad-byte' =>
	  sub { $_[0]->copy_in_bytes($copy, qq({"provider":"pool","credential":"$_[1]\xFF"}\n)) },
	'bind-blank' => sub { $_[0]->execute('SELECT sbx_set_credential($1, $2)', 'pool', "$_[1] x") },
	'bind-blank-text' => sub {
		$_[0]->execute('SELECT sbx_set_credential($1, $2::text::sbx_secret)', 'pool', "$_[1] x");
	},
	'bind-unknown-pool' =>
	  sub { $_[0]->execute('SELECT sbx_set_credential($1, $2)', 'none', $_[1]) },
	'bind-no-json' =>
	  sub { $_[0]->execute('SELECT sbx_set_credential($1, $2)', 'pool', qq({"apiKey":"$_[1]")) },
	'bind-unknown-field' =>
	  sub { $_[0]->execute('SELECT sbx_set_credential($1, $2)', 'pool', qq({"$_[1]":"x"})) },
	'bind-view-no-json' =>
	  sub { $_[0]->execute('INSERT INTO sbx_credential_input VALUES ($1)', $_[1]) },
	'bind-in-function' => sub { $_[0]->execute('SELECT give($1)', "$_[1] x") },
	'bind-then-error' => sub {
		$_[0]->execute('SELECT sbx_set_credential($1, $2), 1 / (random() * 0)::int', 'pool', $_[1]);
	});
my %invalid_preloaded = (
	'literal-blank' => sub { $_[0]->query("SELECT sbx_set_credential('pool', '$_[1] x')") },
	'literal-unknown-pool' => sub { $_[0]->query("SELECT sbx_set_credential('none', '$_[1]')") },
	'literal-unknown-function' =>
	  sub { $_[0]->query("SELECT sbx_set_credential('pool', '$_[1]', 3)") },
	'literal-view-no-json' =>
	  sub { $_[0]->query("INSERT INTO sbx_credential_input VALUES ('$_[1]')") },
	'literal-then-error' =>
	  sub { $_[0]->query("SELECT sbx_set_credential('pool', '$_[1]'); SELECT 1/0") });

foreach my $way (sort keys %invalid, sort keys %invalid_preloaded)
{
	my $session = $sbx->session($invalid_preloaded{$way} ? @preloaded : ());
	my $place = $sbx->log_place;
	my $result = ($invalid{$way} // $invalid_preloaded{$way})->($session, "sbxkey-$way");

	ok($result->error, "$way: is an error");
	unlike(join("\n", $result->message, $result->detail // '', $result->hint // ''),
		qr/sbxkey/, "$way: which does not repeat the key");
	check_clean($way, $place);

	# The next error is a stranger to all this and shows itself again.
	$place = $sbx->log_place;
	$session->query('SELECT 1/0 AS visible');
	like(
		server_log($place),
		qr{STATEMENT:  SELECT 1/0 AS visible},
		"$way: the next statement is logged as ever");
	$session->finish;
}

#
# While a key is in use
#

{
	my $session = $sbx->session(@preloaded);

	$session->query("SELECT sbx_set_credential('pool', 'sbxkey-in-use')");
	my $place = $sbx->log_place;
	my $mark = $sbx->mark;
	$sbx->fault(op => 'create', action => 'hang', work => JSON::PP::true);
	$session->send('SELECT sbx_provision()');
	$sbx->wait_requests('POST', 'create', $mark);
	check_clean('in-use', $place);
	$watch->value('SELECT pg_cancel_backend($1)', $session->pid);
	my $result = $session->wait;
	is($result->sqlstate, '57014', 'in-use: cancelled');
	is(leaks($result->everything), '', 'in-use: the error does not show the key');
	check_clean('in-use', $place);
	is(leaks($session->value(q{SELECT string_agg(e::text, E'\n') FROM sbx_recent_events() e})),
		'', 'in-use: nor do events');
	is($session->value('SELECT $1::sbx_secret', 'sbxkey-output'),
		'********', 'a value of sbx_secret is never shown');
	is(leaks($session->value(q{SELECT string_agg(c::text, ',') FROM sbx_credentials c})),
		'', 'nor by the view of credentials');
	$session->finish;
}

#
# Gone when they should be
#

foreach my $how (
	'DISCARD ALL',
	'RESET ALL',
	'SELECT sbx_clear_credentials()',
	q{SELECT sbx_clear_credentials('pool')})
{
	my $session = $sbx->user('pool', 'sbxkey-gone');

	check_usable($session, "before $how");
	$session->value($how);
	is($session->value('SELECT count(*) FROM sbx_credentials'), 0, "$how: no key is left");
	is($session->query('SELECT sbx_provision()')->sqlstate, 'SB003', "$how: and none can be used");
	$session->finish;
}
{
	my $session = $sbx->user('pool', 'sbxkey-stays');

	$session->value('DISCARD PLANS');
	$session->value('RESET search_path');
	$session->value(q{SELECT sbx_clear_credentials('another')});
	check_usable($session, 'other resets');
	$session->query('BEGIN');
	$session->execute('SELECT sbx_set_credential($1, $2)', 'pool', 'sbxkey-rolled-back');
	$session->query('ROLLBACK');
	is($session->value('SELECT count(*) FROM sbx_credentials'),
		0, 'set in a transaction that is rolled back: no key is left');
	$session->finish;
}

#
# What is written down
#

is(leaks(dump_all()), 'control-table', 'the dump has none of them');
$watch->value('CHECKPOINT');
$node->stop('fast');
is( files(),
	$statements ? 'control-do control-table literal-do' : 'control-table',
	'the data directory, WAL and statistics included, has none of them');
undef $sbx->{watch};
$node->start;

#
# A crash: the server log names the statement of the process that died
#

{
	my $session = $sbx->session(@preloaded);
	my $place = $sbx->log_place;

	$session->query("SELECT sbx_set_credential('pool', 'sbxkey-crash')");
	kill 'KILL', $session->pid;
	$session->wait;
	poll(
		'the server is up again',
		sub {
			eval { $watch = $sbx->session }
		});
	like(
		server_log($place),
		qr/Failed process was running: /,
		'crash: the log names what was running');
	is(leaks(server_log($place)), '', 'crash: without the key');
}

is(leaks(server_log()), 'control-do control-table', 'the server log has none of them');

done_testing();
