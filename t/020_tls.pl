# TLS: who is spoken to is verified, and nothing is sent to anybody else.
#
# Behaviour comes in pairs: "must fire" is what is refused, "must not fire" its harmless kin.
use strict;
use warnings;

use IO::Socket::INET;
use PostgreSQL::Test::Utils;
use POSIX ();
use SbxKinds;
use SbxTest;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir();

# Somebody's credentials for this very host, where libcurl would look for them.
mkdir "$folder/home" or die "no folder: $!";
PostgreSQL::Test::Utils::append_to_file("$folder/home/.netrc",
	"machine 127.0.0.1 login somebody password secret-of-netrc\ndefault login any password secret-of-netrc\n");
chmod 0600, "$folder/home/.netrc";

sub openssl
{
	system('openssl', @_) == 0 or die "openssl @_ failed";
	return;
}

#
# Authorities and certificates
#

my @key = qw(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -batch);
open my $saved, '>&', \*STDERR or die $!;
open STDERR, '>', "$folder/openssl.log" or die $!;
foreach my $authority ('ours', 'theirs')
{
	openssl('req', '-x509', @key, '-keyout', "$folder/$authority.key", '-out', "$folder/$authority.pem",
		'-subj', "/CN=$authority", '-days', 2);
}

# certificate(name, authority or undef for its own, address it is for, days it is good for)
sub certificate
{
	my ($name, $authority, $address, $days) = @_;
	my $base = "$folder/$name";

	if (!defined $authority)
	{
		openssl('req', '-x509', @key, '-keyout', "$base.key", '-out', "$base.pem", '-subj', '/CN=self', '-days', $days,
			'-addext', "subjectAltName=$address");
		return;
	}
	PostgreSQL::Test::Utils::append_to_file("$base.ext", "subjectAltName=$address\n");
	openssl('req', '-new', @key, '-keyout', "$base.key", '-out', "$base.csr", '-subj', "/CN=$name");
	openssl('x509', '-req', '-in', "$base.csr", '-CA', "$folder/$authority.pem", '-CAkey', "$folder/$authority.key",
		'-CAcreateserial', '-days', $days, '-extfile', "$base.ext", '-out', "$base.pem");
	return;
}
certificate('right', 'ours', 'IP:127.0.0.1', 2);
certificate('other-name', 'ours', 'IP:127.0.0.2', 2);
certificate('host-name', 'ours', 'DNS:api.example.com', 2);
certificate('expired', 'ours', 'IP:127.0.0.1', -1);
certificate('self-signed', undef, 'IP:127.0.0.1', 2);
certificate('another-authority', 'theirs', 'IP:127.0.0.1', 2);
open STDERR, '>&', $saved or die $!;

#
# Servers
#

local $ENV{HOME} = "$folder/home";
my $sbx = SbxTest->new(conf => "log_statement = none\n");
my %server = map { $_ => $sbx->beside('--tls', "$folder/$_.pem", "$folder/$_.key") }
  qw(right other-name host-name expired self-signed another-authority);
my $s = $sbx->session;

# What one that speaks TLS has been asked, by its own word.
sub control
{
	my ($name, $path, @options) = @_;
	my $answer = qx{curl -sS --insecure --netrc-file /dev/null @options $server{$name}{url}/_control/$path};

	return JSON::PP::decode_json($answer);
}

sub count_requests { return scalar @{ control($_[0], 'requests?since=0')->{requests} } }

# Pools at an address, one of each kind.
sub register
{
	my ($name, $url) = @_;

	$s->value('SELECT sbx_register_provider($1, $2, $3)', "$name-$_", $_, kind_settings($_, $url)) foreach kinds();
	return;
}
register($_, $server{$_}->url) foreach sort keys %server;
register('plain-at-tls', $server{right}->url =~ s/^https/http/r);
register('tls-at-plain', $sbx->url =~ s/^http/https/r);
my @addresses = (sort(keys %server), 'plain-at-tls', 'tls-at-plain');

sub user
{
	my ($ca_file) = @_;
	my $session = $sbx->session;

	foreach my $kind (kinds())
	{
		$session->value('SELECT sbx_set_credential($1, $2)', "$_-$kind", kind_credential($kind, 'key-of-the-test')) foreach @addresses;
	}
	$session->value(q{SET sbx_router.abort_cleanup_timeout = '100ms'});
	$session->value("SET sbx_router.ca_file = '$ca_file'") if defined $ca_file;
	return $session;
}

sub provision { return $_[0]->execute('SELECT sbx_provision($1)', qq({"providerId":"$_[1]"})) }
my $user = user("$folder/ours.pem");

#
# The right one
#

foreach my $kind (kinds())
{
	my $id = provision($user, "right-$kind")->value;
	is($sbx->run($user, $id, 'echo over TLS')->{stdout}, "over TLS\n", "$kind: must not fire: a script");

	# More than a record, and than what is read at a time.
	my ($row) = $sbx->run($user, $id, 'i=0; while [ $i -lt 300 ]; do printf "%01000d" $i; i=$((i + 1)); done; echo; echo end >&2');
	is_deeply([ length $row->{stdout}, $row->{stderr} ], [ 300_001, "end\n" ], "$kind: must not fire: a long one");
	$user->value('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/file', 'content');
	is($user->value(q{SELECT convert_from(sbx_download($1, '/tmp/file'), 'UTF8')}, $id), 'content', "$kind: must not fire: a file");
	is($user->value('SELECT sbx_destroy($1)', $id), 't', "$kind: must not fire: and its end");
}
ok((!grep { ($_->{headers}{authorization} // '') =~ /Basic/i } @{ control('right', 'requests?since=0')->{requests} }),
	'must not fire: nothing of .netrc is sent');
my ($e2b) = grep { $_->{path} =~ m{^/e2b/} } @{ control('right', 'requests?since=0')->{requests} };
ok(!exists $e2b->{headers}{authorization}, 'must not fire: not even where there is no header of that name');

#
# Anybody else: refused before anything is sent
#

sub check_refused
{
	my ($session, $name, $why) = @_;

	foreach my $kind (kinds())
	{
		my $before = exists $server{$name} ? count_requests($name) : $sbx->mark;
		my $result = provision($session, "$name-$kind");
		is($result->sqlstate, 'SB005', "$why, $kind: must fire: no sandbox") or diag $result->everything;
		is(json($result->detail)->{allocation}, 'none', "$why, $kind: and provably nothing was made");
		like($result->hint, qr/No secure connection.*sbx_router\.ca_file/, "$why, $kind: with advice");
		is(scalar(my @warnings = $result->warnings), 0, "$why, $kind: nothing is left to look for");
		is(exists $server{$name} ? count_requests($name) : $sbx->mark, $before, "$why, $kind: nothing was sent");
	}
	ok(!provision($session, 'right-e2b')->error, "$why: must not fire: the next call in the session") if defined $_[3];
	return;
}
check_refused($user, 'other-name', 'another address in the certificate', 1);
check_refused($user, 'host-name', 'a host name in the certificate', 1);
check_refused($user, 'expired', 'an expired certificate', 1);
check_refused($user, 'self-signed', 'a certificate that is its own authority', 1);
check_refused($user, 'another-authority', 'an authority that is not ours', 1);
check_refused($user, 'tls-at-plain', 'a server that does not speak TLS', 1);
check_refused(user(), 'right', "the system's authorities, which do not know ours");
check_refused(user("$folder/theirs.pem"), 'right', 'a file with another authority');
check_refused(user("$folder/right.key"), 'right', 'a file without any certificate');

# Here the request left: in the clear, to a server that cannot read it.
{
	my $result = provision($user, 'plain-at-tls-e2b');
	is($result->sqlstate, 'SB005', 'plain http where TLS is spoken: must fire');
	is(json($result->detail)->{allocation}, 'unknown', 'plain http where TLS is spoken: it was sent, so nothing is proven');
}

# The authority that another one needs is enough for that one.
ok(!provision(user("$folder/theirs.pem"), 'another-authority-e2b')->error, 'must not fire: the file of that authority');
ok(!provision(user("$folder/self-signed.pem"), 'self-signed-e2b')->error, 'must not fire: the file of the certificate itself');

#
# The setting
#

my $nowhere = user("$folder/nowhere.pem");
my $result = provision($nowhere, 'right-e2b');
is($result->sqlstate, '58P01', 'a file that is not there: must fire: an error of its own');
like($result->message, qr/could not access CA file ".*nowhere\.pem"/, 'which names it');
like($result->hint, qr/sbx_router\.ca_file/, 'and the setting');
$nowhere->value("SET sbx_router.ca_file = '$folder/ours.pem'");
ok(!provision($nowhere, 'right-e2b')->error, 'a file that is there: must not fire');
$sbx->node->safe_psql('postgres', 'CREATE ROLE ordinary LOGIN');
is($sbx->session(user => 'ordinary')->query(qq{LOAD 'sbx_router'; SET sbx_router.ca_file = '$folder/ours.pem'})->sqlstate,
	'42501', 'must fire: nobody but a superuser sets it');

# A connection that was verified with another file does not count any more.
my $find = q{SELECT count(*) >= 0 FROM sbx_find('right-e2b', '{}')};
is($user->value($find), 't', 'must not fire: a kept connection');
$user->value("SET sbx_router.ca_file = '$folder/theirs.pem'");
is($user->query($find)->sqlstate, 'SB008', 'must fire: the same one after the file was changed');
$user->value("SET sbx_router.ca_file = '$folder/ours.pem'");
is($user->value($find), 't', 'must not fire: and back');

# The file is read once by a backend: what it says later does not matter to that one.
my $copy = "$folder/copy.pem";
PostgreSQL::Test::Utils::append_to_file($copy, slurp_file("$folder/ours.pem"));
my $early = user($copy);
is($early->value($find), 't', 'a backend that has read the file');
open my $file, '>', $copy or die $!;
print $file slurp_file("$folder/theirs.pem");
close $file;
my $mark = control('right', 'requests?since=999999999')->{last};
control('right', 'faults', '-X POST', q(-d '{"provider":"e2b","op":"list","action":"close-reused","n":1}'));
is($early->value($find), 't', 'must not fire: a new connection of that backend');
my @lists = grep { $_->{op} eq 'list' } @{ control('right', "requests?since=$mark")->{requests} };
is(scalar(@lists), 2, 'which it needed, since the kept one was closed');
is(user($copy)->query($find)->sqlstate, 'SB008', 'must fire: a new backend');

#
# Who would rather speak HTTP/2 is asked for HTTP/1.1 alone: a WebSocket begins with that
#

# A port that was free a moment ago.
my $probe = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die "no port: $!";
my $port = $probe->sockport;
close $probe;

# start_modern(): a server that prefers HTTP/2, and says what it was offered.
sub start_modern
{
	pipe my $keyboard, my $typist or die "no pipe: $!";
	unlink "$folder/said";
	my $pid = fork // die "could not fork: $!";
	if ($pid == 0)
	{
		open STDIN, '<&', $keyboard or POSIX::_exit(2);
		open STDOUT, '>', "$folder/said" or POSIX::_exit(2);
		open STDERR, '>', "$folder/log" or POSIX::_exit(2);
		exec 'openssl', 's_server', '-alpn', 'h2,http/1.1', '-accept', "127.0.0.1:$port",
		  '-cert', "$folder/right.pem", '-key', "$folder/right.key"
		  or POSIX::_exit(2);
	}
	poll("it listens", sub { -e "$folder/said" && slurp_file("$folder/said") =~ /^ACCEPT$/m });
	return ($pid, $typist);
}

foreach my $kind ('microsandbox', 'daytona')
{
	my $pool = "right-$kind";
	my $id = provision($user, $pool)->value;
	my $url = $server{right}->url =~ s/\d+\z/$port/r;

	$s->value('SELECT sbx_update_provider($1, settings => $2)', $pool, kind_settings($kind, $url));
	my ($pid, $typist) = start_modern();
	$user->send($kind eq 'daytona' ? "SELECT sbx_get('$id')" : "SELECT sbx_run_script('$id', 'true')");
	poll("$kind: the request arrives", sub { slurp_file("$folder/said") =~ m{^GET /\S+ HTTP/1\.1}m });
	kill 'KILL', $pid;
	waitpid $pid, 0;
	is($user->wait->sqlstate, 'SB008', "$kind: must fire: a server that dies with the request");
	like(slurp_file("$folder/said"), qr/^ALPN protocols advertised by the client: http\/1\.1$/m, "$kind: must not fire: nothing but HTTP/1.1 was offered");
	like(slurp_file("$folder/said"), qr/^Upgrade: websocket\r?$/m, 'and a WebSocket was asked for') if $kind eq 'microsandbox';
	$s->value('SELECT sbx_update_provider($1, settings => $2)', $pool, kind_settings($kind, $server{right}->url));
	is($user->value('SELECT sbx_destroy($1)', $id), 't', "$kind: and its end");
}

#
# Redirects
#

register('plain', $sbx->url);
push @addresses, 'plain';
my $plain = user();
my %sandbox = map { $_ => provision($plain, "plain-$_")->value } 'daytona', 'e2b';
foreach my $status (301, 302, 303, 307, 308)
{
	foreach my $kind ('daytona', 'e2b')
	{
		my %call = (
			get => "SELECT sbx_get('$sandbox{$kind}')",
			list => "SELECT sbx_find('plain-$kind', '{}')",
			run => "SELECT sbx_run_script('$sandbox{$kind}', 'true')",
			upload => "SELECT sbx_upload('$sandbox{$kind}', '/tmp/x', '')",
			delete => "SELECT sbx_destroy('$sandbox{$kind}')");
		foreach my $op (sort keys %call)
		{
			$sbx->fault(provider => $kind, op => $op, action => 'redirect', status => $status);
			is($plain->query($call{$op})->sqlstate, 'SB008', "$status, $kind, $op: must fire: a redirect is a failure");
			$sbx->clear_faults;
		}
	}
}
is($sbx->control('GET', 'redirects')->{connections}, 0, 'and nobody went there');
ok(!$plain->query("SELECT sbx_get('$sandbox{$_}')")->error, "$_: must not fire: without a redirect") foreach sort keys %sandbox;

done_testing();
