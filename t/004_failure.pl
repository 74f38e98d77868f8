# When a provider fails: what the caller hears, how often the provider was asked,
# and that nothing is left.
use strict;
use warnings;

use SbxTest;
use Test::More;

# Nothing of what a provider says, and no key, may come out anywhere.
my $marker = 'text-of-the-provider-4711';
my $key = 'dtn_key-of-the-test-0815';

my $sbx = SbxTest->new(
	conf => qq{
max_connections = 60
log_error_verbosity = verbose
sbx_router.abort_cleanup_timeout = '60s'
});
my $node = $sbx->node;
$sbx->register('pool');
my $s = $sbx->user('pool', $key);
my $new_id = 'SELECT sbx_new_id()';

sub rule_of { return { action => 'status', @_ } }

# A body as Daytona writes it, with the marker wherever there is text.
sub refusal
{
	my ($status, $message) = @_;

	return rule_of(
		status => $status,
		body => {
			path => "/api/$marker",
			timestamp => '2026-01-01T00:00:00.000Z',
			statusCode => $status,
			error => $marker,
			message => $message
		},
		headers => { 'X-Trace' => $marker });
}

sub provider_id
{
	my ($name) = @_;
	my ($found) = grep { $_->{name} eq $name } $sbx->audit;

	return $found ? $found->{id} : undef;
}

# Does the client hear anything of what the provider said, or a key?
sub is_silent { return $_[0]->everything !~ /\Q$marker\E|\Q$key\E/ ? 1 : 0 }

#
# Create
#
# What is proven about a failed create: "none" and "made" are facts, all else is
# unknown.  Then the name is looked up; where nothing was made, for five seconds.
#

my %none = (
	'401' => refusal(401, $marker),
	'403' => refusal(403, $marker),
	'403 without a body' => rule_of(status => 403, body => ''),
	'429' => refusal(429, $marker),
	'CPU limit' => refusal(400, "Total CPU limit exceeded. $marker"),
	'CPU limit as 403' => refusal(403, "Total CPU limit exceeded. $marker"),
	'memory limit' => refusal(400, "Total memory limit exceeded. $marker"),
	'disk limit' => refusal(400, "Total disk limit exceeded. $marker"),
	'GPU limit' => refusal(400, "Total GPU limit exceeded. $marker"),
	'no runners' => refusal(400, "No available runners $marker"),
	'too large' => refusal(400, "$marker exceeds maximum allowed per sandbox"),
	'ephemeral only' => refusal(400, "$marker Only ephemeral sandboxes are permitted"),
	'snapshot not found' => refusal(400, "Snapshot $marker not found"),
	'snapshot not in region' => refusal(400, "Snapshot $marker is not available in region $marker"),
	'no default region' => refusal(400, "$marker does not have a default region"),
	'region not found' => refusal(404, 'Region not found'));

my %unknown = (
	'400 failed to start' => refusal(400, "Sandbox failed to start: $marker"),
	'400 failed to start, with a known reason' =>
	  refusal(400, 'Sandbox failed to start: Total CPU limit exceeded.'),
	'403 failed to start' => refusal(403, 'Sandbox failed to start: Total CPU limit exceeded.'),
	'400 with another text' => refusal(400, $marker),
	'400 with a known text elsewhere' => refusal(400, "$marker Total CPU limit exceeded."),
	'400 without JSON' => rule_of(status => 400, body => "<html>$marker</html>"),
	'404 with another text' => refusal(404, $marker),
	'409 with another text' => refusal(409, $marker),
	'422' => refusal(422, 'Total CPU limit exceeded.'),
	'500' => refusal(500, $marker),
	'500 with a known text' => refusal(500, 'Total CPU limit exceeded.'),
	'502' => rule_of(status => 502, body => ''),
	'503' => refusal(503, $marker),
	'504' => refusal(504, $marker),
	'200 with a page' => rule_of(status => 200, body => "<!doctype html><title>$marker</title>"),
	'200 with an id that is none' =>
	  rule_of(status => 200, body => { id => "../$marker", state => 'started' }),
	'200 with an empty id' => rule_of(status => 200, body => { id => '', state => 'started' }),
	'200 without an id' => rule_of(status => 200, body => { name => $marker, state => 'started' }),
	'200 with an array' => rule_of(status => 200, body => [ { id => $marker } ]),
	'redirect' => { action => 'redirect' },
	'no answer' => { action => 'hang', limit => 1 },
	'reset before it was read' => { action => 'reset-before-read' });

# Works, but its answer is spoiled.
my %spoiled = (
	'garbage' => { action => 'garbage' },
	'wrong types' => { action => 'wrong-type' },
	'a truncated answer' => { action => 'truncate' },
	'a huge answer' => { action => 'huge', bytes => 8 << 20 },
	'an endless answer' => { action => 'huge' },
	'a huge header' => { action => 'huge-header' },
	'a deep answer' => { action => 'deep' },
	'bad UTF-8' => { action => 'bad-utf8' },
	'a NUL' => { action => 'nul' },
	'duplicate keys' => { action => 'duplicate-keys' },
	'a reset after the work' => { action => 'reset-after-work' },
	'500 after the work' => { %{ refusal(500, $marker) }, work => JSON::PP::true },
	'400 after the work' =>
	  { %{ refusal(400, "Sandbox failed to start: $marker") }, work => JSON::PP::true },
	'an answer that comes too late' => { action => 'hang', work => JSON::PP::true, limit => 1 },
	'an answer that stops after the headers' => { action => 'hang-after-headers', limit => 1 },
	'an answer that is too slow' => { action => 'slow', bytesPerSecond => 10, limit => 1 });

sub creates_of
{
	my ($id, $mark) = @_;

	return
	  scalar grep { $_->{op} eq 'create' && $_->{body} =~ /"name":"$id"/ } $sbx->requests($mark);
}

sub provision
{
	my ($id, $limit) = @_;
	my $request = $limit ? qq{{"launch":{"createTimeoutSeconds":$limit}}} : '{}';

	return "SELECT sbx_provision('$request', id => '$id')";
}

# made: sandboxes made; warnings: 1 where nothing could be confirmed.
sub check_failed_create
{
	my ($result, $name, $id, $allocation, $made, $warnings) = @_;

	is_deeply(
		{
			sqlstate => $result->sqlstate,
			detail => json($result->detail),
			advice => defined $result->hint ? 1 : 0,
			made => scalar(grep { $_->{name} eq $id } $sbx->audit),
			alive => scalar(grep { $_ eq $id } $sbx->alive),
			warnings => scalar(grep { $_->{M} =~ /$id/ } $result->warnings),
			silent => is_silent($result)
		},
		{
			sqlstate => 'SB005',
			detail => {
				code => 'PROVIDER_LAUNCH_OUTCOME_UNKNOWN',
				providerId => 'pool',
				allocation => $allocation
			},
			advice => 1,
			made => $made,
			alive => 0,
			warnings => $warnings,
			silent => 1
		},
		"create, $name: fails, allocation $allocation, nothing alive, "
		  . ($warnings ? 'a warning' : 'no warning')
		  . ', nothing told of what the provider said');
	return;
}

foreach my $name (sort keys %none)
{
	my $mark = $sbx->mark;
	my $id = $s->value($new_id);

	$sbx->fault(op => 'create', %{ $none{$name} });
	check_failed_create($s->query(provision($id)), $name, $id, 'none', 0, 0);
	is($sbx->mark - $mark, 1, "create, $name: the only request");
}

foreach my $name (sort keys %spoiled)
{
	my %rule = %{ $spoiled{$name} };
	my $limit = delete $rule{limit};
	my $mark = $sbx->mark;
	my $id = $s->value($new_id);

	$sbx->fault(op => 'create', %rule);
	check_failed_create($s->query(provision($id, $limit)), $name, $id, 'unknown', 1, 0);
	is(creates_of($id, $mark), 1, "create, $name: one delivery");
	is($sbx->deletes($mark), 1, "create, $name: one delete");
}

# Five seconds each, so all of them at once; each waits for its own fault only.
my @searching;
foreach my $name (sort keys %unknown)
{
	my $session = $sbx->user('pool', $key);
	my $id = $session->value($new_id);
	my $mark = $sbx->mark;
	my %rule = %{ $unknown{$name} };
	my $limit = delete $rule{limit};

	$session->value(q{SET sbx_router.abort_cleanup_timeout = '100ms'});
	$sbx->fault(op => 'create', %rule);
	$session->send(provision($id, $limit));
	$sbx->wait_requests('POST', 'create', $mark);
	is($sbx->creates($mark), 1, "create, $name: one delivery");
	push @searching, [ $name, $session, $id ];
}
foreach my $case (@searching)
{
	my ($name, $session, $id) = @$case;

	check_failed_create($session->wait, $name, $id, 'unknown', 0, 1);
	is(creates_of($id), $name =~ /before it was read/ ? 0 : 1, "create, $name: none later");
	$session->finish;
}
is($sbx->control('GET', 'redirects')->{connections}, 0, 'a redirect is not followed');

# A name that is taken by somebody else's sandbox is not ours to destroy.
{
	my $id = $s->value($new_id);
	my $response = $sbx->{http}->post($sbx->api . '/sandbox',
		{ headers => { Authorization => "Bearer $key" }, content => qq{{"name":"$id"}} });
	my $result;

	is($response->{status}, 200, 'somebody else takes the name');
	$s->value(q{SET sbx_router.abort_cleanup_timeout = '100ms'});
	$result = $s->query(provision($id));
	$s->value('RESET sbx_router.abort_cleanup_timeout');
	is(json($result->detail)->{allocation}, 'unknown', 'create, 409 name exists: unknown');
	is((scalar grep { $_ eq $id } $sbx->alive),
		1, 'create, 409 name exists: the other one is left alone');
	$sbx->http('DELETE', $key, "/sandbox/$id");
}

# An answer about another sandbox is no answer: what is adopted may be destroyed.
{
	my $other = $s->value('SELECT sbx_provision()');
	my $id = $s->value($new_id);

	$sbx->fault(
		op => 'create',
		action => 'status',
		status => 200,
		body => {
			id => provider_id($other),
			name => $other,
			state => 'started',
			labels => { 'sbx-router-id' => $other }
		});
	$s->value(q{SET sbx_router.abort_cleanup_timeout = '100ms'});
	check_failed_create($s->query(provision($id)), 'an answer about another sandbox', $id, 'unknown', 0, 1);
	$s->value('RESET sbx_router.abort_cleanup_timeout');
	is((scalar grep { $_ eq $other } $sbx->alive), 1, 'create, an answer about another sandbox: that one is left alone');
	$s->value("SELECT sbx_destroy('$other')");
}

#
# After the create: what was made is named
#

my %later = (
	'403 when it is looked at' => { op => 'get', %{ refusal(403, $marker) } },
	'404 when it is looked at' => { op => 'get', %{ refusal(404, $marker) } },
	'garbage when it is looked at' => { op => 'get', action => 'garbage' },
	'a redirect when it is looked at' => { op => 'get', action => 'redirect' },
	'401 when it is tried' => { op => 'run', %{ refusal(401, $marker) } },
	'a page when it is tried' =>
	  { op => 'run', %{ rule_of(status => 200, body => "<html>$marker") } },
	'502 each time it is tried' => { op => 'run', %{ refusal(502, $marker) }, times => 3 });
foreach my $name (sort keys %later)
{
	my $mark = $sbx->mark;
	my $id = $s->value($new_id);

	$sbx->fault(%{ $later{$name} });
	check_failed_create($s->query(provision($id)), $name, $id, 'made', 1, 0);
	is(creates_of($id, $mark), 1, "create, $name: one delivery");
}
foreach my $url ('http://evil.example/toolbox', "http://user\@127.0.0.1/$marker", $marker)
{
	my $id = $s->value($new_id);

	$sbx->fault(
		op => 'create',
		%{
			rule_of(
				status => 200,
				body => { id => 'b5a7c9de-0000', state => 'started', toolboxProxyUrl => $url })
		});
	check_failed_create($s->query(provision($id)), "a toolbox at $url", $id, 'made', 0, 0);
}

# What passes by itself is no failure.
my %passing = (
	'a late answer' => { op => 'create', action => 'delay', ms => 300 },
	'503 when it is looked at' => { op => 'get', %{ refusal(503, $marker) }, times => 2 },
	'429 when it is looked at' => { op => 'get', %{ refusal(429, $marker) } },
	'a reset when it is looked at' => { op => 'get', action => 'reset-before-read', times => 2 },
	'502 when it is tried' => { op => 'run', %{ rule_of(status => 502, body => '') }, times => 2 },
	'not started when it is tried' => { op => 'run', %{ refusal(400, 'no IP address found') } });
foreach my $name (sort keys %passing)
{
	my $mark = $sbx->mark;

	$sbx->fault(%{ $passing{$name} });
	my $id = $s->value('SELECT sbx_provision()');
	is($sbx->creates($mark), 1, "create, $name: goes on after it");
	is($s->value("SELECT sbx_destroy('$id')"), 't', "create, $name: and the sandbox is there");
}

# One delivery, also where a kept connection dies under the request.
{
	my $mark = $sbx->mark;
	my $id = $s->value($new_id);

	$sbx->fault(op => 'create', action => 'close-reused');
	$s->value(q{SET sbx_router.abort_cleanup_timeout = '100ms'});
	check_failed_create(
		$s->query(provision($id)),
		'a kept connection that dies',
		$id, 'unknown', 0, 1);
	$s->value('RESET sbx_router.abort_cleanup_timeout');
	my @sent = grep { $_->{op} eq 'create' } $sbx->requests($mark);
	is(scalar @sent, 1, 'create, a kept connection that dies: one delivery');
	cmp_ok($sent[0]{connectionRequest},
		'>', 1, 'create, a kept connection that dies: it was a kept one');
}

#
# Operations on a sandbox
#

my $home = $s->value('SELECT sbx_provision()');
my $home_id = provider_id($home);

sub check_failed_operation
{
	my ($result, $name, $operation, $code) = @_;
	my $detail = json($result->detail);

	$detail = {} unless ref $detail;

	is_deeply(
		{
			sqlstate => $result->sqlstate,
			pool => $detail->{providerId},
			operation => $detail->{operation},
			code => $code ? $detail->{code} : undef,
			warnings => scalar(my @warnings = $result->warnings),
			silent => is_silent($result)
		},
		{
			sqlstate => 'SB008',
			pool => 'pool',
			operation => $operation,
			code => $code,
			warnings => 0,
			silent => 1
		},
		"$name: fails" . ($code ? ", $code" : '') . ', nothing told of what the provider said');
	return;
}

# Long waits of a read and a destroy: begun here, looked at in the end.
my $slow_get = $sbx->user('pool', $key);
$sbx->fault(op => 'get', action => 'hang');
my $place = $sbx->mark;
$slow_get->send("SELECT sbx_get('$home')");
$sbx->wait_requests('GET', 'one', $place);

my $doomed = $s->value('SELECT sbx_provision()');
my $slow_destroy = $sbx->user('pool', $key);
$sbx->fault(op => 'delete', action => 'hang');
$place = $sbx->mark;
$slow_destroy->send("SELECT sbx_destroy('$doomed')");
$sbx->wait_requests('DELETE', 'one', $place);

#
# sbx_get
#

my %bad_get = (
	'401' => refusal(401, $marker),
	'403' => refusal(403, $marker),
	'429' => refusal(429, $marker),
	'400' => refusal(400, $marker),
	'409' => refusal(409, $marker),
	'500' => refusal(500, $marker),
	'503' => refusal(503, $marker),
	'200 with a page' => rule_of(status => 200, body => "<html>$marker</html>"),
	'200 about another sandbox' =>
	  rule_of(status => 200, body => { id => $marker, state => 'started' }),
	'garbage' => { action => 'garbage' },
	'wrong types' => { action => 'wrong-type' },
	'a truncated answer' => { action => 'truncate' },
	'an endless answer' => { action => 'huge' },
	'a huge header' => { action => 'huge-header' },
	'a deep answer' => { action => 'deep' },
	'bad UTF-8' => { action => 'bad-utf8' },
	'a NUL' => { action => 'nul' },
	'duplicate keys' => { action => 'duplicate-keys' },
	'a redirect' => { action => 'redirect' },
	'a reset before it was read' => { action => 'reset-before-read', times => 3 },
	'a reset after the work' => { action => 'reset-after-work', times => 3 });
foreach my $name (sort keys %bad_get)
{
	$sbx->fault(op => 'get', %{ $bad_get{$name} });
	check_failed_operation($s->query("SELECT sbx_get('$home')"), "get, $name", 'get');
	$sbx->clear_faults;
}
$sbx->fault(op => 'get', action => 'close-reused');
is($s->value("SELECT state FROM sbx_get('$home')"),
	'started', 'get, a kept connection that dies: asked again');

#
# sbx_run_script
#

my %bad_run = (
	'400' => refusal(400, $marker),
	'401' => refusal(401, $marker),
	'403' => refusal(403, $marker),
	'404' => refusal(404, "session $marker not found"),
	'408' => refusal(408, $marker),
	'409' => refusal(409, $marker),
	'429' => refusal(429, $marker),
	'500' => refusal(500, $marker),
	'502' => rule_of(status => 502, body => ''),
	'504' => refusal(504, $marker),
	'202' => rule_of(status => 202, body => { cmdId => $marker }),
	'200 with a page' => rule_of(status => 200, body => "<html>$marker</html>"),
	'an exit code of another type' =>
	  rule_of(status => 200, body => { exitCode => "$marker", stdout => '' }),
	'garbage' => { action => 'garbage' },
	'a truncated answer' => { action => 'truncate' },
	'an endless answer' => { action => 'huge', code => 'OUTPUT_TOO_LARGE' },
	'a huge header' => { action => 'huge-header' },
	'a deep answer' => { action => 'deep' },
	'bad UTF-8' => { action => 'bad-utf8' },
	'duplicate keys' => { action => 'duplicate-keys' },
	'a redirect' => { action => 'redirect' },
	'a reset before it was read' => { action => 'reset-before-read' },
	'a reset after the work' => { action => 'reset-after-work' },
	'a kept connection that dies' => { action => 'close-reused' });
foreach my $name (sort keys %bad_run)
{
	my %rule = %{ $bad_run{$name} };
	my $code = delete $rule{code};
	my $mark = $sbx->mark;

	$sbx->fault(path => '*/exec', %rule);
	my ($row, $result) = $sbx->run($s, $home, 'echo here');
	check_failed_operation($result, "run, $name", 'runScript', $code);
	is($sbx->execs($mark), 1, "run, $name: one delivery");
	cmp_ok($sbx->count('DELETE', $SbxTest::path{kill}, $mark),
		'>', 0, "run, $name: its session is removed");
	$sbx->clear_faults;
}
is($sbx->run($s, $home, 'echo well')->{stdout}, "well\n", 'run: none of this harms the sandbox');

# The scheme of an address may be written in any letters.
{
	my $seen = $sbx->http('GET', $key, '/sandbox/' . provider_id($home));
	$seen->{toolboxProxyUrl} =~ s/^http/HTTP/ or die 'no address of a toolbox';
	$sbx->fault(op => 'get', action => 'status', status => 200, body => $seen);
	is($sbx->run($s, $home, 'echo well')->{stdout}, "well\n", 'run, an address in capitals: goes there');
}

{
	my $mark = $sbx->mark;

	$sbx->fault(path => '*/process/session', %{ refusal(500, $marker) });
	my (undef, $result) = $sbx->run($s, $home, 'true');
	check_failed_operation($result, 'run, 500 for the session', 'runScript');
	is($sbx->execs($mark), 0, 'run, 500 for the session: nothing runs');

	$sbx->fault(path => '*/process/session', %{ refusal(409, $marker) }, work => JSON::PP::true);
	is($sbx->run($s, $home, 'echo well')->{stdout},
		"well\n", 'run, the session is there already: it is ours');

	$sbx->fault(op => 'stop', %{ refusal(500, $marker) });
	is($sbx->run($s, $home, 'echo well')->{stdout},
		"well\n", 'run, the session stays: a result is a result');

	$sbx->fault(
		path => '*/exec',
		%{ rule_of(status => 200, body => { cmdId => 'x', stdout => "a\n", stderr => '' }) });
	my $row = $sbx->run($s, $home, 'true');
	is_deeply(
		[ @$row{qw(stdout exit_code)} ],
		[ "a\n", undef ],
		'run, no exit code: the outcome is NULL');

	$sbx->fault(op => 'stop', %{ refusal(500, $marker) });
	(undef, $result) = $sbx->run($s, $home, 'sleep 1000', timeout => '500 ms');
	check_failed_operation($result, 'run, a timeout that cannot kill',
		'runScript', 'TIMEOUT_NOT_KILLED');
	$sbx->clear_faults;
}

#
# sbx_destroy
#

my %bad_destroy = (
	'400' => refusal(400, $marker),
	'400 because of forks' =>
	  { %{ refusal(400, "Sandbox has active fork children $marker") }, code => 'HAS_FORKS' },
	'401' => refusal(401, $marker),
	'403' => refusal(403, $marker),
	'a redirect' => { action => 'redirect' });
foreach my $name (sort keys %bad_destroy)
{
	my %rule = %{ $bad_destroy{$name} };
	my $code = delete $rule{code};

	$sbx->fault(op => 'delete', %rule);
	my $result = $s->query("SELECT sbx_destroy('$home')");
	check_failed_operation($result, "destroy, $name", 'destroy', $code);
	is($s->value("SELECT count(*) FROM sbx_mapping WHERE id = '$home'"),
		1, "destroy, $name: the row stays");
}
is($s->value("SELECT sbx_destroy('$home')"), 't', 'destroy: after failures it can be repeated');
is(provider_id($home), $home_id, 'destroy: it was the same sandbox all the time');

my %passing_destroy = (
	'429' => refusal(429, $marker),
	'500' => refusal(500, $marker),
	'500 after the work' => { %{ refusal(500, $marker) }, work => JSON::PP::true },
	'503' => refusal(503, $marker),
	'409' => { %{ refusal(409, 'Sandbox state change in progress') }, times => 2 },
	'409 with another text' => refusal(409, $marker),
	'garbage' => { action => 'garbage' },
	'a page' => rule_of(status => 200, body => "<html>$marker</html>"),
	'a truncated answer' => { action => 'truncate' },
	'an endless answer' => { action => 'huge' },
	'bad UTF-8' => { action => 'bad-utf8' },
	'a reset before it was read' => { action => 'reset-before-read', times => 2 },
	'a reset after the work' => { action => 'reset-after-work' },
	'a kept connection that dies' => { action => 'close-reused' });
foreach my $name (sort keys %passing_destroy)
{
	my $id = $s->value('SELECT sbx_provision()');

	$sbx->fault(op => 'delete', %{ $passing_destroy{$name} });
	my $result = $s->query("SELECT sbx_destroy('$id')");
	is_deeply(
		[
			$result->value,
			scalar(grep { $_ eq $id } $sbx->alive),
			$s->value("SELECT count(*) FROM sbx_mapping WHERE id = '$id'")
		],
		[ 't', 0, 0 ],
		"destroy, $name: goes on until it is done, and the row is gone"
	) or diag $result->everything;
	$sbx->clear_faults;
}

my $result = $slow_get->wait;
check_failed_operation($result, 'get, no answer', 'get');
$result = $slow_destroy->wait;
is($result->value, 't', 'destroy, no answer: asked again, and done') or diag $result->everything;
is($sbx->control('GET', 'redirects')->{connections}, 0, 'no redirect was followed');

#
# Keys that the provider refuses, and a provider that is not there
#

my $kept = $s->value('SELECT sbx_provision()');
my %refused = (bad => 'UNAUTHORIZED', denied => 'FORBIDDEN', limited => 'RATE_LIMITED');
foreach my $kind (sort keys %refused)
{
	my $session = $sbx->user('pool', "$kind-$key");
	my $mark = $sbx->mark;
	my $id = $s->value($new_id);

	$result = $session->query(provision($id));
	check_failed_create($result, "a $kind key", $id, 'none', 0, 0);
	like($result->hint, qr/$refused{$kind}/, "create, a $kind key: the advice names the code");
	my $asks = $result->hint =~ /The provider asks for a pause of 1 s before the next try\./ ? 1 : 0;
	is($asks, $kind eq 'limited' ? 1 : 0, "create, a $kind key: the advice tells what pause is asked for, if any");
	is($sbx->mark - $mark, 1, "create, a $kind key: one request");

	$mark = $sbx->mark;
	foreach
	  my $call ([ 'get', "sbx_get('$kept')" ], [ 'runScript', "sbx_run_script('$kept', 'true')" ])
	{
		$result = $session->query("SELECT $call->[1]");
		check_failed_operation($result, "$call->[0], a $kind key", $call->[0], $refused{$kind});
	}

	# What passes is waited for before a script, but not for ever.
	is($sbx->mark - $mark, $kind eq 'limited' ? 1 + 8 : 2, "a $kind key: no loop");
	next if $kind eq 'limited';    # which passes, so it is waited for
	$result = $session->query("SELECT sbx_destroy('$kept')");
	check_failed_operation($result, "destroy, a $kind key", 'destroy');
	is($s->value("SELECT count(*) FROM sbx_mapping WHERE id = '$kept'"),
		1, "destroy, a $kind key: the row stays");
	$session->finish;
}

$s->value(q{SELECT sbx_update_provider('pool', settings => '{"apiUrl":"http://127.0.0.1:1/api"}')});
my $id = $s->value($new_id);
check_failed_create($s->query(provision($id)), 'nobody listens', $id, 'none', 0, 0);
check_failed_operation($s->query("SELECT sbx_get('$kept')"), 'get, nobody listens', 'get');
check_failed_operation($s->query("SELECT sbx_run_script('$kept', 'true')"),
	'run, nobody listens', 'runScript');
check_failed_operation($s->query("SELECT sbx_destroy('$kept')"),
	'destroy, nobody listens', 'destroy');
is($s->value("SELECT count(*) FROM sbx_mapping WHERE id = '$kept'"),
	1, 'destroy, nobody listens: the row stays');

#
# The server log
#

my $log = $sbx->log_since(0);
like($log, qr/SB005: could not launch a sandbox/, 'the server log has the failures of creates');
like($log, qr/SB008: could not destroy/, 'and of other operations');
unlike($log, qr/\Q$marker\E/, 'but nothing of what the provider said');
unlike($log, qr/\Q$key\E/, 'and no key');

done_testing();
