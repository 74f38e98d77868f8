# A statement that waits for a lock of the server while it has a sandbox: it can be
# ended at once, and it does not wait, nor make others wait, without need.
#
# Every part is a pair: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use SbxTest;
use Test::More;
use Time::HiRes qw(time);

my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "sbx_router.abort_cleanup_timeout = '60s'\n");
$sbx->register('pool');
my $admin = $sbx->user('pool', 'key');
my ($result, @warnings, $started, $mark);

sub count_alive { return scalar(my @alive = $sbx->alive) }
sub is_alive { return scalar grep { $_ eq $_[0] } $sbx->alive }

# Start over: nothing anywhere.
sub clean
{
	$sbx->reset;
	$admin->value('TRUNCATE sbx_mapping');
	return $sbx->mark;
}

sub waits_for_lock
{
	my ($session) = @_;

	return poll('a session waits for a lock',
		sub { $admin->value('SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1', $session->pid) });
}

#
# R9: an interrupt while the row waits is not held up
#

my $locker = $sbx->session;
foreach my $what ('cancel', 'terminate', 'statement_timeout')
{
	clean();
	my $waiter = $sbx->user('pool', 'key');
	$waiter->value(q{SET sbx_router.abort_cleanup_timeout = '300ms'});
	$waiter->value(q{SET statement_timeout = '3s'}) if $what eq 'statement_timeout';
	$locker->query('BEGIN; LOCK TABLE sbx_mapping IN SHARE MODE');
	$sbx->fault(op => 'delete', action => 'hang', times => 9);
	$waiter->send('SELECT sbx_provision()');
	waits_for_lock($waiter);
	$started = time;
	$admin->value("SELECT pg_${what}_backend(\$1)", $waiter->pid) if $what ne 'statement_timeout';
	$result = $waiter->wait;
	is($result->sqlstate, $what eq 'terminate' ? '57P01' : '57014', "R9 must fire: $what while the row waits: its own error");
	cmp_ok(time - $started, '<', 7, "R9 must fire: $what: at once, although the provider hangs");
	$locker->query('ROLLBACK');
	$sbx->wait_ended($waiter->pid) if $what eq 'terminate';
	my ($left) = $sbx->audit;
	ok($left->{alive}, "R9 must fire: $what: the sandbox is left, as the provider hangs");
	like($result->everything, qr/could not destroy sandbox "$left->{name}"/, "R9 must fire: $what: with a warning")
	  if $what ne 'terminate';
}

# With a provider that answers nothing is left, by way of the abort.
clean();
my $waiter = $sbx->user('pool', 'key');
$locker->query('BEGIN; LOCK TABLE sbx_mapping IN SHARE MODE');
$waiter->send('SELECT sbx_provision()');
waits_for_lock($waiter);
$admin->value('SELECT pg_cancel_backend($1)', $waiter->pid);
$result = $waiter->wait;
$locker->query('ROLLBACK');
is($result->sqlstate, '57014', 'R9 must not fire: cancelled, and the provider answers');
is(scalar(@warnings = $result->warnings), 0, 'R9 must not fire: no warning');
is(count_alive(), 0, 'R9 must not fire: nothing is left');

# An error that is no interrupt: destroyed by the statement itself, before any rollback.
$mark = clean();
$locker->query('BEGIN; LOCK TABLE sbx_mapping IN SHARE MODE');
$waiter->value(q{SET lock_timeout = '100ms'});
$waiter->query('BEGIN; SAVEPOINT one');
$result = $waiter->query('SELECT sbx_provision()');
$locker->query('ROLLBACK');
is($result->sqlstate, '55P03', 'R9 must not fire: the row waits too long: its own error');
is(count_alive(), 0, 'R9 must not fire: nothing is left');
is($waiter->query('ROLLBACK TO one; SELECT event FROM sbx_recent_events() ORDER BY at DESC LIMIT 1')->value,
	'cleanup.finished', 'R9 must not fire: destroyed');
$waiter->query('ROLLBACK');
is($sbx->deletes($mark), 1, 'R9 must not fire: with one delete');

#
# R10: a change of the registration does not wait for open transactions, nor they for it
#

my $impatient = q{SET lock_timeout = '2s'};
my $updater = $sbx->session;
my $tenant = $sbx->user('pool', 'key');
my $update = q{SELECT sbx_update_provider('pool', signals => '{}')};
$updater->value($impatient);
$tenant->value($impatient);

clean();
$tenant->query('BEGIN');
my $kept = $tenant->value('SELECT sbx_provision()');
$result = $updater->query($update);
ok(!$result->error, 'R10 must fire: a registration is changed while a transaction has a sandbox there')
  or diag $result->everything;
$updater->value($_) foreach q{SET lock_timeout = '100ms'};
is($updater->query(q{SELECT sbx_unregister_provider('pool')})->sqlstate,
	'55P03', 'R10 must not fire: but it is not removed under that transaction');
$tenant->query('COMMIT');
ok(is_alive($kept), 'R10 must fire: the sandbox is alive');

clean();
$updater->value($impatient);
$updater->query('BEGIN');
$updater->value($update);
$result = $tenant->query('SELECT sbx_provision()');
ok(!$result->error, 'R10 must fire: a sandbox is provisioned while a transaction changes the registration')
  or diag $result->everything;
is(count_alive(), 1, 'R10 must fire: and is alive');
$tenant->value(q{SET lock_timeout = '100ms'});
is($tenant->query($update)->sqlstate, '55P03', 'R10 must not fire: but two changes wait for each other');
$updater->query('COMMIT');
ok(!$tenant->query($update)->error, 'R10 must not fire: until the first one is committed');

done_testing();
