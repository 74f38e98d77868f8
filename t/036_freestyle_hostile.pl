# Freestyle, played by a server that means no good: answers that come late, break off, are
# about others or lead elsewhere, and statements that end in the middle of each.
#
# Whatever it says, no sandbox is lost without a word, nobody else's is destroyed, and the
# key goes nowhere else.  Behaviour comes in pairs: "must fire" is the defect, "must not
# fire" its harmless kin.
use strict;
use warnings;

use IO::Socket::INET;
use JSON::PP;
use PostgreSQL::Test::Utils;
use POSIX ();
use SbxTest;
use Socket qw(IPPROTO_TCP SO_LINGER SOL_SOCKET TCP_NODELAY);
use Test::More;

my $key = 'key-that-stays-at-home';

#
# What it keeps: a file for each machine, for each promise, and for what it was told to do
# to whom.  A line in its diary is a request.
#

my $folder = PostgreSQL::Test::Utils::tempdir();
my $diary = "$folder/diary";
my $listener = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1') or die "no listener: $!";
my $port = $listener->sockport;
my $origin = "http://127.0.0.1:$port";

# Who comes here was led astray; a line for each, with what it brought.
my $trap = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1') or die "no listener: $!";
my $elsewhere = '127.0.0.1:' . $trap->sockport;

mkdir "$folder/$_" or die "$folder/$_: $!" foreach qw(vm promise orders);

sub note_down
{
	open my $file, '>>', $diary or die "$diary: $!";
	syswrite $file, "@_\n";
	return;
}

sub keep
{
	my ($kind, $name, $what) = @_;

	open my $file, '>', "$folder/$kind.$$" or die "$folder/$kind: $!";
	print $file encode_json($what);
	close $file;
	rename "$folder/$kind.$$", "$folder/$kind/$name" or die "$name: $!";
	return;
}

sub kept
{
	my ($kind, $name) = @_;

	return -e "$folder/$kind/$name" ? decode_json(slurp_file("$folder/$kind/$name")) : undef;
}

sub all_kept { my ($kind) = @_; return grep { defined } map { kept($kind, s{.*/}{}r) } glob "$folder/$kind/*" }
sub drop { my ($kind, $name) = @_; return unlink "$folder/$kind/$name" }

#
# The server: a process for each connection.
#

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

sub wait_for_ever { sysread($_[0], my $rest, 65536) or POSIX::_exit(0) while 1 }

sub head
{
	my ($status, $length, @lines) = @_;

	return join "\r\n", "HTTP/1.1 $status x", 'Content-Type: application/json', "Content-Length: $length", @lines, '', '';
}

sub answer
{
	my ($client, $status, $body, @lines) = @_;

	$body = encode_json($body) if ref $body;
	print $client head($status, length $body, @lines), $body;
	return;
}

sub refusal { return { code => $_[0], message => 'no' } }

# All of these have done what was asked for, which nobody is told.
my %instead = (
	hang => sub { wait_for_ever($_[0]) },
	promise => sub {
		my ($client, $status, $body) = @_;
		my $id = "ri-$$-" . int rand 1e9;

		keep('promise', $id, { status => $status, body => $body });
		answer($client, 202, { requestId => $id, resultUrl => "/v5/background-requests/$id" });
	},
	reset => sub {
		my ($client, $status, $body) = @_;

		$body = encode_json($body);
		syswrite $client, head($status, length $body) . substr $body, 0, length($body) / 2;
		setsockopt $client, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0);
		close $client;
		POSIX::_exit(0);
	},
	cut => sub { syswrite $_[0], head(200, 100) . '{"id":'; close $_[0]; POSIX::_exit(0) },
	drip => sub { my ($client, $status, $body) = @_; $body = encode_json($body); syswrite $client, $_ foreach split //, head($status, length $body) . $body },
	huge => sub {
		my ($client) = @_;

		$SIG{PIPE} = 'DEFAULT';
		syswrite $client, head(200, 70 << 20);
		print $client ' ' x (1 << 20) foreach 1 .. 70;
	},
	deep => sub { answer($_[0], 200, '{"id":' . '[' x 200_000 . ']' x 200_000 . '}') },
	page => sub { answer($_[0], 200, '<html>') },
	empty => sub { answer($_[0], 200, '') },
	list => sub { answer($_[0], 200, '[]') },
	foreign => sub { answer($_[0], 200, kept('vm', 'vm-foreign')) },
	namesake => sub { my ($client, undef, $body) = @_; answer($client, 200, { %{ kept('vm', 'vm-foreign') }, slug => $body->{slug} }) },
	climber => sub { my ($client, undef, $body) = @_; answer($client, 200, { %$body, id => '../background-requests/x' }) },
	nameless => sub { my ($client, undef, $body) = @_; my %rest = %$body; delete $rest{id}; answer($client, 200, \%rest) },
	starting => sub {
		my ($client, $status, $body) = @_;

		keep('vm', $body->{id}, { %$body, state => 'starting' });
		answer($client, $status, kept('vm', $body->{id}));
	},
	head => sub { syswrite $_[0], "HTTP/1.1 200 x\r\n" . "X-Header: " . ('x' x 1000 . "\r\nX-Header: ") x 2000 . "\r\n\r\n" },
);

# Ways to say that the answer is somewhere else, or that the machine is.
my @elsewhere = (
	"http://$elsewhere/v5/background-requests/ri-1",
	"//$elsewhere/v5/background-requests/ri-1",
	"$origin\@$elsewhere/v5/background-requests/ri-1",
	"http://127.0.0.1:$port.$elsewhere/v5/background-requests/ri-1",
	"\@$elsewhere/v5/background-requests/ri-1",
	"/v5/background-requests/../../\@$elsewhere/",
	"/v5/background-requests/ri-1?to=http://$elsewhere/",
	"/v5/background-requests/ri-1#x",
	"/v5/background-requests/%2e%2e",
	"/v5/background-requests/",
	"/v5/background-requests/ri-1\r\nHost: $elsewhere",
	'');
foreach my $which (0 .. $#elsewhere)
{
	$instead{"elsewhere-$which"} = sub { answer($_[0], 202, { requestId => 'ri-1', resultUrl => $elsewhere[$which] }) };
}
$instead{'id-header'} = sub { answer($_[0], 202, {}, "X-Freestyle-Background-Request-Id: \@$elsewhere/?") };
$instead{'id-body'} = sub { answer($_[0], 202, { requestId => "../../../\@$elsewhere/" }) };
foreach my $status (302, 307, 308)
{
	$instead{"redirect-$status"} = sub { answer($_[0], $status, '', "Location: http://$elsewhere/v5/vms", "Refresh: 0; url=http://$elsewhere/") };
}

sub carry_out_poll
{
	my ($client, $id, $order) = @_;
	my $promise = kept('promise', $id) or return answer($client, 404, refusal('NOT_FOUND'));
	my $first = !$promise->{asked};
	my @whose = ("X-Freestyle-Background-Request-Id: $id");

	$promise->{asked} = 1;
	keep('promise', $id, $promise);
	return answer($client, 202, {}) if $order eq 'pending' || ($first && $order ne '');
	return answer($client, $1, refusal('NOT_FOUND')) if $order =~ /^then-(\d+)$/;
	return answer($client, $1, refusal('INTERNAL_ERROR'), @whose) if $order =~ /^then-own-(\d+)$/;
	return $instead{$order}->($client, $promise->{status}, $promise->{body}) if $order ne '';
	return answer($client, $promise->{status}, $promise->{body}, @whose);
}

sub find_vm
{
	my ($name) = @_;

	return (grep { $_->{id} eq $name || ($_->{slug} // '') eq $name } all_kept('vm'))[0];
}

# What was asked for, and what it is answered with if nothing was ordered.
sub operate
{
	my ($method, $path, $body) = @_;
	my ($name, $rest) = $path =~ m{^/v5/vms/([^/]+)(.*)$};

	if (!defined $name)
	{
		return ('list', 200, { items => [ all_kept('vm') ], totalCount => scalar(my @all = all_kept('vm')) }) if $method eq 'GET';
		my $asked = decode_json($body);
		my $id = "vm-$$-" . int rand 1e9;

		keep('vm', $id, { id => $id, slug => $asked->{slug}, metadata => $asked->{metadata}, state => 'running', createdAt => '2026-12-01T00:00:00Z' });
		return ('create', 200, kept('vm', $id));
	}
	my $vm = find_vm($name) or return ('look', 404, refusal('NOT_FOUND'));
	return ('look', 200, $vm) if $rest eq '' && $method eq 'GET';
	if ($rest eq '')
	{
		return ('destroy', 204, '') if kept('orders', 'keep');
		drop('vm', $vm->{id});
		note_down('destroyed', $vm->{id});
		return ('destroy', 204, '');
	}
	if ($rest =~ m{^/(start|pause)$})
	{
		$vm->{state} = $1 eq 'start' ? 'running' : 'paused';
		keep('vm', $vm->{id}, $vm);
		return ($1, 200, $vm);
	}
	return ('kill', 200, { statusCode => 0, stdout => '', stderr => '' }) if $rest eq '/exec-await' && $body =~ /"timeoutMs":10000\b/;
	return ('run', 200, { statusCode => 3, stdout => "out\n", stderr => "err\n" }) if $rest eq '/exec-await';
	return ('begin', 200, { uploadId => 'up-1' }) if $rest eq '/fs/uploads';
	return ('drop', 204, '') if $method eq 'DELETE';
	return ('commit', 200, {}) if $rest =~ m{/commit$};
	return ('piece', 200, { receivedBytes => length $body }) if $rest =~ m{^/fs/uploads/};
	return ('stat', 200, { size => 9 << 20 }) if $rest =~ m{^/fs/stat};
	return ('read', 200, 'content') if $rest =~ m{^/fs/read};
	return ('write', 200, {});
}

sub serve
{
	my ($client) = @_;

	setsockopt $client, IPPROTO_TCP, TCP_NODELAY, 1;
	$client->autoflush;
	for (;;)
	{
		my $head = '';

		$head .= read_exactly($client, 1) until $head =~ /\r\n\r\n\z/;
		my ($method, $path) = $head =~ m{^(\S+) (\S+) } or return;
		my $body = $head =~ /^content-length: *(\d+)/mi ? read_exactly($client, $1) : '';
		my ($op, $status, $answer) = ('poll');
		my $order;

		($op, $status, $answer) = operate($method, $path, $body) unless $path =~ m{^/v5/background-requests/};
		$order = kept('orders', $op);
		drop('orders', $op) if $order && $order->{once};
		$order = $order->{do} // '';
		note_down($op, $method, $path, $order);
		if ($op eq 'poll') { carry_out_poll($client, $path =~ m{([^/]+)$}, $order) }
		elsif ($order =~ /^status-(\d+)$/) { answer($client, $1, refusal('X')) }
		elsif ($order ne '') { $instead{$order}->($client, $status, $answer) }
		else { answer($client, $status, $answer) }
	}
}

sub run_server
{
	my ($from, $serve) = @_;
	my $server = fork // die "could not fork: $!";

	return $server if $server != 0;
	$SIG{CHLD} = 'IGNORE';
	$SIG{TERM} = sub { POSIX::_exit(0) };
	while (1)
	{
		my $client = $from->accept or next;
		my $child = fork // POSIX::_exit(2);

		if ($child == 0) { srand; eval { $serve->($client) } or note_down($@); POSIX::_exit(0) }
		close $client;
	}
}

my @servers = (run_server($listener, \&serve),
	run_server($trap, sub { sysread $_[0], my $bytes, 65536; append_to_file("$folder/astray", ($bytes // '') . "\n") }));
close $listener;
close $trap;
END { my $status = $?; kill 'TERM', @servers if @servers; $? = $status }

#
# The test's side
#

my $sbx = SbxTest->new(emulator => ['--no-exec'], conf => "sbx_router.abort_cleanup_timeout = '5s'\n");
$sbx->node->safe_psql('postgres', qq{SELECT sbx_register_provider('box', 'freestyle', '{"apiUrl":"$origin"}')});
my $s = $sbx->user('box', $key);
my $watch = $sbx->session;

sub heard { return -e $diary ? slurp_file($diary) : '' }
sub order { my (%orders) = @_; keep('orders', $_, { do => $orders{$_} }) foreach keys %orders; return }
sub order_once { my (%orders) = @_; keep('orders', $_, { do => $orders{$_}, once => 1 }) foreach keys %orders; return }
sub no_orders { drop('orders', s{.*/}{}r) foreach glob "$folder/orders/*"; return }

my %others = ('vm-foreign' => { sbx => 'x' }, 'vm-neighbour' => { 'sbx-router-id' => 'sbx_' . '7' x 32 });

sub clean
{
	no_orders();
	drop('vm', s{.*/}{}r) foreach glob "$folder/vm/*";
	keep('vm', $_, { id => $_, slug => $_, state => 'running', metadata => $others{$_}, createdAt => '2026-12-01T00:00:00Z' }) foreach keys %others;
	$watch->value('DELETE FROM sbx_mapping');
	unlink $diary;
	return $sbx->log_place;
}

# Those that we have made, by our ids; as they are now.
sub ours { return sort map { $_->{metadata}{'sbx-router-id'} } grep { !$others{ $_->{id} } } all_kept('vm') }
sub rows { return sort split /,/, $watch->value(q{SELECT string_agg(id::text, ',') FROM sbx_mapping}) // '' }

# What holds whatever happens; the place is that of the log before.
sub accounted_for
{
	my ($place, $name) = @_;
	my %known = map { $_ => 1 } rows(), $sbx->log_since($place) =~ /WARNING: .*?(sbx_[0-9a-f]{32})/g;
	my @lost = grep { !$known{$_} } ours();

	is_deeply(\@lost, [], "nothing is lost without a word: $name");
	is(scalar(grep { kept('vm', $_) } keys %others), 2, 'and what is not ours is there');
	return;
}

# SQLSTATE and what is proven of a launch.
sub launch_failure
{
	my ($result) = @_;
	my $detail = json($result->detail);

	return join ' ', $result->sqlstate // 'none', ref $detail ? $detail->{allocation} // '' : '';
}

#
# Creates that are answered with anything
#

my $place = clean();
ok(my $id = $s->value('SELECT sbx_provision()'), 'must not fire: a machine as it should be');
is_deeply([ ours() ], [$id], 'is there');
is($sbx->run($s, $id, 'x')->{exit_code}, 3, 'and works');
$place = clean();
order(create => 'drip');
ok($s->value('SELECT sbx_provision()'), 'must not fire: an answer byte by byte');

foreach my $how (qw(reset cut huge deep page empty list foreign namesake climber nameless head id-header id-body),
	(map { "elsewhere-$_" } 0 .. $#elsewhere), map { "redirect-$_" } 302, 307, 308)
{
	$place = clean();
	order(create => $how);
	my $result = $s->execute('SELECT sbx_provision()');
	is(launch_failure($result), 'SB005 unknown', "must fire: a create that is answered with $how")
	  or diag($result->everything);
	is_deeply([ ours() ], [], 'what was made is found by its slug and destroyed') or diag($sbx->log_since($place), heard());
	accounted_for($place, $how);
}

foreach my $how (qw(then-404 then-410 then-500 then-own-500 huge deep))
{
	$place = clean();
	order(create => 'promise', poll => $how);
	my $result = $s->execute('SELECT sbx_provision()');
	is(launch_failure($result), 'SB005 unknown', "must fire: a promise that turns to $how") or diag($result->everything);
	is_deeply([ ours() ], [], 'what was made is found by its slug and destroyed') or diag($sbx->log_since($place), heard());
	accounted_for($place, $how);
}

#
# Looks by slug that lie
#

foreach my $how (qw(foreign page deep huge status-403 status-500))
{
	$place = clean();
	$s->value("SET sbx_router.abort_cleanup_timeout = '300ms'");
	order(create => 'page', look => $how);
	$s->execute('SELECT sbx_provision()');
	is(scalar(my @left = ours()), 1, "must fire: the slug is answered with $how: it stays");
	accounted_for($place, "a slug that is answered with $how");
	unlike(heard(), qr/^destroyed/m, 'nothing was destroyed');
	$s->value('RESET sbx_router.abort_cleanup_timeout');
}

#
# Statements that end in the middle
#

# What is asked for, what the server does to it, and what is heard when it has come so far.
my @phases = (
	[ 'a create that is not answered', undef, { create => 'hang' }, qr/^create /m ],
	[ 'a create whose answer is promised', undef, { create => 'promise', poll => 'pending' }, qr/^poll /m ],
	[ 'a machine that is starting', undef, { create => 'starting' }, qr/^create .*\n(?:.*\n)*?look /m ],
	[ 'a script that is not answered', "SELECT * FROM sbx_run_script('ID', 'x')", { run => 'hang' }, qr/^run /m ],
	[ 'a script whose answer is promised', "SELECT * FROM sbx_run_script('ID', 'x')", { run => 'promise', poll => 'pending' }, qr/^poll /m ],
	[ 'a piece of a file', "SELECT sbx_upload('ID', '/x', decode(repeat('61', 9 << 20), 'hex'))", { piece => 'hang' }, qr/^piece /m ],
	[ 'a stop', "SELECT sbx_stop('ID')", { pause => 'hang' }, qr/^pause /m ],
	[ 'a destroy that is not answered', "SELECT sbx_destroy('ID')", { destroy => 'hang' }, qr/^destroy /m ],
	[ 'a destroy whose end is promised', "SELECT sbx_destroy('ID')", { destroy => 'promise', poll => 'pending' }, qr/^poll /m ],
);

sub end_in_the_middle
{
	my ($phase, $way) = @_;
	my ($name, $sql, $orders, $reached) = @$phase;
	my $user = $sbx->user('box', $key);
	my $pid = $user->pid;

	$place = clean();
	$user->query('BEGIN') if $way eq 'ROLLBACK';
	my $made = $user->value('SELECT sbx_provision()');
	$user->query('SAVEPOINT here') if $way eq 'ROLLBACK';
	unlink $diary;
	order(%$orders);
	$user->value("SET statement_timeout = '400ms'") if $way eq 'statement_timeout';
	$user->send(defined $sql ? $sql =~ s/ID/$made/r : 'SELECT sbx_provision()');
	poll($name, sub { heard() =~ $reached }) if $way ne 'statement_timeout';
	no_orders() if $way ne 'statement_timeout';
	$watch->value("SELECT $way(\$1)", $pid) if $way =~ /^pg_/;
	$watch->value('SELECT pg_cancel_backend($1)', $pid) if $way eq 'ROLLBACK';
	like($user->wait->sqlstate, qr/^57/, "must fire: $way: $name");
	$user->query('ROLLBACK') if $way eq 'ROLLBACK';
	$sbx->wait_ended($pid) if $way eq 'pg_terminate_backend';
	accounted_for($place, "$way: $name");
	if ($way eq 'ROLLBACK') { is_deeply([ [ ours() ], [ rows() ] ], [ [], [] ], 'all that the transaction made is gone') }
	elsif (!defined $sql) { is_deeply([ [ ours() ], [ rows() ] ], [ [$made], [$made] ], 'the new one is gone, the old one is there') }
	elsif ($sql =~ /destroy/) { is_deeply([ rows() ], [$made], 'its row is kept, for another attempt') }
	else { is_deeply([ [ ours() ], [ rows() ] ], [ [$made], [$made] ], 'the sandbox is there') }
	return;
}

foreach my $phase (@phases)
{
	end_in_the_middle($phase, $_) foreach qw(pg_cancel_backend pg_terminate_backend ROLLBACK);
}
end_in_the_middle($_, 'statement_timeout') foreach @phases[ 1, 4 ];

#
# Where the key went
#

ok(!-e "$folder/astray", 'must not fire: nobody was led astray') or diag(slurp_file("$folder/astray"));
IO::Socket::INET->new($elsewhere)->syswrite($key);
poll('must fire: who is, is heard', sub { -e "$folder/astray" });

done_testing();
