# sbx_provision_many: so many at once, all of them or none.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

# Nothing is run here.
my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "sbx_router.abort_cleanup_timeout = '2s'\n");
my $url = $sbx->url;
my $request = '{"launch":{"labels":{"team":"a"},"env":{"A":"b"}}}';

# Equal signals: pools are tried in the order of their ids.
$sbx->register('p1', target => 'p1');
my $admin = $sbx->session;
$admin->value(q{SELECT sbx_register_provider('p2', 'e2b', $1)},
	qq{{"apiUrl":"$url/e2b","sandboxUrl":"$url/e2b-envd"}});
$admin->value(q{SELECT sbx_set_policy('proven', classifier => 'public.sbx_classify_proven')});
$admin->value('GRANT ALL ON sbx_mapping TO PUBLIC');
my $s = $sbx->user('p1', 'key');
$s->value('SELECT sbx_set_credential($1, $2)', 'p2', 'key');

# Proves that nothing was made.
my @refusal = (action => 'status', status => 400, body => { message => 'Total CPU limit exceeded.', statusCode => 400 });

sub alive { return grep { $_->{alive} } $sbx->audit }
sub recorded { return $s->value('SELECT count(*) FROM sbx_mapping') }
sub creates { return grep { $_->{op} eq 'create' } $sbx->requests(@_) }
sub many { return $s->execute('SELECT sbx_provision_many($1, $2, $3)', @_) }

# Start over: nothing anywhere.
sub clean
{
	$sbx->clear_faults;
	$sbx->reset;
	$admin->value('DELETE FROM sbx_mapping');
	$sbx->forget_requests;
	return;
}

# Nothing exists and nothing is recorded.
sub nothing_left
{
	my ($what) = @_;

	is(scalar(my @left = alive()), 0, "$what: nothing is left at the provider");
	is(recorded(), 0, "$what: nothing is recorded");
	return;
}

# Each create of a sandbox was sent once.
sub sent_once
{
	my ($what, $many) = @_;
	my @names = map { json($_->{body})->{name} } creates();
	my %distinct = map { $_ => 1 } @names;

	is_deeply([ scalar @names, scalar keys %distinct ], [ $many, $many ], "$what: $many creates, each once");
	return;
}

#
# All of them
#

{
	my $result = many($request, 5, undef);
	my @ids = map { $_->[0] } @{ $result->rows };
	my %connections = map { $_->{connection} => 1 } creates();

	is(scalar(grep { /^sbx_[0-9a-f]{32}$/ } @ids), 5, 'five ids');
	is_deeply([ sort map { $_->{name} } alive() ], [ sort @ids ], 'five sandboxes, by these names');
	is_deeply(
		[ sort map { $_->[0] } @{ $s->execute('SELECT id FROM sbx_mapping')->rows } ],
		[ sort @ids ],
		'five rows');
	is(scalar keys %connections, 5, 'asked for at the same time');
	is($s->value(q{SELECT count(*) FROM sbx_mapping WHERE labels = '{"team":"a"}' AND state = 'started'
		AND request = '{"launch":{"labels":{"team":"a"}}}' AND env_hash IS NOT NULL AND launch_token IS NULL}),
		5, 'as sbx_provision records them');
	is($s->value('SELECT count(*) FROM sbx_destroy_many($1) WHERE destroyed', '{' . join(',', @ids) . '}'), 5,
		'and they can be used like any other');
	nothing_left('destroyed');
	is_deeply($s->execute('SELECT count(*), count(DISTINCT id) FROM sbx_provision_many($1, 3) AS id', '{}')->rows,
		[ [ 3, 3 ] ], 'also in FROM, with less said');
	clean();
}

#
# What is refused before anything is sent
#

foreach my $case (
	[ [ '{}', -1, undef ], 'SB001', 'must fire: a negative count' ],
	[ [ '{}', undef, undef ], 'SB001', 'must fire: no count' ],
	[ [ undef, 1, undef ], 'SB001', 'must fire: no request' ],
	[ [ '{"launch":{"name":"x"}}', 1, undef ], 'SB001', 'must fire: a name is that of one' ],
	[ [ '{"idempotencyKey":"k"}', 1, undef ], 'SB001', 'must fire: and so is a key' ],
	[ [ '{"providerId":"nobody"}', 1, undef ], 'SB003', 'must fire: no pool' ],
	[ [ '{}', 1, 'nobody' ], 'SB013', 'must fire: no such policy' ],
	[ [ '{}', 101, undef ], '54000', 'must fire: more than the setting allows' ])
{
	my ($arguments, $sqlstate, $what) = @$case;

	is(many(@$arguments)->sqlstate, $sqlstate, $what);
}
is_deeply(many('{}', 0, undef)->rows, [], 'must not fire: none at all');
is($s->query('BEGIN READ ONLY; SELECT sbx_provision_many(\'{}\', 1)')->sqlstate, '25006', 'must fire: read only');
$s->query('ROLLBACK');
is(scalar(my @none = creates()), 0, 'nothing was sent');

# The limit is the statement's, however it launches.
$admin->value('ALTER SYSTEM SET sbx_router.max_launches_per_statement = 3');
$admin->value('SELECT pg_reload_conf()');
poll('the setting is there', sub { $s->value('SHOW sbx_router.max_launches_per_statement') eq '3' });
$admin->value('CREATE ROLE plain LOGIN');
{
	my $plain = $sbx->session(user => 'plain');

	$plain->value('SELECT sbx_request()');
	is($plain->query('SET sbx_router.max_launches_per_statement = 4')->sqlstate, '42501',
		'the limit is not for everybody to set');
}
is($s->query(q{SELECT sbx_provision() FROM generate_series(1, 3)})->sqlstate, undef, 'must not fire: three one by one');
is(recorded(), 3, 'and they are there');
is($s->query(q{SELECT sbx_provision() FROM generate_series(1, 4)})->sqlstate, '54000', 'must fire: a fourth one by one');
is(recorded(), 3, 'none of its statement stays');
is(scalar(my @three = alive()), 3, 'nor at the provider');
is($s->query(q{SELECT sbx_provision_many('{}', 2), sbx_provision_many('{}', 2)})->sqlstate, '54000', 'must fire: two and two');
is($s->query(q{DO $$ BEGIN PERFORM sbx_provision_many('{}', 2); PERFORM sbx_provision_detached(); END $$})->sqlstate, undef,
	'must not fire: two and one');
is($s->query(q{DO $$ BEGIN PERFORM sbx_provision_many('{}', 2); PERFORM sbx_provision_detached('{}', NULL) FROM generate_series(1, 2); END $$})->sqlstate,
	'54000', 'must fire: two and two, in a loop');
$admin->value('ALTER SYSTEM RESET sbx_router.max_launches_per_statement');
$admin->value('SELECT pg_reload_conf()');
poll('the setting is gone', sub { $s->value('SHOW sbx_router.max_launches_per_statement') eq '100' });
clean();

#
# None of them
#

# A launch that fails: proven to have made nothing, or not known.  What the others have
# made goes.
foreach my $case (
	[ {@refusal}, 'none', 'a refusal' ],
	[ { action => 'reset-after-work' }, 'unknown', 'a lost answer' ],
	[ { action => 'status', status => 500 }, 'unknown', 'trouble' ])
{
	my ($rule, $allocation, $what) = @$case;

	$sbx->fault(op => 'create', after => 2, %$rule);
	my $result = many($request, 5, undef);
	is($result->sqlstate, 'SB005', "must fire: $what: no sandbox is a result");
	is(json($result->detail)->{allocation}, $allocation, "$what: allocation of the one that failed");
	sent_once($what, 5);
	nothing_left($what);
	is(many($request, 2, undef)->sqlstate, undef, "must not fire: $what: the next call");
	clean();
}

# A rollback, to a savepoint too, takes all of them.
$s->query('BEGIN');
many($request, 3, undef);
$s->query('SAVEPOINT here');
many($request, 3, undef);
is(scalar(my @six = alive()), 6, 'six in a transaction');
$s->query('ROLLBACK TO here');
is(scalar(my @half = alive()), 3, 'ROLLBACK TO takes its own three');
$s->query('ROLLBACK');
nothing_left('ROLLBACK');

# A caller that catches the error has none, either.
$sbx->fault(op => 'create', after => 2, action => 'status', status => 400, body => { message => 'no', statusCode => 400 });
$s->value(q{DO $$ BEGIN PERFORM sbx_provision_many('{}', 4); EXCEPTION WHEN OTHERS THEN NULL; END $$});
nothing_left('caught');
clean();

# One cannot be recorded.
$admin->value(q{CREATE FUNCTION third() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN IF (SELECT count(*) FROM public.sbx_mapping) = 2 THEN RAISE 'not the third'; END IF; RETURN NEW; END $$});
$admin->value('CREATE TRIGGER third BEFORE INSERT ON sbx_mapping FOR EACH ROW EXECUTE FUNCTION third()');
{
	my $result = many($request, 4, undef);

	is_deeply([ $result->sqlstate, $result->message ], [ 'P0001', 'not the third' ],
		'must fire: what the table raises comes through');
	nothing_left('not recorded');
	is(many($request, 2, undef)->sqlstate, undef, 'must not fire: two can be recorded');
}
$admin->value('DROP TRIGGER third ON sbx_mapping');
clean();

# Cancelled while all of them are asked for.
$sbx->fault(op => 'create', action => 'delay', ms => 3000, times => 4);
$s->send(q{SELECT sbx_provision_many('{}', 4)});
poll('four creates are under way', sub { creates() == 4 });
$admin->value('SELECT pg_cancel_backend($1)', $s->pid);
is($s->wait->sqlstate, '57014', 'a cancel ends it');
poll('what was made is gone', sub { scalar(my @left = alive()) == 0 });
is(recorded(), 0, 'cancelled: nothing is recorded');
clean();

#
# Another pool
#

# Each goes on by itself, where nothing can have been made.
$sbx->fault(op => 'create', after => 2, times => 100, @refusal);
is(scalar @{ many($request, 5, 'proven')->rows }, 5, 'five of which three go to the next pool');
is_deeply($s->execute('SELECT provider_id, count(*) FROM sbx_mapping GROUP BY 1 ORDER BY 1')->rows,
	[ [ 'p1', 2 ], [ 'p2', 3 ] ], 'two on the first, three on the second');
clean();

# Must fire: no candidate is left for some.
$sbx->fault(op => 'create', after => 2, times => 100, @refusal);
$sbx->fault(provider => 'e2b', op => 'create', after => 1, times => 100, action => 'status',
	status => 503, body => { error_code => 'sandbox_capacity_unavailable' });
{
	my $result = many($request, 5, 'proven');

	is($result->sqlstate, 'SB006', 'must fire: no candidate is left for some');
	is_deeply([ map { $_->{providerId} } @{ json($result->detail)->{attempts} } ], [qw(p1 p2)], 'DETAIL has the attempts of one');
	nothing_left('exhausted');
}
clean();

# Must fire: where something may have been made, nothing is tried elsewhere.
$sbx->fault(op => 'create', after => 2, action => 'reset-after-work');
is(many($request, 3, 'proven')->sqlstate, 'SB005', 'must fire: not known is final');
is(scalar(grep { $_->{provider} eq 'e2b' } creates()), 0, 'and no other pool is asked');
nothing_left('not known');
clean();

#
# Progress, and very many
#

$s->value('SET sbx_router.progress = on');
$sbx->fault(op => 'create', after => 1, action => 'delay', ms => 1500, times => 3);
{
	my $result = many($request, 4, undef);

	like(join("\n", map { $_->{M} } @{ $result->{notices} }), qr/^\d of 4 done, 0 failed$/m, 'must fire: progress is told');
}
$s->value('RESET sbx_router.progress');
is(scalar @{ many($request, 4, undef)->{notices} }, 0, 'must not fire: unless it is asked for');
clean();

# No more than a hundred are under way at once.
{
	my $big = $sbx->session;

	$big->value('SELECT sbx_set_credential($1, $2)', $_, 'key') foreach qw(p1 p2);
	$big->value('SET sbx_router.max_launches_per_statement = 300');
	is_deeply($big->execute(q{SELECT count(DISTINCT id) FROM sbx_provision_many('{"providerId":"p2"}', 250) id})->rows, [ [250] ],
		'two hundred and fifty');
	my %connections = map { $_->{connection} => 1 } creates();
	cmp_ok(scalar keys %connections, '<=', 100, 'over a hundred connections at most');

	# Kept connections serve the next round: four requests each, one connection each.
	$sbx->forget_requests;
	is_deeply($big->execute(q{SELECT destroyed, count(*) FROM sbx_destroy_many(ARRAY(SELECT id FROM sbx_mapping)) GROUP BY 1})->rows,
		[ [ 't', 250 ] ], 'and all destroyed');
	%connections = map { $_->{connection} => 1 } $sbx->requests;
	cmp_ok(scalar keys %connections, '<=', 100, 'over no more of them');
	nothing_left('very many');
	cmp_ok(scalar(grep { (readlink($_) // '') =~ /^socket:/ } glob('/proc/' . $big->pid . '/fd/*')), '<', 50,
		'afterwards most of the connections are closed');
}

done_testing();
