# The extension's schema is looked up while somebody changes it.
#
# The moment is made with locks on system catalogs: the look-up waits in the middle for
# one of them, and finds when it goes on that the schema is another, or none.
use strict;
use warnings;

use SbxTest;
use Test::More;

my $sbx = SbxTest->new(emulator => ['--no-exec']);
my $node = $sbx->node;

# The extension in a schema of its own, in a database of its own.
my $number = 0;

sub new_database
{
	my $name = 'd' . ++$number;

	$node->safe_psql('postgres', "CREATE DATABASE $name");
	my $session = $sbx->session(dbname => $name);
	$session->value('CREATE SCHEMA ext; CREATE EXTENSION sbx_router SCHEMA ext');
	$session->value(q{SELECT ext.sbx_register_provider('pool', 'daytona')});
	return ($name, $session);
}

my $watch = $sbx->session;

sub waits
{
	my ($session) = @_;

	return $watch->value('SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1', $session->pid) == 1;
}

waits($watch);
my $place = $sbx->log_place;

# A session that has everything at hand but the look-up itself: its statement is
# planned, the relations and indexes that the look-up reads are open already.  It
# returns no rows, because the server describes those only after the statement ran.
sub ready
{
	my ($database, $sql) = @_;
	my $session = $sbx->session(dbname => $database);

	$session->value(q{LOAD 'sbx_router'; SET plan_cache_mode = force_generic_plan});
	$session->value('CREATE TEMP TABLE answer (n int)');
	$session->value("PREPARE ask AS INSERT INTO answer $sql");
	$session->value('EXPLAIN EXECUTE ask');
	$session->value(q{SELECT count(*) FROM pg_extension WHERE extname = 'sbx_router'});
	$session->value(q{SELECT count(*) FROM pg_namespace WHERE nspname = 'ext'});
	$session->value(q{SELECT count(*) FROM pg_class WHERE relname = 'x' AND relnamespace = 1});
	return $session;
}

# A change is committed while the look-up of a statement waits for a catalog; returns
# the result, the session, and whether it waited for that one.
sub change_while
{
	my ($catalog, $change, $sql) = @_;
	my ($database, $changer) = new_database();
	my $session = ready($database, $sql);

	$changer->value("BEGIN; LOCK TABLE pg_catalog.$catalog IN ACCESS EXCLUSIVE MODE");
	$changer->value($change);
	$session->send('EXECUTE ask');
	poll("the look-up waits for $catalog", sub { waits($session) });
	my $relation = $watch->value(
		'SELECT relation = $1::regclass::oid FROM pg_locks WHERE NOT granted AND pid = $2', "pg_catalog.$catalog", $session->pid);
	$changer->value('COMMIT');
	my $result = $session->wait;
	return ($result, $session, $relation eq 't');
}

my $ask = q{SELECT count(*) FROM ext.sbx_route_explain()};

#
# R16: the name changes during the look-up
#

my ($result, $session, $waited);
foreach my $catalog (qw(pg_extension pg_namespace pg_class))
{
	($result, $session, $waited) = change_while($catalog, 'ALTER SCHEMA ext RENAME TO moved', $ask);
	ok($waited, "R16: the look-up waits for $catalog");
	is($result->sqlstate, undef, "R16 must fire: renamed while it waits for $catalog: it goes on") or diag $result->everything;
	is($session->value('SELECT count(*) FROM moved.sbx_route_explain()'), 1, "R16 must fire: $catalog: and uses the new name");
	$session->finish;

	($result, $session, $waited) = change_while($catalog, 'CREATE SCHEMA another', $ask);
	is($result->sqlstate, undef, "R16 must not fire: another schema is made while it waits for $catalog");
	is($session->value('SELECT count(*) FROM ext.sbx_route_explain()'), 1, "R16 must not fire: $catalog: it goes on");
	$session->finish;
}

#
# R16: the extension goes away during the look-up
#

foreach my $catalog (qw(pg_extension pg_namespace pg_class))
{
	($result, $session, $waited) = change_while($catalog, 'DROP SCHEMA ext CASCADE', $ask);
	ok($waited, "R16: the look-up waits for $catalog");
	ok($result->error, "R16 must fire: dropped while it waits for $catalog: an error");
	ok(!$result->closed, "R16 must fire: dropped while it waits for $catalog: and no crash");
	is($session->value('SELECT 1'), 1, "R16 must fire: $catalog: the session goes on");
	note(join ' ', $result->sqlstate // '', $result->message // '');
	$session->finish;
}
unlike($sbx->log_since($place), qr/terminated by signal|PANIC/, 'R16 must fire: no backend crashed');

done_testing();
