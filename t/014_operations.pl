# The other operations on sandboxes: detached provisioning and readiness, start and stop,
# find; and all of them where they are refused.
use strict;
use warnings;
use utf8;

use PostgreSQL::Test::Cluster;
use SbxTest;
use Test::More;

my $key = 'key-operations';

# Nothing of what a provider says, and no key, may come out in an error.
my $marker = 'text-of-the-provider-4711';
sub is_silent { return $_[0]->everything !~ /\Q$marker\E|\Q$key\E/ ? 1 : 0 }
my %refusal = (
	action => 'status',
	body => { statusCode => 403, message => $marker, code => $marker, error => $marker });

my $sbx = SbxTest->new(
	conf => q{
wal_level = replica
max_wal_senders = 5
sbx_router.abort_cleanup_timeout = '30s'
});
$sbx->register('pool');
$sbx->register('ephemeral', createParams => { autoDeleteInterval => 0 });
my $s = $sbx->user('pool', $key);

sub failure { my ($sql, @parameters) = @_; return failure_of(@parameters ? $s->execute($sql, @parameters) : $s->query($sql)) }

sub recorded
{
	my ($id) = @_;

	return $s->value('SELECT state FROM sbx_mapping WHERE id = $1', $id);
}

sub provider_id
{
	my ($id) = @_;

	return $s->value('SELECT provider_sandbox_id FROM sbx_mapping WHERE id = $1', $id);
}

sub is_alive
{
	my ($name) = @_;

	return scalar grep { $_ eq $name } $sbx->alive;
}

sub run { return $sbx->run($s, @_) }

#
# Detached provisioning, and waiting until a sandbox is ready
#

{
	$sbx->config(startDelayMs => 3000);
	my $mark = $sbx->mark;
	my $id = $s->value('SELECT sbx_provision_detached($1)',
		'{"launch":{"name":"detached","labels":{"team":"a"},"env":{"GIVEN":"at launch"}}}');

	is($sbx->creates($mark), 1, 'detached: one create is sent');
	is($sbx->count('POST', $SbxTest::path{probe}, $mark), 0, 'detached: readiness is not probed');
	is(recorded($id), 'starting', 'detached: the row says starting');
	is($s->value('SELECT state FROM sbx_get($1)', $id), 'starting', 'sbx_get says the same');
	is( failure("SELECT sbx_run_script('$id', 'true')"),
		'SB008 NOT_STARTED',
		'a script in a sandbox that is still starting fails');
	is($s->value("SELECT sbx_wait_ready('$id', '100 ms')"),
		'f', 'sbx_wait_ready: false when the time was over before');
	is(recorded($id), 'starting', 'the row still says starting');

	$s->query('BEGIN READ ONLY');
	is($s->value("SELECT sbx_wait_ready('$id')"),
		't', 'sbx_wait_ready: true in a read-only transaction, too');
	$s->query('COMMIT');
	is(recorded($id), 'starting', 'where nothing may be written nothing is');
	is($s->value("SELECT sbx_wait_ready('$id')"), 't', 'sbx_wait_ready: true of one that is ready');
	is(recorded($id), 'started', 'then the row says started');
	is(run($id, 'echo $GIVEN')->{stdout}, "at launch\n", 'the sandbox runs scripts');

	my $xid = $s->value('SELECT xmin FROM sbx_mapping WHERE id = $1', $id);
	is($s->value("SELECT sbx_wait_ready('$id')"), 't', 'sbx_wait_ready again');
	is($s->value('SELECT xmin FROM sbx_mapping WHERE id = $1', $id),
		$xid, 'a row that says started already is not written');
	is($s->value("SELECT sbx_destroy('$id')"), 't', 'a detached sandbox is destroyed as any other');
}

# It belongs to the transaction, however far the start got.
$sbx->config(startDelayMs => 500);
foreach my $end ('ROLLBACK', 'ROLLBACK TO SAVEPOINT s; COMMIT', 'an error')
{
	$s->query('BEGIN; SAVEPOINT s');
	my $id = $s->value('SELECT sbx_provision_detached()');
	is(is_alive($id), 1, "$end: the sandbox is there before");
	$s->query($end eq 'an error' ? 'SELECT 1/0' : $end);
	$s->query('ROLLBACK') if $end eq 'an error';
	is(is_alive($id), 0, "$end: a detached sandbox is destroyed");
	is($s->value('SELECT count(*) FROM sbx_mapping'), 0, "$end: and not recorded");
}

# A caller's id, which is used once more after a rollback.
{
	my $id = $s->value('SELECT sbx_new_id()');

	$sbx->config(startDelayMs => 0);
	$s->query("BEGIN; SELECT sbx_provision_detached(id => '$id'); ROLLBACK");
	is($s->value('SELECT sbx_provision_detached(id => $1)', $id),
		$id, 'a caller may bring the id, and bring it again');
	is($s->value("SELECT sbx_wait_ready('$id')"), 't', 'and wait for that one');
	is($s->value("SELECT sbx_destroy('$id')"), 't', 'and destroy it');
}

# A create that fails, or whose outcome is lost.
{
	$sbx->fault(op => 'create', action => 'status', status => 401);
	is( failure('SELECT sbx_provision_detached()'),
		'SB005 PROVIDER_LAUNCH_OUTCOME_UNKNOWN',
		'detached: a refused create is SB005');
	$sbx->fault(op => 'create', action => 'reset-after-work');
	is(failure('SELECT sbx_provision_detached()'),
		'none', 'detached: a create whose answer is lost is found again');
	$s->query('SELECT sbx_destroy(id) FROM sbx_sandboxes');
	is(scalar(my @left = $sbx->alive), 0, 'detached: and leaves nothing');
}

# Cancel and timeouts.
{
	$sbx->config(startDelayMs => 4000);
	my $id = $s->value('SELECT sbx_provision_detached()');

	$s->query(q{SET statement_timeout = '300ms'});
	is($s->query("SELECT sbx_wait_ready('$id')")->sqlstate,
		'57014', 'statement_timeout ends the wait');
	$s->query('RESET statement_timeout');
	is($s->value("SELECT sbx_destroy('$id')"), 't', 'a sandbox that still starts can be destroyed');
	$sbx->config(startDelayMs => 0);
}

# A sandbox that will not be ready.
{
	my $id = $s->value('SELECT sbx_provision()');

	$sbx->http('POST', $key, '/sandbox/' . provider_id($id) . '/stop');
	is( failure("SELECT sbx_wait_ready('$id')"),
		'SB008 NOT_STARTED',
		'sbx_wait_ready: a stopped sandbox will not be ready by itself');
	$sbx->http('DELETE', $key, '/sandbox/' . provider_id($id));
	foreach my $call ('sbx_wait_ready(%s)', 'sbx_start(%s)', 'sbx_stop(%s)')
	{
		my $sql = sprintf "SELECT $call", "'$id'";

		is(failure($sql), 'SB008 SANDBOX_GONE', "$call: one that was deleted behind our back");
	}
	like($s->query("SELECT sbx_start('$id')")->hint,
		qr/sbx_destroy\(\)/, 'HINT says how to forget it');
	is(recorded($id), 'started', 'the row stays as it is');
	is($s->value("SELECT sbx_destroy('$id')"), 'f', 'sbx_destroy says that it was gone');
}

#
# Start and stop
#

{
	my $id = $s->value('SELECT sbx_provision()');

	run($id, 'echo kept >"$HOME/file"');
	is($s->query("SELECT sbx_stop('$id')")->sqlstate, undef, 'sbx_stop stops');
	is(recorded($id), 'stopped', 'sbx_stop: the row says stopped');
	is($s->value("SELECT state FROM sbx_get('$id')"),
		'stopped', 'sbx_stop: and so does the provider');
	foreach my $call (
		q{sbx_run_script('%s', 'true')},
		q{sbx_start_script('%s', 'true')},
		q{sbx_upload('%s', 'f', 'x')},
		q{sbx_download('%s', 'file')})
	{
		is(failure('SELECT ' . sprintf $call, $id), 'SB008 NOT_STARTED', "stopped: $call fails");
	}
	like($s->query("SELECT sbx_run_script('$id', 'true')")->hint,
		qr/sbx_start\(\)/, 'HINT names sbx_start()');
	my $mark = $sbx->mark;
	is($s->query("SELECT sbx_stop('$id')")->sqlstate, undef,
		'sbx_stop of a stopped one is success');
	is($sbx->count('POST', qr{/stop}, $mark), 0, 'without asking for it');

	is($s->query("SELECT sbx_start('$id')")->sqlstate, undef, 'sbx_start starts');
	is(recorded($id), 'started', 'sbx_start: the row says started');
	is(run($id, 'cat "$HOME/file"')->{stdout}, "kept\n", 'sbx_start: files are there again');
	$mark = $sbx->mark;
	is($s->query("SELECT sbx_start('$id')")->sqlstate,
		undef, 'sbx_start of a started one is success');
	is($sbx->count('POST', qr{/start$}, $mark), 0, 'without asking for it');

	# The provider knows no transactions.
	$s->query("BEGIN; SELECT sbx_stop('$id'); ROLLBACK");
	is(recorded($id), 'started', 'a stop that is rolled back: the row says what it said');
	is($s->value("SELECT state FROM sbx_get('$id')"),
		'stopped', 'the sandbox is stopped all the same');
	is($s->query("SELECT sbx_start('$id')")->sqlstate,
		undef, 'sbx_start goes by the provider\'s state');
	is(run($id, 'echo here')->{stdout}, "here\n", 'and the sandbox runs scripts');

	$sbx->config(stopDelayMs => 500, startDelayMs => 500);
	is($s->query("SELECT sbx_stop('$id')")->sqlstate, undef, 'sbx_stop waits until it is stopped');
	is($s->value("SELECT state FROM sbx_get('$id')"), 'stopped', 'and not shorter');
	is($s->query("SELECT sbx_start('$id')")->sqlstate, undef, 'sbx_start waits until it is ready');
	is(run($id, 'echo here')->{stdout}, "here\n", 'and not shorter');
	$sbx->config(stopDelayMs => 0, startDelayMs => 0);

	foreach my $case ([ 'stop', 'sbx_stop' ], [ 'start', 'sbx_start' ])
	{
		my ($op, $function) = @$case;

		$sbx->fault(op => $op, status => 403, %refusal);
		my $result = $s->query("SELECT $function('$id')");
		is_deeply(
			[ $result->sqlstate, json($result->detail), is_silent($result) ],
			[ 'SB008', { providerId => 'pool', operation => $op, code => 'FORBIDDEN' }, 1 ],
			"$function: a refusal is SB008, in our words");
		is( recorded($id),
			$op eq 'stop' ? 'started' : 'stopped',
			"$function: the row stays as it is");
		is($s->query("SELECT $function('$id')")->sqlstate, undef, "$function: can be tried again");
	}
	$s->value("SELECT sbx_destroy('$id')");
}

# Where stopping is deleting.
{
	$s->value('SELECT sbx_set_credential($1, $2)', 'ephemeral', $key);
	my $id = $s->value(q{SELECT sbx_provision('{"providerId":"ephemeral"}')});
	my $result = $s->query("SELECT sbx_stop('$id')");

	is(json($result->detail)->{code},
		'STOP_WOULD_DESTROY', 'sbx_stop: not where it would delete the sandbox');
	like($result->hint, qr/sbx_destroy\(\)/, 'HINT names sbx_destroy()');
	is(run($id, 'echo alive')->{stdout}, "alive\n", 'the sandbox is not touched');
	is(recorded($id), 'started', 'nor is the row');
	is($s->value("SELECT sbx_destroy('$id')"), 't', 'sbx_destroy does what was asked for');
	$s->value('SELECT sbx_clear_credentials($1)', 'ephemeral');
}

# Made, stopped and started by a transaction that does not commit.
{
	$s->query('BEGIN');
	my $id = $s->value('SELECT sbx_provision()');
	$s->query("SELECT sbx_stop('$id')");
	is(recorded($id), 'stopped', 'a stop within the transaction that made the sandbox');
	$s->query("SELECT sbx_start('$id')");
	is(recorded($id), 'started', 'and a start');
	$s->query('ROLLBACK');
	is(is_alive($id), 0, 'its rollback destroys the sandbox');
}

# A start that makes the sandbox anew: the other id counts from then on.
sub moved_to
{
	my ($id) = @_;
	my $there = $sbx->http('POST', $key, '/sandbox',
		{ name => "moved-$id", labels => { 'sbx-router-id' => $id } });

	$sbx->fault(
		op => 'start',
		path => '*/start',
		action => 'status',
		status => 200,
		body => $there);
	return $there->{id};
}

{
	my $id = $s->value('SELECT sbx_provision()');
	my $first = provider_id($id);

	$s->query("SELECT sbx_stop('$id')");
	my $second = moved_to($id);
	is($s->query("SELECT sbx_start('$id')")->sqlstate, undef, 'moved: sbx_start is success');
	isnt($first, $second, 'moved: there are two ids');
	is(provider_id($id), $second, 'moved: the row has the new one');
	is(run($id, 'echo here')->{stdout}, "here\n", 'moved: scripts run there');
	is($s->value("SELECT sbx_destroy('$id')"), 't', 'moved: it is destroyed there');
	is(is_alive("moved-$id"), 0, 'moved: nothing is left of it');
	$sbx->http('DELETE', $key, "/sandbox/$first");

	$s->query('BEGIN');
	$id = $s->value('SELECT sbx_provision()');
	$first = provider_id($id);
	$s->query("SELECT sbx_stop('$id')");
	moved_to($id);
	$s->query("SELECT sbx_start('$id')");
	$s->query('ROLLBACK');
	is(is_alive("moved-$id"), 0, 'moved: a rollback destroys the one that is there now');
	$sbx->http('DELETE', $key, "/sandbox/$first");

	$s->query('BEGIN');
	$id = $s->value('SELECT sbx_provision()');
	$first = provider_id($id);
	$s->query("SELECT sbx_stop('$id')");
	$second = moved_to($id);
	$sbx->fault(op => 'get', path => "*/$second", action => 'hang');
	$s->send("SELECT sbx_start('$id')");
	poll('the new one is looked at', sub { $sbx->count('GET', qr{/\Q$second\E$}) > 0 });
	$sbx->session->value('SELECT pg_cancel_backend($1)', $s->pid);
	is($s->wait->sqlstate, '57014', 'moved: a start that is cancelled while it waits');
	$s->query('ROLLBACK');
	is(is_alive("moved-$id"), 0, 'moved: its rollback destroys the one that is there now');
	$sbx->http('DELETE', $key, "/sandbox/$first");
	is(scalar(my @left = $sbx->alive), 0, 'moved: nothing else was made');
}

# A start that makes the sandbox anew, and whose end nobody records: its name leads there.
foreach my $given (0, 1)
{
	my $id = $given
	  ? $s->value(q{SELECT sbx_provision('{}', NULL, 'sbx_00000000000000000000000000000abc')})
	  : $s->value('SELECT sbx_provision()');
	my $what = $given ? 'moved, id of the caller' : 'moved, nobody heard';
	my $labels = $sbx->http('GET', $key, '/sandbox/' . provider_id($id))->{labels};

	# Deleted behind our back, and there under the same name again.
	my $anew = sub {
		$sbx->http('DELETE', $key, '/sandbox/' . provider_id($id));
		$sbx->http('POST', $key, '/sandbox', { name => $id, labels => $_[0] });
	};
	$anew->($labels);
	is($s->query("SELECT sbx_start('$id')")->sqlstate, undef, "$what: sbx_start finds it");
	is(run($id, 'echo here')->{stdout}, "here\n", "$what: scripts run there");
	$anew->($labels);
	is($s->value("SELECT sbx_destroy('$id')"), 't', "$what: sbx_destroy finds it");
	is(is_alive($id), 0, "$what: nothing is left of it");
	next unless $given;

	# The same id, made by somebody else: nothing of ours.
	$s->value(q{SELECT sbx_provision('{}', NULL, 'sbx_00000000000000000000000000000abc')});
	$anew->({ 'sbx-router-id' => $id, 'sbx-router-launch' => '0123456789abcdef' });
	is($s->value("SELECT sbx_destroy('$id')"), 'f', 'must not fire: the same id of another launch');
	is(is_alive($id), 1, 'must not fire: it is left alone');
	$sbx->http('DELETE', $key, "/sandbox/$id");
}

#
# Find
#

# Rows of sbx_find as hashes, by name.
sub find
{
	my ($session, $labels, $pool) = @_;
	my $result = $session->execute(
		q{SELECT sbx_id, provider_sandbox_id, name, labels, state,
			created_at BETWEEN now() - interval '1 hour' AND now() + interval '1 hour'
		  FROM sbx_find($1, $2) ORDER BY name}, $pool // 'pool', $labels);

	die $result->message if $result->error;
	return map {
		my %row;
		@row{qw(sbx_id provider_sandbox_id name labels state recent)} = @$_;
		$row{labels} = json($row{labels});
		\%row
	} @{ $result->rows };
}

{
	my $one =
	  $s->value('SELECT sbx_provision($1)', '{"launch":{"labels":{"team":"a","städte":"žluť 🐘"}}}');
	my $two =
	  $s->value('SELECT sbx_provision($1)', '{"launch":{"labels":{"team":"a","role":"db"}}}');
	my $foreign =
	  $sbx->http('POST', $key, '/sandbox', { name => 'foreign', labels => { team => 'a' } });

	$s->query("SELECT sbx_stop('$two')");
	my %found = map { $_->{name} => $_ } find($s, '{"team":"a"}');
	is_deeply([ sort keys %found ], [ sort $one, $two, 'foreign' ],
		'find: all that have the label');
	is_deeply(
		[ @{ $found{$one} }{qw(sbx_id provider_sandbox_id state recent)} ],
		[ $one, provider_id($one), 'started', 't' ],
		'find: ours with its id, state and time');
	is($found{$one}{labels}{'städte'}, 'žluť 🐘', 'find: labels as they are');
	is($found{$one}{labels}{'sbx-router-id'}, $one, 'find: the router\'s own, too');
	is($found{$two}{state}, 'stopped', 'find: whatever the state');
	is($found{foreign}{sbx_id}, undef, 'find: one that is not ours has no id of ours');
	is($found{foreign}{provider_sandbox_id}, $foreign->{id}, 'find: but the provider\'s');
	is(scalar(my @all = find($s, '{}')), 3, 'find: no label finds all of the account');
	is_deeply([ map { $_->{name} } find($s, '{"team":"a","role":"db"}') ],
		[$two], 'find: all of the labels have to be there');
	is_deeply([ map { $_->{name} } find($s, qq{{"sbx-router-id":"$one"}}) ],
		[$one], 'find: by a label of the router');
	is_deeply([ find($s, '{"team":"A"}') ], [], 'find: none is no error');
	is_deeply([ find($sbx->user('pool', 'key-of-another-account'), '{}') ],
		[], 'find: what is in another account is not found');

	# Whose: the id is shown to those alone who may use it.
	$sbx->node->safe_psql(
		'postgres', q{
CREATE ROLE regress_sbx_other;
GRANT EXECUTE ON FUNCTION sbx_find, sbx_start, sbx_download, sbx_set_credential TO regress_sbx_other}
	);
	my $other = $sbx->session;
	$other->query('SET ROLE regress_sbx_other');
	$other->value('SELECT sbx_set_credential($1, $2)', 'pool', $key);
	is_deeply(
		[ map { $_->{sbx_id} } find($other, '{"team":"a"}') ],
		[ undef, undef, undef ],
		'find: another role is not told our ids');
	foreach my $call ('sbx_start(%s)', 'sbx_download(%s, \'file\')')
	{
		is($other->query(sprintf "SELECT $call", "'$one'")->sqlstate,
			'SB010', "$call: another role's sandbox does not exist");
	}
	$other->finish;

	# Pools that share an account: a sandbox is of the pool that recorded it.
	$sbx->register('twin');
	$s->value('SELECT sbx_set_credential($1, $2)', 'twin', $key);
	is_deeply(
		[ map { $_->{sbx_id} } find($s, '{"team":"a"}', 'twin') ],
		[ undef, undef, undef ],
		'find: ours is what that pool recorded');
	$s->query('BEGIN READ ONLY');
	is(scalar(@all = find($s, '{}')), 3, 'find: in a read-only transaction');
	$s->query('ROLLBACK');

	# What a provider says that is odd.
	my %odd = (
		'no time' => { createdAt => undef },
		'a malformed time' => { createdAt => 'yesterday' },
		'a time of another type' => { createdAt => 1764648000 });
	foreach my $what (sort keys %odd)
	{
		$sbx->fault(
			op => 'list',
			action => 'status',
			status => 200,
			body => {
				items => [
					{
						id => 'odd',
						state => 'started',
						name => 'odd',
						labels => {},
						%{ $odd{$what} }
					}
				],
				nextCursor => undef
			});
		is_deeply(
			[ map { [ @$_{qw(name recent)} ] } find($s, '{}') ],
			[ [ 'odd', undef ] ],
			"find: $what is NULL");
	}
	foreach my $case (
		[ 'a refusal', status => 401, %refusal ],
		[ 'garbage', action => 'garbage' ],
		[ 'a cut answer', action => 'truncate' ],
		[ 'deep nesting', action => 'deep' ],
		[ 'bad UTF-8', action => 'bad-utf8' ],
		[
			'an item without an id',
			action => 'status',
			status => 200,
			body => { items => [ { state => 'started' } ], nextCursor => undef }
		],
		[
			'no list',
			action => 'status',
			status => 200,
			body => { items => undef, nextCursor => undef }
		])
	{
		my ($what, %rule) = @$case;

		$sbx->fault(op => 'list', times => 10, %rule);
		my $result = $s->query(q{SELECT * FROM sbx_find('pool', '{}')});
		is_deeply(
			[
				$result->sqlstate, json($result->detail)->{operation},
				$result->message, is_silent($result)
			],
			[ 'SB008', 'find', 'could not find sandboxes at provider "pool"', 1 ],
			"find: $what is an error, not a shorter list");
		$sbx->clear_faults;
	}

	# A listing lags behind; a look at the sandbox does not.
	$sbx->config(listLagMs => 60000);
	my $fresh = $s->value('SELECT sbx_provision($1)', '{"launch":{"labels":{"team":"fresh"}}}');
	is_deeply([ find($s, '{"team":"fresh"}') ], [], 'find: a listing that lags is what it is');
	is($s->value('SELECT state FROM sbx_get($1)', $fresh), 'started', 'sbx_get knows it');
	$sbx->config(listLagMs => 0);
	is(scalar(my @found = find($s, '{"team":"fresh"}')), 1, 'find: and is there later');
	$s->value('SELECT sbx_destroy(id) FROM sbx_sandboxes');
	$sbx->http('DELETE', $key, "/sandbox/$foreign->{id}");
}

# More than a page of any size.
{
	my $many = 205;

	$s->value('SELECT sbx_set_credential($1, $2)', 'pool', 'key-of-many');
	$sbx->http('POST', 'key-of-many', '/sandbox', { name => "many-$_", labels => { n => "$_" } })
	  foreach 1 .. $many;
	my $own = $s->value('SELECT sbx_provision()');
	my $mark = $sbx->mark;
	my @found = find($s, '{}');
	is(scalar @found, $many + 1, 'find: all of a listing of several pages');
	cmp_ok($sbx->count('GET', qr{^/daytona/api/sandbox\?}, $mark),
		'>', 1, 'find: there were several');
	is_deeply([ map { $_->{sbx_id} } grep { defined $_->{sbx_id} } @found ],
		[$own], 'find: with the one that is ours');
	my %names = map { $_->{name} => 1 } @found;
	is(scalar keys %names, $many + 1, 'find: each one once');

	$sbx->fault(op => 'list', action => 'status', status => 403, after => 1, times => 10);
	is( failure(q{SELECT * FROM sbx_find('pool', '{}')}),
		'SB008 FORBIDDEN',
		'find: a second page that fails is an error');
	$sbx->clear_faults;
	$s->value("SELECT sbx_destroy('$own')");
	$s->value('SELECT sbx_set_credential($1, $2)', 'pool', $key);
}

#
# On a standby: what only looks works, what changes something is refused
#

my $id = $s->value('SELECT sbx_provision()');
$s->value(q{SELECT sbx_upload($1, 'file', $2)}, $id, 'content');
{
	my $primary = $sbx->node;
	my $standby = PostgreSQL::Test::Cluster->new('standby');

	$primary->backup('for_standby');
	$standby->init_from_backup($primary, 'for_standby', has_streaming => 1);
	$standby->start;
	my $there = $sbx->session(host => $standby->host, port => $standby->port);
	$there->value('SELECT sbx_set_credential($1, $2)', 'pool', $key);
	is($there->value("SELECT sbx_wait_ready('$id')"), 't', 'standby: sbx_wait_ready only waits');
	is($there->value("SELECT length(sbx_download('$id', 'file'))"), 7, 'standby: a download');
	is($there->value(q{SELECT count(*) FROM sbx_find('pool', '{}') WHERE sbx_id IS NOT NULL}),
		1, 'standby: sbx_find');

	foreach my $call (
		'sbx_provision_detached()', "sbx_start('$id')",
		"sbx_stop('$id')", "sbx_start_script('$id', 'true')",
		"sbx_upload('$id', 'f', 'x')")
	{
		is($there->query("SELECT $call")->sqlstate, '25006', "standby: $call is refused");
	}
	$there->finish;
	$standby->stop;
}

#
# Gone, and nothing asked where nothing can be answered
#

my $stranger = $sbx->session;
my $mark = $sbx->mark;
foreach my $call (
	'sbx_wait_ready(%s)',
	'sbx_start(%s)',
	'sbx_stop(%s)',
	q{sbx_start_script(%s, 'true')},
	q{sbx_script_status(%s, 's', 'c')},
	q{sbx_script_logs(%s, 's', 'c')},
	q{sbx_upload(%s, 'f', 'x')},
	q{sbx_download(%s, 'f')})
{
	is($stranger->query(sprintf "SELECT $call", "'$id'")->sqlstate, 'SB011',
		"$call: no credential");
	is($s->query(sprintf "SELECT $call", q{'sbx_0123456789abcdef0123456789abcdef'})->sqlstate,
		'SB010', "$call: unknown sandbox");
}
is($stranger->query(q{SELECT * FROM sbx_find('pool', '{}')})->sqlstate,
	'SB011', 'sbx_find: no credential');
is($sbx->mark, $mark, 'none of them asks a provider');

$sbx->http('DELETE', $key, '/sandbox/' . provider_id($id));
foreach my $call (
	q{sbx_start_script(%s, 'true')},
	q{sbx_script_status(%s, 's', 'c')},
	q{sbx_script_logs(%s, 's', 'c')},
	q{sbx_upload(%s, 'f', 'x')},
	q{sbx_download(%s, 'f')})
{
	is( failure(sprintf "SELECT $call", "'$id'"),
		'SB008 SANDBOX_GONE',
		"$call: deleted behind our back");
}
is($s->value("SELECT sbx_destroy('$id')"), 'f', 'sbx_destroy forgets it');
is(scalar(my @left = grep { !/^many-/ } $sbx->alive), 0, 'nothing is left');

done_testing();
