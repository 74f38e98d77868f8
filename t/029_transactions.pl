# Every way in which a transaction ends, for every kind of provider: whatever it acquired and
# did not commit is gone again, and nothing that was committed is touched.  The provider's own
# audit is the judge.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxKinds;
use SbxTest;
use Test::More;

my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "log_statement = none\nsbx_router.abort_cleanup_timeout = '30s'\n");
my $admin = $sbx->session;
register_kinds($admin, $sbx->url);
my ($host, $port) = ($sbx->node->host, $sbx->node->port);
my $me = (getpwuid $<)[0];
$admin->query($_) foreach (
	'CREATE TABLE deferred (id integer PRIMARY KEY, other integer REFERENCES deferred DEFERRABLE INITIALLY DEFERRED)',
	'CREATE TABLE launches (request jsonb, fails boolean)',
	q{CREATE FUNCTION launch() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM sbx_provision(NEW.request);
		IF NEW.fails THEN RAISE EXCEPTION 'no'; END IF;
		RETURN NULL;
	END $$},
	'CREATE CONSTRAINT TRIGGER launch AFTER INSERT ON launches DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION launch()',

	# Its deferred constraint fails in the remote COMMIT, which is after our own part of it.
	'CREATE EXTENSION postgres_fdw',
	qq{CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres')},
	qq{CREATE USER MAPPING FOR CURRENT_USER SERVER loopback OPTIONS (user '$me')},
	q{CREATE FOREIGN TABLE remote (id integer, other integer) SERVER loopback OPTIONS (table_name 'deferred')});

my ($kind, $request, $s, $mark);

sub user
{
	my $session = $sbx->session;

	give_keys($session, 'key', $kind);
	return $session;
}

sub provision { return ($_[0] // $s)->value('SELECT sbx_provision($1)', $request) }
my $launch;

# Nothing anywhere, a new session, and one sandbox that is committed and must stay.
my $committed;

sub start
{
	$sbx->clear_faults;
	$sbx->reset;
	$admin->value('DELETE FROM sbx_mapping');
	$s = user();
	$committed = provision();
	$sbx->forget_requests;
	$mark = $sbx->mark;
	return;
}

# After what: only these are alive and recorded, beside the committed one.
sub left
{
	my ($what, @kept) = @_;
	my @expected = sort $committed, @kept;

	poll("$what: sessions are idle", sub { $admin->value(q{SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND backend_type = 'client backend'}) == 0 });
	is_deeply([ sort $sbx->alive ], \@expected, "$kind, $what: must fire: what did not commit is destroyed, and nothing else");
	is_deeply([ map { $_->[0] } @{ $admin->query('SELECT id FROM sbx_mapping ORDER BY id')->rows } ], \@expected, "$kind, $what: and recorded is what is alive");
	return;
}
sub fine { my ($what) = @_; is($s->value('SELECT 1'), 1, "$kind, $what: must not fire: the session goes on"); return }

# Until the provider has got so many requests of that operation.
sub arrives { my ($op, $many) = @_; return poll("$op arrives", sub { (grep { $_->{op} eq $op } $sbx->requests($mark)) >= ($many // 1) }) }
sub hold { my ($op, %rule) = @_; $sbx->fault(provider => $kind, op => $op, action => 'hang', work => JSON::PP::true, %rule); return }
sub cancel { $admin->value("SELECT $_[0](\$1)", $s->pid); return }

# A delete that takes a while, and what is done while it does.
sub during_cleanup
{
	my ($sql, $what) = @_;

	$sbx->fault(provider => $kind, op => 'delete', action => 'delay', ms => 700, times => 3);
	$mark = $sbx->mark;
	$s->send($sql);
	arrives('delete');
	$what->();
	return $s->wait;
}

my @scenarios = (
	[ 'a ROLLBACK' => sub { $s->query('BEGIN'); provision(); $s->query('ROLLBACK') } ],
	[ 'a savepoint rolled back' => sub {
			$s->query('BEGIN');
			my $kept = provision();
			$s->query('SAVEPOINT a');
			provision() foreach 1 .. 2;
			$s->query($_) foreach 'ROLLBACK TO a', 'COMMIT';
			return $kept;
		} ],
	[ 'a savepoint released and rolled back with its parent' => sub {
			$s->query($_) foreach 'BEGIN', 'SAVEPOINT a', 'SAVEPOINT b';
			provision();
			$s->query($_) foreach 'RELEASE b', 'ROLLBACK TO a', 'COMMIT';
			return;
		} ],
	[ 'an error in the statement' => sub { is($s->query("SELECT sbx_provision('$request'), 1 / (random() * 0)::integer")->sqlstate, '22012', 'error'); return } ],
	[ 'a PL/pgSQL exception' => sub {
			$s->value(qq{DO \$\$BEGIN
				BEGIN PERFORM sbx_provision('$request'); PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;
			END\$\$});
			return;
		} ],
	[ 'a cancel in the launch' => sub {
			hold('create');
			$s->send("SELECT sbx_provision('$request')");
			arrives('create');
			cancel('pg_cancel_backend');
			is($s->wait->sqlstate, '57014', 'cancelled');
			return;
		} ],
	[ 'statement_timeout in the launch' => sub {
			hold('create');
			$s->query(q{SET statement_timeout = '300 ms'});
			is($s->query("SELECT sbx_provision('$request')")->sqlstate, '57014', 'timed out');
			$s->query('RESET statement_timeout');
			return;
		} ],
	[ 'a cancel that PL/pgSQL catches' => sub {
			hold('create');
			$s->send(qq{DO \$\$BEGIN PERFORM sbx_provision('$request'); EXCEPTION WHEN query_canceled THEN PERFORM set_config('sbx_test.caught', 'yes', false); END\$\$});
			arrives('create');
			cancel('pg_cancel_backend');
			is($s->wait->sqlstate // 'none', 'none', 'the block goes on');
			is($s->value(q{SELECT current_setting('sbx_test.caught')}), 'yes', 'in its handler');
			return;
		} ],
	[ 'a second cancel in the cleanup of a ROLLBACK' => sub {
			$s->query('BEGIN');
			provision();
			is(during_cleanup('ROLLBACK', sub { cancel('pg_cancel_backend') })->sqlstate // 'none', 'none', 'ROLLBACK ends well');
			return;
		} ],
	[ 'a second cancel in the cleanup of an exception block' => sub {
			my $result = during_cleanup(
				qq{DO \$\$BEGIN
					BEGIN PERFORM sbx_provision('$request'); PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN PERFORM pg_sleep(0.01); END;
				END\$\$}, sub { cancel('pg_cancel_backend') });
			is($result->sqlstate, '57014', 'hits the statement after it');
			return;
		} ],
	[ 'a termination in the launch' => sub {
			hold('create');
			$s->send("SELECT sbx_provision('$request')");
			arrives('create');
			cancel('pg_terminate_backend');
			ok($s->wait->closed, 'terminated');
			$sbx->wait_ended($s->pid);
			$s = user();
			return;
		} ],
	[ 'a termination in a ROLLBACK' => sub {
			$s->query('BEGIN');
			provision();
			during_cleanup('ROLLBACK', sub { cancel('pg_terminate_backend') });
			$sbx->wait_ended($s->pid);
			$s = user();
			return;
		} ],
	[ 'a termination between statements' => sub {
			$s->query('BEGIN');
			provision();
			cancel('pg_terminate_backend');
			$sbx->wait_ended($s->pid);
			$s = user();
			return;
		} ],
	[ 'idle_in_transaction_session_timeout' => sub {
			$s->query(q{SET idle_in_transaction_session_timeout = '200 ms'});
			$s->query('BEGIN');
			provision();
			$sbx->wait_ended($s->pid);
			$s = user();
			return;
		} ],
	[ 'a client that vanishes' => sub {
			$s->query('BEGIN');
			provision();
			$s->vanish;
			$sbx->wait_ended($s->pid);
			$s = user();
			return;
		} ],
	[ 'a deferred constraint at COMMIT' => sub {
			$s->query('BEGIN');
			provision();
			$s->query('INSERT INTO deferred VALUES (1, 2)');
			is($s->query('COMMIT')->sqlstate, '23503', 'fails');
			return;
		} ],
	[ 'a launch in a deferred trigger that fails' => sub { is($s->query("INSERT INTO launches VALUES ('$request', true)")->sqlstate, 'P0001', 'fails'); return } ],
	[ 'a launch in a deferred trigger that ends well' => sub {
			$s->value("INSERT INTO launches VALUES ('$request', false)");
			return $s->value('SELECT id FROM sbx_mapping WHERE id <> $1', $committed);
		} ],
	[ 'an error after our part of COMMIT' => sub {
			$s->query('BEGIN');
			provision();
			$s->value('INSERT INTO remote VALUES (1, 2)');
			is($s->query('COMMIT')->sqlstate, '23503', 'the remote COMMIT fails');
			return;
		} ],
	[ 'a PREPARE that fails' => sub {
			$s->query($_) foreach 'BEGIN', 'SELECT pg_current_xact_id()', q{PREPARE TRANSACTION 'taken'}, 'BEGIN';
			provision();
			is($s->query(q{PREPARE TRANSACTION 'taken'})->sqlstate, '42710', 'the name is taken');
			$s->query(q{ROLLBACK PREPARED 'taken'});
			return;
		} ],
	[ 'a prepared transaction that is committed' => sub {
			$s->query('BEGIN');
			my $kept = provision();
			$s->query($_) foreach q{PREPARE TRANSACTION 'mine'}, q{COMMIT PREPARED 'mine'};
			return $kept;
		} ],
	[ 'a procedure that commits, launches and fails' => sub {
			is($s->query(qq{DO \$\$BEGIN
				PERFORM sbx_provision('$request'); COMMIT; PERFORM sbx_provision('$request'); PERFORM 1 / 0;
			END\$\$})->sqlstate, '22012', 'fails');
			return $s->value('SELECT id FROM sbx_mapping WHERE id <> $1', $committed);
		} ],
	[ 'a role that is set in between' => sub {
			$s->query($_) foreach 'BEGIN', q{SET LOCAL sbx_router.abort_cleanup_timeout = '20s'};
			provision();
			$s->query($_) foreach 'SET ROLE pg_monitor', 'ROLLBACK';
			return;
		} ],
	[ 'RESET ALL and no credential left' => sub {
			$s->query('BEGIN');
			provision();
			$s->query($_) foreach 'RESET ALL', 'SELECT sbx_clear_credentials()', 'ROLLBACK';
			return;
		} ],
	[ 'a row that a trigger refuses' => sub {
			$admin->query($_) foreach (
				q{CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'not today' USING ERRCODE = 'ZZ001'; END$$},
				'CREATE TRIGGER refuse BEFORE INSERT ON sbx_mapping FOR EACH ROW EXECUTE FUNCTION refuse()');
			my $result = $s->query("SELECT sbx_provision('$request')");
			is($result->sqlstate . ' ' . $result->message, 'ZZ001 not today', 'its error arrives unchanged');
			is(scalar(my @warnings = $result->warnings), 0, 'without a warning');
			$admin->query('DROP FUNCTION refuse CASCADE');
			return;
		} ],
	[ 'a row whose insert is cancelled' => sub {
			$admin->query($_) foreach 'BEGIN', 'LOCK TABLE sbx_mapping IN SHARE MODE';
			$s->send("SELECT sbx_provision('$request')");
			poll('the insert waits', sub { $admin->value('SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1', $s->pid) == 1 });
			cancel('pg_cancel_backend');
			is($s->wait->sqlstate, '57014', 'cancelled');
			$admin->query('COMMIT');
			return;
		} ],
	[ 'a thousand savepoints' => sub {
			$s->query('BEGIN');
			$s->query("SAVEPOINT s$_; SELECT pg_current_xact_id()") foreach 1 .. 1000;
			provision();
			is($s->query('ROLLBACK TO s1')->sqlstate // 'none', 'none', 'rolled back to the first');
			my $kept = provision();
			$s->query('COMMIT');
			return $kept;
		} ]);

foreach my $each (kinds())
{
	$kind = $each;
	$request = qq({"providerId":"$kind"});
	foreach my $scenario (@scenarios)
	{
		my ($what, $run) = @$scenario;

		start();
		my @kept = $run->();
		left($what, grep { defined && /^sbx_/ } @kept);
		fine($what);
	}
}

# A table that cannot grow: the backend may write no longer files than it is.  WAL is in files
# of 16 MB, so it has to be larger than that.  The fill factor leaves no page with room.
foreach my $each (kinds())
{
	$kind = $each;
	$request = qq({"providerId":"$kind"});
	$admin->query($_) foreach 'TRUNCATE sbx_mapping', 'ALTER TABLE sbx_mapping SET (fillfactor = 10)';
	start();
	$admin->value(q{INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, name, state, request, owner)
		SELECT 'sbx_' || md5(n::text), $1, 'none-' || n, repeat(md5(n::text), 40), 'started', '{}', quote_ident(current_user)::regrole
		FROM generate_series(1, 2500) n}, $kind);
	my $size = $admin->value(q{SELECT pg_relation_size('sbx_mapping')});
	cmp_ok($size, '>', 17 * 1024 * 1024, "$kind: the table is large enough");
	is(system('prlimit', '--pid', $s->pid, "--fsize=$size:"), 0, "$kind: and cannot grow");
	my ($result, %made);
	for (1 .. 100)
	{
		$result = $s->query("SELECT sbx_provision('$request')");
		last if $result->error;
		$made{ $result->value } = 1;
	}
	like($result->message // '', qr/^could not extend file/, "$kind: must fire: the error of the row that has no room arrives unchanged");
	is_deeply([ sort $sbx->alive ], [ sort $committed, keys %made ], "$kind: and its sandbox is destroyed, no other");
	is_deeply($s->query(q{SELECT event, detail ->> 'succeeded' FROM (SELECT * FROM sbx_recent_events() WITH ORDINALITY ORDER BY ordinality DESC LIMIT 2) e ORDER BY ordinality})->rows,
		[ [ 'mapping.failed', undef ], [ 'cleanup.finished', 'true' ] ], "$kind: events tell it");
	fine('a table that cannot grow');
	$admin->query($_) foreach 'TRUNCATE sbx_mapping', 'ALTER TABLE sbx_mapping RESET (fillfactor)';
}

# No time is no clean-up, and that is said.
foreach my $each (kinds())
{
	$kind = $each;
	$request = qq({"providerId":"$kind"});
	start();
	$s->query($_) foreach q{SET sbx_router.abort_cleanup_timeout = 0}, 'BEGIN';
	my $id = provision();
	my $result = $s->query('ROLLBACK');
	like(join('', map { $_->{M} } @{ $result->{notices} }), qr/^could not destroy sandbox "$id"$/, "$kind: must fire: without time a warning names what is left");
	is_deeply([ sort $sbx->alive ], [ sort $committed, $id ], "$kind: and it is left");
	is($s->execute(q{SELECT count(*) FROM sbx_find($1, '{}') WHERE sbx_id IS NULL AND labels ? 'sbx-router-id'}, $kind)->value, 1,
		"$kind: where it can be found as what no row leads to");
	is($s->value(q{SELECT detail ->> 'succeeded' FROM sbx_recent_events() WITH ORDINALITY ORDER BY ordinality DESC LIMIT 1}), 'false', "$kind: an event says so, too");
}

# Refused before any request: there nothing could be undone or recorded.
foreach my $each (kinds())
{
	$kind = $each;
	$request = qq({"providerId":"$kind"});
	start();
	$s->query('BEGIN READ ONLY');
	is($s->query("SELECT sbx_provision('$request')")->sqlstate, '25006', "$kind: must fire: a read-only transaction");
	$s->query('ROLLBACK');
	$admin->query('DROP MATERIALIZED VIEW IF EXISTS restricted');
	is($admin->query("CREATE MATERIALIZED VIEW restricted AS SELECT sbx_provision('$request') AS id")->sqlstate, '42501',
		"$kind: must fire: a security-restricted operation");
	$s->query($_) foreach 'SET force_parallel_mode = on', 'SET parallel_setup_cost = 0', 'SET parallel_tuple_cost = 0';
	my $kept = $s->value("SELECT sbx_provision('$request') FROM (SELECT count(*) FROM pg_class) c");
	left('a plan that could be parallel', $kept);
	is(scalar(grep { $_->{op} eq 'create' } $sbx->requests($mark)), 1, "$kind: must not fire: it ran once, in the leader");
}

# Fast shutdown: sessions are ended, and clean up.
{
	my @sessions;

	$sbx->reset;
	foreach my $each (kinds())
	{
		$kind = $each;
		$request = qq({"providerId":"$kind"});
		push @sessions, user();
		$sessions[-1]->query('BEGIN');
		provision($sessions[-1]);
	}
	is(scalar(my @before = $sbx->alive), scalar(@sessions), 'one is there for each kind');
	$sbx->node->stop('fast');
	is_deeply([ $sbx->alive ], [], 'must fire: a fast shutdown leaves nothing');
	$sbx->node->start;
	$admin = $sbx->session;
}

# A crash cannot: what carries our label can be found by it.
{
	$kind = 'daytona';
	$request = qq({"providerId":"$kind"});
	$s = user();
	$s->query('BEGIN');
	my $id = provision();
	$sbx->node->stop('immediate');
	is_deeply([ $sbx->alive ], [$id], 'must not fire: an immediate shutdown destroys nothing');
	$sbx->node->start;
	$s = user();
	is($s->execute('SELECT count(*) FROM sbx_find($1, $2)', $kind, qq({"sbx-router-id":"$id"}))->value, 1, 'but it can be found by its label');
}

done_testing();
