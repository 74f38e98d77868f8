# What is Agent37's own: a create that nothing calls off, scripts that end themselves, files on
# an address of their own, instances that sleep.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use JSON::PP;
use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

my $json = JSON::PP->new;
my $sbx = SbxTest->new(conf => "sbx_router.abort_cleanup_timeout = '500ms'\n");
my $url = $sbx->url;
my $base = qq{"apiUrl":"$url/agent37","instanceUrl":"$url/agent37-instance"};

$sbx->node->safe_psql('postgres', qq{
	SELECT sbx_register_provider('box', 'agent37', '{$base}', signals => '{"estimatedCost":1}');
	SELECT sbx_register_provider('custom', 'agent37', '{$base,"template":"custom-page"}', signals => '{"estimatedCost":2}');
	SELECT sbx_register_provider('headless', 'agent37', '{$base,"template":"headless-x"}', signals => '{"estimatedCost":3}')});
my $s = $sbx->session;
$s->value('SELECT sbx_set_credential($1, $2)', $_, 'key-of-the-workspace') foreach qw(box custom headless);

my $creates = qr{^/agent37/v1/instances$};
my $exec = qr{^/agent37/v1/instances/[^/]+/exec$};
my %key = (headers => { Authorization => 'Bearer key-of-the-workspace', 'Content-Type' => 'application/json' });

sub fault { return $sbx->fault(provider => 'agent37', @_) }
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
my ($create) = grep { $_->{method} eq 'POST' && $_->{path} =~ $creates } $sbx->requests;
my $body = json($create->{body});

is($body->{metadata}{'sbx-router-id'}, $id, 'the metadata sbx-router-id is the id');
is($body->{metadata}{team}, 'a', 'labels of the request arrive');
is($body->{env}{GIVEN}, 'yes', 'env of the request arrives');
is($body->{name}, $id, 'and a name for people');
is(run($id, 'echo "$GIVEN"')->{stdout}, "yes\n", 'it runs');
my @scripts = grep { $_->{path} =~ $exec } $sbx->requests;
is_deeply([ keys %{ json($scripts[-1]{body}) } ], ['command'], 'a command and no other member');
ok(!(grep { exists $_->{headers}{'x-agent37-key'} } grep { $_->{path} =~ m{^/agent37/} } $sbx->requests),
	'the key goes to the hosting plane as a bearer token only');
is_deeply(failure('SELECT sbx_provision($1)', '{"launch":{"createTimeoutSeconds":5}}'), [ 'SB003', undef ],
	'must fire: a time limit for the create is refused in routing');
{
	my %pairs = map { ("A$_" => 'v') } 1 .. 32;

	foreach my $case (
		[ { lower => 'x' }, 'lower case' ],
		[ { AGENT37_INSTANCE_ID => 'x' }, 'a name that is reserved' ],
		[ { A => 'x' x 4097 }, 'a value of 4097 characters' ],
		[ { %pairs, A33 => 'v' }, '33 of them' ])
	{
		my $asked = $json->encode({ providerId => 'box', launch => { env => $case->[0] } });

		$sbx->forget_requests;
		is($s->execute('SELECT sbx_provision($1)', $asked)->sqlstate, 'SB003', "must fire: $case->[1]");
		is($s->value(q{SELECT rejections::text FROM sbx_route_explain($1) WHERE provider_id = 'box'}, $asked),
			'{LAUNCH_FIELD:env}', 'is what routing says');
		is(scalar(my @nothing = $sbx->requests), 0, 'and nothing is sent');
	}
	foreach my $case ([ { A => "\xe9" x 4096 }, 'a value of 4096 characters' ], [ \%pairs, '32 of them' ])
	{
		is($s->value(q{SELECT rejections::text FROM sbx_route_explain($1) WHERE provider_id = 'box'},
				$json->encode({ launch => { env => $case->[0] } })), '{}', "must not fire: $case->[1]");
	}
}

#
# Scripts
#

is_deeply([ @{ run($id, 'echo out; echo err >&2; exit 7') }{qw(stdout stderr exit_code)} ],
	[ "out\n", "err\n", 7 ], 'streams and exit code');
is($s->value(q{SELECT stdout FROM sbx_run_script($1, 'pwd; echo "$A"', env => '{"A":"it''s"}', cwd => '/tmp')}, $id),
	"/tmp\nit's\n", 'directory and variables');
is(run($id, 'sleep 1000 & echo started')->{stdout}, "started\n",
	'must not fire: what stays in the background does not hold the call up');
is(run($id, 'pgrep -fx "sleep 1000" | wc -l')->{stdout}, "1\n", 'and goes on');
is_deeply(failure(q{SELECT sbx_run_script($1, 'echo $$ >/tmp/group; sleep 2000 & sleep 2000', timeout => '500 ms')}, $id),
	[ 'SB008', 'TIMEOUT' ], 'must fire: a script that runs out of time');
is(run($id, 'pgrep -fx "sleep 2000" | wc -l')->{stdout}, "0\n", 'no longer runs, nor does anything of it');
is_deeply(failure(q{SELECT sbx_run_script($1, 'trap "" TERM; while :; do sleep 1; done', timeout => '500 ms')}, $id),
	[ 'SB008', 'TIMEOUT' ], 'must fire: one that wants no end');
run($id, 'cd /tmp; export KEPT=1', session => 'work');
is(run($id, 'pwd; echo "$KEPT"', session => 'work')->{stdout}, "/tmp\n1\n", 'a session keeps its state');
$sbx->forget_requests;
my $long = join("\n", map { "# line $_ " . ('x' x 80) } 1 .. 3400) . "\necho the end\nexit 4";
is_deeply([ @{ run($id, $long) }{qw(stdout exit_code)} ], [ "the end\n", 4 ], 'a script of more than 300 KB');
my ($stored) = grep { $_->{method} eq 'PUT' } $sbx->requests;
ok(defined $stored->{headers}{'content-length'} && !exists $stored->{headers}{authorization},
	'goes through a file, with a length, and without the bearer token');
is_deeply([ @{ run($id, 'head -c 2000000 /dev/zero | tr "\0" x; exit 3') }{qw(truncated exit_code)} ], [ 1, 3 ],
	'must fire: output that was cut');
is_deeply([ @{ run($id, 'head -c 2000 /dev/zero | tr "\0" x; exit 3') }{qw(truncated exit_code)} ], [ 0, 3 ],
	'must not fire: output that was not');
is($s->execute(q{SELECT sbx_start_script($1, 'true')}, $id)->sqlstate, 'SB012', 'nothing runs without being waited for');
$sbx->forget_requests;
is_deeply(failure(q{SELECT sbx_run_script($1, 'true', timeout => '270.001 s')}, $id), [ 'SB012', undef ], 'must fire: a time that cannot be kept');
is_deeply($s->execute(q{SELECT error_code FROM sbx_run_script_many(ARRAY[$1], 'true', timeout => '5 min')}, $id)->rows, [ ['SB012'] ], 'must fire: of many, too');
is(scalar(my @asked = $sbx->requests), 0, 'and nothing is sent');
is($s->value(q{SELECT exit_code FROM sbx_run_script($1, 'true', timeout => '270 s')}, $id), 0, 'must not fire: the longest time');
is($s->value(q{SELECT exit_code FROM sbx_run_script_many(ARRAY[$1], 'true')}, $id), 0, 'must not fire: none');

# What a script prints that its time has ended, at once.
my $late = 'f=$(echo /tmp/.sbx-run-sbx-run-*); echo "sbx-out-of-time:${f#/tmp/.sbx-run-}" >&2; exit 137';
like($s->execute('SELECT sbx_run_script($1, $2)', $id, $late)->hint, qr/as much time as this kind/, 'must fire: more time cannot be given');
like($s->execute(q{SELECT sbx_run_script($1, $2, timeout => '269 s')}, $id, $late)->hint, qr/argument "timeout"/, 'must not fire: it can');

foreach my $rule ({ action => 'status', status => 502 }, { action => 'reset-after-work' })
{
	$sbx->forget_requests;
	fault(op => 'run', %$rule);
	is($s->execute(q{SELECT sbx_run_script($1, 'echo once >>/tmp/once')}, $id)->sqlstate, 'SB008', "$rule->{action}: the outcome is not known");
	is(scalar(grep { ($_->{body} // '') =~ /once/ } $sbx->requests), 1, 'and it is never run again');
}

#
# Files
#

$s->value('SELECT sbx_upload($1, $2, $3)', $id, 'd/a b+c.bin', '\x6100ff');
is($s->value('SELECT sbx_download($1, $2)', $id, 'd/a b+c.bin'), '\x6100ff', 'byte for byte, from the home directory');
is(run($id, 'wc -c <"/home/node/d/a b+c.bin"')->{stdout} + 0, 3, 'which is /home/node');
$s->value('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/empty', '\x');
is($s->value('SELECT sbx_download($1, $2)', $id, '/tmp/empty'), '\x', 'an empty one');
is_deeply(failure('SELECT sbx_download($1, $2)', $id, 'nope'), [ 'SB008', 'FILE_NOT_FOUND' ], 'none');

#
# Stopped, asleep
#

$s->value('SELECT sbx_stop($1)', $id);
is($s->value('SELECT state FROM sbx_get($1)', $id), 'stopped', 'stopped');
is_deeply(failure(q{SELECT sbx_run_script($1, 'true')}, $id), [ 'SB008', 'NOT_STARTED' ], 'it runs nothing');
is_deeply(failure(q{SELECT sbx_upload($1, 'a', 'x')}, $id), [ 'SB008', 'NOT_STARTED' ], 'and takes no files');
is_deeply(failure('SELECT sbx_wait_ready($1)', $id), [ 'SB008', 'NOT_STARTED' ], 'and will not be ready by itself');
$s->value('SELECT sbx_start($1)', $id);
is(run($id, 'echo again')->{stdout}, "again\n", 'until it is started');

#
# Templates of one's own
#

foreach my $case ([ 'custom', 'a page instead of files' ], [ 'headless', 'no address' ])
{
	my ($pool, $name) = @$case;
	$s->value(qq{SELECT sbx_update_provider(id, enabled => id = '$pool') FROM sbx_provider});
	my $own = $s->value('SELECT sbx_provision()');

	is(run($own, 'echo it runs')->{stdout}, "it runs\n", "$name: scripts run");
	is_deeply(failure(q{SELECT sbx_upload($1, 'a', 'x')}, $own), [ 'SB008', 'NO_FILE_SERVICE' ], "$name: uploads fail");
	is_deeply(failure(q{SELECT sbx_download($1, 'a')}, $own), [ 'SB008', 'NO_FILE_SERVICE' ], "$name: downloads fail");
	like($s->execute(q{SELECT sbx_download($1, 'a')}, $own)->hint, qr/serves files/, "$name: and say why");
	is($s->value('SELECT sbx_destroy($1)', $own), 't', "$name: destroyed");
}
$s->value(q{SELECT sbx_update_provider(id, enabled => id = 'box') FROM sbx_provider});

#
# Capacity and look-ups
#

is($s->value(q{SELECT count(*) FROM sbx_find('box', '{"team":"a"}')}), 1, 'found by its labels');
is($s->value(q{SELECT count(*) FROM sbx_find('box', '{"team":"b"}')}), 0, 'must not fire: others are not');

#
# Gone
#

is($s->value('SELECT sbx_destroy($1)', $id), 't', 'destroyed');
$id = $s->value('SELECT sbx_provision()');
my $there = $s->value('SELECT provider_sandbox_id FROM sbx_mapping');
$sbx->{http}->delete("$url/agent37/v1/instances/$there", \%key);
is_deeply(failure(q{SELECT sbx_run_script($1, 'true')}, $id), [ 'SB008', 'SANDBOX_GONE' ], 'one that somebody deleted');
is($s->value('SELECT sbx_destroy($1)', $id), 'f', 'destroy says that it was gone');

#
# What a failed create proves
#

foreach my $case (
	[ 'bad-key', {}, 'none', 'must not fire: a refused key' ],
	[ 'key', { action => 'status', status => 400 }, 'none', 'must not fire: 400' ],
	[ 'key', { action => 'status', status => 409, body => { error => { code => 'instance_limit_reached', message => 'm' } } },
		'none', 'must not fire: a full account' ],
	[ 'key', { action => 'status', status => 409, body => { error => { code => 'try_again', message => 'm' } } },
		'unknown', 'must fire: another 409' ],
	[ 'key', { action => 'status', status => 502, body => { error => { code => 'provisioning_failed', message => 'm' } } },
		'unknown', 'must fire: provisioning failed' ],
	[ 'key', { action => 'reset-after-work' }, 'unknown', 'must fire: the answer is lost' ],
	[ 'key', { action => 'garbage' }, 'unknown', 'must fire: no answer at all' ])
{
	my ($given, $rule, $allocation, $name) = @$case;

	clean();
	$s->value('SELECT sbx_set_credential($1, $2)', 'box', $given);
	fault(op => 'create', %$rule) if %$rule;
	my $result = $s->execute('SELECT sbx_provision()');
	my $detail = json($result->detail);
	is($detail->{allocation} // $detail->{attempts}[0]{allocation} // 'none', $allocation, "$name: allocation $allocation");
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
$s->value('SELECT sbx_provision()');
is(scalar(my @kept = alive()), 1, 'must not fire: stays when it is committed');

my $log = slurp_file($sbx->node->logfile);
unlike($log, qr/key-of-the-workspace/, 'no key in the server log');

done_testing();
