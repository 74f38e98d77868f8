# Capacity: what is read from the accounts, why nothing is known, and how provisioning goes
# to the next pool of a policy's order when one is full.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

# Nothing is run here.  Two emulators: a fault is one account's, and not the other's.
my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "wal_level = replica\nmax_wal_senders = 2\n");
my $second = $sbx->beside('--no-exec');
my $admin = $sbx->session;
my %capacity = (
	'eu' => { limits => { cpu => 10, memory => 10240, disk => 102400, sandboxes => 5 }, demand => { cpu => 1, memory => 1024, disk => 3072 } },
	'us' => { limits => { sandboxes => 5 } },
	'box' => { limits => { sandboxes => 5 } });
my %settings = (
	'eu' => [ 'daytona', { apiUrl => $sbx->api } ],
	'us' => [ 'daytona', { apiUrl => $second->api } ],
	'box' => [ 'e2b', { apiUrl => "$sbx->{url}/e2b", sandboxUrl => "$sbx->{url}/e2b-envd" } ]);

sub encode { return JSON::PP->new->canonical->encode($_[0]) }

foreach my $id (sort keys %capacity)
{
	$admin->value('SELECT sbx_register_provider($1, $2, $3, $4, NULL, $5)', $id, $settings{$id}[0], encode($settings{$id}[1]),
		encode({ resources => { cpu => 100, memoryMb => 1000000, diskMb => 1000000 } }), encode($capacity{$id}));
}
$admin->value(q{SELECT sbx_set_policy('order', '{eu,us,box}', '5 s', NULL, 'public.sbx_classify_proven')});
$admin->value(q{SELECT sbx_set_policy('order-unclassified', '{eu,us,box}')});
$admin->value('GRANT ALL ON sbx_mapping TO PUBLIC');

sub user
{
	my $session = $sbx->session;

	$session->value('SELECT sbx_set_credential($1, $2)', $_, $_[0] // 'key') foreach sort keys %capacity;
	return $session;
}
my $s = user();

sub capacity
{
	my ($session, @arguments) = @_;
	my $result = $session->execute('SELECT * FROM sbx_capacity($1, $2)', @arguments[ 0, 1 ]);

	diag $result->everything if $result->error;
	return [ map { join ' ', map { $_ // '-' } @$_ } @{ $result->rows } ];
}

# What others have in the account of that key.
sub occupy
{
	my ($emulator, $kind, $key, %body) = @_;

	if ($kind eq 'daytona')
	{
		return $emulator->http('POST', $key, '/sandbox', \%body)->{id};
	}
	my $answer = $emulator->{http}->request('POST', "$emulator->{url}/e2b/v2/sandboxes",
		{ headers => { 'X-API-Key' => $key, 'Content-Type' => 'application/json' }, content => encode({ templateID => 'base', %body }) });
	die $answer->{content} unless $answer->{success};
	return json($answer->{content})->{sandboxID};
}

# Start over: nothing anywhere.
sub clean
{
	$_->clear_faults, $_->reset, $_->forget_requests foreach $sbx, $second;
	$admin->value('DELETE FROM sbx_mapping');
	return;
}
sub asked { my ($emulator, $op, $provider) = @_; return scalar grep { $_->{op} eq $op && (!$provider || $_->{provider} eq $provider) } $emulator->requests }

#
# What is read
#

is_deeply(
	capacity($s, '{eu,box}'),
	[
		'eu known - cpu 0 10 vCPU 10 1', 'eu known - memory 0 10240 MiB 10240 1024', 'eu known - disk 0 102400 MiB 102400 3072',
		'eu known - sandboxes 0 5 sandboxes 5 1', 'box known - sandboxes 0 5 sandboxes 5 1'
	],
	'empty accounts');
occupy($sbx, 'daytona', 'key', cpu => 2, memory => 4, disk => 10, buildInfo => { dockerfileContent => "FROM any\n" }) foreach 1 .. 2;
my $stopped = occupy($sbx, 'daytona', 'key');
$sbx->http('POST', 'key', "/sandbox/$stopped/stop");
occupy($sbx, 'daytona', 'key of somebody else') foreach 1 .. 3;
occupy($sbx, 'e2b', 'key') foreach 1 .. 2;
my @audit = map { encode($_) } $sbx->audit;
my $mark = $sbx->mark;
is_deeply(
	capacity($s, '{eu,box}'),
	[
		'eu known - cpu 5 10 vCPU 5 1', 'eu known - memory 9216 10240 MiB 1024 1024', 'eu known - disk 23552 102400 MiB 78848 3072',
		'eu known - sandboxes 3 5 sandboxes 2 1', 'box known - sandboxes 2 5 sandboxes 3 1'
	],
	'must fire: whatever is in the account counts, in any state');
is_deeply(
	[ map { "$_->{method} $_->{path}" } sort { $a->{path} cmp $b->{path} } $sbx->requests($mark) ],
	[ 'GET /daytona/api/sandbox?limit=200&sort=createdAt&order=asc', 'GET /e2b/v2/sandboxes?state=running&limit=100&order=asc' ],
	'must not fire: reading asks for listings and for nothing else');
is_deeply([ map { encode($_) } $sbx->audit ], \@audit, 'must not fire: and changes nothing');
{
	my $result = $s->execute('SELECT provider_id, tightest_resource, percent_used, level, launches FROM sbx_headroom');
	is_deeply($result->rows, [ [qw(box sandboxes 40 ok 3)], [qw(eu memory 90 warning 1)], [qw(us sandboxes 0 ok 5)] ], 'headroom');
}
$s->query('BEGIN');
capacity($s, undef);
is($s->value('SELECT pg_current_xact_id_if_assigned() IS NULL'), 't', 'must not fire: no transaction id is assigned');
$s->query('COMMIT');

# More than a page.
occupy($second, 'daytona', 'key') foreach 1 .. 205;
occupy($sbx, 'e2b', 'key') foreach 1 .. 101;
$second->forget_requests;
is_deeply(capacity($s, '{us,box}'), [ 'us known - sandboxes 205 5 sandboxes -200 1', 'box known - sandboxes 103 5 sandboxes -98 1' ],
	'must fire: every page counts; headroom can be negative');
is(asked($second, 'list'), 2, 'two pages');

# For people.
$sbx->http('PUT', 'key', "/sandbox/$stopped/labels", { labels => { workspace => 'acme' } });
{
	my $summary = json($s->value(q{SELECT sbx_daytona_capacity('eu', 'acme')}));

	is($summary->{provisioningCheck}, 'not_covered', 'summary: says nothing about a create');
	is($summary->{totals}{memory}{used}, 9216, 'summary: totals');
	is($summary->{totals}{memory}{level}, 'warning', 'summary: level');
	is_deeply($summary->{states}, { started => 2, stopped => 1 }, 'summary: states');
	is_deeply([ map { $_->{id} } @{ $summary->{workspace}{sandboxes} } ], [$stopped], 'summary: one workspace');
	is($s->query(q{SELECT sbx_daytona_capacity('box')})->sqlstate, 'SB012', 'must fire: another kind has none');
	is($s->query(q{SELECT sbx_daytona_capacity('nobody')})->sqlstate, 'SB013', 'must fire: nor has an unknown pool');
	$sbx->fault(op => 'list', action => 'status', status => 403);
	my $refused = $s->query(q{SELECT sbx_daytona_capacity('eu')});
	is($refused->sqlstate, 'SB008', 'must fire: a listing that is refused is no summary');
	is($refused->message, 'could not read the capacity of provider "eu"', 'and the error says what could not be read');
}

#
# Why nothing is known
#

my $item = { id => 'x', cpu => 1, memory => 1, disk => 1 };
my $box_item = { sandboxID => 'x', cpuCount => 1, memoryMB => 1, diskSizeMB => 1 };

sub crowd
{
	my ($kind, $bad) = @_;
	my @items = map {
		$kind eq 'daytona' ? { %$item, id => "s$_", $_ == 77 ? (cpu => $bad) : () } : { %$box_item, sandboxID => "s$_", $_ == 77 ? (cpuCount => $bad) : () }
	} 1 .. 501;

	return $kind eq 'daytona' ? { items => \@items, nextCursor => undef } : \@items;
}
my @ok = (action => 'status', status => 200, times => 9);
my %wrong = (
	'no answer' => [ 'READER_TIMEOUT', action => 'hang', times => 9 ],
	'half an answer' => [ 'READER_TIMEOUT', action => 'hang-after-headers', times => 9 ],
	'an outage' => [ 'READER_FAILED', action => 'status', status => 500, times => 9 ],
	'a refused key' => [ 'CREDENTIALS', action => 'status', status => 401 ],
	'a forbidden listing' => [ 'READER_FAILED', action => 'status', status => 403 ],
	'too many requests' => [ 'READER_FAILED', action => 'status', status => 429, times => 9 ],
	'a listing cut off' => [ 'READER_FAILED', action => 'truncate', times => 9 ],
	'a broken connection' => [ 'READER_FAILED', action => 'reset-after-work', times => 9 ],
	'a redirect' => [ 'READER_FAILED', action => 'redirect', times => 9 ],
	'an endless answer' => [ 'READER_FAILED', action => 'huge', times => 9 ],
	'random bytes' => [ 'MALFORMED', action => 'garbage', times => 9 ],
	'values of other types' => [ 'MALFORMED', action => 'wrong-type', times => 9 ],
	'deep nesting' => [ 'MALFORMED', action => 'deep', times => 9 ],
	'duplicate keys' => [ 'MALFORMED', action => 'duplicate-keys', times => 9 ],
	'a web page' => [ 'MALFORMED', @ok, body => '<html>' ]);
foreach my $pool (qw(eu box))
{
	my $kind = $settings{$pool}[0];
	my %mine = (
		%wrong,
		'one malformed among 500' => [ 'MALFORMED', @ok, body => crowd($kind, '1') ],
		'a negative number' => [ 'MALFORMED', @ok, body => crowd($kind, -1) ],
		'a missing number' => [ 'MALFORMED', @ok, body => crowd($kind, undef) ],
		'a cursor that comes again' => [ 'READER_FAILED', @ok, times => 99, $kind eq 'daytona'
			? (body => { items => [], nextCursor => 'c' }) : (body => [], headers => { 'X-Next-Token' => 't' }) ]);

	foreach my $what (sort keys %mine)
	{
		my ($reason, @rule) = @{ $mine{$what} };

		clean();
		occupy($sbx, $kind, 'key');
		$sbx->fault(provider => $kind, op => 'list', @rule);
		is_deeply(capacity($s, "{$pool,us}", $reason eq 'READER_TIMEOUT' ? '400 ms' : '20 s'),
			[ "$pool unknown $reason - - - - - -", 'us known - sandboxes 0 5 sandboxes 5 1' ],
			"$pool: must fire: $what: $reason, and no other account is worse off");
		$sbx->clear_faults;
		like(capacity($s, "{$pool}")->[0], qr/^$pool known/, "$pool: must not fire: afterwards it is known");
	}
	clean();
	$sbx->fault(provider => $kind, op => 'list', @ok, body => crowd($kind, 1));
	like((capacity($s, "{$pool}"))->[-1], qr/ sandboxes 501 5 /, "$pool: must not fire: 501 good ones are counted");
	clean();
	$sbx->fault(provider => $kind, op => 'list', action => 'status', status => 503, times => 2);
	like(capacity($s, "{$pool}")->[0], qr/^$pool known/, "$pool: must not fire: trouble that passes");
}
is_deeply(capacity($sbx->session, '{box}'), ['box unknown CREDENTIALS - - - - - -'], 'must fire: no credential');
is_deeply(capacity(user('bad-key'), '{box,us}'), [ map { "$_ unknown CREDENTIALS - - - - - -" } qw(box us) ], 'must fire: a bad one');

# All at the same time: each has asked before any is answered.
clean();
$_->fault(op => 'list', action => 'hang', times => 9) foreach $sbx, $second;
$sbx->fault(provider => 'e2b', op => 'list', action => 'hang', times => 9);
$s->send(q{SELECT * FROM sbx_capacity(NULL, '60 s')});
poll('all three are asked', sub { asked($sbx, 'list') == 2 && asked($second, 'list') == 1 });
pass('must fire: no account waits for another');
$admin->value('SELECT pg_cancel_backend($1)', $s->pid);
is($s->wait->sqlstate, '57014', 'must not fire: a cancel ends the reading');
clean();
like(capacity($s, '{us}')->[0], qr/^us known/, 'and the session goes on');

# On a standby.
{
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$sbx->node->backup('backup');
	$standby->init_from_backup($sbx->node, 'backup', has_streaming => 1);
	$standby->start;
	my $reader = SbxSession->connect(host => $standby->host, port => $standby->port, user => (getpwuid $<)[0], dbname => 'postgres');
	$reader->value('SELECT sbx_set_credential($1, $2)', $_, 'key') foreach qw(us box);
	is_deeply(capacity($reader, '{us,box}'), [ map { "$_ known - sandboxes 0 5 sandboxes 5 1" } qw(us box) ], 'must not fire: a standby can read');
	my $before = $sbx->mark + $second->mark;
	is($reader->query(q{SELECT sbx_provision(policy => 'order')})->sqlstate, '25006', 'must fire: but not launch');
	is($sbx->mark + $second->mark, $before, 'and that is said before any request');
	is($reader->value(q{SELECT capacity FROM sbx_route_explain(policy => 'order', read_capacity => true) WHERE provider_id = 'us'}), 'ADMIT', 'and explain');
	$reader->finish;
	$standby->stop;
}

#
# Admission
#

# provision(request, policy): the pool that took it, or the error with its detail.
sub provision
{
	my ($request, $policy, $session, $function) = @_;
	$function //= 'sbx_provision';
	my $result = ($session // $s)->execute("SELECT $function(\$1, \$2)", $request, $policy // 'order');

	return $result->sqlstate . ' ' . ($result->detail // '') if $result->error;
	return $s->value('SELECT provider_id FROM sbx_mapping WHERE id = $1', $result->value);
}
sub lists { return join ' ', asked($sbx, 'list', 'daytona'), asked($second, 'list'), asked($sbx, 'list', 'e2b') }
sub creates { return join ' ', asked($sbx, 'create', 'daytona'), asked($second, 'create'), asked($sbx, 'create', 'e2b') }
sub fill { occupy($_[0], $_[1], 'key') foreach 1 .. $_[2]; $_->forget_requests foreach $sbx, $second; return }
my $full = '"EXHAUSTED"';

clean();
is(provision('{}'), 'eu', 'must not fire: the first of the order has room');
is(lists(), '1 0 0', 'and no other account is read');
clean();
fill($sbx, 'daytona', 4);
is(provision('{}'), 'eu', 'must not fire: it just fits');
is(provision('{}'), 'us', 'must fire: then it is full, and the next one is taken');
is(creates(), '1 1 0', 'nothing was launched into the full one');
is(lists(), '2 1 1', 'the first one was read alone, then all others at once');
fill($second, 'daytona', 4);
is(provision('{}'), 'box', 'must fire: the third one');
fill($sbx, 'e2b', 4);
is(provision('{}'), qq(SB004 {"code":"PROVIDER_CAPACITY_EXHAUSTED","rejections":{"eu":$full,"us":$full,"box":$full}}), 'must fire: all are full');
is(creates(), '0 0 0', 'and nothing was launched');
is(provision('{}', undef, user('bad-key')), 'SB004 {"code":"PROVIDER_CAPACITY_EXHAUSTED","rejections":{"eu":"UNKNOWN","us":"UNKNOWN","box":"UNKNOWN"}}',
	'must fire: what is not known is not entered');
is($s->value('SELECT count(*) FROM sbx_mapping'), 3, 'three are recorded');

# The same of the other kind, where only sandboxes are limited.
my $box = '{"providerId":"box"}';
clean();
fill($sbx, 'e2b', 4);
is(provision($box), 'box', 'box: must not fire: it just fits');
is(provision($box), qq(SB004 {"code":"PROVIDER_CAPACITY_EXHAUSTED","rejections":{"box":$full}}), 'box: must fire: then it is full');
fill($sbx, 'e2b', 1);
is(provision($box), qq(SB004 {"code":"PROVIDER_CAPACITY_EXHAUSTED","rejections":{"box":$full}}), 'box: must fire: more than full');
is(provision('{"providerId":"box","resources":{"cpu":50}}'), qq(SB004 {"code":"PROVIDER_CAPACITY_EXHAUSTED","rejections":{"box":$full}}),
	'box: must fire: full, whatever else is asked for');
clean();
is(provision('{"providerId":"box","resources":{"cpu":50}}'), 'box', 'box: must not fire: what is not limited is not looked at');
clean();
$admin->value(q{SELECT sbx_set_policy('box-first', '{box,eu}', NULL, NULL, 'public.sbx_classify_proven')});
$sbx->control('POST', 'quota', { provider => 'e2b', sandboxes => 0 });
is(provision('{}', 'box-first'), 'eu', 'box: must fire: it filled up after it was read, and a proven refusal goes to the next one');
is(creates(), '1 0 1', 'box: after one launch that was refused');

# What is asked for has to fit as well.
clean();
is(provision('{"resources":{"cpu":10}}'), 'eu', 'must not fire: an exact fit');
clean();
is(provision('{"resources":{"cpu":10.5}}'), 'us', 'must fire: one over');
clean();
is(provision('{"resources":{"memoryMb":10241}}'), 'us', 'must fire: one over, of memory');

# A pool that is asked for; a skip is no attempt, nor a fallback.
clean();
fill($sbx, 'daytona', 5);
is(provision('{"providerId":"eu"}'), qq(SB004 {"code":"PROVIDER_CAPACITY_EXHAUSTED","rejections":{"eu":$full}}), 'must fire: a pool that is asked for does not spill over');
is(provision('{"routing":{"maxAcquisitionAttempts":1}}'), 'us', 'must not fire: a skip is no attempt');
is(provision('{"routing":{"acquisitionFallback":"forbidden"}}'), 'us', 'must not fire: nor a fallback');
is(provision('{}', undef, undef, 'sbx_provision_detached'), 'us', 'must fire: a detached launch goes on, too');

# Its own time for each account.
clean();
$admin->value(q{SELECT sbx_set_policy('hurried', '{eu,us}', '300 ms')});
$sbx->fault(op => 'list', action => 'hang', times => 9);
is(provision('{}', 'hurried'), 'us', 'must fire: an account that does not answer in time is passed over');

# The account fills up after it was read: the provider's own refusal decides.
clean();
$sbx->control('POST', 'quota', { provider => 'daytona', cpu => 0 });
is(provision('{}'), 'us', 'must fire: a proven refusal goes to the next one');
is(creates(), '1 1 0', 'after one launch that was refused');
is(lists(), '1 1 0', 'which is read before its launch');
like(provision('{}', 'order-unclassified'), qr/^SB005 .*"providerId":"eu","allocation":"none"/, 'must not fire: without a classifier it ends there');
is(provision('{"routing":{"acquisitionFallback":"forbidden"}}'), 'SB006 {"attempts":[{"providerId":"eu","code":"PROVIDER_CAPACITY_PRE_ALLOCATION"}],"skipped":{}}',
	'must not fire: one launch is all that is allowed');
clean();
fill($second, 'daytona', 5);
fill($sbx, 'e2b', 5);
$sbx->control('POST', 'quota', { provider => 'daytona', cpu => 0 });
is(provision('{}'), qq(SB006 {"attempts":[{"providerId":"eu","code":"PROVIDER_CAPACITY_PRE_ALLOCATION"}],"skipped":{"us":$full,"box":$full}}),
	'must fire: one was tried and the others are full');
is($s->value(q{SELECT string_agg(event, ' ' ORDER BY ordinality DESC) FROM (SELECT * FROM sbx_recent_events() WITH ORDINALITY ORDER BY ordinality DESC LIMIT 5) e}),
	'capacity.skipped capacity.skipped attempt.failed attempt.started route.planned', 'events');

# Many at once go to one account.
clean();
fill($sbx, 'daytona', 3);
sub many
{
	my ($count) = @_;
	my $result = $s->execute('SELECT sbx_provision_many($1, $2, $3)', '{}', $count, 'order');

	return $result->sqlstate . ' ' . $result->detail if $result->error;
	return join ' ', map { @$_ } @{ $s->execute('SELECT provider_id, count(*) FROM sbx_mapping WHERE id = ANY ($1) GROUP BY 1',
			'{' . join(',', map { $_->[0] } @{ $result->rows }) . '}')->rows };
}
is(many(3), 'us 3', 'must fire: where there is room for all of them');
is(many(2), 'eu 2', 'must not fire: fewer fit');
is(many(6), qq(SB004 {"code":"PROVIDER_CAPACITY_EXHAUSTED","rejections":{"eu":$full,"us":$full,"box":$full}}), 'must fire: nowhere is room for so many');
is(scalar(grep { $_->{alive} } $sbx->audit, $second->audit), 8, 'and none of them was launched');

done_testing();
