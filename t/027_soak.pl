# A soak: many clients provision, roll back, fail, are cancelled and terminated, over
# providers in which things go wrong.  In the end every sandbox that is alive has a mapping,
# or a clean-up that could not do its work has named it, which has to be the exception; and
# every mapping has a live sandbox, but for those that somebody tried to destroy.
#
# Environment: SBX_SOAK_SECONDS (20), SBX_SOAK_CLIENTS (32), SBX_SOAK_SEED.  The seed decides
# what each client and the disturber do, not how that falls in time.
use strict;
use warnings;

use IO::Select;
use PostgreSQL::Test::Utils;
use POSIX ();
use SbxKinds;
use SbxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $seconds = $ENV{SBX_SOAK_SECONDS} // 20;
my $clients = $ENV{SBX_SOAK_CLIENTS} // 32;
my $seed = $ENV{SBX_SOAK_SEED} // int(time) % 1000000;

diag "seed $seed, $clients clients, $seconds s";
my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "max_connections = 80\nmax_prepared_transactions = 40\nsbx_router.abort_cleanup_timeout = '1s'\nlog_statement = none\n");
my $admin = $sbx->session;
my @kinds = kinds();
register_kinds($admin, $sbx->url);
$admin->value(q{SELECT sbx_set_policy('proven', classifier => 'public.sbx_classify_proven')});
$admin->value(q{ALTER DATABASE postgres SET sbx_router.policy = 'proven'});
$admin->value('CREATE TABLE deferred (id integer PRIMARY KEY, other integer REFERENCES deferred DEFERRABLE INITIALLY DEFERRED)');

#
# A client
#

sub user
{
	# What hangs ends by that, so that the end is not a minute late.
	my $session = $sbx->session(application_name => 'soak', options => '-c statement_timeout=4s');

	give_keys($session, 'key');
	return $session;
}

# Each returns what is to be run, statement by statement; $box is a sandbox of one's own.
my $provision = q{SELECT sbx_provision()};
my %actions = (
	keep => sub { return $provision },
	keep_many => sub { return q{SELECT sbx_provision_many('{}', 3)} },
	commit => sub { return ('BEGIN', $provision, 'COMMIT') },
	rollback => sub { return ('BEGIN', $provision, 'ROLLBACK') },
	rollback_many => sub { return ('BEGIN', q{SELECT sbx_provision_many('{}', 4)}, 'ROLLBACK') },
	fail => sub { return ('BEGIN', $provision, 'SELECT 1 / 0', 'COMMIT') },
	fail_statement => sub { return 'SELECT sbx_provision(), 1 / (random() * 0)::integer' },
	savepoint => sub { return ('BEGIN', $provision, 'SAVEPOINT a', $provision, 'ROLLBACK TO a', $provision, 'COMMIT') },
	savepoints => sub { return ('BEGIN', (map { ("SAVEPOINT s$_", $provision) } 1 .. 4), 'ROLLBACK') },
	exception => sub {
		return q{DO $$BEGIN PERFORM sbx_provision();
			BEGIN PERFORM sbx_provision(); PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END; END$$};
	},
	deferred => sub { return ('BEGIN', $provision, 'INSERT INTO deferred VALUES (' . int(rand 1e9) . ', -1)', 'COMMIT') },
	prepared => sub { my $gid = 'g' . int rand 1e9; return ('BEGIN', $provision, "PREPARE TRANSACTION '$gid'", "COMMIT PREPARED '$gid'") },
	hurried => sub { return ("SET statement_timeout = '" . int(1 + rand 60) . "ms'", 'BEGIN', $provision, 'COMMIT', 'ROLLBACK', 'RESET statement_timeout') },
	destroy => sub { my ($box) = @_; return defined $box ? "SELECT sbx_destroy('$box')" : $provision },
	destroy_rollback => sub { my ($box) = @_; return defined $box ? ('BEGIN', "SELECT sbx_destroy('$box')", 'ROLLBACK') : $provision });

# Ends as it wants to; what it tried to destroy is printed, because after that nobody
# promises that the sandbox is still there.
sub run_client
{
	my ($number, $until, $out) = @_;
	srand($seed * 1000 + $number);
	my @names = sort keys %actions;
	my $session;
	my %count;

	while (time < $until)
	{
		$session //= eval { user() };
		if (!$session)
		{
			sleep 0.05;
			next;
		}
		my $name = $names[ rand @names ];
		my $turn = int rand 1000;
		my $box = eval { $session->query("SELECT id FROM sbx_mapping ORDER BY md5(id || '$turn') LIMIT 1")->value };
		print $out "destroy $box\n" if defined $box && $name =~ /^destroy/;
		foreach my $statement ($actions{$name}->($box))
		{
			my $result = eval { $session->query($statement) };

			$count{ $result && $result->error ? $result->sqlstate : 'fine' }++;
			if (!$result || $result->closed)
			{
				undef $session;
				last;
			}
		}
		$session->query('ROLLBACK') if $session && ($name =~ /deferred|fail|prepared|commit|keep|savepoint|exception/);
	}
	print $out "did $_ $count{$_}\n" foreach sort keys %count;
	return;
}

#
# What goes wrong
#

my @faults = (
	{ op => 'create', action => 'reset-after-work' },
	{ op => 'create', action => 'reset-before-read' },
	{ op => 'create', action => 'hang' },
	{ op => 'create', action => 'delay', ms => 300 },
	{ op => 'create', action => 'status', status => 500 },
	{ op => 'create', action => 'status', status => 429 },
	{ op => 'create', action => 'truncate' },
	{ op => 'create', action => 'garbage' },
	{ op => 'create', action => 'close-reused' },
	{ op => 'get', action => 'status', status => 502 },
	{ op => 'get', action => 'delay', ms => 200 },
	{ op => 'list', action => 'hang' },
	{ op => 'list', action => 'status', status => 503 },
	{ op => 'delete', action => 'status', status => 500 },
	{ op => 'delete', action => 'status', status => 409 },
	{ op => 'delete', action => 'hang' },
	{ op => 'delete', action => 'delay', ms => 1500 },
	{ op => 'delete', action => 'reset-after-work' });
my %disturbed;

sub disturb
{
	my $what = rand;
	my $fault = $faults[ rand @faults ];
	my $provider = $kinds[ rand @kinds ];
	my $times = 1 + int rand 3;

	if ($what < 0.5)
	{
		$sbx->fault(%$fault, provider => $provider, times => $times);
		$disturbed{faults} += $times;
	}
	elsif ($what < 0.6)
	{
		$sbx->clear_faults;
	}
	else
	{
		my $function = $what < 0.85 ? 'pg_cancel_backend' : 'pg_terminate_backend';
		$admin->value("SELECT count($function(pid)) FROM (SELECT pid FROM pg_stat_activity
			WHERE application_name = 'soak' AND state <> 'idle' ORDER BY md5(pid::text || \$1) LIMIT 1) a", int rand 1000);
		$disturbed{$function}++;
	}
	return;
}

#
# The main line
#

my $place = $sbx->log_place;
my $until = time + $seconds;
my (@pids, %out);
foreach my $number (1 .. $clients)
{
	pipe my $in, my $out or die $!;
	my $pid = fork // die $!;

	if ($pid == 0)
	{
		close $in;
		eval { run_client($number, $until, $out) };
		print $out "died $@\n" if $@;
		close $out;
		POSIX::_exit(0);
	}
	close $out;
	push @pids, $pid;
	$out{ fileno $in } = { in => $in, text => '' };
}

# Whoever writes must be read, or it would wait.
my $select = IO::Select->new(map { $_->{in} } values %out);
srand $seed;
my $next = time;
my $cleared = 0;
while ($select->count)
{
	foreach my $in ($select->can_read(0.02))
	{
		my $client = $out{ fileno $in };
		sysread($in, $client->{text}, 65536, length $client->{text}) or $select->remove($in);
	}
	next if time < $next;
	$next = time + 0.05;
	disturb() if time < $until;
	next unless time >= $until && !$cleared++;
	$sbx->clear_faults;
}
waitpid $_, 0 foreach @pids;
poll('every session ends', sub { $admin->value(q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'soak'}) == 0 });

# Who is terminated between PREPARE and COMMIT PREPARED leaves that to the administrator.
my $left = $admin->query('SELECT gid FROM pg_prepared_xacts')->rows;
is($admin->execute("COMMIT PREPARED '$_->[0]'")->error, undef, "what was left prepared is committed: $_->[0]") foreach @$left;

my $said = join '', map { $_->{text} } values %out;
my %did;
$did{$1} += $2 while $said =~ /^did (\S+) (\d+)$/mg;
unlike($said, qr/^died/m, 'no client died of itself');
cmp_ok($did{fine} // 0, '>', 100, 'something was done') or diag $said;

my $log = $sbx->log_since($place);
my %named = map { $_ => 1 } $log =~ /WARNING:  could not (?:destroy|confirm that) sandbox "(sbx_[0-9a-f]{32})"/g;
my %tried = map { $_ => 1 } $said =~ /^destroy (sbx_[0-9a-f]{32})$/mg;
my @audit = $sbx->audit;
my %alive = map { $_->{id} => $_ } grep { $_->{alive} } @audit;
my %mapped = map { $_->[1] => $_->[0] } @{ $admin->query('SELECT id, provider_sandbox_id FROM sbx_mapping')->rows };
my @left_over = grep { !$mapped{$_} } sort keys %alive;
my @lost = grep { !$named{ $alive{$_}{name} } } @left_over;
my @untried = grep { !$tried{ $mapped{$_} } } sort keys %mapped;
my @dead = grep { !$alive{$_} } @untried;
my $cleaned = grep { !$_->{alive} && !$tried{ $_->{name} } } @audit;

is(scalar @lost, 0, 'must fire: no sandbox is lost: each that is alive has a mapping, or was named')
  or diag map { "lost: $_ $alive{$_}{name} $alive{$_}{provider}\n" } @lost;
is(scalar @dead, 0, 'must not fire: no sandbox in use was destroyed: each mapping has a live one')
  or diag map { "dead: $_ $mapped{$_}\n" } @dead;

# What would make the two above say nothing: few sandboxes, all of them tried, or a
# clean-up that names what it should destroy.  Two in fifteen actions destroy one, a third
# of them leaves one, and one fault in five hits a delete.
cmp_ok(scalar @untried, '>', 5 * $clients, 'many sandboxes are in use that nobody tried to destroy');
cmp_ok($cleaned, '>', 5 * $clients, 'many sandboxes of transactions that did not commit are gone');
cmp_ok(scalar @left_over, '<', $cleaned / 5, 'what a clean-up could only name is the exception');
cmp_ok($disturbed{$_} // 0, '>', $seconds / 4, "there was disturbance: $_") foreach qw(faults pg_cancel_backend pg_terminate_backend);
unlike($log, qr/PANIC|TRAP:|server process .* was terminated/, 'no backend crashed');
diag sprintf '%d sandboxes made, %d destroyed, %d of them by a clean-up, %d mapped, %d of them never to be destroyed, '
  . '%d left over and named, %d left prepared; %d statements well, %s; %s',
  scalar @audit, scalar(grep { !$_->{alive} } @audit), $cleaned, scalar keys %mapped, scalar @untried,
  scalar @left_over, scalar @$left, $did{fine} // 0,
  join(', ', map { "$_ $did{$_}" } grep { $_ ne 'fine' } sort keys %did),
  join(', ', map { "$_ $disturbed{$_}" } sort keys %disturbed);

done_testing();
