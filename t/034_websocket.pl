# WebSockets in the network engine, by way of Microsandbox's agent: what a server can do to
# one, how it is cut short, and what is left of it afterwards.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use Digest::SHA qw(sha1);
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use MIME::Base64;
use PostgreSQL::Test::Utils;
use POSIX ();
use SbxTest;
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Test::More;
use Time::HiRes qw(sleep time);

my $id = '00000000-0000-4000-8000-000000000001';

#
# A server: a process for each connection.  The first part of the path says what its agent
# does once it has a command.  A line in its diary is a request, or what was heard.
#

my $folder = PostgreSQL::Test::Utils::tempdir();
my $diary = "$folder/diary";
my $listener = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1') or die "no listener: $!";
my $port = $listener->sockport;

sub note_down
{
	open my $file, '>>', $diary or die "$diary: $!";
	syswrite $file, "@_\n";
	return;
}

sub read_exactly
{
	my ($client, $wanted) = @_;
	my $bytes = '';

	while (length $bytes < $wanted)
	{
		sysread $client, $bytes, $wanted - length $bytes, length $bytes or POSIX::_exit(0);
	}
	return $bytes;
}

sub read_head
{
	my ($client) = @_;
	my $head = '';

	$head .= read_exactly($client, 1) until $head =~ /\r\n\r\n\z/;
	return $head;
}

sub answer
{
	my ($client, $status, $body) = @_;

	print $client "HTTP/1.1 $status x\r\nContent-Type: application/json\r\nContent-Length: ", length $body, "\r\n\r\n$body";
	return;
}

sub sandbox
{
	my ($name) = @_;

	return encode_json({ id => $id, name => $name, status => 'running', ephemeral => JSON::PP::false,
			created_at => '2026-08-22T10:00:00Z', spec => { labels => { 'sbx-router-id' => $name } } });
}

# A frame of a WebSocket; its kind with the final bit.
sub frame
{
	my ($kind, $bytes) = @_;
	my $length = length $bytes;

	return pack('CC', $kind, $length) . $bytes if $length < 126;
	return pack('CCn', $kind, 126, $length) . $bytes if $length < 65536;
	return pack('CCQ>', $kind, 127, $length) . $bytes;
}

sub read_frame
{
	my ($client) = @_;
	my ($kind, $length) = unpack 'CC', read_exactly($client, 2);

	POSIX::_exit(3) unless $length & 0x80;
	$length &= 0x7f;
	$length = unpack 'n', read_exactly($client, 2) if $length == 126;
	$length = unpack 'Q>', read_exactly($client, 8) if $length == 127;
	my $mask = read_exactly($client, 4);
	my $bytes = read_exactly($client, $length);
	return ($kind, $bytes ^ substr($mask x (length($bytes) / 4 + 1), 0, length $bytes));
}

# What the agent says: CBOR of {v, t, p}, whose p is the CBOR of the payload.
sub text { return length $_[0] < 24 ? chr(0x60 + length $_[0]) . $_[0] : pack('CC', 0x78, length $_[0]) . $_[0] }
sub bytes { return pack('CN', 0x5a, length $_[0]) . $_[0] }
sub map_of { return chr(0xa0 + @_ / 2) . join '', @_ }

sub agent
{
	my ($number, $flags, $type, @payload) = @_;
	my $body = pack('NC', $number, $flags)
	  . map_of(text('v'), chr(7), text('t'), text($type), text('p'), bytes(map_of(@payload)));

	return pack('N', length $body) . $body;
}

my $greeting = pack('NN', 0x10000000, 0x20000000) . agent(0, 0, 'core.ready');
my $started = agent(0x10000000, 0, 'core.exec.started', text('pid'), pack('Cn', 0x19, 4242));
my $exited = agent(0x10000000, 1, 'core.exec.exited', text('code'), chr(3));

sub output { return agent(0x10000000, 0, "core.exec.$_[0]", text('data'), bytes($_[1])) }

my $all = $started . output('stdout', "out\n") . output('stderr', "err\n") . $exited;

sub say { my ($client, @bytes) = @_; print $client frame(0x82, $_) foreach @bytes; return }
sub wait_for_ever { sleep 1 while sysread $_[0], my $rest, 65536; POSIX::_exit(0) }

# Until the command has all of its input; returns what was heard of the agent's frames.
sub read_command
{
	my ($client) = @_;
	my $heard = '';

	until ($heard =~ /core\.exec\.stdin.{3}\xa1\x64data\x40\z/s)
	{
		my ($kind, $bytes) = read_frame($client);

		$heard .= $bytes if $kind == 0x82;
		note_down('pong', $bytes) if $kind == 0x8a;
	}
	note_down('kill') if $heard =~ /kill -/;
	return $heard;
}

# SIOCOUTQ: what the other side's kernel does not have yet.
sub bytes_under_way
{
	my ($client) = @_;
	my $count = pack 'i', 0;

	ioctl $client, 0x5411, $count or die "SIOCOUTQ: $!";
	return unpack 'i', $count;
}

# What the backend finds when it wakes up later than the second that its command has.
sub while_it_sleeps
{
	my ($client, @bytes) = @_;
	my $backend = slurp_file("$folder/backend");

	kill 'STOP', $backend;
	sleep 0.01 until slurp_file("/proc/$backend/stat") =~ /\) T /;
	print $client join '', map { frame(0x82, $_) } @bytes;
	sleep 0.01 while bytes_under_way($client);
	sleep 1.1;
	kill 'CONT', $backend;
	return;
}

# More than it reads at a time is waiting for it then.  Buffers have to be as large for that:
# they grow with what goes through them.
sub behind_a_crowd
{
	my ($client, $last) = @_;
	my $crowd = output('stdout', 'x' x 65000);

	say($client, $started, ($crowd) x 500);
	print $client frame(0x89, 'all read?');
	read_frame($client);
	my $timeout = POSIX::SigAction->new(sub { kill 'CONT', slurp_file("$folder/backend"); note_down('no room'); POSIX::_exit(0) });
	POSIX::sigaction(POSIX::SIGALRM, $timeout);
	alarm 20;
	while_it_sleeps($client, ($crowd) x 7, $last);
	alarm 0;
	return;
}

# What comes after the command; a command that kills is always obeyed.
my %behaviour = (
	plain => sub { say($_[0], $all) },
	bytes => sub { say($_[0], split //, $all) },
	halves => sub { foreach (split //, frame(0x82, $all)) { syswrite $_[0], $_; sleep 0.001 } },
	fragments => sub {
		my ($client) = @_;

		print $client frame(0x02, substr $all, 0, 10), frame(0x89, 'beat'), frame(0x00, substr $all, 10, 7), frame(0x80, substr $all, 17);
	},
	text => sub { print { $_[0] } frame(0x81, 'text'), frame(0x82, $all) },
	ping => sub {
		my ($client) = @_;

		print $client frame(0x89, 'are you there');
		my ($kind, $bytes) = read_frame($client);
		note_down('pong', $bytes);
		say($client, $all);
	},
	flood => sub {
		my ($client) = @_;

		print $client frame(0x89, 'x' x 100) x 5000;
		read_frame($client) foreach 1 .. 5000;
		note_down('flood answered');
		say($client, $all);
	},
	large => sub {
		my ($client) = @_;

		say($client, $started, map { output('stdout', 'x' x 4096) } 1 .. 500);
		say($client, $exited);
	},
	vanish => sub { say($_[0], $started) },
	goodbye => sub { say($_[0], $started); print { $_[0] } frame(0x88, pack('n', 1000)) },
	masked => sub { print { $_[0] } "\x82\x81\1\2\3\4x" },
	rubbish => sub { say($_[0], "\0\0\0\4abcd") },
	endless => sub { say($_[0], "\x7f\xff\xff\xff") },
	failed => sub { say($_[0], agent(0x10000000, 1, 'core.exec.failed', text('kind'), text('not_found'))) },
	middle => sub { syswrite $_[0], substr(frame(0x82, $all), 0, 40); note_down('middle'); wait_for_ever($_[0]) },
	overdue => sub { while_it_sleeps($_[0], $all) },
	unfinished => sub { while_it_sleeps($_[0], $started, output('stdout', "out\n")) },
	behind => sub { behind_a_crowd($_[0], $exited) },
	'behind-nothing' => sub { behind_a_crowd($_[0], $started) },
	chatter => sub { say($_[0], $started); 1 while print { $_[0] } frame(0x82, output('stdout', 'x' x 65000)) },
	hang => sub { say($_[0], $started, output('stdout', "so far\n")); note_down('hang'); wait_for_ever($_[0]) },
);

sub accept_key { my ($head) = @_; my ($key) = $head =~ /^Sec-WebSocket-Key: *(\S+)/mi; return encode_base64(sha1($key . '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'), '') }

sub serve_agent
{
	my ($client, $head, $behaviour) = @_;
	my $accept = accept_key($head);

	return answer($client, $1, '{"error":{"code":"x"}}') if $behaviour =~ /^refused-(\d+)$/;
	$accept =~ tr/A-Za-z/B-ZAb-za/ if $behaviour eq 'wrong-key';
	wait_for_ever($client) if $behaviour eq 'silent';
	my $answer = "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: $accept\r\n";
	$answer .= 'X-Long: ' . 'x' x 70000 . "\r\n" if $behaviour eq 'long-head';
	syswrite $client, "$answer\r\n" . frame(0x82, $greeting);
	my $heard = read_command($client);
	return say($client, $exited) if $heard =~ /kill -/;
	note_down('input', length $heard);
	return say($client, agent(0x10000000, 1, 'core.exec.exited', text('code'), chr(0))) if $heard =~ /cat >"\$1"/;
	($behaviour{$behaviour} // $behaviour{plain})->($client);
	return if $behaviour eq 'vanish';
	wait_for_ever($client);
}

sub serve
{
	my ($client) = @_;

	setsockopt $client, IPPROTO_TCP, TCP_NODELAY, 1;
	$client->autoflush;
	for (;;)
	{
		my $head = read_head($client);
		my ($method, $behaviour, $path) = $head =~ m{^(\S+) /([^/]+)(\S+) } or return;
		my $body = $head =~ /^content-length: *(\d+)/mi ? read_exactly($client, $1) : '';

		note_down($method, "/$behaviour$path", $head =~ /^Authorization: (.*?)\r/m);
		if ($path =~ m{/agent$}) { return serve_agent($client, $head, $behaviour) }
		elsif ($method eq 'POST') { answer($client, 200, sandbox(decode_json($body)->{name})) }
		else { answer($client, 200, sandbox('x')) }
	}
}

my $server = fork // die "could not fork: $!";
if ($server == 0)
{
	$SIG{CHLD} = 'IGNORE';
	$SIG{TERM} = sub { POSIX::_exit(0) };
	while (1)
	{
		my $client = $listener->accept or next;
		my $child = fork // POSIX::_exit(2);

		if ($child == 0) { eval { serve($client) } or note_down($@); POSIX::_exit(0) }
		close $client;
	}
}
close $listener;
END { my $status = $?; kill 'TERM', $server if $server; $? = $status }

sub heard { return -e $diary ? slurp_file($diary) : '' }
sub forget { unlink $diary; return }

#
# A pool for each behaviour
#

my $sbx = SbxTest->new(conf => "log_statement = none\nsbx_router.trace = requests\n");
my $s = $sbx->session;
my %sandbox;

sub sandbox_of
{
	my ($behaviour) = @_;

	return $sandbox{$behaviour} //= do
	{
		$s->value('SELECT sbx_register_provider($1, $2, $3)', $behaviour, 'microsandbox',
			encode_json({ apiUrl => "http://127.0.0.1:$port/$behaviour", image => 'alpine' }));
		$s->value('SELECT sbx_set_credential($1, $2)', $behaviour, 'msb_key-of-the-test');
		$s->value('SELECT sbx_provision($1)', encode_json({ providerId => $behaviour }));
	};
}

sub descriptors
{
	return scalar grep { (readlink $_ // '') =~ /^socket:/ } glob '/proc/' . $s->pid . '/fd/*';
}

sub works
{
	my ($behaviour, $name, %options) = @_;
	my ($row, $result) = $sbx->run($s, sandbox_of($behaviour), 'echo x', %options);

	is_deeply([ @$row{qw(stdout stderr exit_code truncated)} ], [ "out\n", "err\n", 3, 0 ], "must not fire: $name")
	  or diag($result->everything);
	return;
}

# Which code and hint a run fails with, and that its command is ended where it may be running.
sub fails
{
	my ($behaviour, $code, $hint, $kills, $name, %options) = @_;

	sandbox_of($behaviour);
	forget();
	my (undef, $result) = $sbx->run($s, sandbox_of($behaviour), 'echo x', %options);

	is(failure_of($result), $code ? "SB008 $code" : 'SB008', "must fire: $name") or diag($result->everything);
	like($result->hint, $hint, 'with this hint');
	is(scalar(() = heard() =~ /^kill$/mg), $kills, $kills ? 'what may be running is ended' : 'nothing runs that had to be ended');
	return;
}

works('plain', 'as it has to be');
my $sockets = descriptors();
like(heard(), qr{^GET /plain/v1/sandboxes/$id/agent Bearer msb_key-of-the-test$}m, 'its request has the key');
my ($line) = slurp_file($sbx->node->logfile) =~ m{(sandbox request: operation=runScript .*)};
like($line, qr{method=GET host=127\.0\.0\.1:$port path=/plain/v1/sandboxes/$id/agent status=101 connection=new .* total=[\d.]+ ms},
	'its line in the trace');
works('bytes', 'a message for every byte');
works('halves', 'the bytes of a message one by one');
works('fragments', 'a message in fragments, a ping between them');
works('text', 'text between the messages');
forget();
works('ping', 'a ping');
like(heard(), qr/^pong are you there$/m, 'is answered');
works('flood', 'pings without end');
like(heard(), qr/^flood answered$/m, 'are answered, too');

my ($row) = $sbx->run($s, sandbox_of('large'), 'echo x');
is(length $row->{stdout}, 500 * 4096, 'must not fire: two megabytes');
$s->value("SET sbx_router.max_script_output = '64kB'");
($row) = $sbx->run($s, sandbox_of('large'), 'echo x');
is_deeply([ length $row->{stdout}, @$row{qw(truncated exit_code)} ], [ 65536, 1, 3 ], 'of which as much is kept as is allowed');
$s->value('RESET sbx_router.max_script_output');
forget();
my (undef, $long) = $sbx->run($s, sandbox_of('input'), ': ' . 'x' x 900_000);
like(heard(), qr/^input 90\d{4}$/m, 'must not fire: nearly a megabyte the other way') or diag($long->everything);
$s->value(q{SELECT sbx_upload($1, '/x', convert_to(repeat('x', 8000000), 'UTF8'))}, sandbox_of('input'));
like(heard(), qr/^input 80\d{5}$/m, 'must not fire: eight of them, from a file');

#
# What goes wrong
#

my $malformed = qr/not what its interface promises/;
my $broken = qr/connection broke before/;
my $killed = qr/script was killed/;

fails('refused-401', 'UNAUTHORIZED', qr/status: 401/, 0, 'a key that is refused');
fails('refused-404', 'SANDBOX_GONE', qr/no such sandbox/, 0, 'no sandbox');
fails('refused-409', 'NOT_STARTED', qr/sbx_start/, 0, 'a sandbox that does not run');
fails('refused-500', undef, qr/status: 500/, 0, 'a provider in trouble');
fails('wrong-key', undef, $malformed, 0, 'an answer to another key');
fails('long-head', undef, $malformed, 0, 'an answer without end');
fails('masked', undef, $malformed, 1, 'what no server says');
fails('rubbish', undef, $malformed, 1, 'a frame that is none');
fails('endless', undef, $malformed, 1, 'a frame of two gigabytes');
fails('vanish', undef, $broken, 1, 'a connection that ends without a word');
fails('goodbye', undef, $broken, 1, 'a goodbye before the end');
fails('failed', 'NOT_RUN', $malformed, 0, 'a command that could not be started');
fails('middle', 'TIMEOUT', $killed, 1, 'the time is over in the middle of a frame', timeout => '300ms');
fails('hang', 'TIMEOUT', $killed, 1, 'the time is over', timeout => '300ms');

# Its time is over before anybody looks.
append_to_file("$folder/backend", $s->pid);
works('overdue', 'a result that had come in time, looked at too late', timeout => '1s');
fails('unfinished', 'TIMEOUT', $killed, 1, 'no result, looked at too late', timeout => '1s');
forget();
($row, my $behind) = $sbx->run($s, sandbox_of('behind'), 'echo x', timeout => '1s');
SKIP:
{
	skip 'buffers do not grow here', 1 if heard() =~ /^no room$/m;
	is($row->{exit_code}, 3, 'must not fire: a result that had come in time, behind much output')
	  or diag($behind->everything);
}
fails('behind-nothing', 'TIMEOUT', $killed, 1, 'no result behind much output', timeout => '1s');
fails('chatter', 'TIMEOUT', $killed, 1, 'output without end', timeout => '300ms');
works('plain', 'and after all that');
is(descriptors(), $sockets, 'no socket is left over');

$s->value('SET sbx_router.allow_private_addresses = off');
my (undef, $denied) = $sbx->run($s, sandbox_of('plain'), 'x');
like($denied->hint, qr/address is not allowed/, 'must fire: an address that is not allowed');
$s->value('RESET sbx_router.allow_private_addresses');

#
# Through a proxy: a tunnel, also to where no TLS is spoken
#

sub relay
{
	my ($one, $other) = @_;
	my $select = IO::Select->new($one, $other);

	for (;;)
	{
		foreach my $from ($select->can_read)
		{
			sysread $from, my $bytes, 65536 or POSIX::_exit(0);
			syswrite $from == $one ? $other : $one, $bytes;
		}
	}
}

my $gate = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1') or die "no listener: $!";
my $proxy = fork // die "could not fork: $!";
if ($proxy == 0)
{
	$SIG{CHLD} = 'IGNORE';
	$SIG{TERM} = sub { POSIX::_exit(0) };
	while (1)
	{
		my $client = $gate->accept or next;
		next if fork;
		my ($line) = read_head($client) =~ /^(.*)\r/;
		note_down('proxy', $line);
		POSIX::_exit(0) unless $line =~ /^CONNECT 127\.0\.0\.1:$port /;
		syswrite $client, "HTTP/1.1 200 x\r\n\r\n";
		relay($client, IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port"));
	}
}
my $gate_port = $gate->sockport;
close $gate;

forget();
$s->value("SET sbx_router.proxy = 'http://127.0.0.1:$gate_port'");
works('plain', 'through a proxy');
is(scalar(() = heard() =~ m{^proxy CONNECT 127\.0\.0\.1:$port HTTP/1\.1$}mg), 1, 'by a tunnel');
unlike(heard(), qr/^proxy .*(?:msb_|Bearer)/m, 'which is not told the key');
kill 'TERM', $proxy;
waitpid $proxy, 0;
fails('plain', undef, qr/reached/, 0, 'no proxy');
$s->value('RESET sbx_router.proxy');
is(descriptors(), $sockets, 'no socket is left over of those');

#
# Cut short
#

foreach my $behaviour ('silent', 'hang', 'middle')
{
	my $start = time;

	sandbox_of($behaviour);
	$s->value("SET statement_timeout = '300ms'");
	my (undef, $result) = $sbx->run($s, $sandbox{$behaviour}, 'x');
	$s->value('RESET statement_timeout');
	is($result->sqlstate, '57014', "must fire: statement_timeout, $behaviour");
	cmp_ok(time - $start, '<', 5, 'at once');
	works('plain', "after that, $behaviour");
}
is(descriptors(), $sockets, 'no socket is left over of those either');

my $watch = $sbx->session;
foreach my $way ('pg_cancel_backend', 'pg_terminate_backend')
{
	my $other = $sbx->session;

	$other->value('SELECT sbx_set_credential($1, $2)', 'hang', 'key');
	forget();
	$other->send("SELECT * FROM sbx_run_script('$sandbox{hang}', 'x')");
	poll('the command runs', sub { heard() =~ /^hang$/m });
	$watch->value("SELECT $way(\$1)", $other->pid);
	like($other->wait->sqlstate, qr/^57/, "must fire: $way in the middle");
}

done_testing();
