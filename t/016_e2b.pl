# What is E2B's own: one answer proves that a sandbox runs, labels are the only name, each
# sandbox has a token of its own, commands are streams.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

my $sbx = SbxTest->new(conf => "sbx_router.abort_cleanup_timeout = '500ms'\n");
my $url = $sbx->url;
my $settings = qq{{"apiUrl":"$url/e2b","sandboxUrl":"$url/e2b-envd"}};

$sbx->node->safe_psql('postgres',
	"SELECT sbx_register_provider('box', 'e2b', '$settings', signals => '{\"estimatedCost\":1}')");
my $s = $sbx->session;
$s->value('SELECT sbx_set_credential($1, $2)', 'box', 'key-of-the-team');

my $creates = qr{^/e2b/v2/sandboxes$};
my $one = qr{^/e2b/sandboxes/[^/]+$};
my $start = qr{^/e2b-envd/process\.Process/Start$};

sub fault { return $sbx->fault(provider => 'e2b', @_) }
sub alive { return grep { $_->{alive} } $sbx->audit }
sub run { return scalar $sbx->run($s, @_) }

# SQLSTATE and the DETAIL's code of a statement that fails.
sub failure
{
	my $result = $s->execute(@_);
	my $detail = json($result->detail);

	return [ $result->sqlstate, ref $detail ? $detail->{code} : undef ];
}

# Start over: nothing anywhere.
sub clean
{
	$sbx->reset;
	$s->value('DELETE FROM sbx_mapping');
	$sbx->forget_requests;
	return;
}

#
# Requests
#

my $id = $s->value('SELECT sbx_provision($1)', '{"launch":{"labels":{"team":"a"},"env":{"GIVEN":"yes"}}}');
my ($create) = grep { $_->{path} =~ $creates } $sbx->requests;
my $body = json($create->{body});

is($body->{metadata}{'sbx-router-id'}, $id, 'the label sbx-router-id is the id');
is($body->{metadata}{team}, 'a', 'labels of the request arrive');
is($body->{envVars}{GIVEN}, 'yes', 'env of the request arrives');
is($body->{timeout}, 300, 'the lifetime is said explicitly');
is(run($id, 'echo "$GIVEN"')->{stdout}, "yes\n", 'and it runs');
my ($exec) = grep { $_->{path} =~ $start } $sbx->requests;
ok(!exists $exec->{headers}{'x-api-key'}, 'the key never goes into a sandbox');
ok((!grep { exists $_->{headers}{'x-access-token'} } grep { $_->{path} =~ m{^/e2b/} } $sbx->requests),
	'the token of a sandbox never goes to the control plane');
my ($extend) = grep { $_->{path} =~ m{/connect$} } $sbx->requests;
cmp_ok(json($extend->{body})->{timeout}, '>=', 1800, 'a sandbox outlives a script of half an hour');
{
	my $there = $s->value('SELECT provider_sandbox_id FROM sbx_mapping');
	my %key = (headers => { 'X-API-KEY' => 'key-of-the-team' });
	my $end = sub {
		return json($sbx->{http}->get("$url/e2b/sandboxes/$there", \%key)->{content})->{endAt};
	};

	$sbx->{http}->post("$url/e2b/sandboxes/$there/timeout",
		{ headers => { %{ $key{headers} }, 'Content-Type' => 'application/json' }, content => '{"timeout":3500}' });
	my $before = $end->();
	run($id, 'true', timeout => '1 s');
	$s->value(q{SELECT session_id FROM sbx_start_script($1, 'true')}, $id);
	is($end->(), $before, 'must not fire: a script takes nothing from a longer lifetime');
}

#
# Scripts
#

is_deeply([ @{ run($id, 'echo out; echo err >&2; exit 7') }{qw(stdout stderr exit_code)} ],
	[ "out\n", "err\n", 7 ], 'streams and exit code');
is(run($id, 'printf "\001sbx"; printf "\002\001"')->{stdout}, "\001sbx\002\001",
	'bytes that mark the end of a script may be in its output');
is(run($id, 'sleep 1000 & echo started')->{stdout}, "started\n",
	'must not fire: what stays in the background does not hold the call up');
is(run($id, 'pgrep -cx sleep')->{stdout}, "1\n", 'and goes on');
is_deeply(failure(q{SELECT sbx_run_script($1, 'sleep 1000 & sleep 1000', timeout => '1 s')}, $id),
	[ 'SB008', 'TIMEOUT' ], 'must fire: a script that runs out of time');
my $long = join("\n", map { "# line $_ " . ('x' x 80) } 1 .. 3400) . "\necho the end\nexit 4";
is_deeply([ @{ run($id, $long) }{qw(stdout exit_code)} ], [ "the end\n", 4 ],
	'a script of more than 300 KB');
$s->value(q{SET sbx_router.max_script_output = '1kB'});
is_deeply([ map { length($_->{stdout}), $_->{truncated}, $_->{exit_code} } run($id, 'head -c 1024 /dev/zero | tr "\0" x; exit 3') ],
	[ 1024, 0, 3 ], 'must not fire: output that just fits');
is_deeply([ map { length($_->{stdout}), $_->{truncated}, $_->{exit_code} } run($id, 'head -c 3000000 /dev/zero | tr "\0" x; exit 3') ],
	[ 1024, 1, 3 ], 'must fire: more is cut, and the exit code still known');
$s->value('RESET sbx_router.max_script_output');
my ($session, $command) = $s->execute(
	q{SELECT session_id, command_id FROM sbx_start_script($1, 'echo once >>/tmp/once; exit 5', session => 'job')}, $id)->row;
is($s->value(q{SELECT reconciled FROM sbx_start_script($1, 'echo once >>/tmp/once; exit 5', session => 'job')}, $id), 't',
	'the same script in the same session is found');
is_deeply(failure(q{SELECT sbx_start_script($1, 'echo another', session => 'job')}, $id),
	[ 'SB008', 'SESSION_IN_USE' ], 'another is refused');
is(poll('it ends', sub { $s->value('SELECT sbx_script_status($1, $2, $3)', $id, $session, $command) }), 5, 'exit code');
is($s->value(q{SELECT reconciled FROM sbx_start_script($1, 'echo once >>/tmp/once; exit 5', session => 'job')}, $id), 't',
	'must not fire: one that has ended is not started again');
is(run($id, 'cat /tmp/once')->{stdout}, "once\n", 'it ran once');
is_deeply(failure('SELECT sbx_script_status($1, $2, $3)', $id, 'job', '0123456789abcdef'), [ 'SB008', 'SCRIPT_UNKNOWN' ],
	'both ids count');
is_deeply(failure('SELECT sbx_script_status($1, $2, $3)', $id, 'nobody', 'x'), [ 'SB008', 'SCRIPT_UNKNOWN' ],
	'one that was never started');

#
# Paused
#

$s->value('SELECT sbx_stop($1)', $id);
is($s->value('SELECT state FROM sbx_get($1)', $id), 'stopped', 'a paused sandbox is stopped');
is_deeply(failure(q{SELECT sbx_run_script($1, 'true')}, $id), [ 'SB008', 'NOT_STARTED' ], 'and runs nothing');
is_deeply(failure('SELECT sbx_wait_ready($1)', $id), [ 'SB008', 'NOT_STARTED' ], 'and will not be ready by itself');
$s->value('SELECT sbx_start($1)', $id);
is(run($id, 'echo again')->{stdout}, "again\n", 'until it is started');

#
# Gone
#

is($s->value('SELECT sbx_destroy($1)', $id), 't', 'destroyed');
is_deeply(failure('SELECT sbx_destroy($1)', $id), [ 'SB010', undef ], 'and then unknown');
$id = $s->value('SELECT sbx_provision()');
my $key = $s->value('SELECT provider_sandbox_id FROM sbx_mapping');
$sbx->{http}->delete("$url/e2b/sandboxes/$key", { headers => { 'X-API-KEY' => 'key-of-the-team' } });
is_deeply(failure(q{SELECT sbx_run_script($1, 'true')}, $id), [ 'SB008', 'SANDBOX_GONE' ],
	'one that somebody deleted');
is($s->value('SELECT sbx_destroy($1)', $id), 'f', 'destroy says that it was gone');

#
# What a failed create proves
#

# Refusals, and the request log: no answer whatever makes it launch twice.
foreach my $case (
	[ 'bad-key', {}, 'none', 'must not fire: a refused key' ],
	[ 'denied-key', {}, 'none', 'must not fire: a denied key' ],
	[ 'limited-key', {}, 'none', 'must not fire: too many requests' ],
	[ 'key', { action => 'status', status => 400 }, 'none', 'must not fire: 400' ],
	[ 'key', { action => 'status', status => 404 }, 'none', 'must not fire: no such template' ],
	[ 'key', { action => 'status', status => 503, body => { code => 503, message => 'm', error_code => 'sandbox_capacity_unavailable' } },
		'none', 'must not fire: no node has room' ],
	[ 'key', { action => 'status', status => 503, body => { code => 503, message => 'm' } }, 'unknown', 'must fire: any other 503' ],
	[ 'key', { action => 'status', status => 500 }, 'unknown', 'must fire: 500' ],
	[ 'key', { action => 'status', status => 504 }, 'unknown', 'must fire: 504' ],
	[ 'key', { action => 'reset-after-work' }, 'unknown', 'must fire: the answer is lost' ],
	[ 'key', { action => 'truncate' }, 'unknown', 'must fire: half an answer' ],
	[ 'key', { action => 'garbage' }, 'unknown', 'must fire: no answer at all' ])
{
	my ($given, $rule, $allocation, $name) = @$case;

	clean();
	$s->value('SELECT sbx_set_credential($1, $2)', 'box', $given);
	fault(op => 'create', %$rule) if %$rule;
	my $result = $s->execute('SELECT sbx_provision()');
	is($result->sqlstate, 'SB005', "$name: fails for good");
	is(json($result->detail)->{allocation}, $allocation, "$name: allocation $allocation");
	is($sbx->count('POST', $creates), 1, "$name: one create");
	is(scalar(my @left = alive()), 0, "$name: nothing is left");
}

#
# Transactions
#

clean();
$s->value('SELECT sbx_set_credential($1, $2)', 'box', 'key');
$s->value('BEGIN');
$s->value('SELECT sbx_provision()');
is(scalar(my @during = alive()), 1, 'a sandbox of a transaction');
$s->value('ROLLBACK');
is(scalar(my @after = alive()), 0, 'must fire: is gone when it is rolled back');
$s->value('BEGIN');
$s->value('SELECT sbx_provision()');
$s->value('COMMIT');
is(scalar(my @kept = alive()), 1, 'must not fire: stays when it is committed');

# A sandbox of a lost create is found by its label alone, and only one's own.
clean();
my $given = $s->value('SELECT sbx_new_id()');
my $foreign = $sbx->{http}->post("$url/e2b/v2/sandboxes",
	{ headers => { 'X-API-KEY' => 'key' }, content => qq({"templateID":"base","metadata":{"sbx-router-id":"$given","sbx-router-launch":"another"}}) });
$sbx->forget_requests;
fault(op => 'create', action => 'reset-after-work');
is($s->execute('SELECT sbx_provision(id => $1)', $given)->sqlstate, 'SB005', 'a lost create');
is($sbx->count('POST', $creates), 1, 'was made');
is_deeply([ map { $_->{id} } alive() ], [ json($foreign->{content})->{sandboxID} ],
	'must not fire: the sandbox of another launch under that name stays');

#
# Detached
#

is_deeply(json($s->execute('SELECT sbx_provision_detached()')->detail)->{rejections}, { box => ['DETACHED_LAUNCH'] },
	'a kind that cannot launch detached is not eligible');

#
# Secrets
#

my $log = slurp_file($sbx->node->logfile);
unlike($log, qr/key-of-the-team/, 'no key in the server log');

done_testing();
