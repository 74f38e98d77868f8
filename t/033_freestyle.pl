# What is Freestyle's own: answers that come later, slugs, pauses, long files in pieces.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use JSON::PP ();
use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

my $sbx = SbxTest->new(conf => "sbx_router.abort_cleanup_timeout = '2s'\n");
my $url = $sbx->url;
my $base = qq{"apiUrl":"$url/freestyle"};

$sbx->node->safe_psql('postgres', qq{
	SELECT sbx_register_provider('box', 'freestyle', '{$base}', signals => '{"estimatedCost":1}');
	SELECT sbx_register_provider('closed', 'freestyle', '{$base,"internet":false,"snapshot":"freestyle/ubuntu-sm"}', signals => '{"estimatedCost":2}');
	SELECT sbx_register_provider('lost', 'freestyle', '{$base,"snapshot":"no-such-snapshot"}', signals => '{"estimatedCost":3}');
	SELECT sbx_register_provider('brief', 'freestyle', '{$base,"autoDeleteSeconds":0}', signals => '{"estimatedCost":4}')});
my $s = $sbx->session;
$s->value('SELECT sbx_set_credential($1, $2)', $_, 'key-of-the-team') foreach qw(box closed lost brief);

my $creates = qr{^/freestyle/v5/vms$};
my $results = qr{^/freestyle/v5/background-requests/};

sub config { return $sbx->control('POST', 'config', { provider => 'freestyle', @_ }) }
sub fault { return $sbx->fault(provider => 'freestyle', @_) }
sub alive { return grep { $_->{alive} } $sbx->audit }
sub run { return scalar $sbx->run($s, @_) }

# Requests to a path.
sub sent { my ($path) = @_; return grep { $_->{path} =~ $path } $sbx->requests }

# SQLSTATE and the DETAIL's code of a statement that fails.
sub failure
{
	my $result = $s->execute(@_);
	my $detail = json($result->detail);

	return [ $result->sqlstate, ref $detail ? $detail->{code} : undef ];
}

# The same of a launch: what it proves.
sub launch_failure
{
	my $result = $s->execute(@_);

	return [ $result->sqlstate, json($result->detail)->{allocation} ];
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

my $id = $s->value('SELECT sbx_provision($1)', '{"launch":{"name":"job","labels":{"team":"a"}}}');
my ($create) = grep { $_->{method} eq 'POST' } sent($creates);
my $body = json($create->{body});

is($body->{slug}, $id =~ tr/_/-/r, 'the slug is the id, with hyphens');
is($body->{metadata}{'sbx-router-id'}, $id, 'the metadata sbx-router-id is the id');
is($body->{metadata}{team}, 'a', 'labels of the request arrive');
is($body->{displayName}, 'job', 'and its name');
is_deeply($body->{firewall}, { rules => [ { action => 'allow', source => {}, destination => { public => JSON::PP::true } } ] },
	'the internet can be reached');
is($s->value('SELECT count(*) FROM sbx_find($1, $2)', 'box', '{"team":"a"}'), 1, 'it is found by its labels');
is_deeply(failure('SELECT sbx_provision($1)', '{"launch":{"env":{"A":"b"}}}'), [ 'SB003', undef ],
	'must fire: there is no environment at launch');
like($s->execute('SELECT sbx_provision($1)', '{"launch":{"env":{"A":"b"}}}')->detail, qr/LAUNCH_FIELD:env/, 'which routing says');
is(scalar(my @more = grep { $_->{method} eq 'POST' } sent($creates)), 1, 'and nothing is sent');

# What a launch with these labels is told by routing; undef = it was made.
sub labels_refused
{
	my ($labels, @more) = @_;
	my $result = $s->execute('SELECT sbx_provision($1)', JSON::PP->new->ascii->encode({ launch => { labels => $labels, @more } }));

	return $result->sqlstate eq 'SB003' ? ($result->detail =~ /(LAUNCH_FIELD:\w+)/)[0] : undef;
}

my %labels = map { ("k$_" => 'v') } 1 .. 60;
is(labels_refused({ %labels, k61 => 'v', k62 => 'v' }), 'LAUNCH_FIELD:labels', 'must fire: more labels than there is room for');
is(labels_refused({ %labels, k61 => 'v' }, name => 'job'), 'LAUNCH_FIELD:labels', 'must fire: a name is one of them');
is(labels_refused({ k => 'x' x 64 }), 'LAUNCH_FIELD:labels', 'must fire: one that is too long');
is(labels_refused({ 'x' x 64 => 'v' }), 'LAUNCH_FIELD:labels', 'must fire: or whose key is');
is(scalar(my @still = grep { $_->{method} eq 'POST' } sent($creates)), 1, 'and nothing is sent');
is(labels_refused({ %labels, k61 => 'v' }), undef, 'must not fire: as many as there is room for');
is(labels_refused({ %labels }, name => 'job'), undef, 'must not fire: and a name');
is(labels_refused({ "\x{f6}" x 63 => "\x{2603}" x 63 }), undef, 'must not fire: characters count, not bytes');
is(labels_refused({ k => 'v' }, name => 'n' x 200), undef, 'must not fire: a name that is only shown');
is(scalar(my @full = grep { $_->{method} eq 'POST' } sent($creates)), 5, 'which are made');
$sbx->forget_requests;
my $closed = $s->value('SELECT sbx_provision($1)', '{"providerId":"closed"}');
($create) = grep { $_->{method} eq 'POST' } sent($creates);
is_deeply(json($create->{body})->{firewall}, { rules => [] }, 'without the internet');
is(json($create->{body})->{snapshotId}, 'freestyle/ubuntu-sm', 'from the snapshot that is set');
is_deeply(launch_failure('SELECT sbx_provision($1)', '{"providerId":"lost"}'), [ 'SB005', 'none' ],
	'a snapshot that is not there');
is(scalar(alive()), 6, 'leaves nothing');
clean();

#
# Answers that come later
#

config(backgroundAfterMs => 0, backgroundRunMs => 200);
$id = $s->value('SELECT sbx_provision()');
ok(sent($results) > 0, 'must fire: all answers come later');
is(run($id, 'echo out; echo err >&2; exit 7')->{exit_code}, 7, 'of scripts, too');
$s->value('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/a', '\x6100ff');
is($s->value('SELECT sbx_download($1, $2)', $id, '/tmp/a'), '\x6100ff', 'and of files');
is($s->value('SELECT state FROM sbx_get($1)', $id), 'started', 'and of looks');
is($s->value('SELECT count(*) FROM sbx_find($1, $2)', 'box', '{}'), 1, 'and of lists');
fault(op => 'status', action => 'status', status => 503);
is(run($id, 'echo once')->{stdout}, "once\n", 'trouble of the asking passes');
is($s->value('SELECT sbx_destroy($1)', $id), 't', 'and of deletes');
is(scalar(alive()), 0, 'it is gone');
ok(!(grep { exists $_->{headers}{'x-freestyle-background-after-secs'} } sent($results)), 'to ask is answered at once');
clean();

config(backgroundAfterMs => 0, backgroundOperations => 'create', resultOrigin => 'http://127.0.0.2:1');
is_deeply(launch_failure('SELECT sbx_provision()'), [ 'SB005', 'unknown' ], 'must fire: an answer elsewhere is not asked for');
is(scalar(alive()), 0, 'what was made all the same is found by its slug and destroyed');
clean();
config(backgroundAfterMs => 0, backgroundOperations => 'create', locators => 'header');
ok($s->value('SELECT sbx_provision()'), 'must not fire: an id alone');
clean();
config(backgroundAfterMs => 0, backgroundOperations => 'create', locators => 'none');
is_deeply(launch_failure('SELECT sbx_provision()'), [ 'SB005', 'unknown' ], 'must fire: no id at all');
is(scalar(alive()), 0, 'nothing is left');
clean();
config(backgroundAfterMs => 0, backgroundOperations => 'create', storedStatus => 500, storedCode => 'BACKGROUND_RESULT_UNSTORABLE');
$id = $s->value('SELECT sbx_provision()');
ok($id, 'an answer that could not be kept is of work that is done');
clean();
config(backgroundAfterMs => 0, backgroundOperations => 'create', storedStatus => 503);
is($s->execute('SELECT sbx_provision()')->sqlstate, 'SB005', 'a stored error is the create\'s own');
is(scalar(alive()), 0, 'and what was made is destroyed');
clean();

#
# Refusals that have two meanings
#

config(allowanceSpent => JSON::PP::true);
is_deeply(launch_failure('SELECT sbx_provision()'), [ 'SB005', 'none' ], 'the allowance is spent: no room');
clean();
$sbx->control('POST', 'quota', { provider => 'freestyle', sandboxes => 0 });
is_deeply(launch_failure('SELECT sbx_provision()'), [ 'SB005', 'none' ], 'a conflict without a slug: no room');
clean();
config(lateRules => JSON::PP::true);
ok($s->value('SELECT sbx_provision()'), 'our rules are not malformed');
clean();
config(createStatus => 201);
$id = $s->value('SELECT sbx_provision()');
ok($id, 'a create that is answered with 201');

#
# Scripts
#

is_deeply([ @{ run($id, 'echo out; echo err >&2; exit 7') }{qw(stdout stderr exit_code)} ],
	[ "out\n", "err\n", 7 ], 'streams and exit code');
is(run($id, 'sleep 1000 & echo started')->{stdout}, "started\n",
	'must not fire: what stays in the background does not hold the call up');
is_deeply(failure(q{SELECT sbx_run_script($1, 'sleep 2000 & sleep 2000', timeout => '500 ms')}, $id),
	[ 'SB008', 'TIMEOUT' ], 'must fire: a script that runs out of time');
is(run($id, 'pgrep -fx "sleep 2000" | wc -l')->{stdout}, "0\n", 'no longer runs, nor does anything of it');
$sbx->forget_requests;
my $long = join("\n", map { "# line $_ " . ('x' x 80) } 1 .. 1000) . "\necho the end\nexit 4";
is_deeply([ @{ run($id, $long) }{qw(stdout exit_code)} ], [ "the end\n", 4 ], 'a script of more than 64 KiB');
is(scalar(my @stored = grep { $_->{method} eq 'PUT' } sent(qr{/fs/write})), 1, 'goes through a file');
is(run($id, 'ls /tmp/.sbx-run-* 2>/dev/null | wc -l')->{stdout}, "1\n", 'which is not left');
is(run($id, 'head -c 5000000 /dev/zero | tr "\0" x; exit 3')->{truncated}, 1, 'must fire: output that was cut');
is(run($id, 'head -c 3000 /dev/zero | tr "\0" x; exit 3')->{truncated}, 0, 'must not fire: output that was not');
is($s->execute(q{SELECT sbx_start_script($1, 'true')}, $id)->sqlstate, 'SB012', 'nothing runs without being waited for');
config(backgroundAfterMs => 0, backgroundOperations => 'run', storedLimitBytes => 10);
is_deeply(failure(q{SELECT sbx_run_script($1, 'echo once >>/tmp/once')}, $id), [ 'SB008', 'OUTPUT_TOO_LARGE' ],
	'an answer that was too long to be kept');
config(backgroundAfterMs => -1, storedLimitBytes => 1 << 24);
is(run($id, 'wc -l </tmp/once')->{stdout} + 0, 1, 'of a script that ran once');

#
# Files
#

$s->value('SELECT sbx_upload($1, $2, $3)', $id, 'd/a b+c.bin', '\x6100ff');
is($s->value('SELECT sbx_download($1, $2)', $id, 'd/a b+c.bin'), '\x6100ff', 'byte for byte, from the home directory');
$s->value('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/empty', '\x');
is($s->value('SELECT sbx_download($1, $2)', $id, '/tmp/empty'), '\x', 'an empty one');
is_deeply(failure('SELECT sbx_download($1, $2)', $id, 'nope'), [ 'SB008', 'FILE_NOT_FOUND' ], 'none');
is_deeply(failure('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/../etc/x', '\x'), [ 'SB008', 'INVALID_FILE_PATH' ], 'a path that climbs');
config(strictParents => JSON::PP::true);
$s->value('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/new/deep/a', '\x61');
is($s->value('SELECT sbx_download($1, $2)', $id, '/tmp/new/deep/a'), '\x61', 'directories on the way are made');
$sbx->forget_requests;
$s->value('SELECT sbx_upload($1, $2, decode(repeat($3, 9 << 20), $4))', $id, '/tmp/large', '61', 'hex');
is(scalar(my @pieces = grep { $_->{method} eq 'PUT' } sent(qr{/fs/uploads/})), 1, 'a large one goes in pieces');
is(run($id, 'wc -c </tmp/large')->{stdout} + 0, 9 << 20, 'and is whole');

#
# Pauses
#

$s->value('SELECT sbx_stop($1)', $id);
$sbx->forget_requests;
is_deeply(failure(q{SELECT sbx_run_script($1, 'true')}, $id), [ 'SB008', 'NOT_STARTED' ], 'must fire: a script wakes nothing');
is_deeply(failure('SELECT sbx_download($1, $2)', $id, '/tmp/large'), [ 'SB008', 'NOT_STARTED' ], 'must fire: nor does a file');
is($s->value('SELECT state FROM sbx_get($1)', $id), 'stopped', 'it sleeps still');
$s->value('SELECT sbx_start($1)', $id);
is(run($id, 'pgrep -fx "sleep 1000" | wc -l')->{stdout}, "1\n", 'must not fire: once it is started, with all that ran');
my $brief = $s->value('SELECT sbx_provision($1)', '{"providerId":"brief"}');
is_deeply(failure('SELECT sbx_stop($1)', $brief), [ 'SB008', 'STOP_WOULD_DESTROY' ], 'a stop that would delete it is refused');
is(scalar(alive()), 2, 'it is there still');

#
# Deletes
#

config(slowDestroyMs => 300);
is($s->value('SELECT sbx_destroy($1)', $id), 't', 'a delete that takes its time');
is($s->value('SELECT sbx_destroy($1)', $brief), 't', 'and another');
is(scalar(alive()), 0, 'nothing is left');
clean();
config(surfaceDelayMs => 700);
fault(op => 'create', action => 'reset-after-work');
is($s->execute('SELECT sbx_provision()')->sqlstate, 'SB005', 'must fire: a create whose answer is lost');
is(scalar(alive()), 0, 'is found by its slug, though it is not there at once');
clean();

#
# Creates that are called off
#

foreach my $how (
	[ 'before it is answered' ],
	[ 'while its answer is asked for', backgroundAfterMs => 0, backgroundOperations => 'create', backgroundRunMs => 1500 ],
	[ 'while its answer is asked for, and it is not there yet', backgroundAfterMs => 0, backgroundOperations => 'create', backgroundRunMs => 1500, surfaceDelayMs => 500 ])
{
	my ($name, %config) = @$how;

	clean();
	if (%config) { config(%config) }
	else { fault(op => 'create', action => 'hang', work => JSON::PP::true) }
	$s->value(q{SET statement_timeout = '700ms'});
	is($s->execute('SELECT sbx_provision()')->sqlstate, '57014', "must fire: a create that is called off $name");
	$s->value('RESET statement_timeout');
	$sbx->clear_faults;
	ok(scalar(grep { $_->{method} eq 'POST' } sent($creates)) == 1, 'was sent once');
	poll('it was made', sub { $sbx->audit });
	poll('nothing is left of it', sub { !alive() });
}
clean();

done_testing();
