# What is hosted Microsandbox's own: an agent behind a WebSocket, whose words are cut and spoiled
# in every way, creates that succeed before anything runs, and names that are used again.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP;
use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

my $sbx = SbxTest->new(conf => "sbx_router.abort_cleanup_timeout = '500ms'\n");
my $api = $sbx->url . '/microsandbox/v1/sandboxes';
my $settings = encode_json({ apiUrl => $sbx->url . '/microsandbox', image => 'alpine' });

$sbx->node->safe_psql('postgres', qq{SELECT sbx_register_provider('box', 'microsandbox', '$settings')});
my $s = $sbx->session;
$s->value('SELECT sbx_set_credential($1, $2)', 'box', 'key-of-the-test');

sub fault { return $sbx->fault(provider => 'microsandbox', @_) }
sub config { return $sbx->config(provider => 'microsandbox', @_) }
sub alive { return scalar(my @names = $sbx->alive) }
sub provision { return $s->value('SELECT sbx_provision($1)', encode_json({@_})) }
sub requests_to { my ($path) = @_; return grep { $_->{path} =~ $path } $sbx->requests }

# What a statement that has to fail fails with.
sub failure { return failure_of($s->execute(@_)) }

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

my $id = provision(launch => { labels => { team => 'a' }, env => { GIVEN => 'yes' } });
my ($create) = grep { $_->{method} eq 'POST' } $sbx->requests;
my $body = json($create->{body});
my $uuid = $s->value('SELECT provider_sandbox_id FROM sbx_mapping WHERE id = $1', $id);

like($create->{path}, qr/\?start=true$/, 'nothing is held back until it runs');
is($body->{name}, $id, 'the name is the id');
is_deeply([ @{ $body->{labels} }{qw(sbx-router-id team)} ], [ $id, 'a' ], 'the labels arrive');
is_deeply($body->{env}, [ { key => 'GIVEN', value => 'yes' } ], 'env arrives');
like($uuid, qr/^[0-9a-f]{8}-[0-9a-f-]{27}$/, 'its UUID is what is remembered');
is($s->value(q{SELECT stdout FROM sbx_run_script($1, 'cat; echo "$GIVEN"')}, $id), "yes\n",
	'must not fire: input is empty, and not open for ever');
is($s->value(q{SELECT stdout FROM sbx_run_script($1, 'sleep 1000 & echo started')}, $id), "started\n",
	'must not fire: what stays in the background does not hold the call up');
is(failure(q{SELECT sbx_run_script($1, 'sleep 2000', timeout => '500 ms')}, $id), 'SB008 TIMEOUT',
	'must fire: a script that runs out of time');
is($s->value(q{SELECT stdout FROM sbx_run_script($1, 'pgrep -fx "sleep 2000" | wc -l')}, $id), "0\n", 'no longer runs');
is(scalar(grep { ($_->{headers}{authorization} // '') !~ /^Bearer ./ } requests_to(qr{^/microsandbox})),
	0, 'every request has a key, by which the emulator knows whose sandboxes they are');
is(scalar(grep { $_->{path} !~ m{/sandboxes/$uuid} } requests_to(qr{/sandboxes/})), 0, 'and is about the UUID');

like($s->execute(q{SELECT sbx_provision('{"launch":{"labels":{"service.x":"y"}}}')})->detail, qr/LAUNCH_FIELD:labels/,
	'must fire: a label that is the provider\'s own is refused in routing');

#
# What the agent says, cut
#

my $content = join '', map { chr } 0 .. 255;
$s->value('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/kept', '\x' . unpack 'H*', $content);

# A run and both ways of a file, with their results.
sub all_the_same
{
	my ($name) = @_;
	my ($row, $result) = $sbx->run($s, $id, 'echo out; echo err >&2; exit 7');
	my $file = '\x' . unpack 'H*', "$name\0$content";

	is_deeply([ @$row{qw(stdout stderr exit_code truncated)} ], [ "out\n", "err\n", 7, 0 ], "must not fire: $name")
	  or diag($result->everything);
	$s->value('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/same', $file);
	is($s->value('SELECT sbx_download($1, $2) = $3::bytea', $id, '/tmp/same', $file), 't', "$name: the same file");
	return;
}

foreach my $size (1 .. 20, 47, 126, 127)
{
	config(messageBytes => $size);
	all_the_same("messages of $size bytes");
}
foreach my $size (1, 2, 9, 125, 126)
{
	config(messageBytes => 0, fragmentBytes => $size, ping => JSON::PP::true);
	all_the_same("fragments of $size bytes with pings between them");
}
foreach my $size (1, 3, 7, 64)
{
	config(fragmentBytes => 0, ping => JSON::PP::false, segmentBytes => $size);
	all_the_same("segments of $size bytes");
}
config(segmentBytes => 0, coalesce => JSON::PP::true);
all_the_same('all at once');
config(coalesce => JSON::PP::false);
foreach my $frame ('core.ready', 'core.exec.started', 'core.exec.stdout', 'core.exec.stderr')
{
	fault(frame => $frame, action => 'pause', bytes => 6, ms => 300);
	all_the_same("a pause in $frame");
	$sbx->clear_faults;
}

#
# What the agent says, spoiled
#

# A run fails like that; its script may have run once.
my $runs = 0;

sub run_fails
{
	my ($name, $expected, @timeout) = @_;
	my $mark = 'ran-' . ++$runs;
	my (undef, $result) = $sbx->run($s, $id, "echo $mark >>/tmp/ran; echo out; echo err >&2", @timeout);

	$sbx->clear_faults;
	is(failure_of($result), $expected, "must fire: run, $name") or diag($result->everything);
	cmp_ok($s->value('SELECT stdout FROM sbx_run_script($1, $2)', $id, "grep -cx $mark /tmp/ran || :"), '<=', 1, "$name: once at most");
	return;
}

# A file never comes in part, and never in part without a word.
sub files_fail
{
	my ($name, @rule) = @_;

	foreach my $call (q{SELECT sbx_download($1, '/tmp/kept')}, q{SELECT sbx_upload($1, '/tmp/spoiled', 'x')})
	{
		fault(@rule);
		is(failure($call, $id), 'SB008', "must fire: $call, $name");
		$sbx->clear_faults;
	}
	return;
}

foreach my $bytes (0, 1, 3, 4, 5, 8, 9, 10, 12, 20, 40)
{
	fault(frame => 'core.exec.stderr', action => 'truncate', bytes => $bytes);
	run_fails("the connection ends after $bytes bytes of a frame", 'SB008');
	files_fail("the connection ends after $bytes bytes of the last frame", frame => 'core.exec.exited', action => 'truncate', bytes => $bytes);
}
foreach my $bytes (0, 1, 7, 8, 9, 20)
{
	files_fail("the connection ends after $bytes bytes of the greeting", frame => 'core.ready', action => 'truncate', bytes => $bytes);
}
foreach my $action ('garbage', 'wrong-type', 'huge', 'wrong-id', 'reset-after-work')
{
	fault(frame => 'core.exec.stdout', action => $action);
	run_fails($action, 'SB008');
	files_fail($action, frame => 'core.exec.exited', action => $action);
}
fault(frame => 'core.exec.stdout', action => 'pause', bytes => 6, ms => 60_000);
run_fails('the time is over in the middle of a frame', 'SB008 TIMEOUT', timeout => '500 ms');
fault(frame => 'core.exec.stdout', action => 'hang');
run_fails('an agent that says nothing any more', 'SB008 TIMEOUT', timeout => '500 ms');
fault(op => 'run', action => 'redirect');
is(failure(q{SELECT sbx_run_script($1, 'true')}, $id), 'SB008', 'must fire: a redirect of the handshake');
is($sbx->control('GET', 'redirects')->{connections}, 0, 'is not followed');
all_the_same('after all that');

#
# Creates
#

clean();
config(startError => 'no such image');
is(failure('SELECT sbx_provision()'), 'SB005 PROVIDER_LAUNCH_OUTCOME_UNKNOWN', 'must fire: a create that succeeds, and a sandbox that failed');
is(alive(), 0, 'which is deleted');
clean();
config(startDelayMs => 700);
$id = provision();
is($s->value('SELECT state FROM sbx_get($1)', $id), 'started', 'must not fire: one that is still starting is waited for');
$id = $s->value('SELECT sbx_provision_detached()');
is($s->value('SELECT state FROM sbx_mapping WHERE id = $1', $id), 'starting', 'unless nobody wants to wait');
is($s->value('SELECT sbx_wait_ready($1)', $id), 't', 'which can be done later');

#
# Stop and start
#

config(startDelayMs => 0, stopDelayMs => 700);
$s->value('SELECT sbx_stop($1)', $id);
is(failure(q{SELECT sbx_run_script($1, 'true')}, $id), 'SB008 NOT_STARTED', 'must fire: nothing runs in one that is stopped');
$s->value('SELECT sbx_start($1)', $id);
$uuid = $s->value('SELECT provider_sandbox_id FROM sbx_mapping WHERE id = $1', $id);
my %key = (headers => { Authorization => 'Bearer key-of-the-test', 'Content-Type' => 'application/json' });
HTTP::Tiny->new->post("$api/$uuid/stop", { %key, content => '{}' });
$s->value('SELECT sbx_start($1)', $id);
is($s->value(q{SELECT stdout FROM sbx_run_script($1, 'echo x')}, $id), "x\n", 'must not fire: a start waits for the stop under way');

#
# Destroy
#

$sbx->forget_requests;
is($s->value('SELECT sbx_destroy($1)', $id), 't', 'one that runs is destroyed');
is_deeply([ map { "$_->{method} $_->{path}" } $sbx->requests ], ["DELETE /microsandbox/v1/sandboxes/$uuid"], 'by one request, for its UUID');

$id = provision();
$uuid = $s->value('SELECT provider_sandbox_id FROM sbx_mapping WHERE id = $1', $id);
HTTP::Tiny->new->delete("$api/$uuid", {%key});
my $reused = HTTP::Tiny->new->post("$api?start=true", { %key, content => encode_json({ name => $id, image => { type => 'oci', reference => 'alpine' } }) });
is($reused->{status}, 200, 'a name is used again');
my $before = alive();
$s->value('SELECT sbx_destroy($1)', $id);
is(alive(), $before, 'must not fire: who has the name now stays');

foreach my $case (
	[ 'sandbox.a', 1 ], [ 'microsandbox.a', 1 ], [ 'service.a', 1 ],
	[ 'sandbox', 0 ], [ 'my.sandbox.a', 0 ], [ 'Sandbox.a', 0 ])
{
	my ($label, $reserved) = @$case;

	is($s->value('SELECT rejections::text FROM sbx_route_explain($1)', encode_json({ launch => { labels => { $label => 'x' } } })),
		$reserved ? '{LAUNCH_FIELD:labels}' : '{}', ($reserved ? 'must fire' : 'must not fire') . ": a launch with the label $label");
}

#
# Capacity: what is not told of all has no sum
#

sub measured
{
	my (%limits) = @_;
	my %demand = map { ($_ => 1) } keys %limits;

	$s->value('SELECT sbx_update_provider($1, capacity => $2)', 'box', encode_json({ limits => \%limits, demand => \%demand }));
	return [ map { join ' ', map { $_ // '-' } @$_ } @{ $s->execute('SELECT status, reason, resource, used FROM sbx_capacity()')->rows } ];
}

clean();
provision();
provision();
is_deeply(measured(sandboxes => 5, cpu => 8, memory => 4096), [ 'known - cpu 2', 'known - memory 1024', 'known - sandboxes 2' ], 'must not fire: what is told');
is_deeply(measured(sandboxes => 5, disk => 9999), ['unknown NOT_SUPPORTED - -'], 'must fire: a limit of disks, of whose sizes nobody said anything');
$sbx->fault(provider => 'microsandbox', op => 'list', action => 'status', status => 200, times => 2,
	body => { data => [ { id => $uuid, spec => undef } ], has_more => JSON::PP::false, next_cursor => undef });
is_deeply(measured(sandboxes => 5), ['known - sandboxes 1'], 'must not fire: a limit of sandboxes, of one that tells nothing yet');
is_deeply(measured(sandboxes => 5, cpu => 8), ['unknown NOT_SUPPORTED - -'], 'must fire: a limit of vCPUs');
$sbx->clear_faults;

#
# Unknown outcomes
#

clean();
fault(op => 'create', action => 'reset-after-work');
is(failure('SELECT sbx_provision()'), 'SB005 PROVIDER_LAUNCH_OUTCOME_UNKNOWN', 'must fire: an answer that is lost');
is(alive(), 0, 'what it made is found by its name and deleted');
config(hideSpec => JSON::PP::true);
fault(op => 'create', action => 'reset-after-work');
is(failure('SELECT sbx_provision()'), 'SB005 PROVIDER_LAUNCH_OUTCOME_UNKNOWN', 'must fire: the same of one that does not tell its labels yet');
is(alive(), 0, 'its name was drawn for it alone');
fault(op => 'create', action => 'reset-after-work');
is(failure(q{SELECT sbx_provision(id => 'sbx_00000000000000000000000000000001')}), 'SB005 PROVIDER_LAUNCH_OUTCOME_UNKNOWN', 'must not fire: a name that somebody else may have');
is(alive(), 1, 'is left alone while nobody says whose it is');
config(hideSpec => JSON::PP::false);
clean();
fault(op => 'create', action => 'status', status => 429);
is(failure('SELECT sbx_provision()'), 'SB005 PROVIDER_LAUNCH_OUTCOME_UNKNOWN', 'must fire: "too many" proves nothing');
fault(op => 'create', action => 'hang', work => JSON::PP::true);
$s->value(q{SET statement_timeout = '500ms'});
is(failure('SELECT sbx_provision()'), '57014', 'must fire: a create that is called off');
$s->value('RESET statement_timeout');
poll('nothing is left', sub { $sbx->clear_faults; alive() == 0 });

done_testing();
