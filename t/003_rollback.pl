# A sandbox belongs to the (sub)transaction that provisioned it: it stays if that
# commits, and is destroyed if not.
use strict;
use warnings;

use SbxTest;
use Test::More;
use Time::HiRes qw(time);

# Nothing is run here, and a hundred real sandboxes would take their time.  The
# budget of a rollback is long, so that a slow machine does not run into it.
my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "sbx_router.max_launches_per_statement = 1000\nsbx_router.abort_cleanup_timeout = '60s'\n");
$sbx->register('pool');
my $s = $sbx->user('pool', 'key');

sub provision { return $s->value('SELECT sbx_provision()') }

# Which of these are alive, as a list of names?
sub alive
{
	my @ids = @_;
	my %alive = map { $_ => 1 } $sbx->alive;

	return join ' ', map { $alive{$_} ? 'alive' : 'gone' } @ids;
}

sub rows { return $s->value('SELECT count(*) FROM sbx_mapping') }

# Start over: nothing anywhere.
sub clean
{
	$sbx->reset;
	$s->query('TRUNCATE sbx_mapping');
	return $sbx->mark;
}

# Statements that succeed, without a warning.
sub quietly
{
	my (@statements) = @_;

	foreach my $sql (@statements)
	{
		my $result = $s->query($sql);
		my $what = substr($sql =~ s/\s+/ /gr, 0, 60);
		ok(!$result->error && !$result->warnings, "no error and no warning: $what")
		  or diag $result->everything;
	}
	return;
}

#
# Transactions
#

my $mark = clean();
$s->query('BEGIN');
my $a = provision();
is(alive($a), 'alive', 'inside the transaction the sandbox is there');
quietly('ROLLBACK');
is(alive($a), 'gone', 'ROLLBACK destroys it');
is(rows(), 0, 'no row is left');
is($sbx->creates($mark), 1, 'one create');
is($sbx->deletes($mark), 1, 'one delete');

$mark = clean();
$s->query('BEGIN');
$a = provision();
quietly('COMMIT');
is(alive($a), 'alive', 'COMMIT keeps it');
quietly('BEGIN', 'ROLLBACK');
is(alive($a), 'alive', 'a later ROLLBACK does not touch it');
is($sbx->deletes($mark), 0, 'no delete');

$s->query('BEGIN');
my $b = provision();
is($s->query('SELECT 1/0')->sqlstate, '22012', 'an error in the transaction');
is(alive($a, $b), 'alive gone', 'destroys at once what the transaction made, and nothing else');
is(($s->query('COMMIT')->tags)[0], 'ROLLBACK', 'COMMIT of a failed transaction is a ROLLBACK');
is(rows(), 1, 'the committed row stays');

$mark = clean();
is($s->query('SELECT sbx_provision() || (1 / (random() * 0)::int)::text')->sqlstate,
	'22012', 'a statement that fails after it provisioned');
is($sbx->creates($mark), 1, 'it did provision');
is(alive(map { $_->{name} } $sbx->audit), 'gone', 'its sandbox is destroyed');

$mark = clean();
$s->query('BEGIN');
$a = provision();
quietly('ROLLBACK AND CHAIN');
is(alive($a), 'gone', 'ROLLBACK AND CHAIN destroys');
$b = provision();
quietly('COMMIT');
is(alive($b), 'alive', 'the chained transaction is another one');

clean();
my $leaver = $sbx->user('pool', 'key');
$leaver->query('BEGIN');
$a = $leaver->value('SELECT sbx_provision()');
$leaver->finish;
$sbx->wait_none_alive;
is(alive($a), 'gone', 'a session that ends inside its transaction leaves nothing');

#
# Savepoints
#

clean();
$s->query('BEGIN');
$a = provision();
$s->query('SAVEPOINT one');
$b = provision();
$s->query('SAVEPOINT two');
my $c = provision();
quietly('ROLLBACK TO two');
is(alive($a, $b, $c), 'alive alive gone', 'ROLLBACK TO destroys what came after the savepoint');
$c = provision();
quietly('ROLLBACK TO one');
is(alive($a, $b, $c), 'alive gone gone', 'nested savepoints included');
quietly('COMMIT');
is(alive($a, $b, $c), 'alive gone gone', 'COMMIT keeps the rest');
is(rows(), 1, 'and its row only');

clean();
$s->query('BEGIN; SAVEPOINT one');
$a = provision();
quietly('RELEASE one');
is(alive($a), 'alive', 'RELEASE keeps');
quietly('ROLLBACK');
is(alive($a), 'gone', 'what was released belongs to the outer transaction');

clean();
$s->query('BEGIN; SAVEPOINT one; SAVEPOINT two');
$a = provision();
quietly('RELEASE two', 'ROLLBACK TO one');
is(alive($a), 'gone', 'released into a savepoint that is rolled back');
$a = provision();
quietly('RELEASE one', 'COMMIT');
is(alive($a), 'alive', 'released and committed');

clean();
$s->query('BEGIN');
$a = provision();
$s->query('DECLARE cursor CURSOR FOR SELECT 1 / x FROM (VALUES (1), (0)) AS v (x)');
$s->query('SAVEPOINT one');
is($s->query('FETCH ALL FROM cursor')->sqlstate, '22012', 'a cursor fails');
quietly('ROLLBACK TO one', 'CLOSE cursor');
is(alive($a), 'alive', 'which is nothing to a sandbox made before');
quietly('COMMIT');
is(alive($a), 'alive', 'and is not at COMMIT either');

#
# PL/pgSQL
#

clean();
quietly(
	q{
	CREATE TABLE made (what text, id text);
	CREATE FUNCTION attempt(fails boolean) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE id text;
	BEGIN
		BEGIN
			id := sbx_provision();
			IF fails THEN RAISE EXCEPTION 'of our own'; END IF;
		EXCEPTION WHEN raise_exception THEN
			RETURN 'caught ' || id;
		END;
		RETURN 'made ' || id;
	END $$});
$s->query('BEGIN');
$a = provision();
my ($word, $inner) = split / /, $s->value('SELECT attempt(true)');
is($word, 'caught', 'an EXCEPTION block that catches');
is(alive($a, $inner), 'alive gone', 'destroys what was made inside, and no more');
($word, $b) = split / /, $s->value('SELECT attempt(false)');
is($word, 'made', 'a block that ends well');
is(alive($a, $b), 'alive alive', 'keeps');
quietly('COMMIT');
is(alive($a, $b, $inner), 'alive alive gone', 'COMMIT keeps the same');
is(rows(), 2, 'and their rows');

$mark = clean();
quietly(
	q{DO $$
	BEGIN
		FOR i IN 1 .. 50 LOOP
			PERFORM attempt(i % 2 = 0);
		END LOOP;
	END $$});
is($sbx->creates($mark), 50, 'blocks in a loop: each one provisions');
is(scalar(my @kept = $sbx->alive), 25, 'and those that end well keep');
is(rows(), 25, 'with their rows');

clean();
is( $s->query(
		q{DO $$
	BEGIN
		INSERT INTO made VALUES ('first', sbx_provision());
		COMMIT;
		INSERT INTO made VALUES ('second', sbx_provision());
		RAISE EXCEPTION 'too late';
	END $$})->sqlstate,
	'P0001',
	'DO with a COMMIT and then an error');
my @names = map { $_->{name} } $sbx->audit;
is(alive(@names), 'alive gone', 'the committed one stays, the other is destroyed');
is( $s->value(
		q{SELECT string_agg(what || ' ' || (id IN (SELECT id FROM sbx_mapping))::text, ',') FROM made}
	),
	'first true',
	'and its row stays');
quietly('TRUNCATE made');

clean();
quietly(
	q{DO $$
	BEGIN
		PERFORM sbx_provision();
		ROLLBACK;
		PERFORM sbx_provision();
	END $$});
is(alive(map { $_->{name} } $sbx->audit),
	'gone alive', 'DO with a ROLLBACK: the first is destroyed, the second stays');

#
# Failing at COMMIT
#

clean();
quietly(
	q{
	CREATE TABLE parent (id int PRIMARY KEY);
	CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)});
$s->query('BEGIN');
$a = provision();
quietly('INSERT INTO child VALUES (1)');
is(alive($a), 'alive', 'before COMMIT all is well');
is($s->query('COMMIT')->sqlstate, '23503', 'a deferred constraint fails at COMMIT');
is(alive($a), 'gone', 'the sandbox is destroyed');
is(rows(), 0, 'no row is left');

clean();
quietly(
	q{
	CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM sbx_provision();
		IF NEW.id < 0 THEN RAISE EXCEPTION 'too late'; END IF;
		RETURN NULL;
	END $$;
	CREATE TABLE watched (id int);
	CREATE CONSTRAINT TRIGGER late AFTER INSERT ON watched DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION late()});
is($s->query('INSERT INTO watched VALUES (-1)')->sqlstate,
	'P0001', 'made in a deferred trigger that fails');
is(alive(map { $_->{name} } $sbx->audit), 'gone', 'it is destroyed');
clean();
quietly('INSERT INTO watched VALUES (1)');
is(alive(map { $_->{name} } $sbx->audit),
	'alive', 'made in a deferred trigger that succeeds, it stays');
is(rows(), 1, 'with its row');

#
# Destroyed by hand
#

$mark = clean();
$s->query('BEGIN');
$a = provision();
is($s->value("SELECT sbx_destroy('$a')"), 't', 'provisioned and destroyed in one transaction');
quietly('COMMIT');
is($sbx->deletes($mark), 1, 'COMMIT deletes nothing more');
$s->query('BEGIN');
$a = provision();
$s->value("SELECT sbx_destroy('$a')");
quietly('ROLLBACK');
is($sbx->deletes($mark), 2, 'ROLLBACK does not either');
is(rows(), 0, 'no row is left');

$mark = clean();
$s->query('BEGIN');
$a = provision();
$s->query('SAVEPOINT one');
$s->value("SELECT sbx_destroy('$a')");
quietly('ROLLBACK TO one');
is(rows(), 1, 'destroyed in a subtransaction that is rolled back: the row is back');
is($s->value("SELECT state FROM sbx_get('$a')"), 'gone', 'the sandbox is not, and sbx_get says so');
quietly('COMMIT');
is($s->value("SELECT sbx_destroy('$a')"), 'f', 'sbx_destroy cleans up');
is(rows(), 0, 'the row is gone');

$a = provision();
$s->query('BEGIN');
$s->value("SELECT sbx_destroy('$a')");
quietly('ROLLBACK');
is($s->value("SELECT state FROM sbx_get('$a')"),
	'gone', 'a committed one, destroyed and rolled back, is gone all the same');
is($s->value("SELECT sbx_destroy('$a')"), 'f', 'and can be cleaned up');

#
# PREPARE TRANSACTION
#

clean();
$s->query('BEGIN');
quietly("PREPARE TRANSACTION 'without'", "ROLLBACK PREPARED 'without'");
$s->query('BEGIN');
$a = provision();
$s->value("SELECT sbx_destroy('$a')");
quietly("PREPARE TRANSACTION 'destroyed'", "COMMIT PREPARED 'destroyed'");
$s->query('BEGIN');
$a = provision();
my $result = $s->query("PREPARE TRANSACTION 'with'");
ok(!$result->error, 'a transaction with a sandbox can be prepared');
is( join(',', map { $_->{M} } $result->warnings),
	'sandboxes of a prepared transaction outlive ROLLBACK PREPARED',
	'with a warning');
is(alive($a), 'alive', 'the sandbox is there');
quietly("COMMIT PREPARED 'with'");
is($s->value("SELECT state FROM sbx_get('$a')"), 'started', 'after COMMIT PREPARED it can be used');

$s->query('BEGIN');
$b = provision();
$s->query("PREPARE TRANSACTION 'twice'");
$s->query('BEGIN');
$c = provision();
is($s->query("PREPARE TRANSACTION 'twice'")->sqlstate, '42710', 'PREPARE fails');
is(alive($b, $c), 'alive gone', 'then what the transaction made is destroyed');
quietly("ROLLBACK PREPARED 'twice'");
is(alive($b), 'alive', 'ROLLBACK PREPARED destroys nothing, as the warning said');

#
# Many
#

$mark = clean();
$s->query('BEGIN');
is($s->value('SELECT count(sbx_provision()) FROM generate_series(1, 103)'),
	103, '103 sandboxes in one transaction');
is(scalar(my @all = $sbx->alive), 103, 'are there');
quietly('ROLLBACK');
is(scalar(@all = $sbx->alive), 0, 'ROLLBACK destroys them all');
is($sbx->deletes($mark), 103, 'with one delete each');
is(rows(), 0, 'no row is left');

#
# The row cannot be written
#

clean();
quietly(
	q{
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF (NEW.name = 'refused') IS NOT TRUE THEN
			RETURN NEW;
		END IF;
		RAISE EXCEPTION 'no more today' USING ERRCODE = 'ZZ001', DETAIL = 'full', HINT = 'come again';
	END $$;
	CREATE TRIGGER refuse BEFORE INSERT ON sbx_mapping FOR EACH ROW
		EXECUTE FUNCTION refuse();
	CREATE UNIQUE INDEX name_once ON sbx_mapping (name)});

sub events
{
	return $s->value(
		q{SELECT string_agg(event || coalesce(' ' || (detail->>'succeeded'), ''), ', ' ORDER BY at)
		FROM sbx_recent_events() WHERE sbx_id = $1}, $_[0]);
}

$mark = clean();
$s->query('BEGIN; SAVEPOINT one');
$result = $s->query(q{SELECT sbx_provision('{"launch":{"name":"refused"}}')});
is_deeply(
	[ map { $result->error->{$_} } qw(C M D H) ],
	[ 'ZZ001', 'no more today', 'full', 'come again' ],
	'a trigger on the row refuses: its error arrives unchanged');
is(scalar(my @warnings = $result->warnings), 0, 'without a warning');
my ($refused) = map { $_->{name} } $sbx->audit;
is(alive($refused), 'gone', 'the sandbox is destroyed');
is($sbx->deletes($mark), 1, 'with one delete');
quietly('ROLLBACK TO one');
is( events($refused),
	'attempt.started, attempt.succeeded, mapping.failed, cleanup.finished true',
	'events tell it');
is($sbx->deletes($mark), 1, 'the rollback has nothing left to do');
$a = provision();
quietly('COMMIT');
is(alive($a), 'alive', 'the transaction goes on');

$mark = clean();
$a = $s->value(q{SELECT sbx_provision('{"launch":{"name":"once"}}')});
$result = $s->query(q{SELECT sbx_provision('{"launch":{"name":"once"}}')});
is($result->sqlstate, '23505', 'a unique violation on the row arrives unchanged');
like($result->detail, qr/\(once\)/, 'with its DETAIL');
my ($twice) = grep { $_ ne $a } map { $_->{name} } $sbx->audit;
is(alive($a, $twice), 'alive gone', 'the new sandbox is destroyed, the old one is not');
is( events($twice),
	'attempt.started, attempt.succeeded, mapping.failed, cleanup.finished true',
	'events tell it');

# The trigger may itself provision.
$mark = clean();
quietly(
	q{
	CREATE FUNCTION companion() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF (NEW.name = 'two') IS NOT TRUE THEN
			RETURN NEW;
		END IF;
		PERFORM public.sbx_provision();
		RAISE EXCEPTION 'no more today';
	END $$;
	CREATE TRIGGER companion AFTER INSERT ON sbx_mapping FOR EACH ROW
		EXECUTE FUNCTION companion()});
is( $s->query(q{SELECT sbx_provision('{"launch":{"name":"two"}}')})->message,
	'no more today',
	'a trigger that makes another sandbox and then fails');
is(alive(map { $_->{name} } $sbx->audit), 'gone gone', 'both are destroyed');
is($sbx->deletes($mark), 2, 'with one delete each');

# Or destroy the new sandbox itself, before it fails.
$mark = clean();
quietly(
	'DROP TRIGGER companion ON sbx_mapping', q{
	CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF (NEW.name = 'undo') IS NOT TRUE THEN
			RETURN NEW;
		END IF;
		PERFORM public.sbx_destroy(NEW.id);
		RAISE EXCEPTION 'undone';
	END $$;
	CREATE TRIGGER undo AFTER INSERT ON sbx_mapping FOR EACH ROW
		EXECUTE FUNCTION undo()});
is($s->query(q{SELECT sbx_provision('{"launch":{"name":"undo"}}')})->message,
	'undone', 'a trigger that destroys the new sandbox and then fails');
is(alive(map { $_->{name} } $sbx->audit), 'gone', 'it is destroyed');
is($sbx->deletes($mark), 1, 'once');

# Or change the catalogs and provision: plans under way must survive that.
clean();
quietly(
	'DROP TRIGGER undo ON sbx_mapping', q{
	CREATE FUNCTION upset() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF (NEW.name IN ('a', 'b')) IS NOT TRUE THEN
			RETURN NEW;
		END IF;
		CREATE TEMP TABLE IF NOT EXISTS scratch (id text);
		EXECUTE 'CREATE SCHEMA upset_' || NEW.name;
		PERFORM public.sbx_provision();
		RETURN NEW;
	END $$;
	CREATE TRIGGER upset BEFORE INSERT ON sbx_mapping FOR EACH ROW
		EXECUTE FUNCTION upset()});
quietly(
	q{SELECT sbx_provision('{"launch":{"name":"a"}}')},
	q{SELECT sbx_provision('{"launch":{"name":"b"}}')});
is(rows(), 4, 'a trigger that changes the catalogs and provisions another');
quietly('DROP TRIGGER upset ON sbx_mapping');

# Destroying fails, too: at once, and again in the rollback.
clean();
$sbx->fault(op => 'delete', action => 'status', status => 403, times => 2);
$result = $s->query(q{SELECT sbx_provision('{"launch":{"name":"refused"}}')});
is($result->sqlstate, 'ZZ001',
	'if it cannot be destroyed either, the error is still the first one');
($refused) = map { $_->{name} } $sbx->audit;
is(alive($refused), 'alive', 'the sandbox is still there');
@warnings = $result->warnings;
is(scalar @warnings, 1, 'one warning');
like($warnings[0]{M}, qr/could not destroy sandbox "$refused"/, 'names it');
is( events($refused),
	'attempt.started, attempt.succeeded, mapping.failed, cleanup.finished false, cleanup.finished false',
	'events tell both attempts');
quietly('DROP TRIGGER refuse ON sbx_mapping', 'DROP INDEX name_once');

#
# The key, the role or the address is another one before the rollback
#

quietly('CREATE ROLE somebody SUPERUSER');
foreach my $how (
	'SELECT sbx_clear_credentials()',
	'RESET ALL',
	q{SELECT sbx_set_credential('pool', 'another-key')},
	'SET ROLE somebody',
	'SET SESSION AUTHORIZATION somebody',
	'SET sbx_router.allow_private_addresses = off',
	q{SELECT sbx_update_provider('pool', settings => '{"apiUrl":"http://127.0.0.1:1/api"}')})
{
	my $session = $sbx->user('pool', 'key');
	clean();
	$session->query('BEGIN');
	$a = $session->value('SELECT sbx_provision()');
	$session->value($how);
	$result = $session->query('ROLLBACK');
	is(alive($a), 'gone', "after $how ROLLBACK still destroys");
	is(scalar(@warnings = $result->warnings), 0, 'without a warning');
	$session->finish;
}
my $local = $sbx->session;
clean();
$local->query(q{BEGIN; SELECT sbx_set_local_credential('pool', 'key')});
$a = $local->value('SELECT sbx_provision()');
$local->query('ROLLBACK');
is(alive($a), 'gone', 'a local key is there until the rollback is done');
is($local->query('SELECT sbx_provision()')->sqlstate, 'SB003', 'and not longer');
$local->query(q{BEGIN; SAVEPOINT one; SELECT sbx_set_local_credential('pool', 'key')});
$a = $local->value('SELECT sbx_provision()');
$local->query('RELEASE one');
$local->query('COMMIT');
is(alive($a), 'alive', 'committed with a local key it stays');

#
# Nobody waits for our network
#

clean();
quietly('CREATE TABLE busy (n int)', 'INSERT INTO busy VALUES (1)');
my $waiter = $sbx->session;
$s->query('BEGIN');
$s->query('UPDATE busy SET n = n + 1');
$a = provision();
$waiter->send('UPDATE busy SET n = n + 10');
poll(
	'the other session waits for the row',
	sub {
		$sbx->session->value(q{SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1},
			$waiter->pid) == 1;
	});
$mark = $sbx->mark;
$sbx->fault(op => 'delete', action => 'hang');
$s->send('ROLLBACK');
$sbx->wait_requests('DELETE', 'one', $mark);
ok(!$waiter->wait->error, 'who waits for a row of ours gets it');
ok(!$s->has_answer(0), 'while the rollback still waits for the provider');
$sbx->reset;
ok(!$s->wait->error, 'the rollback ends');
is($s->value('SELECT n FROM busy'), 11, 'and rolled back');

#
# An id that is given again
#

# The first launch is cancelled and looked for by its name; meanwhile the name is
# used again, and what is found then is not the first launch's.
$mark = clean();
my $id = $s->value('SELECT sbx_new_id()');
my $first = $sbx->user('pool', 'key');
$first->value(q{SET sbx_router.abort_cleanup_timeout = '20s'});
$sbx->fault(op => 'create', action => 'hang');
$first->send("SELECT sbx_provision(id => '$id')");
$sbx->wait_requests('POST', 'create', $mark);
$s->value('SELECT pg_cancel_backend($1)', $first->pid);
$sbx->wait_requests('GET', 'one', $mark);
is($s->value("SELECT sbx_provision(id => '$id')"),
	$id, 'an id whose launch was cancelled can be used again');
is($first->wait->sqlstate, '57014', 'the cancelled one ends');
is(alive($id), 'alive', 'and leaves alone what was not its own');

# Another database of the same account.
$s->value('CREATE DATABASE another TEMPLATE template0');
my $stranger = $sbx->session(dbname => 'another');
$stranger->value('CREATE EXTENSION sbx_router');
$stranger->value(q{SELECT sbx_register_provider('pool', 'daytona', $1::jsonb)},
	'{"apiUrl":"' . $sbx->api . '"}');
$stranger->value(q{SELECT sbx_set_credential('pool', 'key')});
is($stranger->query("SELECT sbx_provision(id => '$id')")->sqlstate,
	'SB005', 'an id that another database of the account has is refused by the provider');
is(alive($id), 'alive', 'and that sandbox is left alone');
$stranger->finish;

#
# A block whose cleanup used up its time does not take it from a later rollback
#

clean();
$s->query(q{SET sbx_router.abort_cleanup_timeout = '1s'});
$s->query('BEGIN');
$a = provision();
$sbx->fault(op => 'delete', action => 'hang', times => 9);
$result = $s->query('SELECT attempt(true)');
is(scalar(@warnings = $result->warnings), 1, 'a block whose sandbox cannot be destroyed in time');
$sbx->clear_faults;
$result = $s->query('ROLLBACK');
is(alive($a), 'gone', 'ROLLBACK has a time of its own');
is(scalar(@warnings = $result->warnings), 0, 'and no warning');
$s->query('RESET sbx_router.abort_cleanup_timeout');

#
# Deleted too early
#

$mark = clean();
$sbx->config(deleteConflictMs => 1500);
$s->query('BEGIN');
$a = provision();
quietly('ROLLBACK');
is(alive($a), 'gone', 'a delete that is answered 409 is tried again');
cmp_ok($sbx->deletes($mark), '>', 1, 'until it is done');

#
# The provider does not answer: the last part, it takes the provider away
#

clean();
quietly("SET sbx_router.abort_cleanup_timeout = '300ms'");
$sbx->fault(op => 'delete', action => 'hang', times => 9);
$s->query('BEGIN');
$a = provision();
my $started = time;
$result = $s->query('ROLLBACK');
cmp_ok(time - $started, '>=', 0.3, 'a delete that hangs: the rollback uses its budget');
cmp_ok(time - $started, '<', 30, 'and no more');
ok(!$result->error, 'it is no error');
@warnings = $result->warnings;
is(scalar @warnings, 1, 'but a warning');
like($warnings[0]{M}, qr/could not destroy sandbox "$a"/, 'that names the sandbox');
my ($left) = $sbx->audit;
is_deeply(
	json($warnings[0]{D}),
	{ sbxId => $a, providerId => 'pool', providerSandboxId => $left->{id} },
	'here and at the provider');
is( events($a),
	'attempt.started, attempt.succeeded, cleanup.finished false',
	'an event says so, too');
is(rows(), 0, 'the row is gone');
$sbx->clear_faults;
$a = provision();
is($s->value("SELECT sbx_destroy('$a')"), 't', 'the session can go on');

clean();
quietly("SET sbx_router.abort_cleanup_timeout = '4s'");
$sbx->fault(op => 'delete', action => 'hang', times => 99);
$s->query('BEGIN');
provision();
for (1 .. 5)
{
	$s->query("SAVEPOINT s$_");
	provision();
}
$started = time;
$result = $s->query('ROLLBACK');
cmp_ok(time - $started, '<', 20, 'one budget for a rollback with all its savepoints, not one each');
is(scalar(@warnings = $result->warnings), 6, 'and a warning for each sandbox');

clean();
quietly("SET sbx_router.abort_cleanup_timeout = '300ms'");
$s->query('BEGIN');
$a = provision();
$sbx->stop_emulator;
$result = $s->query('ROLLBACK');
ok(!$result->error, 'the provider is down: the rollback is no error');
@warnings = $result->warnings;
is(scalar @warnings, 1, 'but a warning');
like($warnings[0]{M}, qr/could not destroy sandbox "$a"/, 'that names the sandbox');
is($s->value('SELECT 1'), 1, 'the session can go on');

done_testing();
