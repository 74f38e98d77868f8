# Triggers and rules of others on our tables: what they do must not crash the
# backend, must not leave a sandbox that nobody knows, and must not run with rights
# that their author does not have.
#
# Every part is a pair: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use SbxTest;
use Test::More;

my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "sbx_router.abort_cleanup_timeout = '60s'\n");
$sbx->register('pool');
my $s = $sbx->user('pool', 'key');
my $place = $sbx->log_place;

sub rows { return $s->value(q{SELECT coalesce(string_agg(name, ' ' ORDER BY name), '') FROM sbx_mapping}) }
sub provision { return qq{SELECT sbx_provision('{"launch":{"name":"$_[0]"}}')} }
sub alive_count { return scalar(my @alive = $sbx->alive) }

# Start over: nothing anywhere.
sub clean
{
	$sbx->reset;
	$s->value('TRUNCATE sbx_mapping');
	return $sbx->mark;
}

sub trigger
{
	my ($when, $body) = @_;

	$s->value(qq{CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS \$act\$ BEGIN $body END \$act\$});
	$s->value("CREATE TRIGGER act $when FOR EACH ROW EXECUTE FUNCTION act()");
	return;
}

sub drop_trigger { $s->value('DROP FUNCTION act() CASCADE'); return }

# A session of its own: the first temporary table, the first plans.
sub fresh
{
	my ($sql) = @_;
	my $session = $sbx->user('pool', 'key');
	my $result = $session->query($sql);

	$session->finish unless $result->closed;
	return $result;
}

sub check_alive_server
{
	my ($what) = @_;

	unlike($sbx->log_since($place), qr/terminated by signal|PANIC/, "$what: no backend crashed");
	return;
}

#
# R7: a plan that is in use is not freed
#

trigger('BEFORE INSERT ON sbx_mapping', q{
	IF NEW.name = 'outer' THEN
		CREATE TEMP TABLE first_of_the_session (n int);
		PERFORM public.sbx_provision('{"launch":{"name":"inner"}}');
	END IF;
	RETURN NEW;});
clean();
my $result = fresh(provision('outer'));
ok(!$result->error && !$result->closed, 'R7 must fire: a trigger that makes a schema and provisions again')
  or diag $result->everything;
is(rows(), 'inner outer', 'R7 must fire: both are recorded');
is(alive_count(), 2, 'R7 must fire: and alive');
check_alive_server('R7 must fire');
drop_trigger();

# The name of the schema changes while its statement is executed.
trigger('BEFORE INSERT ON sbx_mapping', q{
	IF NEW.name = 'outer' THEN
		ALTER SCHEMA public RENAME TO elsewhere;
		PERFORM elsewhere.sbx_provision('{"launch":{"name":"inner"}}');
		ALTER SCHEMA elsewhere RENAME TO public;
	END IF;
	RETURN NEW;});
clean();
$result = fresh(provision('outer'));
ok(!$result->error && !$result->closed, 'R7 must fire: a trigger that renames the schema and provisions again')
  or diag $result->everything;
is(rows(), 'inner outer', 'R7 must fire: both are recorded under the new name, too');
check_alive_server('R7 must fire, renamed');
drop_trigger();

trigger('BEFORE INSERT ON sbx_mapping', q{
	IF NEW.name = 'outer' THEN
		PERFORM public.sbx_provision('{"launch":{"name":"inner"}}');
	END IF;
	RETURN NEW;});
clean();
$result = fresh(provision('outer'));
ok(!$result->error && !$result->closed, 'R7 must not fire: a trigger that only provisions again')
  or diag $result->everything;
is(rows(), 'inner outer', 'R7 must not fire: both are recorded');
drop_trigger();

#
# R8: a trigger that destroys what is being recorded
#

trigger('AFTER INSERT ON sbx_mapping', q{
	PERFORM public.sbx_destroy(NEW.id);
	RAISE EXCEPTION 'policy says no' USING ERRCODE = 'ZZ001';});
foreach my $answer ('as ever', 'with "destroying"')
{
	clean();
	my $id = $s->value('SELECT sbx_new_id()');
	if ($answer ne 'as ever')
	{
		$sbx->fault(
			op => 'get', path => '*/sandbox/sbx_*', action => 'status', status => 200, times => 9,
			body => { id => 'abc', state => 'destroying', labels => { 'sbx-router-id' => $id } });
	}
	$result = fresh("SELECT sbx_provision(id => '$id')");
	is($result->sqlstate, 'ZZ001', "R8 must fire: a trigger destroys and raises, look-ups answered $answer: its error arrives");
	is(scalar(my @warnings = $result->warnings), 0, "R8 must fire: $answer: without a warning")
	  or diag $result->everything;
	is(alive_count(), 0, "R8 must fire: $answer: the sandbox is gone");
	is(rows(), '', "R8 must fire: $answer: no row");
	check_alive_server("R8 must fire: $answer");
}
drop_trigger();

my $mark = clean();
trigger('AFTER INSERT ON sbx_mapping', q{RAISE EXCEPTION 'policy says no' USING ERRCODE = 'ZZ001';});
$result = fresh(provision('refused'));
is($result->sqlstate, 'ZZ001', 'R8 must not fire: a trigger that only raises: its error arrives');
is(alive_count(), 0, 'R8 must not fire: the sandbox is gone');
is($sbx->deletes($mark), 1, 'R8 must not fire: with one delete');
drop_trigger();

#
# R14: a row that is swallowed
#

my %swallow = (
	'a trigger that returns NULL' => [
		sub { trigger('BEFORE INSERT ON sbx_mapping', 'RETURN NULL;') },
		sub { drop_trigger() }
	],
	'a rule that does nothing instead' => [
		sub { $s->value('CREATE RULE act AS ON INSERT TO sbx_mapping DO INSTEAD NOTHING') },
		sub { $s->value('DROP RULE act ON sbx_mapping') }
	]);
foreach my $how (sort keys %swallow)
{
	$mark = clean();
	my $session = $sbx->user('pool', 'key');
	$swallow{$how}[0]->();
	$session->query('BEGIN; SAVEPOINT one');
	$result = $session->query(provision('swallowed'));
	is($result->sqlstate, '09000', "R14 must fire: $how is an error");
	is($sbx->creates($mark), 1, "R14 must fire: $how: the sandbox was made");
	is(alive_count(), 0, "R14 must fire: $how: and is destroyed at once");
	is(scalar(my @warnings = $result->warnings), 0, "R14 must fire: $how: without a warning");
	$session->query('ROLLBACK');
	$swallow{$how}[1]->();
	is(rows(), '', "R14 must fire: $how: no row");
	ok(!$session->query(provision('later'))->error, "R14 must not fire: $how: without it the session that met it goes on");
	is(rows(), 'later', "R14 must not fire: $how: and records again");
	$session->finish;
}

clean();
trigger('BEFORE INSERT ON sbx_mapping', q{NEW.name := 'changed'; RETURN NEW;});
$result = fresh(provision('given'));
ok(!$result->error, 'R14 must not fire: a trigger that changes the row') or diag $result->everything;
is(rows(), 'changed', 'R14 must not fire: the row is there');
is(alive_count(), 1, 'R14 must not fire: the sandbox, too');
drop_trigger();

# One that leads to another sandbox, or to none, is as if it were swallowed.
foreach my $change (q{NEW.id := 'sbx_' || repeat('0', 32)}, q{NEW.provider_sandbox_id := 'another'})
{
	$mark = clean();
	trigger('BEFORE INSERT ON sbx_mapping', "$change; RETURN NEW;");
	$result = fresh(provision('given'));
	is($result->sqlstate, '09000', "R14 must fire: a trigger with $change is an error");
	is($sbx->creates($mark), 1, "R14 must fire: $change: the sandbox was made");
	is(alive_count(), 0, "R14 must fire: $change: and is destroyed");
	is(rows(), '', "R14 must fire: $change: no row");
	drop_trigger();
}

# A row that cannot be deleted is not forgotten for the rest of the session.
clean();
{
	my $session = $sbx->user('pool', 'key');

	$session->query(provision("kept$_")) foreach 1 .. 2;
	$s->value('CREATE RULE act AS ON DELETE TO sbx_mapping DO INSTEAD NOTHING');
	$session->query(q{SELECT sbx_destroy(id) FROM sbx_mapping WHERE name = 'kept1'});
	is(rows(), 'kept1 kept2', 'R14 must fire: a rule that keeps the row of what was destroyed');
	$s->value('DROP RULE act ON sbx_mapping');
	ok(!$session->query(q{SELECT sbx_destroy(id) FROM sbx_mapping})->error, 'R14 must not fire: without it');
	is(rows(), '', 'R14 must not fire: the session that met it deletes again');
	$session->finish;
}

clean();
$s->value(q{CREATE TABLE diary (name text);
	CREATE RULE act AS ON INSERT TO sbx_mapping DO ALSO INSERT INTO diary VALUES (NEW.name)});
$result = fresh(provision('given'));
ok(!$result->error, 'R14 must not fire: a rule that does something else, too') or diag $result->everything;
is(rows() . ', ' . $s->value('SELECT name FROM diary'), 'given, given', 'R14 must not fire: both rows are there');
$s->value('DROP RULE act ON sbx_mapping');

#
# R17: a role that may only make triggers does not act as the owner
#

$s->value('CREATE ROLE author; CREATE ROLE caller; CREATE TABLE seen (who text, what text)');
$s->value('GRANT USAGE, CREATE ON SCHEMA public TO author; GRANT ALL ON ALL TABLES IN SCHEMA public TO author');
$s->value('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO caller; GRANT USAGE ON TYPE sbx_secret TO caller');
$s->value('GRANT INSERT ON seen TO PUBLIC');

my $note = q{INSERT INTO public.seen VALUES (current_user, TG_OP); IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW;};

sub as_author
{
	my ($sql) = @_;

	$s->value('SET ROLE author');
	$s->value($sql);
	$s->value('RESET ROLE');
	return;
}

# make_trigger(table, event =>, ...): of the author.  definer, owner: of its function;
# when, arguments, disabled: of the trigger.
sub make_trigger
{
	my ($table, %option) = @_;
	my $definer = $option{definer} ? 'SECURITY DEFINER' : '';
	my $when = $option{when} ? "WHEN ($option{when})" : '';
	my $arguments = $option{arguments} // '';

	as_author("CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql $definer AS \$w\$ BEGIN $note END \$w\$");
	as_author("CREATE TRIGGER watch BEFORE $option{event} ON $table FOR EACH ROW $when EXECUTE FUNCTION watch($arguments)");
	$s->value("ALTER FUNCTION watch() OWNER TO $option{owner}") if $option{owner};
	$s->value("ALTER TABLE $table DISABLE TRIGGER watch") if $option{disabled};
	return;
}

sub seen { return $s->value(q{SELECT coalesce(string_agg(who || ' ' || what, ', '), '') FROM seen}) }

# What writes to each table, as somebody who is no superuser; each undoes itself.
my $superuser = $s->value('SELECT quote_ident(current_user)');
my $existing;
my %write = (
	'sbx_mapping INSERT' => sub { 'SELECT sbx_provision()' },
	'sbx_mapping DELETE' => sub { "SELECT sbx_destroy('$existing')" },
	'sbx_provider INSERT' => sub { q{SELECT sbx_register_provider('new', 'daytona')} },
	'sbx_provider UPDATE' => sub { q{SELECT sbx_update_provider('spare', enabled => true)} },
	'sbx_provider DELETE' => sub { q{SELECT sbx_unregister_provider('spare')} });

sub try_write
{
	my ($what) = @_;
	my $session = $sbx->session;

	$session->value('SET ROLE caller');
	$session->value(q{SELECT sbx_set_credential('pool', 'key')});
	my $write = $session->query($write{$what}->());
	$session->finish unless $write->closed;
	return $write;
}

sub prepare
{
	clean();
	$s->value('TRUNCATE seen');
	$s->value(q{DELETE FROM sbx_provider WHERE id IN ('new', 'spare'); SELECT sbx_register_provider('spare', 'daytona')});
	my $session = $sbx->session;
	$session->value('SET ROLE caller');
	$session->value(q{SELECT sbx_set_credential('pool', 'key')});
	$existing = $session->value('SELECT sbx_provision()');
	$session->finish;
	return;
}

# What comes from the author must not run with the owner's rights, nor at all: neither
# the function, nor a condition, which is code, too, nor arguments for a function that
# may trust them.
$s->value(q{CREATE FUNCTION spy(text) RETURNS bool LANGUAGE plpgsql AS $w$
	BEGIN INSERT INTO public.seen VALUES (current_user, 'WHEN'); RETURN false; END $w$;
	ALTER FUNCTION spy(text) OWNER TO author});

foreach my $what (sort keys %write)
{
	my ($table, $event) = split / /, $what;
	my $row = $event eq 'DELETE' ? 'OLD' : 'NEW';
	my %refused = (
		'a function of its own' => {},
		'a SECURITY DEFINER function of its own' => { definer => 1 },
		"a superuser's function, a condition of its own" => { owner => $superuser, when => "spy($row.id)" },
		"a superuser's function, arguments of its own" => { owner => $superuser, arguments => "'x'" });
	my %allowed = (
		"a superuser's function" => [ { owner => $superuser }, "$superuser $event" ],
		"a superuser's SECURITY DEFINER function" => [ { owner => $superuser, definer => 1 }, "$superuser $event" ],
		'a function of its own, but disabled' => [ { disabled => 1 }, '' ]);

	foreach my $kind (sort keys %refused)
	{
		prepare();
		make_trigger($table, event => $event, %{ $refused{$kind} });
		$result = try_write($what);
		is($result->sqlstate, '55000', "R17 must fire: $what: a trigger with $kind is refused");
		like($result->message // '', qr/trigger "watch" on table "$table" is not trusted/, "R17 must fire: $what: $kind: by name");
		is(seen(), '', "R17 must fire: $what: $kind: nothing of it ran");
		is(alive_count(), 1, "R17 must fire: $what: $kind: no sandbox is left behind, and none is lost")
		  if $table eq 'sbx_mapping' && $event eq 'INSERT';
		$s->value('DROP FUNCTION watch() CASCADE');
	}
	foreach my $kind (sort keys %allowed)
	{
		prepare();
		make_trigger($table, event => $event, %{ $allowed{$kind}[0] });
		$result = try_write($what);
		ok(!$result->error, "R17 must not fire: $what: a trigger with $kind is allowed") or diag $result->everything;
		is(seen(), $allowed{$kind}[1], "R17 must not fire: $what: $kind: it did as it should");
		$s->value('DROP FUNCTION watch() CASCADE');
	}
}

#
# H6: the view that takes credentials
#

# What the author may do there sees each key before we do.
$s->value('GRANT INSERT ON sbx_credential_input TO caller');
my $give = q{INSERT INTO sbx_credential_input VALUES ('{"provider":"pool","credential":"key"}')};

sub give
{
	my $session = $sbx->session;

	$session->value('SET ROLE caller');
	return ($session, $session->query($give));
}

prepare();
my ($giver, $given) = give();
ok(!$given->error, 'H6 must not fire: a key through the view') or diag $given->everything;
ok(!$giver->query('SELECT sbx_provision()')->error, 'H6 must not fire: which is good for the provider');
$giver->finish;

prepare();
as_author("CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS \$w\$ BEGIN $note END \$w\$");
as_author('CREATE TRIGGER aaa INSTEAD OF INSERT ON sbx_credential_input FOR EACH ROW EXECUTE FUNCTION watch()');
($giver, $given) = give();
is($given->sqlstate, '55000', 'H6 must fire: a trigger of somebody on the view: no key is taken');
is(seen(), '', 'H6 must fire: the trigger did not see it');
$s->value('DROP FUNCTION watch() CASCADE');
ok(!$giver->query($give)->error, 'H6 must not fire: without the trigger the session goes on');
$giver->finish;

check_alive_server('in the end');

done_testing();
