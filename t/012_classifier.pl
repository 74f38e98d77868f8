# The attempt loop and the classifier of a policy: another pool is tried only where
# nothing can have been allocated and the classifier says so; a classifier can do no
# harm, whatever it does.
use strict;
use warnings;

use SbxTest;
use Test::More;
use Time::HiRes qw(time);

# Nothing is run here.
my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "sbx_router.max_launches_per_statement = 1000\nsbx_router.abort_cleanup_timeout = '100ms'\n");
my $true = JSON::PP::true;
my $marker = 'text-of-the-provider-4711';
my $key = 'dtn_key-of-the-test-0815';

# Equal signals: pools are tried in the order of their ids.  The target tells whose
# create it was.
my @pools = qw(p1 p2 p3 p4);
$sbx->register($_, target => $_) foreach @pools;
my $admin = $sbx->session;

# A port that nobody listens on; out of routing except where it is asked for.
$admin->value(q{SELECT sbx_register_provider('p0', 'daytona', '{"apiUrl":"http://127.0.0.1:1"}')});
$admin->value(q{SELECT sbx_update_provider('p0', enabled => false)});
my $s = user();
my $unknown = 'PROVIDER_LAUNCH_OUTCOME_UNKNOWN';

# A session that can use every pool.
sub user
{
	my (%options) = @_;
	my $session = $sbx->session(%options);

	$session->value('SELECT sbx_set_credential($1, $2)', $_, $key) foreach @pools, 'p0';
	return $session;
}

#
# Helpers
#

sub status { return (op => 'create', action => 'status', status => $_[0], body => { message => $_[1], statusCode => $_[0] }) }
sub capacity { return status(400, "Total CPU limit exceeded. $marker") }

# Whose creates were sent since a mark, in order.
sub targets
{
	my ($mark) = @_;

	return join ' ', map { json($_->{body})->{target} } grep { $_->{op} eq 'create' } $sbx->requests($mark);
}

# policy(name, body of the classifier): makes both, as the superuser; returns the name,
# made one that a policy may have.
sub policy
{
	my ($name, $body) = @_;
	my $classifier = 'NULL';

	$name =~ s/[^A-Za-z0-9]+/-/g;
	if (defined $body)
	{
		my $language = $body =~ /^\s*BEGIN\b/ ? 'plpgsql' : 'sql';
		$admin->value(qq{CREATE OR REPLACE FUNCTION app."$name"(failure jsonb) RETURNS jsonb LANGUAGE $language AS \$f\$ $body \$f\$});
		$classifier = qq{'app."$name"'};
	}
	$admin->value("SELECT sbx_set_policy('$name', classifier => $classifier)");
	return $name;
}

sub provision
{
	my ($policy, $request, $session) = @_;

	return ($session // $s)->execute('SELECT sbx_provision($1, $2)', $request // '{}', $policy);
}

# One call against fresh faults.  What came of it: where the sandbox is, or SQLSTATE and
# DETAIL; whose creates were sent; how many sandboxes are alive.
sub outcome
{
	my ($policy, $faults, $request) = @_;

	$sbx->clear_faults;
	my $mark = $sbx->mark;
	my $living = () = $sbx->alive;
	$sbx->fault(%$_) foreach @$faults;
	my $result = provision($policy, $request);
	my %outcome = (creates => targets($mark), silent => $result->everything =~ /\Q$marker\E|\Q$key\E/ ? 0 : 1);
	if ($result->error)
	{
		$outcome{sqlstate} = $result->sqlstate;
		$outcome{detail} = ($result->detail // '') =~ /^\{/ ? json($result->detail) : $result->message;
		$outcome{alive} = (() = $sbx->alive) - $living;
	}
	else
	{
		$outcome{pool} = $admin->value('SELECT provider_id FROM sbx_mapping WHERE id = $1', $result->value);
		$outcome{alive} = (() = $sbx->alive) - $living;
		$s->value('SELECT sbx_destroy($1)', $result->value);
	}
	$sbx->clear_faults;
	return \%outcome;
}

sub succeeds
{
	my ($what, $policy, $faults, $pool, $creates, $request) = @_;

	return is_deeply(outcome($policy, $faults, $request),
		{ pool => $pool, creates => $creates, alive => 1, silent => 1 }, $what);
}

sub ends
{
	my ($what, $policy, $faults, $sqlstate, $detail, $creates, $request) = @_;

	return is_deeply(outcome($policy, $faults, $request),
		{ sqlstate => $sqlstate, detail => $detail, creates => $creates, alive => 0, silent => 1 }, $what);
}

# Terminal at the first pool, with this code.
sub terminal
{
	my ($what, $policy, $faults, $code, $allocation, $request) = @_;

	return ends($what, $policy, $faults, 'SB005',
		{ code => $code, providerId => 'p1', allocation => $allocation }, 'p1', $request);
}

# What has to be as before after a call.
sub state_of
{
	my ($session) = @_;

	return join '|', map { $_ // 'NULL' } $session->query(q{
		SELECT current_user, session_user, current_setting('role'), current_setting('search_path'),
			current_setting('work_mem'), current_setting('sbx_router.policy'), pg_my_temp_schema(),
			(SELECT count(*) FROM pg_listening_channels()), (SELECT count(*) FROM pg_cursors WHERE name <> ''),
			(SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')})->row;
}

$admin->value('CREATE SCHEMA app');
$admin->value('CREATE TABLE app.seen (n serial, who text, failure jsonb)');
my $yes = policy('yes', q{SELECT '{"code":"SAYS_YES","retryable":true}'::jsonb});
my $no = policy('no', q{SELECT '{"code":"SAYS_NO","retryable":false}'::jsonb});
my $none = policy('none');
$admin->value(q{SELECT sbx_set_policy('proven', classifier => 'public.sbx_classify_proven')});
my $proven = 'proven';

#
# When another pool is tried
#

terminal('no policy: the first failure is the end', undef, [ {capacity()} ], $unknown, 'none');
terminal('a policy without a classifier: the same', $none, [ {capacity()} ], $unknown, 'none');
terminal('a classifier that says no: its code', $no, [ {capacity()} ], 'SAYS_NO', 'none');
succeeds('a classifier that says yes: the next pool', $yes, [ {capacity()} ], 'p2', 'p1 p2');
succeeds('no failure: it is not asked', policy('never', q{BEGIN RAISE EXCEPTION 'asked'; END}), [], 'p1', 'p1');
succeeds('the shipped one, a refusal for capacity: the next pool', $proven, [ {capacity()} ], 'p2', 'p1 p2');
succeeds('the shipped one, twice: the one after it', $proven, [ {capacity(), times => 2} ], 'p3', 'p1 p2 p3');
terminal("the shipped one, $_->[0]: the end", $proven, [ {status($_->[0], $marker)} ], $_->[1], 'none')
  foreach [ 401, 'UNAUTHORIZED' ], [ 403, 'FORBIDDEN' ], [ 429, 'RATE_LIMITED' ];
succeeds('one that says yes to 401: the next pool, nothing was allocated', $yes, [ {status(401, $marker)} ], 'p2', 'p1 p2');
ends('a terminal failure of the second pool', $proven, [ {capacity()}, {status(401, $marker)} ],
	'SB005', { code => 'UNAUTHORIZED', providerId => 'p2', allocation => 'none' }, 'p1 p2');

$admin->value(q{SELECT sbx_update_provider('p0', enabled => true)});
succeeds('the shipped one, a request that never left: the next pool', $proven, [], 'p1', 'p1');
ends('the same without it', $none, [], 'SB005',
	{ code => $unknown, providerId => 'p0', allocation => 'none' }, '');
succeeds('three in a row', $proven, [ {capacity()} ], 'p2', 'p1 p2');
$admin->value(q{SELECT sbx_update_provider('p0', enabled => false)});

#
# How many attempts
#

sub attempts { return { attempts => [ map { { providerId => $_->[0], code => $_->[1] } } @_ ], skipped => {} } }
my $full = 'PROVIDER_CAPACITY_PRE_ALLOCATION';
my @all = ({capacity(), times => 10});

ends('three attempts by default', $proven, \@all, 'SB006',
	attempts(map { [ $_, $full ] } qw(p1 p2 p3)), 'p1 p2 p3');
ends('one attempt', $proven, \@all, 'SB006', attempts([ 'p1', $full ]), 'p1',
	'{"routing":{"maxAcquisitionAttempts":1}}');
ends('two attempts', $proven, \@all, 'SB006', attempts(map { [ $_, $full ] } qw(p1 p2)), 'p1 p2',
	'{"routing":{"maxAcquisitionAttempts":2}}');
ends('more attempts than pools', $proven, \@all, 'SB006', attempts(map { [ $_, $full ] } @pools), "@pools",
	'{"routing":{"maxAcquisitionAttempts":10}}');
ends('no fallback', $proven, \@all, 'SB006', attempts([ 'p1', $full ]), 'p1',
	'{"routing":{"acquisitionFallback":"forbidden"}}');
terminal('no fallback, and a terminal failure', $proven, [ {status(401, $marker)} ], 'UNAUTHORIZED', 'none',
	'{"routing":{"acquisitionFallback":"forbidden"}}');
ends('a single candidate', $proven, \@all, 'SB006', attempts([ 'p3', $full ]), 'p3', '{"providerId":"p3"}');
succeeds('the last attempt succeeds', $proven, [ {capacity(), times => 2} ], 'p3', 'p1 p2 p3',
	'{"routing":{"maxAcquisitionAttempts":3}}');
ends('each attempt has the code that it was given', policy('by-pool',
		q{SELECT jsonb_build_object('code', 'AT_' || upper(failure ->> 'providerId'), 'retryable', true)}),
	\@all, 'SB006', attempts([ 'p1', 'AT_P1' ], [ 'p2', 'AT_P2' ], [ 'p3', 'AT_P3' ]), 'p1 p2 p3');

#
# No second launch ever follows an unknown outcome
#

# What was made, and destroyed again: known at once.
my %spoiled = (
	'a reset after the work' => { action => 'reset-after-work' },
	'garbage' => { action => 'garbage' },
	'wrong types' => { action => 'wrong-type' },
	'a truncated answer' => { action => 'truncate' },
	'an endless answer' => { action => 'huge' },
	'duplicate keys' => { action => 'duplicate-keys' },
	'500 after the work' => { status(500, $marker), work => $true },
	'a late answer' => { action => 'hang', work => $true });
foreach my $name (sort keys %spoiled)
{
	foreach my $policy ($yes, $proven)
	{
		terminal("$policy, $name: the end", $policy, [ { op => 'create', %{ $spoiled{$name} } } ],
			$policy eq $yes ? 'SAYS_YES' : $unknown, 'unknown',
			'{"launch":{"createTimeoutSeconds":1}}');
	}
}

# What was not made is looked for, for five seconds: so all of them at once.
my %silent = (
	'500' => { status(500, $marker) },
	'500 that speaks of capacity' => { status(500, 'Total CPU limit exceeded.') },
	'503' => { status(503, $marker) },
	'400 failed to start' => { status(400, "Sandbox failed to start: $marker") },
	'409 name exists' => { status(409, "Sandbox with name $marker already exists") },
	'no answer' => { action => 'hang' },
	'a kept connection that dies' => { action => 'close-reused', n => 1 });
my @searching;
foreach my $name (sort keys %silent)
{
	my $session = user();
	my $mark = $sbx->mark;
	my $id = $session->value('SELECT sbx_new_id()');

	$sbx->fault(op => 'create', %{ $silent{$name} });
	$session->send(qq{SELECT sbx_provision('{"launch":{"createTimeoutSeconds":1}}', '$yes', '$id')});
	$sbx->wait_requests('POST', 'create', $mark);
	push @searching, [ $name, $session, $id ];
}
foreach my $case (@searching)
{
	my ($name, $session, $id) = @$case;
	my $result = $session->wait;

	is_deeply(
		[ $result->sqlstate, json($result->detail), scalar grep { $_->{op} eq 'create' && $_->{body} =~ /$id/ } $sbx->requests ],
		[ 'SB005', { code => 'SAYS_YES', providerId => 'p1', allocation => 'unknown' }, 1 ],
		"says yes to $name: the end, after one create");
	$session->finish;
}
$sbx->clear_faults;

# Known to be made: the end as well.
terminal('a sandbox that cannot be used: the end', $yes,
	[ { op => 'get', action => 'status', status => 403, body => $marker } ], 'SAYS_YES', 'made');

#
# What a classifier is told, and as whom it is called
#

$admin->value('TRUNCATE app.seen RESTART IDENTITY');
my $writer = policy('writer', q{
	BEGIN
		INSERT INTO app.seen (who, failure) VALUES (current_user, failure);
		RETURN '{"code":"WRITTEN","retryable":true}';
	END});
succeeds('one that writes a row', $writer, [ {capacity()} ], 'p2', 'p1 p2');
is_deeply(
	json($admin->value('SELECT failure FROM app.seen')),
	{
		providerId => 'p1',
		kind => 'daytona',
		operation => 'launch',
		phase => 'remote',
		requestSent => $true,
		httpStatus => 400,
		providerCode => 'CAPACITY',
		allocation => 'none'
	},
	'a classifier gets the sanitised facts');
$admin->value('TRUNCATE app.seen RESTART IDENTITY');
$admin->value(q{SELECT sbx_update_provider('p0', enabled => true)});
succeeds('a request that never left', $writer, [], 'p1', 'p1');
is_deeply(
	json($admin->value('SELECT failure FROM app.seen')),
	{
		providerId => 'p0',
		kind => 'daytona',
		operation => 'launch',
		phase => 'connect',
		requestSent => JSON::PP::false,
		httpStatus => undef,
		providerCode => undef,
		allocation => 'none'
	},
	'facts that there are none of are null');
$admin->value(q{SELECT sbx_update_provider('p0', enabled => false)});

$admin->value('TRUNCATE app.seen RESTART IDENTITY');
$s->query('BEGIN');
$sbx->fault(capacity());
provision($writer);
$s->query('ROLLBACK');
is($admin->value('SELECT count(*) FROM app.seen'), 0, 'its row belongs to the transaction');
ends('one that writes, then raises', policy('undone', q{
	BEGIN
		INSERT INTO app.seen (who) VALUES ('undone');
		RAISE EXCEPTION 'no';
	END}), [ {capacity()} ], 'SB005', { code => $unknown, providerId => 'p1', allocation => 'none' }, 'p1');

$admin->query($_) foreach 'CREATE ROLE author', 'CREATE ROLE caller', 'CREATE ROLE stranger LOGIN',
  'CREATE TABLE app.private (x int)', 'GRANT USAGE ON SCHEMA app TO author',
  'GRANT INSERT ON app.seen TO author', 'GRANT USAGE ON SEQUENCE app.seen_n_seq TO author',
  'GRANT EXECUTE ON FUNCTION sbx_set_policy(text, text[], interval, jsonb, text, text, text, text) TO author',
  'GRANT EXECUTE ON FUNCTION sbx_provision(jsonb, text, text), sbx_set_credential(text, sbx_secret) TO caller',
  'GRANT USAGE ON TYPE sbx_secret TO caller';

# The same policy, registered by a role without privileges.
sub by_author
{
	my ($name, $body) = @_;

	$name = policy($name, $body);
	$admin->value('SET ROLE author');
	$admin->value(qq{SELECT sbx_set_policy('$name', classifier => 'app."$name"')});
	$admin->value('RESET ROLE');
	return $name;
}

by_author('writer', q{
	BEGIN
		INSERT INTO app.seen (who, failure) VALUES (current_user, failure);
		RETURN '{"code":"WRITTEN","retryable":true}';
	END});
succeeds('called by a superuser, registered by another role', 'writer', [ {capacity()} ], 'p2', 'p1 p2');
is($admin->value('SELECT who FROM app.seen'), 'author', 'it runs as the role that registered it');
$admin->value('TRUNCATE app.seen');
terminal("registered by a role without privileges, $_->[0]: fails",
	by_author("by author $_->[0]", $_->[1]), [ {capacity()} ], $unknown, 'none')
  foreach [ 'reading a private table', q{SELECT jsonb_build_object('code', 'READ', 'retryable', count(*) = 0) FROM app.private} ],
  [ 'reading registrations', q{SELECT jsonb_build_object('code', 'READ', 'retryable', count(*) > 0) FROM public.sbx_provider} ],
  [ 'reading a file', q{SELECT jsonb_build_object('code', 'READ', 'retryable', pg_read_file('PG_VERSION') <> '')} ],
  [ 'provisioning', q{BEGIN PERFORM public.sbx_provision(); RETURN '{"retryable":true}'; END} ];
$admin->value('REVOKE EXECUTE ON FUNCTION app.writer(jsonb) FROM PUBLIC');
terminal('the privilege to call it was revoked: fails', 'writer', [ {capacity()} ], $unknown, 'none');
$admin->value('GRANT EXECUTE ON FUNCTION app.writer(jsonb) TO author');
succeeds('and granted again', 'writer', [ {capacity()} ], 'p2', 'p1 p2');
$admin->value('REVOKE USAGE ON SCHEMA app FROM author');
terminal('the schema is closed: fails', 'writer', [ {capacity()} ], $unknown, 'none');
$admin->value('GRANT USAGE ON SCHEMA app TO author');

# A caller that may do nothing but call.
{
	my $session = $sbx->session;

	$admin->value('TRUNCATE app.seen');
	$session->value('SET ROLE caller');
	$session->value('SELECT sbx_set_credential($1, $2)', $_, $key) foreach @pools;
	$sbx->fault(capacity());
	my $mark = $sbx->mark;
	ok(!provision('writer', '{}', $session)->error, 'a caller without privileges on the classifier');
	is(targets($mark), 'p1 p2', 'gets to the next pool');
	is($admin->value('SELECT who FROM app.seen'), 'author', 'and the classifier is no caller');
	is($session->value('SELECT current_user'), 'caller', 'who stays who he was');
	$session->finish;
}

# Two roles and one function, which the planner inlines for the one and must not for the
# other.
$admin->query($_) foreach 'CREATE ROLE author2', 'GRANT USAGE ON SCHEMA app TO author2',
  'GRANT EXECUTE ON FUNCTION sbx_set_policy(text, text[], interval, jsonb, text, text, text, text) TO author2',
  q{CREATE FUNCTION app.shared(failure jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{"code":"SHARED","retryable":true}'::jsonb || failure $$};
foreach my $author (qw(author author2))
{
	$admin->value("SET ROLE $author");
	$admin->value(qq{SELECT sbx_set_policy('of-$author', classifier => 'app.shared')});
	$admin->value('RESET ROLE');
}
$admin->query($_) foreach 'REVOKE EXECUTE ON FUNCTION app.shared(jsonb) FROM PUBLIC',
  'GRANT EXECUTE ON FUNCTION app.shared(jsonb) TO author';
foreach (1 .. 2)
{
	succeeds('a role that may call it', 'of-author', [ {capacity()} ], 'p2', 'p1 p2');
	terminal('a role that may not', 'of-author2', [ {capacity()} ], $unknown, 'none');
}

# A role that is gone answers for nothing.
$admin->query($_) foreach 'DROP OWNED BY author, author2', 'DROP ROLE author, author2';
terminal('the role that registered it is dropped: fails', 'writer', [ {capacity()} ], $unknown, 'none');

#
# Answers
#

# A classifier that returns this literal.
sub answer { return defined $_[0] ? "SELECT " . quote($_[0]) . '::jsonb' : 'SELECT NULL::jsonb' }

my $number = 0;
terminal('the answer ' . ($_->[0] // 'NULL') . ': not retryable', policy('answer-' . ++$number, answer($_->[0])),
	[ {capacity()} ], $_->[1] // $unknown, 'none')
  foreach [undef], ['null'], ['true'], ['"yes"'], ['1'], ['[]'], ['{}'], ['[true]'],
  ['[{"code":"X","retryable":true}]'], ['{"retryable":"true"}'], ['{"retryable":1}'],
  ['{"retryable":null}'], ['{"retryable":{}}'], ['{"Retryable":true}'], ['{"retryable":"t","code":"X"}', 'X'],
  ['{"retryable":false,"code":"X"}', 'X'], ['{"code":"X"}', 'X'], ['{"code":"A_1"}', 'A_1'],
  [ '{"code":"' . 'X' x 64 . '"}', 'X' x 64 ], [ '{"code":"' . 'X' x 65 . '"}' ], ['{"code":""}'],
  ['{"code":"lower"}'], ['{"code":"1X"}'], ['{"code":"_X"}'], ['{"code":"X-Y"}'], ['{"code":"X\n"}'],
  ['{"code":"X\u00c4"}'], ['{"code":null}'], ['{"code":1}'], ['{"code":["X"]}'];
ends('a code that is none is replaced, retryable or not', policy('rude', answer('{"retryable":true,"code":"rude words"}')),
	\@all, 'SB006', attempts(map { [ $_, $unknown ] } qw(p1 p2 p3)), 'p1 p2 p3');
succeeds('retryable without a code', policy('mute', answer('{"retryable":true}')), [ {capacity()} ], 'p2', 'p1 p2');
succeeds('more members than asked for', policy('wordy', answer('{"retryable":true,"code":"X","reason":"because"}')),
	[ {capacity()} ], 'p2', 'p1 p2');

#
# What a classifier may try
#

$admin->query($_) foreach 'CREATE TABLE app.deferred (x int)',
  'CREATE FUNCTION app.late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$',
  'CREATE CONSTRAINT TRIGGER late AFTER INSERT ON app.deferred INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.late()';
my $before = state_of($s);
my $return = q{RETURN '{"code":"GOT_THERE","retryable":true}';};
my %refused = (
	'raises' => q{RAISE EXCEPTION 'text-of-the-provider-4711';},
	'raises a warning as well' => q{RAISE WARNING 'w'; RAISE EXCEPTION 'x';},
	'divides by zero' => q{PERFORM 1 / 0;},
	'sets a role' => q{SET ROLE stranger;},
	'sets a role by function' => q{PERFORM set_config('role', 'stranger', false);},
	'sets the session user' => q{SET SESSION AUTHORIZATION stranger;},
	'resets the session user' => q{RESET SESSION AUTHORIZATION;},
	'listens' => q{LISTEN x;},
	'makes a temporary table' => q{CREATE TEMP TABLE t (x int);},
	'commits' => q{COMMIT;},
	'rolls back' => q{ROLLBACK;},
	'opens a cursor that stays' => q{EXECUTE 'DECLARE c CURSOR WITH HOLD FOR SELECT 1';},
	'uses a name without its schema' => q{PERFORM count(*) FROM sbx_provider;},
	'provisions' => q{PERFORM public.sbx_provision('{}');},
	'recurses without end' => q{PERFORM app."recurses-without-end"(failure);},
	'leaves a deferred trigger behind' => q{INSERT INTO app.deferred VALUES (1);},
	'deadlocks, as it says' => q{RAISE SQLSTATE '40P01';},
	'runs out of memory, as it says' => q{RAISE SQLSTATE '53200';},
	'forgets to return' => undef);
foreach my $name (sort keys %refused)
{
	my $body = defined $refused{$name} ? "$refused{$name} $return" : '';

	terminal("$name: not retryable", policy($name, "BEGIN $body END"), [ {capacity()} ], $unknown, 'none');
}
is(state_of($s), $before, 'after all that, everything in the session is as before');

my %harmless = (
	'changes settings' => q{SET work_mem = '77MB'; SET LOCAL search_path = app; SET sbx_router.policy = 'no';},
	'changes settings by function' => q{PERFORM set_config('work_mem', '78MB', false); PERFORM set_config('search_path', 'app', true);},
	'catches its own error' => q{BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;},
	'notifies' => q{NOTIFY x;},
	'takes its time' => q{PERFORM pg_sleep(0.2);},
	'routes' => q{PERFORM public.sbx_route();},
	'changes registrations' => q{
		PERFORM public.sbx_update_provider(id, signals => '{"estimatedCost":5}') FROM public.sbx_provider;
		PERFORM public.sbx_route();
		PERFORM public.sbx_update_provider(id, signals => '{"estimatedCost":1}') FROM public.sbx_provider;
		PERFORM public.sbx_route();},
	'drops its own policy' => q{PERFORM public.sbx_drop_policy('drops-its-own-policy');});
foreach my $name (sort keys %harmless)
{
	succeeds("$name: goes on", policy($name, "BEGIN $harmless{$name} $return END"), [ {capacity()} ], 'p2', 'p1 p2');
}
is(state_of($s), $before, 'and everything is as before again');
succeeds('LANGUAGE sql that the planner inlines', policy('inlined',
		q{SELECT jsonb_build_object('code', 'X', 'retryable', failure ->> 'providerCode' = 'CAPACITY')}),
	[ {capacity()} ], 'p2', 'p1 p2');
succeeds('a search_path of its own', do {
		policy('own-path', q{BEGIN PERFORM count(*) FROM seen; RETURN '{"retryable":true}'; END});
		$admin->value('ALTER FUNCTION app."own-path"(jsonb) SET search_path = app');
		'own-path' }, [ {capacity()} ], 'p2', 'p1 p2');

# Rows that were never checked.
$admin->value('SET session_replication_role = replica');
foreach my $text ('', 'yes', 'app.yes(jsonb)', q{app.yes('{}'), app.yes}, 'app.yes; DROP TABLE sbx_policy', q{app.yes" --}, 'x' x 5000)
{
	my $name = 'unchecked-' . ++$number;

	$admin->execute('INSERT INTO sbx_policy (name, classifier) VALUES ($1, $2)', $name, $text);
	terminal('the classifier ' . substr($text, 0, 40), $name, [ {capacity()} ], $unknown, 'none');
}
$admin->value(q{INSERT INTO sbx_policy (name, classifier, registered_by) VALUES ('unchecked', 'app.yes', '987654321'::oid)});
terminal('a registrar that never was', 'unchecked', [ {capacity()} ], $unknown, 'none');
$admin->value('RESET session_replication_role');

# The caller's search_path is not the classifier's.
$admin->value('CREATE SCHEMA evil');
$admin->value(q{CREATE FUNCTION evil.jsonb_build_object(VARIADIC "any") RETURNS jsonb LANGUAGE internal AS 'jsonb_build_object'});
$admin->value(q{CREATE FUNCTION evil.yes(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{"code":"EVIL","retryable":false}'::jsonb $$});
$s->value('SET search_path = evil, pg_catalog, public');
succeeds("a caller's search_path", 'yes', [ {capacity()} ], 'p2', 'p1 p2');
is($s->value('SHOW search_path'), 'evil, pg_catalog, public', 'stays what it was');
$s->value('RESET search_path');

#
# A classifier that changes
#

policy('changing', q{SELECT '{"code":"ONE","retryable":false}'::jsonb});
terminal('as registered', 'changing', [ {capacity()} ], 'ONE', 'none');
policy('changing', q{SELECT '{"code":"TWO","retryable":false}'::jsonb});
terminal('replaced', 'changing', [ {capacity()} ], 'TWO', 'none');
$admin->value('DROP FUNCTION app.changing(jsonb)');
terminal('dropped', 'changing', [ {capacity()} ], $unknown, 'none');
terminal('still dropped', 'changing', [ {capacity()} ], $unknown, 'none');
foreach my $other ('text LANGUAGE sql AS $$ SELECT \'{"retryable":true}\' $$',
	'SETOF jsonb LANGUAGE sql AS $$ SELECT \'{"retryable":true}\'::jsonb FROM generate_series(1, 2) $$',
	'TABLE (code text, retryable boolean) LANGUAGE sql AS $$ SELECT \'X\', true $$',
	'trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$')
{
	next if $other =~ /^trigger/;    # takes no argument
	$admin->value("CREATE FUNCTION app.changing(jsonb) RETURNS $other");
	terminal('made anew, returning ' . ($other =~ s/ LANGUAGE.*//sr), 'changing', [ {capacity()} ], $unknown, 'none');
	$admin->value('DROP FUNCTION app.changing(jsonb)');
}
$admin->value('CREATE PROCEDURE app.changing(INOUT failure jsonb) LANGUAGE sql AS $$ SELECT \'{"retryable":true}\'::jsonb $$');
terminal('made anew as a procedure', 'changing', [ {capacity()} ], $unknown, 'none');
$admin->value('DROP PROCEDURE app.changing(jsonb)');
policy('changing', q{SELECT '{"code":"THREE","retryable":true}'::jsonb});
succeeds('made anew', 'changing', [ {capacity()} ], 'p2', 'p1 p2');
$admin->value('ALTER SCHEMA app RENAME TO app2');
terminal('its schema has another name', 'changing', [ {capacity()} ], $unknown, 'none');
$admin->value('ALTER SCHEMA app2 RENAME TO app');
succeeds('and its old one', 'changing', [ {capacity()} ], 'p2', 'p1 p2');

# A transaction with an old snapshot sees the newest policy.
$s->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
$s->value('SELECT count(*) FROM sbx_mapping');
$admin->value(q{SELECT sbx_set_policy('changing', classifier => 'app.no')});
$sbx->fault(capacity());
is(json(provision('changing')->detail)->{code}, 'SAYS_NO', 'a policy is read like a catalog');
$s->query('ROLLBACK');

#
# The setting, and the defaults of requests
#

$s->value(q{SET sbx_router.policy = 'yes'});
succeeds('the policy of the setting', undef, [ {capacity()} ], 'p2', 'p1 p2');
terminal('an argument beats the setting', 'no', [ {capacity()} ], 'SAYS_NO', 'none');
$s->value('RESET sbx_router.policy');

$admin->value(q{SELECT sbx_set_policy('defaults', request_defaults =>
	'{"launch":{"name":"by-default","labels":{"team":"a","tier":"gold"},"env":{"A":"1","B":"2"}}}', classifier => 'app.yes')});

# The labels and env of the create for a request.
sub sent
{
	my ($request) = @_;
	my $mark = $sbx->mark;
	my $id = provision('defaults', $request)->value;
	my ($create) = grep { $_->{op} eq 'create' } $sbx->requests($mark);
	my $body = json($create->{body});

	delete @{ $body->{labels} }{qw(sbx-router-id sbx-router-db code-toolbox-language)};
	my $kept = json($admin->value('SELECT jsonb_build_object($$name$$, name, $$labels$$, labels) FROM sbx_mapping WHERE id = $1', $id));
	$s->value('SELECT sbx_destroy($1)', $id);
	return { labels => $body->{labels}, env => $body->{env}, kept => $kept };
}

is_deeply(
	sent('{}'),
	{
		labels => { team => 'a', tier => 'gold', 'sbx-router-name' => 'by-default' },
		env => { A => '1', B => '2' },
		kept => { name => 'by-default', labels => { team => 'a', tier => 'gold' } }
	},
	'defaults fill in what a request leaves out');
is_deeply(
	sent('{"launch":{"name":"mine","labels":{"team":"b"},"env":{"B":"3","C":"4"}}}'),
	{
		labels => { team => 'b', tier => 'gold', 'sbx-router-name' => 'mine' },
		env => { A => '1', B => '3', C => '4' },
		kept => { name => 'mine', labels => { team => 'b', tier => 'gold' } }
	},
	'what a request says wins, key by key');
my $bare = sent('{"launch":{"name":null,"labels":null,"env":null}}');
is_deeply([ $bare->{labels}, $bare->{env} // {}, $bare->{kept} ], [ {}, {}, { name => undef, labels => {} } ],
	'null takes a default away');
$admin->value(q{SELECT sbx_set_policy('bounded', request_defaults => '{"routing":{"maxAcquisitionAttempts":2}}', classifier => 'app.yes')});
ends('a bound by default', 'bounded', \@all, 'SB006', attempts(map { [ $_, 'SAYS_YES' ] } qw(p1 p2)), 'p1 p2');
ends('a bound of one\'s own', 'bounded', \@all, 'SB006', attempts([ 'p1', 'SAYS_YES' ]), 'p1',
	'{"routing":{"maxAcquisitionAttempts":1}}');
ends('no bound of one\'s own', 'bounded', \@all, 'SB006', attempts(map { [ $_, 'SAYS_YES' ] } qw(p1 p2 p3)), 'p1 p2 p3',
	'{"routing":{"maxAcquisitionAttempts":null}}');

#
# Interrupts are not swallowed
#

my $loop = policy('loop', q{
	BEGIN
		LOOP
			BEGIN
				PERFORM pg_sleep(1);
			EXCEPTION WHEN OTHERS THEN
				NULL;
			END;
		END LOOP;
	END});

# A new session that is in the endless classifier now.
sub looping
{
	my ($before, $sql) = @_;
	my $session = user();

	$session->value($_) foreach @{ $before // [] };
	$sbx->clear_faults;
	my $mark = $sbx->mark;
	$sbx->fault(capacity());
	$session->send($sql // "SELECT sbx_provision('{}', 'loop')");
	poll('the classifier is called', sub {
		$admin->value('SELECT count(*) FROM pg_stat_activity WHERE wait_event = $1 AND pid = $2', 'PgSleep', $session->pid) });
	return ($session, $mark);
}

{
	my ($session, $mark) = looping();
	my $before = state_of($admin);

	$admin->value('SELECT pg_cancel_backend($1)', $session->pid);
	is($session->wait->sqlstate, '57014', 'a cancel ends it');
	is(targets($mark), 'p1', 'no second create follows a cancel');
	is(state_of($session), $before, 'and the session is as it was');
	is($session->value('SELECT 1'), 1, 'and usable');
	$session->finish;
}
{
	my $started = time;
	my ($session, $mark) = looping([q{SET statement_timeout = '700ms'}]);

	is($session->wait->sqlstate, '57014', 'statement_timeout ends it');
	cmp_ok(time - $started, '<', 10, 'in time');
	is(targets($mark), 'p1', 'no second create follows a timeout');
	$session->finish;
}
{
	my ($session, $mark) = looping();

	$admin->value('SELECT pg_terminate_backend($1)', $session->pid);
	is($session->wait->sqlstate, '57P01', 'a termination ends it');
	$sbx->wait_ended($session->pid);
	is(targets($mark), 'p1', 'no second create follows a termination');
}
{
	# Caught by a block around it: the subtransaction of the call is undone first.
	my ($session, $mark) = looping([], q{
		DO $$
		BEGIN
			BEGIN
				PERFORM sbx_provision('{}', 'loop');
			EXCEPTION WHEN query_canceled THEN
				INSERT INTO app.seen (who) VALUES (current_user || ' ' || current_setting('search_path'));
			END;
			INSERT INTO app.seen (who) VALUES ('went on');
		END $$});

	$admin->value('TRUNCATE app.seen');
	$admin->value('SELECT pg_cancel_backend($1)', $session->pid);
	my $result = $session->wait;
	ok(!$result->error && !$result->warnings, 'a cancel that is caught further up') or diag $result->everything;
	is($admin->value(q{SELECT string_agg(who, ', ' ORDER BY n) FROM app.seen}),
		$admin->value(q{SELECT current_user || ' "$user", public, went on'}), 'leaves role and search_path as they were');
	$session->finish;
}
foreach my $state (qw(57014 57P01 57P02 57P03 57P04 57P05))
{
	my $policy = policy("state $state", "BEGIN RAISE SQLSTATE '$state'; END");
	is(outcome($policy, [ {capacity()} ])->{sqlstate}, $state, "SQLSTATE $state goes through");
}
terminal("SQLSTATE $_ does not", policy("state $_", "BEGIN RAISE SQLSTATE '$_'; END"), [ {capacity()} ], $unknown, 'none')
  foreach qw(57000 57P06 58000 XX000 40001 SB005);

#
# Transactions around it
#

my $raises = 'raises';
$sbx->reset;
$s->query('BEGIN');
my $kept = $s->value('SELECT sbx_provision()');
$s->query('SAVEPOINT one');
$sbx->fault(capacity());
is(provision($raises)->sqlstate, 'SB005', 'a classifier raises inside a savepoint');
$s->query('ROLLBACK TO one');
is((scalar grep { $_ eq $kept } $sbx->alive), 1, 'what was made before it stays');
$sbx->fault(capacity());
my $next = provision($yes)->value;
$s->query('COMMIT');
is_deeply([ sort $sbx->alive ], [ sort $kept, $next ], 'COMMIT keeps both');
$s->value('SELECT sbx_destroy($1)', $_) foreach $kept, $next;

$s->query('BEGIN');
$sbx->fault(capacity());
$kept = provision($yes)->value;
$s->query('ROLLBACK');
$sbx->wait_none_alive;
ok(!$s->value('SELECT count(*) FROM sbx_mapping WHERE id = $1', $kept), 'ROLLBACK destroys what the second pool made');

# Calls in great number leave nothing behind.
$admin->value(q{SELECT sbx_update_provider('p0', enabled => true)});
my $many = q{
	DO $$
	BEGIN
		FOR i IN 1..300 LOOP
			BEGIN
				PERFORM sbx_provision('{"providerId":"p0"}', CASE i % 3 WHEN 0 THEN 'raises' WHEN 1 THEN 'yes' ELSE 'dropped' END);
			EXCEPTION WHEN SQLSTATE 'SB005' OR SQLSTATE 'SB006' THEN NULL;
			END;
		END LOOP;
	END $$};
policy('dropped', q{SELECT '{"retryable":true}'::jsonb});
$admin->value('DROP FUNCTION app.dropped(jsonb)');
my $memory = q{SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts WHERE name NOT LIKE 'Message%'};
$s->value($_) foreach $many, $many;
my $used = $s->value($memory);
$s->value($_) foreach $many, $many;
cmp_ok($s->value($memory) - $used, '<', 200_000, '600 calls take no memory for good');

#
# A dump
#

$admin->query($_) foreach 'CREATE ROLE keeper', 'CREATE SCHEMA kept', 'GRANT USAGE ON SCHEMA kept TO keeper',
  'CREATE FUNCTION kept.classifier(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$',
  'REVOKE ALL ON FUNCTION kept.classifier FROM PUBLIC', 'GRANT EXECUTE ON FUNCTION kept.classifier TO keeper',
  'GRANT EXECUTE ON FUNCTION sbx_set_policy(text, text[], interval, jsonb, text, text, text, text) TO keeper';
$admin->value(q{SELECT sbx_register_provider('own', 'daytona')});
$admin->value(q{SELECT sbx_register_provider('gone', 'daytona', capabilities => '{"capabilities":["homeMade"]}')});
$admin->value('SET ROLE keeper');
$admin->value(q{SELECT sbx_set_policy('kept', provider_order => '{gone,own}', classifier => 'kept.classifier',
	request_defaults => '{"requires":{"forbiddenCapabilities":["homeMade"]}}')});
$admin->value('RESET ROLE');

# Of what is unregistered, policies still speak.
$admin->value(q{SELECT sbx_unregister_provider('gone')});
my $rows = 'SELECT json_agg(p ORDER BY name) FROM sbx_policy p';
my $policies = $admin->value("$rows WHERE name = 'kept'");
$admin->value(q{DELETE FROM sbx_policy WHERE name <> 'kept'});
foreach my $format (qw(plain custom))
{
	my $file = PostgreSQL::Test::Utils::tempdir() . '/dump';
	my @restore = $format eq 'plain' ? ('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f') : ('pg_restore', '-e', '-d', "dump_$format");

	$sbx->node->command_ok([ 'pg_dump', '-F', $format, '-f', $file, 'postgres' ], "pg_dump, $format");
	$sbx->node->safe_psql('postgres', "CREATE DATABASE dump_$format");
	$sbx->node->command_ok([ @restore, $file, $format eq 'plain' ? "dump_$format" : () ], "restored, $format");
	is($sbx->node->safe_psql("dump_$format", $rows), $policies, 'policies are the same');
}

done_testing();
