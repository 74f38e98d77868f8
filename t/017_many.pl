# Many sandboxes at once: a row for each, with its own error.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

my $sbx = SbxTest->new(conf => "sbx_router.abort_cleanup_timeout = '500ms'\n");
my $url = $sbx->url;

$sbx->register('pool');
$sbx->node->safe_psql('postgres',
	qq{SELECT sbx_register_provider('box', 'e2b', '{"apiUrl":"$url/e2b","sandboxUrl":"$url/e2b-envd"}')});
my $s = $sbx->user('pool', 'key');
$s->value('SELECT sbx_set_credential($1, $2)', 'box', 'key');
my $unknown = 'sbx_' . '0' x 32;

# An array of ids as SQL writes it.
sub ids { return '{' . join(',', @_) . '}' }

sub provision
{
	my ($pool, $count) = @_;

	return map { $s->value('SELECT sbx_provision($1)', qq({"providerId":"$pool"})) } 1 .. $count;
}

# Rows as one text each, without their ids.
sub rows { return [ map { join('|', map { $_ // '-' } @{$_}[ 1 .. $#$_ ]) } @{ $_[0]->rows } ] }

#
# Scripts
#

my @daytona = provision('pool', 4);
my @e2b = provision('box', 4);
my $result = $s->execute(
	'SELECT * FROM sbx_run_script_many($1, $2, $3)',
	ids($daytona[0], $unknown, $e2b[0], 'x', $daytona[1]),
	'echo "$GIVEN"; echo err >&2; exit 3',
	'{"GIVEN":"value"}');
is_deeply([ map { $_->[0] } @{ $result->rows } ], [ $daytona[0], $unknown, $e2b[0], 'x', $daytona[1] ],
	'a row for each id, in their order');
my ($first, $second, $third, $fourth) = map { $_ } @{ rows($result) };
is($first, "value\nerr\n|value\n|err\n|3|f|-|-", 'what sbx_run_script would have said');
is($second, qq{-|-|-|-|-|SB010|sandbox "$unknown" does not exist}, 'must fire: an unknown sandbox has its own error');
is($third, "value\nerr\n|value\n|err\n|3|f|-|-", 'must not fire: the one after it, of another kind');
is($fourth, '-|-|-|-|-|SB010|sandbox "x" does not exist', 'must fire: a malformed id as well');
is_deeply($s->execute('SELECT * FROM sbx_run_script_many($1, $2)', '{}', 'true')->rows, [], 'no ids, no rows');
is($s->execute('SELECT * FROM sbx_run_script_many($1, $2)', "{$e2b[0],NULL}", 'true')->sqlstate, 'SB001', 'must fire: a NULL among them');
is($s->execute('SELECT * FROM sbx_run_script_many($1, $2)', ids($e2b[0]), '')->sqlstate, 'SB001', 'must fire: no script');
is($s->execute('SELECT * FROM sbx_run_script_many(NULL, $1)', 'true')->sqlstate, 'SB001', 'must fire: no array');
is_deeply([ map { $_->[4] } @{ $s->execute('SELECT * FROM sbx_run_script_many($1, $2)', ids($e2b[1], $e2b[1]), 'exit 4')->rows } ],
	[ 4, 4 ], 'must not fire: the same sandbox twice');
$result = $s->execute(q{SELECT error_code, error_message FROM sbx_run_script_many($1, $2, timeout => '1 s')},
	ids($daytona[0], $e2b[0]), 'sleep 1000');
is_deeply($result->rows,
	[ map { [ 'SB008', qq{script in sandbox "$_" did not finish in time} ] } $daytona[0], $e2b[0] ],
	'must fire: scripts that run out of time');
is($s->value('SELECT 1'), 1, 'and the session goes on');

# What one looks up must not be the others' transaction.
$s->value('BEGIN');
$s->value('CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT 1 AS n');
$s->execute('SELECT * FROM sbx_run_script_many($1, $2)', ids($unknown, $e2b[0]), 'true');
is($s->value('SELECT n FROM kept'), 1, 'must not fire: an error in a row leaves the transaction as it was');
$s->value('COMMIT');

# Another role's.
$sbx->node->safe_psql('postgres', q{
	CREATE ROLE stranger LOGIN;
	GRANT EXECUTE ON FUNCTION sbx_run_script_many, sbx_destroy_many, sbx_set_credential TO stranger;
	GRANT USAGE ON TYPE sbx_secret TO stranger});
my $stranger = $sbx->session(user => 'stranger');
is_deeply($stranger->execute('SELECT error_code FROM sbx_run_script_many($1, $2)', ids($e2b[0]), 'true')->rows, [ ['SB010'] ],
	'must fire: a sandbox of another role is not known');
is_deeply($stranger->execute('SELECT error_code FROM sbx_destroy_many($1)', ids($e2b[0]))->rows, [ ['SB010'] ],
	'must fire: nor destroyed');
my $keyless = $sbx->session;
is_deeply($keyless->execute('SELECT error_code FROM sbx_run_script_many($1, $2)', ids($e2b[0]), 'true')->rows, [ ['SB011'] ],
	'must fire: without a credential');

#
# At once
#

# All of them are asked while none has answered: the answers hang.
sub at_once
{
	my ($what, $kind, $path, $statement) = @_;
	my $pattern = qr{$path};

	$sbx->forget_requests;
	$sbx->fault(provider => $kind, op => $what, action => 'hang', times => 4);
	$s->send($statement);
	poll('four requests are open', sub { $sbx->count('POST', $pattern) + $sbx->count('DELETE', $pattern) >= 4 });
	ok(!$s->has_answer, "$what: four are under way at once");
	$sbx->session->value('SELECT pg_cancel_backend($1)', $s->pid);
	is($s->wait->sqlstate, '57014', "$what: all of them end with a cancel");
	$sbx->clear_faults;
	return;
}

at_once('run', 'e2b', '/process\.Process/Start$',
	'SELECT count(*) FROM sbx_run_script_many(' . quote(ids(@e2b)) . q{, 'true')});
at_once('delete', 'daytona', '^/daytona/api/sandbox/[^/]+$',
	'SELECT count(*) FROM sbx_destroy_many(' . quote(ids(@daytona)) . ')');

#
# Progress
#

$s->value('SET sbx_router.progress = on');
$result = $s->execute('SELECT count(*) FROM sbx_run_script_many($1, $2)', ids(@e2b, $unknown), 'sleep 2');
like(join("\n", map { $_->{M} } @{ $result->{notices} }), qr/^\d of 5 done, \d failed$/m, 'must fire: progress is told');
$s->value('RESET sbx_router.progress');
$result = $s->execute('SELECT count(*) FROM sbx_run_script_many($1, $2)', ids(@e2b), 'sleep 2');
is(scalar @{ $result->{notices} }, 0, 'must not fire: unless it is asked for');

# A refusal that is met and tried again is not a failure; a script that cannot run is.
$s->value('SET sbx_router.progress = on');
$s->value(q{
	INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner)
	VALUES ('sbx_' || repeat('f', 32), 'box', 'gone', 'started', '{}', quote_ident(current_user)::regrole)});
$result = $s->execute('SELECT count(*) FROM sbx_run_script_many($1, $2)', ids($e2b[0], 'sbx_' . 'f' x 32), 'sleep 2');
like(join("\n", map { $_->{M} } @{ $result->{notices} }), qr/^1 of 2 done, 1 failed$/m, 'must fire: a failure is counted');
$s->value(q{DELETE FROM sbx_mapping WHERE provider_sandbox_id = 'gone'});
my ($again) = provision('box', 1);
$sbx->fault(provider => 'e2b', op => 'delete', action => 'status', status => 503, times => 4);
$result = $s->execute('SELECT destroyed FROM sbx_destroy_many($1)', ids($again));
is_deeply($result->rows, [ ['t'] ], 'destroyed at the fifth attempt');
like(join("\n", map { $_->{M} } @{ $result->{notices} }), qr/^0 of 1 done, 0 failed$/m,
	'must not fire: an attempt that is repeated is none');
$s->value('RESET sbx_router.progress');

# Each of them but the first finds no row to delete.
sub kept_plans { return $s->value(q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'CachedPlan%'}) }
my ($same) = provision('box', 1);
my $plans = kept_plans();
$result = $s->execute('SELECT count(*) FILTER (WHERE destroyed), count(*) FROM sbx_destroy_many(array_fill($1::text, ARRAY[50]))', $same);
is_deeply($result->rows, [ [ 1, 50 ] ], 'the same one fifty times is destroyed once');
cmp_ok(kept_plans() - $plans, '<', 10, 'must fire: and the session keeps no plan for each of them');

#
# Destroying
#

$sbx->fault(op => 'delete', action => 'status', status => 403, times => 1);
$result = $s->execute('SELECT * FROM sbx_destroy_many($1)', ids(@daytona, $unknown));
is(scalar(grep { ($_->[2] // '') eq 'SB008' } @{ $result->rows }), 1, 'must fire: one is refused');
is(scalar(grep { ($_->[1] // '') eq 't' } @{ $result->rows }), 3, 'must not fire: the others are destroyed');
is($result->rows->[4][2], 'SB010', 'and one is not known');
is($s->value(q{SELECT count(*) FROM sbx_mapping WHERE provider_id = 'pool'}), 1, 'what was refused is still recorded');
is_deeply([ map { $_->[1] } @{ $s->execute(q{SELECT * FROM sbx_destroy_many(ARRAY(SELECT id FROM sbx_mapping))})->rows } ],
	[ ('t') x 5 ], 'the rest');
is(scalar(my @left = $sbx->alive), 0, 'nothing is left');

# More than go at once; none of them exists at the provider.
$s->value(q{
	INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner)
	SELECT 'sbx_' || lpad(to_hex(i), 32, '0'), 'pool', 'gone-' || i, 'started', '{}', quote_ident(current_user)::regrole
	FROM generate_series(1, 250) i});
$result = $s->execute(q{SELECT destroyed, count(*), min(ordinality), max(ordinality)
	FROM sbx_destroy_many(ARRAY(SELECT id FROM sbx_mapping ORDER BY id)) WITH ORDINALITY GROUP BY 1});
is_deeply($result->rows, [ [ 'f', 250, 1, 250 ] ], 'more than a hundred');
is($s->value('SELECT count(*) FROM sbx_mapping'), 0, 'are all gone');

# A mapping that cannot go is the error of its row; its sandbox is gone all the same.
my @three = provision('pool', 3);
$sbx->node->safe_psql('postgres', qq{
	CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN IF OLD.id = '$three[1]' THEN RAISE 'kept'; END IF; RETURN OLD; END \$\$;
	CREATE TRIGGER keep BEFORE DELETE ON sbx_mapping FOR EACH ROW EXECUTE FUNCTION keep()});
$result = $s->execute('SELECT * FROM sbx_destroy_many($1)', ids(@three));
is_deeply(rows($result), [ 't|-|-', '-|P0001|kept', 't|-|-' ], 'must fire: a mapping that cannot be deleted');
is(scalar(my @gone = $sbx->alive), 0, 'must not fire: the sandboxes are all gone');
is_deeply($s->execute('SELECT id FROM sbx_mapping')->rows, [ [ $three[1] ] ], 'and the others not recorded any more');
$sbx->node->safe_psql('postgres', 'DROP TRIGGER keep ON sbx_mapping');
is_deeply(rows($s->execute('SELECT * FROM sbx_destroy_many($1)', ids($three[1]))), [ 'f|-|-' ], 'repeated, it was gone');

# A transaction's own.
$s->value('BEGIN');
my ($own) = provision('box', 1);
is_deeply($s->execute('SELECT destroyed FROM sbx_destroy_many($1)', ids($own))->rows, [ ['t'] ], 'one that the transaction made');
$s->value('ROLLBACK');
is(scalar(my @still = $sbx->alive), 0, 'leaves nothing to its abort');

done_testing();
