# What is Vercel's own: the name is the id, commands go to a session that is looked up, a stop
# keeps a sandbox only if that was asked for, few tags, no scripts in the background.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use JSON::PP;
use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

my $sbx = SbxTest->new;
my $url = $sbx->url;

$sbx->node->safe_psql('postgres',
	qq{SELECT sbx_register_provider('brief', 'vercel', '{"apiUrl":"$url/vercel"}', signals => '{"estimatedCost":1}');
	SELECT sbx_register_provider('kept', 'vercel', '{"apiUrl":"$url/vercel","persistent":true,"vcpus":4}', signals => '{"estimatedCost":2}')});
my $s = $sbx->session;
my $credential = '{"token":"key-of-the-team","teamId":"team_1","projectId":"prj_1"}';
$s->value('SELECT sbx_set_credential($1, $2)', $_, $credential) foreach qw(brief kept);

sub run { return scalar $sbx->run($s, @_) }

# SQLSTATE and the DETAIL's code of a statement that fails.
sub failure
{
	my $result = $s->execute(@_);
	my $detail = json($result->detail);

	return [ $result->sqlstate, ref $detail ? $detail->{code} : undef ];
}

sub made_by { return $s->value('SELECT sbx_provision($1)', qq({"providerId":"$_[0]"})) }
sub creates { return grep { $_->{op} eq 'create' } $sbx->requests }

my $id = $s->value('SELECT sbx_provision($1)', '{"launch":{"labels":{"team":"a"},"env":{"GIVEN":"yes"}}}');
my ($create) = creates();
my $body = json($create->{body});

is($body->{name}, $id, 'the name is the id');
is($body->{tags}{'sbx-router-id'}, $id, 'so is a tag');
is($body->{tags}{team}, 'a', 'labels of the request are tags');
is_deeply([ $body->{persistent} ? 1 : 0, $body->{timeout} ], [ 0, 300000 ], 'what costs is said explicitly');
is(run($id, 'echo "$GIVEN"')->{stdout}, "yes\n", 'env of the request arrives');

is_deeply([ @{ run($id, 'echo out; echo err >&2; exit 7') }{qw(stdout stderr exit_code)} ],
	[ "out\n", "err\n", 7 ], 'streams and exit code');
is(run($id, 'exit 137')->{exit_code}, 137, 'must not fire: 137 is an exit code like any other');
is_deeply(failure(q{SELECT sbx_run_script($1, 'sleep 1000 & sleep 1000', timeout => '1 s')}, $id),
	[ 'SB008', 'TIMEOUT' ], 'must fire: a script that runs out of time');
is(run($id, 'pgrep -cx sleep')->{stdout}, "0\n", 'nothing of it is left');
is(run($id, 'sleep 1000 & echo started')->{stdout}, "started\n",
	'must not fire: what stays in the background does not hold the call up');
my $long = join("\n", map { "# line $_ " . ('x' x 80) } 1 .. 3400) . "\necho the end\nexit 4";
is_deeply([ @{ run($id, $long) }{qw(stdout exit_code)} ], [ "the end\n", 4 ], 'a script of more than 300 KB');
run($id, 'export KEPT=1; cd /tmp', session => 's');
is(run($id, 'echo "$KEPT $PWD"', session => 's')->{stdout}, "1 /tmp\n", 'a session goes on');

my $deep = 'a/' . ('d' x 90) . '/' . ('e' x 90) . "/it's é";
foreach my $path ('/tmp/new/place/a.bin', 'relative.bin', $deep)
{
	$s->value('SELECT sbx_upload($1, $2, $3)', $id, $path, '\x00ff0a');
	is($s->value('SELECT sbx_download($1, $2)', $id, $path), '\x00ff0a', 'there and back: ' . substr $path, 0, 20);
}
is_deeply(failure('SELECT sbx_download($1, $2)', $id, '/tmp/none'), [ 'SB008', 'FILE_NOT_FOUND' ], 'must fire: no such file');

is($s->value('SELECT count(*) FROM sbx_find($1, $2)', 'brief', '{"team":"a"}'), 1, 'found by a label');
is($s->value('SELECT count(*) FROM sbx_find($1, $2)', 'brief', '{"team":"b"}'), 0, 'must not fire: another value');

foreach my $case (
	[ { 'a:b' => 'x' }, 'a key with a colon', '{LAUNCH_FIELD:labels}' ],
	[ { a => 'x' x 257 }, 'a value of 257 characters', '{LAUNCH_FIELD:labels}' ],
	[ { a => 1, b => 2, c => 3 }, 'more than there is room for', '{LAUNCH_FIELD:labels}' ],
	[ { a => 1, b => 2 }, 'two', '{}' ],
	[ { a => 'x:y' }, 'a value with a colon', '{}' ],
	[ { a => 'x' x 256 }, 'a value of 256 characters', '{}' ])
{
	my ($labels, $name, $rejections) = @$case;

	is($s->value(q{SELECT rejections::text FROM sbx_route_explain($1) WHERE provider_id = 'brief'},
			encode_json({ launch => { labels => { map { ($_ => "$labels->{$_}") } keys %$labels } } })),
		$rejections, ($rejections eq '{}' ? 'must not fire: ' : 'must fire: ') . $name);
}

{
	my $two = '"labels":{"a":"1","b":"2"}';

	is($s->value(q{SELECT rejections::text FROM sbx_route_explain($1) WHERE provider_id = 'brief'}, qq({"launch":{"name":"n",$two}})),
		'{LAUNCH_FIELD:labels}', 'must fire: two beside a name');
	my $all = $s->value('SELECT sbx_provision($1, id => $2)', qq({"providerId":"brief","launch":{$two}}), 'sbx_' . 'a' x 32);
	my ($made) = grep { $_->{name} eq $all } $sbx->audit;
	is(scalar(keys %{ $made->{labels} }), 5, 'must not fire: two, and all of the router\'s own, of a launch under a given id');
	$s->value('SELECT sbx_destroy($1)', $all);
}

$sbx->forget_requests;
is_deeply(failure('SELECT sbx_stop($1)', $id), [ 'SB008', 'STOP_WOULD_DESTROY' ], 'must fire: a stop that keeps nothing');
is(scalar $sbx->requests, 0, 'nothing was sent');
is(failure(q{SELECT sbx_start_script($1, 'true')}, $id)->[0], 'SB012', 'no scripts in the background');

my $kept = made_by('kept');
run($kept, 'echo here >/vercel/sandbox/file');
$s->value('SELECT sbx_stop($1)', $kept);
is_deeply(failure(q{SELECT sbx_run_script($1, 'true')}, $kept), [ 'SB008', 'NOT_STARTED' ], 'a stopped one is not started by a script');
$s->value('SELECT sbx_start($1)', $kept);
is(run($kept, 'cat file')->{stdout}, "here\n", 'must not fire: what is persistent comes back');

$sbx->node->safe_psql('postgres', q{SELECT sbx_register_provider('measured', 'vercel', '} . qq{{"apiUrl":"$url/vercel"}}
	. q{', capacity => '{"limits":{"sandboxes":10,"cpu":100},"demand":{"cpu":2}}')});
$s->value('SELECT sbx_set_credential($1, $2)', 'measured', $credential);
is($s->value(q{SELECT string_agg(resource || ' ' || used, ', ' ORDER BY resource) FROM sbx_capacity('{measured}')}),
	'cpu 6, sandboxes 2', 'what the project uses');

# Disks are not told: a limit of them makes the account unknown, others do not.
foreach my $case ([ '"sandboxes":10', 'KNOWN' ], [ '"sandboxes":10,"disk":100000', 'NOT_SUPPORTED' ])
{
	my ($limits, $expected) = @$case;

	$sbx->node->safe_psql('postgres', qq{SELECT sbx_update_provider('measured', capacity => '{"limits":{$limits},"demand":{"disk":1}}')});
	is($s->value(q{SELECT string_agg(DISTINCT coalesce(reason, 'KNOWN'), ',') FROM sbx_capacity('{measured}')}), $expected,
		($expected eq 'KNOWN' ? 'must not fire' : 'must fire') . ": a limit of $limits");
}

$s->value('SELECT sbx_destroy($1)', $_) foreach $id, $kept;
is(scalar(grep { $_->{alive} } $sbx->audit), 0, 'nothing is left');

done_testing();
