# A statement that waits for a provider can be ended at any moment, and what it
# was making is destroyed.
use strict;
use warnings;

use SbxTest;
use Test::More;
use Time::HiRes qw(time);

my $sbx = SbxTest->new;
my $node = $sbx->node;
$sbx->register('pool');

my $admin = $sbx->user('pool', 'key');
my $home = $admin->value('SELECT sbx_provision()');

# Where nothing was made, the rollback looks for it until its time is over; where
# something was made, it ends as soon as that is destroyed.
my $short = '300ms';
my $long = '60s';

#
# Moments in which a statement may be interrupted
#
# fault, second: what makes it wait; sql: the statement; reached: does it wait now;
# made: is there a sandbox to be destroyed; kept: a sandbox that existed before;
# limited: it ends by itself after five seconds, so it is begun last.
#

sub creates_of
{
	my ($id) = @_;

	return scalar grep { $_->{op} eq 'create' && $_->{body} =~ /"name":"$id"/ } $sbx->requests;
}

sub provider_id
{
	my ($name) = @_;
	my ($found) = grep { $_->{name} eq $name } $sbx->audit;

	return $found ? $found->{id} : 'nothing yet';
}

sub looks_of
{
	my ($id) = @_;

	return $sbx->count('GET', qr{/sandbox/$id$});
}

sub provision { return "SELECT sbx_provision(id => '$_[0]')" }

my %moment = (
	'a create that is not answered' => {
		fault => { op => 'create', action => 'hang' },
		sql => \&provision,
		reached => sub { creates_of($_[0]) },
		made => 0,
	},
	'a create that is held while the sandbox is there' => {
		fault => { op => 'create', action => 'hang', work => JSON::PP::true },
		sql => \&provision,
		reached => sub { provider_id($_[0]) ne 'nothing yet' },
		made => 1,
	},
	'the wait until it is ready' => {
		fault => { op => 'run', action => 'hang' },
		sql => \&provision,
		reached =>
		  sub { my $made = provider_id($_[0]); $sbx->count('POST', qr{/$made/process/execute$}) },
		made => 1,
	},
	'the search for what a lost create may have made' => {
		fault => { op => 'create', action => 'reset-after-work', work => JSON::PP::false },
		sql => \&provision,
		reached => sub { looks_of($_[0]) >= 2 },
		made => 0,
		limited => 1,
	},
	'the removal of what a lost create has made' => {
		fault => { op => 'create', action => 'reset-after-work' },
		second => { op => 'delete', action => 'hang' },
		sql => \&provision,
		reached =>
		  sub { my $made = provider_id($_[0]); $sbx->count('DELETE', qr{/sandbox/$made$}) },
		made => 1,
		limited => 1,
	},
	'a run' => {
		sql => sub { "SELECT sbx_run_script('$home', 'echo $_[0] >/tmp/ran; sleep 1000')" },
		reached => sub {
			scalar grep { $_->{op} eq 'run' && $_->{path} =~ /exec$/ && $_->{body} =~ /$_[0]/ }
			  $sbx->requests;
		},
		kept => 1,
	},
	'a destroy' => {
		before => sub { $admin->value("SELECT sbx_provision(id => '$_[0]')") },
		fault => { op => 'delete', action => 'hang' },
		sql => sub { "SELECT sbx_destroy('$_[0]')" },
		reached =>
		  sub { my $made = provider_id($_[0]); $sbx->count('DELETE', qr{/sandbox/$made$}) },
		kept => 1,
		made => 1,
	});

# Bring a new session to such a moment.
sub begin
{
	my ($name, @settings) = @_;
	my $moment = $moment{$name};
	my $session = $sbx->user('pool', 'key');
	my $id = $session->value('SELECT sbx_new_id()');
	my $budget = $moment->{made} ? $long : $short;

	$session->value("SET sbx_router.abort_cleanup_timeout = '$budget'");
	$session->value($_) foreach @settings;
	$moment->{before}->($id) if $moment->{before};
	foreach my $fault (grep { $_ } @$moment{qw(fault second)})
	{
		$sbx->fault(%$fault);
	}
	$session->send($moment->{sql}->($id));
	poll($name, sub { $moment->{reached}->($id) });
	return {
		name => $name,
		session => $session,
		id => $id,
		moment => $moment,
		pid => $session->pid
	};
}

# What holds after every interrupt: nothing is left that should not be.
sub check_remains
{
	my ($case, $what) = @_;
	my ($name, $id, $moment) = @$case{qw(name id moment)};
	my $here = "$what in $name";

	if ($moment->{kept})
	{
		is( $admin->value(
				"SELECT count(*) FROM sbx_mapping WHERE id = '"
				  . ($name eq 'a run' ? $home : $id) . "'"),
			1,
			"$here: the row stays");
		return if $name eq 'a run';
		is($admin->value("SELECT sbx_destroy('$id')"), 't', "$here: it can be repeated");
		return;
	}
	is(creates_of($id), 1, "$here: the create was sent once");
	poll(
		"nothing is alive after $here",
		sub {
			!grep { $_ eq $id } $sbx->alive;
		});
	pass("$here: nothing is alive");
	is((scalar grep { $_->{name} eq $id } $sbx->audit),
		$moment->{made}, "$here: the sandbox " . ($moment->{made} ? 'was destroyed' : 'never was'));
	is($admin->value("SELECT count(*) FROM sbx_mapping WHERE id = '$id'"), 0, "$here: no row");
	return;
}

sub check_warning
{
	my ($case, $what, $text) = @_;
	my $expected = !$case->{moment}{made} && !$case->{moment}{kept};
	my $found = () = $text =~ /could not confirm that sandbox "$case->{id}" was not created/g;

	is( $found,
		$expected ? 1 : 0,
		"$what in $case->{name}: "
		  . ($expected ? 'a warning that this could not be confirmed' : 'no warning'));
	return;
}

sub check_next
{
	my ($case, $what) = @_;
	my $session = $case->{session};
	my $next = $session->value('SELECT sbx_provision()');

	is($sbx->run($session, $next, 'echo well')->{stdout},
		"well\n", "$what in $case->{name}: the session goes on");
	$session->value("SELECT sbx_destroy('$next')");
	$session->finish;
	return;
}

# All moments at once, each in a session of its own; those that are limited come
# first in what is returned, to be interrupted first.
sub begin_all
{
	my (@settings) = @_;
	my @limited = grep { $moment{$_}{limited} } sort keys %moment;
	my @others = grep { !$moment{$_}{limited} } sort keys %moment;

	$sbx->forget_requests;
	my @cases = map { begin($_, @settings) } @others, @limited;
	$sbx->clear_faults;
	return reverse @cases;
}

# Someone who is not interrupted, through all of it.
my $bystander = $sbx->user('pool', 'key');
$bystander->send(
	"SELECT stdout FROM sbx_run_script('$home', 'until [ -e /tmp/go ]; do sleep 0.05; done; echo went')"
);

#
# The interrupts
#

my @cases = begin_all();
$admin->value('SELECT pg_cancel_backend($1)', $_->{pid}) foreach @cases;
foreach my $case (@cases)
{
	my $result = $case->{session}->wait;
	is_deeply(
		[ $result->sqlstate, $result->message ],
		[ '57014', 'canceling statement due to user request' ],
		"cancel in $case->{name}: the server's own error");
	check_warning($case, 'cancel', $result->everything);
	check_remains($case, 'cancel');
	check_next($case, 'cancel');
}

# Less than the five seconds of the search, which ends by itself.
@cases = begin_all("SET statement_timeout = '3s'");
foreach my $case (@cases)
{
	my $result = $case->{session}->wait;
	is_deeply(
		[ $result->sqlstate, $result->message ],
		[ '57014', 'canceling statement due to statement timeout' ],
		"timeout in $case->{name}: the server's own error");
	check_warning($case, 'timeout', $result->everything);
	check_remains($case, 'timeout');
	$case->{session}->value('SET statement_timeout = 0');
	check_next($case, 'timeout');
}

@cases = begin_all();
my $place = $sbx->log_place;
$admin->value('SELECT pg_terminate_backend($1)', $_->{pid}) foreach @cases;
foreach my $case (@cases)
{
	my $result = $case->{session}->wait;
	is_deeply(
		[ $result->sqlstate, $result->message ],
		[ '57P01', 'terminating connection due to administrator command' ],
		"terminate in $case->{name}: the server's own error");
	ok($result->closed, "terminate in $case->{name}: the connection ends");
	$sbx->wait_ended($case->{pid});
	check_warning($case, 'terminate', $sbx->log_since($place));
	check_remains($case, 'terminate');
}

@cases = begin_all("SET client_connection_check_interval = '200ms'");
$place = $sbx->log_place;
$_->{session}->vanish foreach @cases;
foreach my $case (@cases)
{
	$sbx->wait_ended($case->{pid});
	check_warning($case, 'a client that vanishes', $sbx->log_since($place));
	check_remains($case, 'a client that vanishes');
}

#
# A create that is really held: the provider says "busy" to a delete meanwhile
#

# Five seconds of that; each is interrupted as soon as it is there.
my $held = $moment{'a create that is held while the sandbox is there'};
my %busy = (
	'a held create' => { delayMs => 5000, reached => $held->{reached} },
	'the wait for its start' => {
		startDelayMs => 5000,
		reached =>
		  sub { my $made = provider_id($_[0]); $sbx->count('GET', qr{/sandbox/$made$}) >= 2 }
	});
$sbx->forget_requests;
@cases = ();
foreach my $name (sort keys %busy)
{
	my %settings = %{ $busy{$name} };
	my $reached = delete $settings{reached};

	$sbx->config(%settings);
	foreach my $what ('cancel', 'terminate')
	{
		my $session = $sbx->user('pool', 'key');
		my $id = $session->value('SELECT sbx_new_id()');

		$session->value("SET sbx_router.abort_cleanup_timeout = '$long'");
		$session->send(provision($id));
		poll($name, sub { $reached->($id) });
		$admin->value("SELECT pg_${what}_backend(\$1)", $session->pid);
		push @cases,
		  { name => $name, what => $what, session => $session, id => $id, moment => { made => 1 } };
	}
	$sbx->config(map { $_ => 0 } keys %settings);
}
foreach my $case (@cases)
{
	my ($name, $what, $session) = @$case{qw(name what session)};
	my $made = provider_id($case->{id});

	is( $session->wait->sqlstate,
		$what eq 'cancel' ? '57014' : '57P01',
		"$what in $name, the provider being busy");
	$sbx->wait_ended($session->pid) if $what eq 'terminate';
	check_remains($case, "$what, busy,");
	cmp_ok($sbx->count('DELETE', qr{/sandbox/$made$}),
		'>', 1, "$what in $name: deleting is repeated until it works");
	$session->finish;
}

#
# Interrupts inside a PL/pgSQL block that catches them, and in a rollback
#

my $catcher = $sbx->user('pool', 'key');
my $id = $catcher->value('SELECT sbx_new_id()');
$sbx->fault(%{ $moment{'the wait until it is ready'}{fault} });
$catcher->value("SET sbx_router.abort_cleanup_timeout = '$long'");
$catcher->send(
	qq{DO \$\$
	BEGIN
		PERFORM sbx_provision(id => '$id');
	EXCEPTION WHEN query_canceled THEN
		RAISE NOTICE 'caught';
	END \$\$});
poll('the probe',
	sub { my $made = provider_id($id); $sbx->count('POST', qr{/$made/process/execute$}) });
$admin->value('SELECT pg_cancel_backend($1)', $catcher->pid);
my $result = $catcher->wait;
ok(!$result->error, 'a cancel that PL/pgSQL catches');
is((grep { $_ eq $id } $sbx->alive), 0, 'the sandbox is destroyed all the same');
$sbx->clear_faults;

foreach my $what ('cancel', 'terminate')
{
	my $mark = $sbx->mark;

	$catcher->query('BEGIN');
	$id = $catcher->value('SELECT sbx_provision()');
	$sbx->fault(op => 'delete', action => 'hang', times => 9);
	$catcher->send('ROLLBACK');
	$sbx->wait_requests('DELETE', 'one', $mark);
	my $started = time;
	$admin->value("SELECT pg_${what}_backend(\$1)", $catcher->pid);
	$result = $catcher->wait;
	cmp_ok(time - $started, '<', 30, "$what while a rollback waits for the provider: it hurries");
	is(($result->tags)[0], 'ROLLBACK', "$what: the ROLLBACK itself ends well");
	is( scalar(
			my @warnings = grep { $_->{M} =~ /could not destroy sandbox "$id"/ } $result->warnings),
		1,
		"$what: with a warning");
	$sbx->clear_faults;
	$sbx->http('DELETE', 'key', '/sandbox/' . provider_id($id));
	is($catcher->value('SELECT 1'), 1, 'cancel: the next statement is not cancelled')
	  if $what eq 'cancel';
}
$sbx->wait_ended($catcher->pid);

#
# Ends of a session that is idle in its transaction
#

my %end = (
	'pg_terminate_backend' => sub { $admin->value('SELECT pg_terminate_backend($1)', $_[0]->pid) },
	'a client that vanishes' => sub { $_[0]->vanish },
	'idle_in_transaction_session_timeout' =>
	  sub { $_[0]->value(q{SET idle_in_transaction_session_timeout = '100ms'}) });
foreach my $what (sort keys %end)
{
	my $session = $sbx->user('pool', 'key');

	$session->query('BEGIN');
	$id = $session->value('SELECT sbx_provision()');
	$end{$what}->($session);
	$sbx->wait_ended($session->pid);
	is((grep { $_ eq $id } $sbx->alive),
		0, "$what, idle in its transaction: the sandbox is destroyed");
}

#
# All the others went on
#

is($sbx->run($admin, $home, 'touch /tmp/go; echo done')->{stdout},
	"done\n", 'other sessions are not disturbed');
is($bystander->wait->value, "went\n", 'not even one that waits in the same sandbox');

#
# Fast shutdown, in all moments at once
#

@cases = begin_all();
$place = $sbx->log_place;
$node->stop('fast');
pass('a fast shutdown ends');
foreach my $case (@cases)
{
	$result = $case->{session}->wait;
	is($result->sqlstate, '57P01', "shutdown in $case->{name}: the server's own error");
	check_warning($case, 'shutdown', $sbx->log_since($place));
}
undef $sbx->{watch};
$node->start;
$admin = $sbx->user('pool', 'key');
check_remains($_, 'shutdown') foreach @cases;

is_deeply([ sort $sbx->alive ], [$home], 'in the end only the committed sandbox is alive');

done_testing();
