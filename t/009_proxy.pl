# A proxy that is set is the only way out, and what it refuses was never sent.
#
# Every part is a pair: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use POSIX ();
use SbxTest;
use Test::More;
use Time::HiRes qw(time);

#
# A proxy: one process for each, and one for each connection.  What it was asked is
# a line in its diary: method and target.  A CONNECT is answered as it was told; any
# other request is passed on, and so is the answer.
#

my @proxies;

sub start_proxy
{
	my (%option) = @_;
	my $diary = PostgreSQL::Test::Utils::tempdir() . '/diary';
	my $listener = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1') or die "no listener: $!";

	open my $file, '>>', $diary or die "$diary: $!";
	$file->autoflush;
	my $pid = fork // die "could not fork: $!";
	if ($pid == 0)
	{
		$SIG{CHLD} = 'IGNORE';
		$SIG{TERM} = sub { POSIX::_exit(0) };
		while (1)
		{
			my $client = $listener->accept or next;
			my $child = fork // POSIX::_exit(2);
			next if $child;
			eval { serve_connection($client, $file, %option) };
			POSIX::_exit(0);
		}
	}
	push @proxies, $pid;
	return { port => $listener->sockport, diary => $diary };
}

sub serve_connection
{
	my ($client, $file, %option) = @_;

	while (defined(my $request = read_head($client)))
	{
		my ($method, $target) = split / /, $request;

		print $file "$method $target\n";
		if ($method eq 'CONNECT')
		{
			return relay($client, $option{tunnel_to}) if $option{tunnel_to};
			print $client $option{tunnel};
			close $client if $option{then} eq 'close';
			return if $option{then} eq 'close';
			next;
		}
		my ($peer, $path) = $target =~ m{^http://([^/]+)(/.*)$} or return;
		my $body = $request =~ /^content-length: *(\d+)/mi ? read_bytes($client, $1) : '';
		my $server = IO::Socket::INET->new(PeerAddr => $peer) or return;
		$request =~ s/^(\S+) \S+/$1 $path/;
		$request =~ s/^(?:proxy-)?connection:[^\r\n]*\r\n//gmi;
		$request =~ s/\r\n\r\n\z/\r\nConnection: close\r\n\r\n/;
		print $server $request, $body;
		return if $option{lose} && $path =~ $option{lose} && read_head($server);
		my $answer = '';
		1 while sysread $server, $answer, 65536, length $answer;
		print $client $answer;
		return;
	}
	return;
}

# A tunnel that is allowed: bytes both ways until one side ends.
sub relay
{
	my ($client, $port) = @_;
	my $server = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or return;
	my $both = IO::Select->new($client, $server);

	syswrite $client, "HTTP/1.1 200 OK\r\n\r\n";
	for (;;)
	{
		foreach my $from ($both->can_read)
		{
			sysread $from, my $bytes, 65536 or return;
			syswrite $from == $client ? $server : $client, $bytes;
		}
	}
}

# Up to the empty line; undef when the connection ends before.
sub read_head
{
	my ($socket) = @_;
	my $head = '';

	while ($head !~ /\r\n\r\n\z/)
	{
		sysread $socket, $head, 1, length $head or return;
	}
	return $head;
}

sub read_bytes
{
	my ($socket, $count) = @_;
	my $bytes = '';

	while (length $bytes < $count)
	{
		sysread $socket, $bytes, $count - length $bytes, length $bytes or last;
	}
	return $bytes;
}

sub seen
{
	my ($proxy, $pattern) = @_;

	return scalar grep { $_ =~ $pattern } split /\n/, PostgreSQL::Test::Utils::slurp_file($proxy->{diary});
}

END
{
	my $status = $?;
	kill 'TERM', @proxies;
	waitpid $_, 0 foreach @proxies;
	$? = $status;
}

my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "sbx_router.abort_cleanup_timeout = '60s'\n");
my $node = $sbx->node;
$sbx->register('pool');
my $result;
my @warnings;

sub count_alive { return scalar(my @alive = $sbx->alive) }
sub through { return "SET sbx_router.proxy = 'http://127.0.0.1:$_[0]->{port}'" }

# A port where nobody listens.
my $nobody = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die "no port: $!";
my $dead = 'http://127.0.0.1:' . $nobody->sockport;
close $nobody;

# The server with these variables of the environment in addition.
sub restart_with
{
	my (%variables) = @_;
	local %ENV = (%ENV, %variables);

	undef $sbx->{watch};
	$node->restart;
	return;
}

sub clean
{
	$sbx->reset;
	$sbx->session->value('TRUNCATE sbx_mapping');
	return $sbx->mark;
}

#
# R11: the environment of the server has no say
#

my $open = start_proxy();
restart_with(no_proxy => '*', NO_PROXY => '*');
clean();
my $s = $sbx->user('pool', 'key');
$s->value(through($open));
$result = $s->query('SELECT sbx_provision()');
ok(!$result->error, 'R11 must fire: a sandbox through the proxy, with no_proxy = * around') or diag $result->everything;
is(seen($open, qr{^POST http://[^/]+/daytona/api/sandbox$}), 1, 'R11 must fire: the proxy saw the create');
my $id = $result->value;
my $before = seen($open, qr/./);
is($s->value("SELECT sbx_destroy('$id')"), 't', 'R11 must fire: destroyed through the proxy');
cmp_ok(seen($open, qr/./), '>', $before, 'R11 must fire: which saw that, too');
$s->value(qq{SET sbx_router.proxy = '$dead'});
is($s->query('SELECT sbx_provision()')->sqlstate, 'SB005', 'R11 must fire: no proxy, no way out');

restart_with(map { $_ => $dead } qw(http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY));
clean();
$s = $sbx->user('pool', 'key');
$result = $s->query('SELECT sbx_provision()');
ok(!$result->error, 'R11 must not fire: no proxy is set, those of the environment do not count')
  or diag $result->everything;
restart_with();

# R4 with a proxy: an abort goes the way of the launch, each sandbox its own.
clean();
$s = $sbx->user('pool', 'key');
$s->query('BEGIN');
$s->value('SELECT sbx_provision()');
$s->value(through($open));
$s->value('SELECT sbx_provision()');
$s->value(q{SET sbx_router.proxy = ''});
$before = seen($open, qr/^DELETE /);
$result = $s->query('ROLLBACK');
is(scalar(@warnings = $result->warnings), 0, 'R4: one launched directly, one through the proxy: ROLLBACK, no warning');
is(count_alive(), 0, 'R4: both are destroyed');
is(seen($open, qr/^DELETE /) - $before, 1,
	'R4 must fire: one through the proxy, although it is not set any more; must not fire: the other one not');

#
# R15: a tunnel that the proxy refuses
#

# Nothing is ever looked up under this name: the proxy would.
$s = $sbx->user('pool', 'key');
$s->value(q{SELECT sbx_register_provider('far', 'daytona', '{"apiUrl":"https://api.example.com/api"}')});
$s->value(q{SELECT sbx_update_provider('pool', enabled => false)});

my $refused = "Content-Length: 0\r\nConnection: close\r\n\r\n";
my %tunnel = (
	'502' => { tunnel => "HTTP/1.1 502 Bad Gateway\r\n$refused", then => 'close' },
	'403' => { tunnel => "HTTP/1.1 403 Forbidden\r\n$refused", then => 'close' },
	'407' => { tunnel => "HTTP/1.1 407 Authenticate\r\nProxy-Authenticate: Basic realm=\"x\"\r\n$refused", then => 'close' },
	'no answer' => { tunnel => '', then => 'close' },
	'nonsense' => { tunnel => "nonsense\r\n\r\n", then => 'close' },
	'200 and then the end' => { tunnel => "HTTP/1.1 200 OK\r\n\r\n", then => 'close' },
	'200 and then no TLS' => { tunnel => "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 400 no TLS here\r\n\r\n", then => 'close' });
foreach my $how (sort keys %tunnel)
{
	my $proxy = start_proxy(%{ $tunnel{$how} });
	my $session = $sbx->user('far', 'key');

	$session->value(through($proxy));
	$session->value(q{SET sbx_router.abort_cleanup_timeout = '4s'});
	my $started = time;
	$result = $session->query('SELECT sbx_provision()');
	my $took = time - $started;
	is($result->sqlstate, 'SB005', "R15 must fire: the tunnel: $how: the launch failed");
	is(json($result->detail)->{allocation}, 'none', "R15 must fire: the tunnel: $how: nothing was sent")
	  or diag $result->everything;
	is(scalar(@warnings = $result->warnings), 0, "R15 must fire: the tunnel: $how: no warning");
	cmp_ok($took, '<', 4, "R15 must fire: the tunnel: $how: nothing is looked for");
	cmp_ok(seen($proxy, qr{^CONNECT api\.example\.com:443$}), '>=', 1, "R15 must fire: the tunnel: $how: the proxy was asked");
	$session->finish;
}

# A tunnel that is allowed, to a provider that dies when it has the request.
SKIP:
{
	my $folder = PostgreSQL::Test::Utils::tempdir();
	my $names = '-subj /CN=api.example.com -addext subjectAltName=DNS:api.example.com';
	skip 'there is no openssl program', 3
	  if system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 $names -keyout $folder/key -out $folder/cert 2>/dev/null") != 0;

	# A port that was free a moment ago.
	my $probe = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die "no port: $!";
	my $port = $probe->sockport;
	close $probe;

	# It also says what we type: nothing.
	pipe my $keyboard, my $typist or die "no pipe: $!";
	my $pid = fork // die "could not fork: $!";
	if ($pid == 0)
	{
		open STDIN, '<&', $keyboard or POSIX::_exit(2);
		open STDOUT, '>', "$folder/said" or POSIX::_exit(2);
		open STDERR, '>', "$folder/log" or POSIX::_exit(2);
		exec 'openssl', 's_server', '-quiet', '-accept', "127.0.0.1:$port", '-cert', "$folder/cert", '-key', "$folder/key"
		  or POSIX::_exit(2);
	}
	push @proxies, $pid;
	poll('the TLS server listens', sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") });
	my $proxy = start_proxy(tunnel_to => $port);
	my $session = $sbx->user('far', 'key');

	$session->value($_)
	  foreach through($proxy), "SET sbx_router.ca_file = '$folder/cert'", q{SET sbx_router.abort_cleanup_timeout = '300ms'};
	$session->send('SELECT sbx_provision()');
	poll('the request arrives', sub { PostgreSQL::Test::Utils::slurp_file("$folder/said") =~ m{^POST /api/sandbox }m });
	kill 'KILL', $pid;
	waitpid $pid, 0;
	@proxies = grep { $_ != $pid } @proxies;
	$result = $session->wait;
	is($result->sqlstate, 'SB005', 'R15 must not fire: a tunnel that is allowed, the provider dies with the request');
	is(json($result->detail)->{allocation}, 'unknown', 'R15 must not fire: what became of the create is unknown');
	like($result->everything, qr/could not confirm that sandbox "sbx_\w+" was not created/, 'R15 must not fire: with a warning');
	$session->finish;
}

# Plain HTTP: the proxy has the request itself, so it may have got through.
$s->value(q{SELECT sbx_unregister_provider('far'); SELECT sbx_update_provider('pool', enabled => true)});
my $losing = start_proxy(lose => qr{^/daytona/api/sandbox$});
my $mark = clean();
my $session = $sbx->user('pool', 'key');
$session->value(through($losing));
$result = $session->query('SELECT sbx_provision()');
is($result->sqlstate, 'SB005', 'R15 must not fire: the proxy loses the answer of a create');
is(json($result->detail)->{allocation}, 'unknown', 'R15 must not fire: what became of it is unknown');
is($sbx->creates($mark), 1, 'R15 must not fire: it was sent, once');
is(scalar(my @made = $sbx->audit), 1, 'R15 must not fire: it did make a sandbox');
is(count_alive(), 0, 'R15 must not fire: which is looked for and destroyed');

done_testing();
