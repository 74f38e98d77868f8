# A session that works for long holds no more memory than one that has worked for a while,
# and what a provider sends is bounded.
#
# Behaviour comes in pairs: "must fire" is the bound, "must not fire" what is within it.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxKinds;
use SbxTest;
use Test::More;

# Of each kind; the first of them are warming up.
my $rounds = int(($ENV{SBX_MEMORY_ROUNDS} // 20_000) / kinds());
my $warm = 1_000;

# What may come and go in kB; a leak of 120 bytes for each round is more.
my $slack = 1024;

plan skip_all => 'sanitizers keep memory' if $ENV{SBX_SANITIZERS};

my $sbx = SbxTest->new(emulator => ['--no-exec'], conf => "log_statement = none\n");
my $s = $sbx->session;
register_kinds($s, $sbx->url);
give_keys($s, 'key');

# Memory that is the backend's own: without shared memory and files, in kB.
sub resident
{
	my $pid = $s->pid;
	my ($size) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m;

	return $size;
}

# What the server's memory contexts hold of it.
sub contexts { return $s->value('SELECT sum(total_bytes) / 1024 FROM pg_backend_memory_contexts') }

sub provision { return $s->value('SELECT sbx_provision($1)', qq({"providerId":"$_[0]"})) }

# A sandbox, a script in it, and its end; now and then a transaction that is rolled back.
sub round
{
	my ($kind, $number) = @_;
	my $rolled_back = $number % 50 == 0;

	$s->query('BEGIN') if $rolled_back;
	my $id = provision($kind);
	$s->value('SELECT exit_code FROM sbx_run_script($1, $2, $3)', $id, 'echo hello', '{"NAME":"value"}') eq '0'
	  or die 'the script did not run';
	if ($rolled_back) { $s->query('ROLLBACK') }
	else { $s->value('SELECT sbx_destroy($1)', $id) }
	return;
}

#
# Long work
#

foreach my $kind (kinds())
{
	round($kind, $_) foreach 1 .. $warm;
	my ($resident, $contexts) = (resident(), contexts());
	round($kind, $_) foreach $warm + 1 .. $rounds;
	my $grown = resident() - $resident;
	note("$kind: $rounds sandboxes and scripts; resident memory $resident kB, then $grown kB more");
	cmp_ok($grown, '<', $slack, "$kind: must fire: the backend's memory does not grow");
	cmp_ok(contexts() - $contexts, '<', $slack, "$kind: must fire: nor do its memory contexts");
	is(scalar(my @alive = $sbx->alive), 0, "$kind: nothing is left");
	my @audit = $sbx->audit;
	is(scalar(grep { $_->{provider} eq $kind } @audit), $rounds, "$kind: must not fire: they were all made");
}

# It can be seen: what a session keeps on purpose.
{
	my $resident = resident();

	$s->value(q{SELECT set_config('sbx.kept', repeat('x', 4 << 20), false)});
	cmp_ok(resident() - $resident, '>', $slack, 'must not fire: memory that is kept is seen');
	$s->value('RESET sbx.kept');
}

#
# Large answers
#

# A provider's word for a script that has printed much.
my $output = 'x' x (1 << 20);
my $printed = { exitCode => 0, stdout => $output, stderr => $output, output => $output };
my $id = provision('daytona');
my @after;
foreach my $turn (1 .. 4)
{
	$sbx->fault(path => '*/exec', action => 'status', status => 200, body => $printed, times => 10);
	is($s->value('SELECT length(stdout) FROM sbx_run_script($1, $2)', $id, 'true'), length($output),
		"large outputs, turn $turn: arrive whole")
	  foreach 1 .. 10;
	push @after, resident();
}
cmp_ok($after[-1] - $after[0], '<', $slack, 'must fire: large outputs leave nothing behind');

# Many at once: each result is put away as it comes.
{
	my $many = $sbx->session;
	my $count = 900;
	my $part = substr $output, 0, 128 << 10;
	my $peak = sub { (slurp_file('/proc/' . $many->pid . '/status') =~ /^VmHWM:\s+(\d+) kB/m)[0] / 1024 };

	$many->value('SELECT sbx_set_credential($1, $2)', 'daytona', 'key');
	$sbx->fault(
		path => '*/exec',
		action => 'status',
		status => 200,
		body => { exitCode => 0, stdout => $part, stderr => $part, output => $part },
		times => $count);
	is( $many->value(
			q{SELECT count(*) FROM sbx_run_script_many(array_fill($1::text, ARRAY[$2::int]), 'true')
			WHERE length(stdout) = $3 AND exit_code = 0},
			$id, $count, length $part),
		$count,
		'many at once: must not fire: every result arrives whole');
	note(sprintf '%d results, %d MB in all, at most %d MB in memory', $count, $count * 3 / 8, $peak->());
	cmp_ok($peak->(), '<', $count * 3 / 8, 'many at once: must fire: but they are not all in memory');
}

#
# Bounds
#

# Some kilobytes more than the smallest bound.
my @many = map { provision('daytona') } 1 .. 29;
$s->value(q{SET sbx_router.max_response = '16kB'});
my $result = $s->execute('SELECT count(*) FROM sbx_find($1, $2)', 'daytona', '{}');
is($result->sqlstate, 'SB008', 'max_response: must fire: a listing that is larger') or diag $result->everything;
$s->value(q{SET sbx_router.max_response = '1MB'});
is($s->value('SELECT count(*) FROM sbx_find($1, $2)', 'daytona', '{}'), 30, 'max_response: must not fire: one that fits');
foreach my $kind (kinds())
{
	my $large = provision($kind);
	my $before = resident();

	# Where the answer to a script is no body, the one to a look is.
	my ($op, $call) =
	  (kind_expected($kind, 'run, huge') // '') eq 'works'
	  ? ('get', 'SELECT state FROM sbx_get($1)')
	  : ('run', q{SELECT exit_code FROM sbx_run_script($1, 'true')});
	$sbx->fault(provider => $kind, op => $op, action => 'huge', times => 3);
	ok($s->execute($call, $large)->error, "$kind: must fire: an answer without end is one error");
	$sbx->clear_faults;
	cmp_ok(resident() - $before, '<', 32 * 1024, "$kind: and takes no more than the bound several times");
	is($s->value('SELECT exit_code FROM sbx_run_script($1, $2)', $large, 'true'), 0, "$kind: must not fire: the next one");
}

done_testing();
