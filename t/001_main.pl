# The main job: a request becomes a sandbox, scripts run in it, it is destroyed.
use strict;
use warnings;
use utf8;

use SbxTest;
use Test::More;

my $sbx = SbxTest->new;
$sbx->register('pool');
my $s = $sbx->user('pool', 'key-main');

# sbx_get as a hash.
sub get
{
	my ($id) = @_;
	my %row;

	@row{qw(id provider_id provider_sandbox_id name labels state created_at)} =
	  $s->execute('SELECT * FROM sbx_get($1)', $id)->row;
	return \%row;
}

# The row as a hash; in list context also the whole result.
sub run { return $sbx->run($s, @_) }

#
# Provisioning
#

my $id = $s->value('SELECT sbx_provision($1)',
	'{"launch":{"name":"first","labels":{"team":"a"},"env":{"TOKEN":"env-in-the-request"}}}');
like($id, qr/^sbx_[0-9a-f]{32}$/, 'an id is sbx_ and 32 hex digits');
is($s->value('SELECT sbx_route()'), 'pool', 'the pool that was used is the one routing names');

my ($create) = grep { $_->{op} eq 'create' } $sbx->requests;
my $body = json($create->{body});
is($sbx->creates, 1, 'one create is sent');
is($body->{name}, $id, 'the provider-side name is the id');
is($body->{labels}{'sbx-router-id'}, $id, 'the label sbx-router-id is the id');
like(
	$body->{labels}{'sbx-router-db'},
	qr/^[0-9a-f]{16}-\d+-[0-9a-f]{16}$/,
	'the label sbx-router-db names installation, database and cluster');
is($body->{labels}{'sbx-router-name'}, 'first', 'the name of the request is a label');
is($body->{labels}{team}, 'a', 'labels of the request arrive');
is($body->{env}{TOKEN}, 'env-in-the-request', 'env of the request arrives');
is($create->{headers}{authorization}, 'Bearer ***', 'the key travels as a bearer token');
ok(!exists $create->{headers}{expect}, 'no Expect header');
is_deeply(
	[ sort grep { !/^(host|accept|accept-encoding|content-type|content-length)$/ } keys %{ $create->{headers} } ],
	[qw(authorization user-agent x-daytona-sdk-version x-daytona-source)],
	'and no header that nobody knows');

my @row = $s->query(
	qq{SELECT provider_id, name, labels, state, env_hash IS NOT NULL
	FROM sbx_mapping WHERE id = '$id'})->row;
is_deeply(
	\@row,
	[ 'pool', 'first', '{"team": "a"}', 'started', 't' ],
	'the mapping row says what was made');
unlike($s->value("SELECT m::text FROM sbx_mapping m WHERE id = '$id'"),
	qr/env-in-the-request/, 'env is not in the mapping row');
is($s->value("SELECT count(*) FROM sbx_sandboxes WHERE id = '$id'"), 1, 'sbx_sandboxes shows it');

my $second = $s->value('SELECT sbx_provision()');
isnt($second, $id, 'ids differ');
is($s->value("SELECT env_hash IS NULL FROM sbx_mapping WHERE id = '$second'"),
	't', 'no env, no hash');

#
# Output
#

my $row = run($id, 'echo to stdout; echo to stderr >&2; echo again');
is($row->{stdout}, "to stdout\nagain\n", 'standard output is apart');
is($row->{stderr}, "to stderr\n", 'standard error is apart');
is($row->{exit_code}, 0, 'exit code 0');
is($row->{truncated}, 0, 'nothing was cut');
is( join("\n", sort split /\n/, $row->{output}),
	"again\nto stderr\nto stdout",
	'output has both streams');

$row = run($id, 'true');
is_deeply(
	[ @$row{qw(output stdout stderr exit_code)} ],
	[ '', '', '', 0 ],
	'a silent script gives empty texts');

$row = run($id, q{awk 'BEGIN { for (i = 0; i < 16384; i++) printf "%063d\n", i }'});
is(length $row->{stdout}, 1048576, '1 MiB of output arrives whole');
is(substr($row->{stdout}, -6), "16383\n", 'to the last byte');
is($row->{truncated}, 0, 'and is not marked as cut');

$row = run($id, q{printf 'a\377b\0c\n'; printf '\303\n' >&2});
is($row->{stdout}, "a\x{FFFD}b\x{FFFD}c\n", 'invalid UTF-8 and NUL become U+FFFD');
is($row->{stderr}, "\x{FFFD}\n", 'also at the end of a line and on standard error');
is(run($id, 'printf "%s\n" "žluťoučký 🐘"')->{stdout}, "žluťoučký 🐘\n", 'UTF-8 arrives as it is');

my $small = $sbx->user('pool', 'key-main', options => '-c sbx_router.max_script_output=2kB');
($row) = $sbx->run($small, $id, q{printf '%03000d\n' 7; echo short >&2});
is(length $row->{stdout}, 2048, 'max_script_output cuts a stream');
is($row->{stderr}, "short\n", 'each stream on its own');
is($row->{truncated}, 1, 'what was cut is marked');
($row) = $sbx->run($small, $id, q{printf '%02047d\n' 7});
is(length $row->{stdout}, 2048, 'what just fits is not cut');
is($row->{truncated}, 0, 'and not marked');
($row) = $sbx->run($small, $id, q{printf '%02047dé\n' 7});
is(length $row->{stdout}, 2047, 'a character is not torn');
$small->finish;

#
# Exit codes, and scripts that end the shell
#

is(run($id, '(exit 3)')->{exit_code}, 3, 'exit code 3 is a result');
is(run($id, 'no-such-command')->{exit_code}, 127, 'an unknown command is 127');
is(run($id, 'kill -KILL $$')->{exit_code}, 137,
	'a script killed by a signal is 128 and its number');
is(run($id, 'exit 5')->{exit_code}, 5, 'a bare exit ends the script, not the call');
$row = run($id, "set -e\necho before\nfalse\necho after");
is_deeply([ @$row{qw(stdout exit_code)} ], [ "before\n", 1 ], 'set -e ends at the failure');
$row = run($id, "echo before\nif then");
isnt($row->{exit_code}, 0, 'a syntax error is an exit code');
like($row->{stderr}, qr/line 2/, 'with the line number of the script');
$row = run($id, "echo 'unbalanced");
isnt($row->{exit_code}, 0, 'unbalanced quotes are an exit code');
$row = run($id, 'exec >/dev/null; echo x');
is_deeply([ @$row{qw(stdout exit_code)} ], [ '', 0 ], 'a script may close its output');

#
# Input, environment, directory, size
#

$row = run($id, 'wc -c; cat; echo "AFTER $?"');
is($row->{stdout}, "0\nAFTER 0\n", 'standard input is empty');

my %env = (
	QUOTES => q{it's "so"},
	LINES => "one\ntwo\n",
	DOLLAR => '$HOME ${PATH} $(id)',
	BACKTICK => '`id`',
	BACKSLASH => 'a\\nb\\',
	UNICODE => 'žluťoučký 🐘',
	GLOB => '* ; & | < > #!',
	EMPTY => '',
	_1 => 'underscore');
foreach my $name (sort keys %env)
{
	is(run($id, "printf '%s.' \"\$$name\"", env => \%env)->{stdout},
		"$env{$name}.\n", "env $name arrives as it is");
}
is(run($id, 'echo "${EMPTY-unset}"', env => \%env)->{stdout}, "\n", 'an empty value is set');
is(run($id, 'echo "${EMPTY-unset}"')->{stdout}, "unset\n", 'env is this run\'s only');
is(run($id, 'echo $TOKEN')->{stdout},
	"env-in-the-request\n", 'env of the request is there in every run');
is(run($id, 'echo $TOKEN', env => { TOKEN => 'mine' })->{stdout},
	"mine\n", 'and env of the run wins');
is(run($id, 'env | grep -c ^sbx_', env => \%env)->{stdout},
	"0\n", 'nothing of ours is left in the environment');

is(run($id, 'pwd', cwd => '/tmp')->{stdout}, "/tmp\n", 'cwd is where the script runs');
$row = run($id, 'echo RAN', cwd => '/no/such/place');
is($row->{stdout}, '', 'where cwd is missing the script does not run');
isnt($row->{exit_code}, 0, 'and the exit code says so');
run($id, q{mkdir -p "/tmp/a dir's"});
is( run($id, 'pwd', cwd => q{/tmp/a dir's})->{stdout},
	"/tmp/a dir's\n",
	'cwd may hold blanks and quotes');
run($id, 'cd /; export LEFT=behind; leave() { :; }');
is( run($id, 'echo "$(pwd) ${LEFT-nothing}"', cwd => '/tmp')->{stdout},
	"/tmp nothing\n",
	'directory and variables of one run do not leak into the next');

my $long = join("\n", map { "# line $_ " . ('x' x 80) } 1 .. 3400) . "\necho the end\nexit 4";
cmp_ok(length $long, '>', 300_000, 'a script of more than 300 KB');
my $before = $sbx->mark;
$row = run($id, $long);
is_deeply([ @$row{qw(stdout exit_code)} ], [ "the end\n", 4 ], 'runs to its end');
is($sbx->execs($before), 1, 'and is sent once');
my ($exec) = grep { $_->{path} =~ m{/exec$} } $sbx->requests($before);
is_deeply(
	[ sort grep { /transfer|length/ } keys %{ $exec->{headers} } ],
	['transfer-encoding'],
	'without a Content-Length, so that no proxy can send it again');

#
# Processes, and sandboxes beside each other
#

foreach my $how ('', 'nohup', 'setsid')
{
	run($id, "$how sleep 1000 >/dev/null 2>&1 & echo \$! >/tmp/background");
	is(run($id, 'kill -0 $(cat /tmp/background) && echo running')->{stdout},
		"running\n", "a process in the background ($how) outlives its run");
	is(run($id, 'pgrep -x sleep | wc -l')->{stdout}, "1\n", 'its own sandbox sees it');
	is(run($second, 'pgrep -x sleep | wc -l')->{stdout}, "0\n", 'another sandbox does not see it');
	is(run($id, 'kill $(cat /tmp/background); echo $?')->{stdout}, "0\n",
		'the next run can end it');
}

run($id, 'echo secret-of-the-first >/tmp/file');
is( run($id, 'cat /tmp/file')->{stdout},
	"secret-of-the-first\n",
	'files stay from one run to the next');
is(run($second, 'cat /tmp/file 2>/dev/null || echo none')->{stdout},
	"none\n", 'another sandbox does not see them');

#
# Timeout
#

my $started = time;
my (undef, $result) = run($id, 'echo $$ >/tmp/late; echo before; sleep 1000', timeout => '500 ms');
is($result->sqlstate, 'SB008', 'a script that runs out of time is SB008');
is_deeply(
	json($result->detail),
	{ providerId => 'pool', operation => 'runScript', code => 'TIMEOUT' },
	'DETAIL says TIMEOUT');
like($result->message, qr/"$id" did not finish in time/, 'MESSAGE names the sandbox');
cmp_ok(time - $started, '<', 60, 'long before the script would end');
is(run($id, 'kill -0 $(cat /tmp/late) 2>/dev/null || echo gone')->{stdout},
	"gone\n", 'the process is gone');

(undef, $result) = run($id, <<'SCRIPT', timeout => '1 second');
trap '' TERM
sleep 1000 >/dev/null 2>&1 &
echo $! $$ >/tmp/stubborn
while :; do sleep 0.1; done
SCRIPT
is(json($result->detail)->{code}, 'TIMEOUT', 'a script that ignores SIGTERM too');
is( run($id, 'for p in $(cat /tmp/stubborn); do kill -0 $p 2>/dev/null || echo gone; done')
	  ->{stdout},
	"gone\ngone\n",
	'is killed, with what it had in the background');
is(run($id, 'ls -A /tmp | grep -c sbx')->{stdout}, "1\n", 'no run leaves files behind but its own');

is(run($id, 'sleep 0.6; echo in time', timeout => '1 minute')->{stdout},
	"in time\n", 'a script that ends in time does not fail');
foreach my $timeout ('0', '-1 second', '2 days')
{
	$before = $sbx->mark;
	(undef, $result) = run($id, 'true', timeout => $timeout);
	is($result->sqlstate, 'SB001', "timeout $timeout is refused");
	is($sbx->mark, $before, 'without a request');
}

#
# States
#

is(get($id)->{state}, 'started', 'sbx_get: started');
is_deeply(
	[ @{ get($id) }{qw(id provider_id name labels)} ],
	[ $id, 'pool', 'first', '{"team": "a"}' ],
	'sbx_get: what was recorded');
my $provider_id = get($id)->{provider_sandbox_id};
is((grep { $_->{name} eq $id && $_->{id} eq $provider_id } $sbx->audit),
	1, 'sbx_get: the provider\'s own id');

my %word = (
	creating => 'starting',
	unknown => 'starting',
	'a-word-of-tomorrow' => 'starting',
	STARTED => 'started',
	stopping => 'stopping',
	archiving => 'stopping',
	stopped => 'stopped',
	archived => 'stopped',
	error => 'failed',
	build_failed => 'failed',
	destroying => 'gone',
	destroyed => 'gone');
foreach my $state (sort keys %word)
{
	$sbx->fault(
		op => 'get',
		action => 'status',
		status => 200,
		body => { id => $provider_id, state => $state });
	is(get($id)->{state}, $word{$state}, "sbx_get: $state is $word{$state}");
}

$sbx->http('POST', 'key-main', "/sandbox/$provider_id/stop");
is(get($id)->{state}, 'stopped', 'sbx_get: stopped behind our back');
(undef, $result) = run($id, 'true');
is($result->sqlstate, 'SB008', 'a stopped sandbox runs nothing');
is(json($result->detail)->{code}, 'NOT_STARTED', 'and DETAIL says why');
$sbx->http('POST', 'key-main', "/sandbox/$provider_id/start");
is(run($id, 'cat /tmp/file')->{stdout}, "secret-of-the-first\n", 'started again it goes on');

#
# Destroying
#

is($s->value("SELECT sbx_destroy('$id')"), 't', 'sbx_destroy is true when it destroyed');
is((grep { $_ eq $id } $sbx->alive), 0, 'nothing is left at the provider');
is((grep { $_ eq $second } $sbx->alive), 1, 'the other one is');
is($s->value("SELECT count(*) FROM sbx_mapping WHERE id = '$id'"), 0, 'the row is gone');
$before = $sbx->mark;
foreach my $call (
	"sbx_destroy('$id')", "sbx_get('$id')",
	"sbx_run_script('$id', 'true')", q{sbx_get('nonsense')})
{
	is($s->query("SELECT $call")->sqlstate, 'SB010', "$call: no such sandbox");
}
is($sbx->mark, $before, 'and nobody was asked');

$sbx->http('DELETE', 'key-main', "/sandbox/" . get($second)->{provider_sandbox_id});
is(get($second)->{state}, 'gone', 'deleted behind our back: sbx_get says gone');
is($s->value("SELECT count(*) FROM sbx_mapping WHERE id = '$second'"), 1, 'and keeps the row');
(undef, $result) = run($second, 'true');
is($result->sqlstate, 'SB008', 'a run there fails');
is(json($result->detail)->{code}, 'SANDBOX_GONE', 'and DETAIL says why');
is($s->value("SELECT sbx_destroy('$second')"), 'f', 'sbx_destroy is false when it was gone');
is($s->value("SELECT count(*) FROM sbx_mapping WHERE id = '$second'"), 0, 'and the row is gone');

#
# Ids that the caller brings
#

my $mine = $s->value('SELECT sbx_new_id()');
is($s->value('SELECT sbx_provision(id => $1)', $mine), $mine, 'a caller may bring a fresh id');
$before = $sbx->mark;
is($s->query("SELECT sbx_provision(id => '$mine')")->sqlstate, 'SB001', 'a used id is refused');
is($s->query("SELECT sbx_provision(id => 'sbx_123')")->sqlstate, 'SB001', 'a malformed one too');

my $other = $sbx->user('pool', 'key-main');
my $held = $s->value('SELECT sbx_new_id()');
$s->query('BEGIN');
$s->value("SELECT sbx_provision(id => '$held')");
my $sent = $sbx->creates($before);
is($other->query("SELECT sbx_provision(id => '$held')")->sqlstate,
	'SB001', 'an id in use by an open transaction is refused at once');
is($sbx->creates($before), $sent, 'nothing was launched for any refused id');
$s->query('COMMIT');

#
# Transactions
#

foreach my $level ('REPEATABLE READ', 'SERIALIZABLE')
{
	$s->query("BEGIN ISOLATION LEVEL $level");
	$s->value('SELECT count(*) FROM sbx_mapping');
	my $there = $s->value('SELECT sbx_provision()');
	is(run($there, 'echo here')->{stdout}, "here\n", "$level: provision and run");
	$s->query('COMMIT');
	is($s->value("SELECT sbx_destroy('$there')"), 't', "$level: committed, and destroyed");
}
$before = $sbx->mark;
$s->query('BEGIN READ ONLY');
is($s->query('SELECT sbx_provision()')->sqlstate,
	'25006', 'a read-only transaction provisions nothing');
$s->query('ROLLBACK; BEGIN READ ONLY');
is($s->query("SELECT sbx_destroy('$mine')")->sqlstate, '25006', 'and destroys nothing');
$s->query('ROLLBACK');
is($s->query(q{SELECT sbx_provision('{"resources":{"cpu":64}}')})->sqlstate,
	'SB003', 'no eligible pool is SB003');
my $stranger = $sbx->session;
$result = $stranger->query('SELECT sbx_provision()');
is($result->sqlstate, 'SB003', 'no pool with a credential is SB003');
is_deeply(
	json($result->detail),
	{ rejections => { pool => ['CREDENTIALS'] } },
	'and DETAIL says why');
is($stranger->query("SELECT sbx_get('$mine')")->sqlstate,
	'SB011', 'for an existing sandbox it is SB011');
is($sbx->mark, $before, 'none of them asks a provider');

$s->query('BEGIN READ ONLY');
is(get($mine)->{state}, 'started', 'but it may look at a sandbox');
$s->query('ROLLBACK');

is( $s->value(
		q{SELECT string_agg(event, ' ' ORDER BY at) FROM sbx_recent_events() WHERE sbx_id = $1},
		$mine),
	'attempt.started attempt.succeeded',
	'events of a launch');

$s->value("SELECT sbx_destroy(id) FROM sbx_sandboxes");
is(scalar(my @left = $sbx->alive), 0, 'nothing is left');

done_testing();
