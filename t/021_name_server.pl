# Names: a name server that says nothing, and one that says what it should not.
#
# Runs in a network of its own, where the name server is this file's.  Behaviour comes in
# pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use File::Path ();
use File::Temp qw(tempdir);
use IO::Socket::INET;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

# As root of a new user namespace, then as the user we were, because servers refuse root.
# Before the modules for tests begin their work.
BEGIN
{
	if (!$ENV{SBX_NETWORK_OF_ITS_OWN})
	{
		my $folder = tempdir();
		my $prepare = "mount --bind $folder/resolv.conf /etc/resolv.conf"
		  . " && mount --bind $folder/nsswitch.conf /etc/nsswitch.conf"
		  . ' && ip link set lo up && echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start';
		my ($user, $group) = ($>, (split ' ', $))[0]);
		my $become = "unshare --user --map-user=$user --map-group=$group";
		my %file = (
			'resolv.conf' => "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n",
			'nsswitch.conf' => "hosts: files dns\n");

		foreach my $name (keys %file)
		{
			open my $file, '>', "$folder/$name" or die "$name: $!";
			print $file $file{$name};
			close $file;
		}
		$ENV{PATH} .= ':/usr/sbin:/sbin';
		plan skip_all => 'no network namespace may be made here'
		  if system("unshare -Urnm sh -c '$prepare && $become true' >/dev/null 2>&1") != 0;
		$ENV{SBX_NETWORK_OF_ITS_OWN} = $folder;
		exec 'unshare', '-Urnm', 'sh', '-c', "$prepare && exec $become $^X $0" or die "could not go on: $!";
	}
}

use SbxTest;

#
# The name server
#

my %address = (
	good => pack('C4', 127, 0, 0, 1),
	metadata => pack('C4', 169, 254, 169, 254),
	private => pack('C4', 10, 0, 0, 1),
	zero => pack('C4', 0, 0, 0, 0),
	mapped => pack('n8', 0, 0, 0, 0, 0, 0xffff, 0x0a00, 0x0001),
	local6 => pack('n8', 0xfe80, 0, 0, 0, 0, 0, 0, 1));
my $diary = PostgreSQL::Test::Utils::tempdir() . '/queries';

# One answer to one question, NAME.test; nothing for a name that is to stay without.
sub answer
{
	my ($query) = @_;
	my ($id) = unpack 'n', $query;
	my $length = unpack 'C', substr($query, 12, 1);
	my $name = substr $query, 13, $length;
	my ($end) = index $query, "\0", 12;
	my ($type) = unpack 'n', substr($query, $end + 1, 2);
	my $question = substr $query, 12, $end + 5 - 12;
	my $data = $address{$name};
	my $wanted = defined $data && $type == (length $data == 4 ? 1 : 28);

	PostgreSQL::Test::Utils::append_to_file($diary, "$name $type\n");
	return if $name =~ /^silent/;
	my $reply = pack('n6', $id, 0x8180, 1, $wanted ? 1 : 0, 0, 0) . $question;
	$reply .= pack('n3Nn', 0xc00c, $type, 1, 60, length $data) . $data if $wanted;
	return $reply;
}

my $socket = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1', LocalPort => 53)
  or die "no name server: $!";
my $name_server = fork // die "could not fork: $!";
if ($name_server == 0)
{
	for (;;)
	{
		my $peer = recv $socket, my $query, 512, 0;
		next if !defined $peer || length $query < 17;
		my $reply = answer($query);
		send $socket, $reply, 0, $peer if defined $reply;
	}
}
close $socket;

END
{
	my $status = $?;
	kill 'KILL', $name_server if $name_server;
	waitpid $name_server, 0 if $name_server;
	File::Path::remove_tree($ENV{SBX_NETWORK_OF_ITS_OWN}) if $name_server;
	$? = $status;
}

my $sbx = SbxTest->new(emulator => ['--no-exec'], conf => "log_statement = none\n");
my ($port) = $sbx->url =~ /:(\d+)$/;
$sbx->register($_, apiUrl => "http://$_.test:$port/daytona/api") foreach qw(silent good metadata private zero mapped local6);
my $admin = $sbx->session;

sub user
{
	my $session = $sbx->session;

	$session->value('SELECT sbx_set_credential($1, $2)', $_, 'key') foreach 'silent', keys %address;
	return $session;
}

sub provision { return qq{SELECT sbx_provision('{"providerId":"$_[0]","launch":{"createTimeoutSeconds":$_[1]}}')} }

# Well below the five seconds that the resolver waits for a first answer, and the ten in all.
my $soon = 4;

sub check_soon
{
	my ($started, $what) = @_;

	cmp_ok(time - $started, '<', $soon, "$what: at once");
	return;
}

# Until the name server has been asked once more.
sub begin
{
	my ($session, $sql) = @_;
	my $before = -s $diary // 0;

	$session->send($sql);
	poll('the name is asked for', sub { (-s $diary // 0) > $before });
	return time;
}

# The next call does not wait for the thread that still does.
sub check_next
{
	my ($session, $what) = @_;
	my $started = time;
	my $result = $session->query("SELECT sbx_destroy(sbx_provision('{\"providerId\":\"good\"}'))");

	is($result->value, 't', "$what: the session goes on") or diag $result->everything;
	check_soon($started, "$what: the next call");
	return;
}

#
# Silence
#

is(user()->query(provision('good', 10))->sqlstate, undef, 'must not fire: a name that is answered');

{
	my $session = user();
	$session->value(q{SET statement_timeout = '500ms'});
	$session->value(q{SET lock_timeout = '100ms'});
	my $started = begin($session, provision('silent', 60));
	my $result = $session->wait;
	is($result->sqlstate, '57014', 'must fire: statement_timeout; must not fire: lock_timeout');
	check_soon($started, 'statement_timeout');
	$session->value('RESET statement_timeout');
	check_next($session, 'statement_timeout');
}
{
	my $session = user();
	begin($session, provision('silent', 60));
	my $started = time;
	$admin->value('SELECT pg_cancel_backend($1)', $session->pid);
	is($session->wait->sqlstate, '57014', 'must fire: cancel');
	check_soon($started, 'cancel');
	check_next($session, 'cancel');
}
{
	my $session = user();
	begin($session, provision('silent', 60));
	my $started = time;
	$admin->value('SELECT pg_terminate_backend($1)', $session->pid);
	is($session->wait->sqlstate, '57P01', 'must fire: terminate');
	$sbx->wait_ended($session->pid);
	check_soon($started, 'terminate: the backend is gone');
}
{
	my $session = user();
	my $started = begin($session, provision('silent', 1));
	my $result = $session->wait;
	is($result->sqlstate, 'SB005', 'must fire: the time of the launch itself');
	is(json($result->detail)->{allocation}, 'none', 'and nothing was sent');
	is(scalar(my @warnings = $result->warnings), 0, 'so nothing is left to look for');
	check_soon($started, 'the time of the launch');
	check_next($session, 'the time of the launch');
}
{
	my $session = user();
	$session->query('BEGIN');
	my $kept = $session->value(provision('good', 10));
	$session->value(q{SET LOCAL statement_timeout = '300ms'});
	begin($session, provision('silent', 60));
	is($session->wait->sqlstate, '57014', 'in a transaction');
	my $started = time;
	my $result = $session->query('ROLLBACK');
	check_soon($started, 'must fire: its ROLLBACK, which has a sandbox to destroy elsewhere');
	is(scalar(my @warnings = $result->warnings), 0, 'without a warning');
	is((grep { $_ eq $kept } $sbx->alive), 0, 'and it is destroyed');
}
{
	my $session = user();
	begin($session, provision('silent', 60));
	my $started = time;
	$session->vanish;
	ok(!eval { local $SIG{ALRM} = sub { die "still there\n" }; alarm 2; $sbx->wait_ended($session->pid); alarm 0; 1 },
		'must not fire: a client that vanishes is not noticed without client_connection_check_interval');
	alarm 0;
	$admin->value('SELECT pg_terminate_backend($1)', $session->pid);
	$sbx->wait_ended($session->pid);
}
{
	my $session = user();
	$session->value(q{SET client_connection_check_interval = '100ms'});
	begin($session, provision('silent', 60));
	my $started = time;
	$session->vanish;
	$sbx->wait_ended($session->pid);
	check_soon($started, 'must fire: a client that vanishes, with it');
}

#
# Answers
#

foreach my $name (qw(metadata private zero mapped local6 good))
{
	my $session = user();

	$session->value('SET sbx_router.allow_private_addresses = off');
	my $result = $session->query(provision($name, 5));
	is($result->sqlstate, 'SB005', "$name: must fire: an address that is not public is refused");
	is(json($result->detail)->{allocation}, 'none', "$name: before anything is sent");
	like($result->hint, qr/address is not allowed/, "$name: and that is said");
}
{
	my $session = user();
	my $before = $sbx->mark;
	is($session->query(provision('good', 5))->sqlstate, undef, 'must not fire: where it is allowed');
	cmp_ok($sbx->creates($before), '==', 1, 'and it gets there');

	# The connection of that call is kept.
	$session->value('SET sbx_router.allow_private_addresses = off');
	my $late = $session->query(provision('good', 5));
	is($late->sqlstate, 'SB005', 'must fire: where it is allowed no longer, over no connection that is kept');
	like($late->hint, qr/address is not allowed/, 'and that is said');
	is($sbx->creates($before), 1, 'nobody gets there');
	$session->value('RESET sbx_router.allow_private_addresses');
	is($session->query(provision('good', 5))->sqlstate, undef, 'must not fire: where it is allowed again');

	# Plain http is for this host alone, whatever its name resolves to.
	my $result = $session->query(provision('private', 2));
	is($result->sqlstate, 'SB005', 'must fire: plain http to another host');
	like($result->hint, qr/address is not allowed/, 'is not allowed');
}

done_testing();
