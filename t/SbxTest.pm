# SbxTest: a cluster with the extension, and an emulator of the provider.
#
# Both belong to the test file that made them and end with it.  Environment:
# SBX_EMULATOR is the emulator's program; the rest is PostgreSQL::Test's.
package SbxTest;

use strict;
use warnings;

use Carp;
use Exporter 'import';
use HTTP::Tiny;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX ();
use SbxSession;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(poll json quote failure_of);

# Seconds until a condition that is polled for counts as never coming true.
my $patience = 60;

my $json = JSON::PP->new->canonical->allow_nonref;
my @emulators;

$SIG{INT} = $SIG{TERM} = $SIG{HUP} = sub { exit 1 };

# PostgreSQL::Test sends standard error to its log; why a test died is for all to see.
$SIG{__DIE__} = sub { diag(@_) unless $^S };

#
# Plain functions
#

# poll(what, sub): until sub returns something true, which is returned.
sub poll
{
	my ($what, $condition) = @_;
	my $deadline = time + $patience;

	for (;;)
	{
		my $found = $condition->();
		return $found if $found;
		croak "never happened: $what" if time > $deadline;
		sleep 0.02;
	}
}

# What a text says as JSON; a text that is none says itself.
sub json
{
	return defined $_[0] ? eval { $json->decode($_[0]) } // $_[0] : undef;
}

# failure_of(result): what a statement that has to fail is said to fail with, SQLSTATE and
# DETAIL's code.
sub failure_of
{
	my ($result) = @_;
	my $detail = json($result->detail);

	return join ' ', grep { defined } $result->sqlstate // 'none',
	  ref $detail eq 'HASH' ? $detail->{code} : undef;
}

sub quote { return "'" . ($_[0] =~ s/'/''/gr) . "'" }

#
# Cluster and emulator
#

# new(conf => text for postgresql.conf, emulator => [its options])
sub new
{
	my ($class, %options) = @_;
	my $self = bless { http => HTTP::Tiny->new(timeout => 60) }, $class;

	$self->_start_emulator(@{ $options{emulator} // [] });
	my $node = $self->{node} = PostgreSQL::Test::Cluster->new('main');
	$node->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
	$node->append_conf(
		'postgresql.conf', qq{
fsync = off
max_prepared_transactions = 5
log_min_messages = warning
sbx_router.allow_private_addresses = on
} . ($options{conf} // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION sbx_router SCHEMA public');
	return $self;
}

# Another emulator beside this one, for the same cluster.  The controls of one that speaks
# TLS cannot be reached from here.
sub beside
{
	my ($self, @options) = @_;
	my $other = bless { node => $self->node, http => $self->{http} }, ref $self;

	$other->_start_emulator(@options);
	return $other;
}

sub node { return $_[0]->{node} }

sub _start_emulator
{
	my ($self, @options) = @_;
	my $program = $ENV{SBX_EMULATOR} // die 'SBX_EMULATOR is not set';
	my $folder = PostgreSQL::Test::Utils::tempdir();
	my $pid = fork // die "could not fork: $!";

	if ($pid == 0)
	{
		open STDIN, '<', '/dev/null' or POSIX::_exit(2);
		open STDOUT, '>', "$folder/log" or POSIX::_exit(2);
		open STDERR, '>&', \*STDOUT or POSIX::_exit(2);
		$ENV{TMPDIR} = $folder;
		exec $program, '--listen', '127.0.0.1:0', '--port-file', "$folder/port", @options
		  or POSIX::_exit(2);
	}
	push @emulators, $pid;
	poll(
		'the emulator listens',
		sub {
			if (waitpid($pid, POSIX::WNOHANG()) == $pid)
			{
				@emulators = grep { $_ != $pid } @emulators;
				die "the emulator did not start: " . slurp_file("$folder/log");
			}
			return -s "$folder/port";
		});
	my $port = slurp_file("$folder/port");
	my $scheme = (grep { $_ eq '--tls' } @options) ? 'https' : 'http';
	chomp $port;
	$self->{url} = "$scheme://127.0.0.1:$port";
	return;
}

# The provider is gone, connections included.
sub stop_emulator
{
	kill 'TERM', @emulators;
	waitpid $_, 0 foreach @emulators;
	@emulators = ();
	return;
}

# As the cluster's own END: keep the exit status.
END
{
	my $status = $?;
	stop_emulator();
	$? = $status;
}

sub url { return $_[0]->{url} }

# What a registration has as "apiUrl".
sub api { return "$_[0]->{url}/daytona/api" }

#
# Sessions
#

# A new session; the options are SbxSession's.
sub session
{
	my ($self, %options) = @_;

	return SbxSession->connect(
		host => $self->node->host,
		port => $self->node->port,
		user => (getpwuid $<)[0],
		dbname => 'postgres',
		%options);
}

# register(id, further settings): a pool that is the emulator.
sub register
{
	my ($self, $id, %settings) = @_;
	my $settings = $json->encode({ apiUrl => $self->api, %settings });

	$self->node->safe_psql('postgres',
		'SELECT sbx_register_provider(' . quote($id) . ", 'daytona', " . quote($settings) . ')');
	return;
}

# A new session that can use the pool, with this key.
sub user
{
	my ($self, $pool, $key, %options) = @_;
	my $session = $self->session(%options);

	$session->value('SELECT sbx_set_credential($1, $2)', $pool, $key // 'key-of-the-test');
	return $session;
}

# run(session, sandbox, script, env =>, cwd =>, timeout =>, session =>): the result, its row
# as a hash.
sub run
{
	my ($self, $session, $id, $script, %options) = @_;
	my $env = defined $options{env} ? $json->encode($options{env}) : '{}';
	my $result = $session->execute('SELECT * FROM sbx_run_script($1, $2, $3, $4, $5, $6)',
		$id, $script, $env, $options{cwd}, $options{timeout}, $options{session});
	my %row;

	@row{qw(output stdout stderr exit_code truncated)} = $result->row;
	$row{truncated} = 1 if ($row{truncated} // '') eq 't';
	$row{truncated} = 0 if ($row{truncated} // '') eq 'f';
	return wantarray ? (\%row, $result) : \%row;
}

# Wait until a backend is gone.
sub wait_ended
{
	my ($self, $pid) = @_;
	my $watch = $self->{watch} //= $self->session;

	return poll("backend $pid ends",
		sub { $watch->value("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") == 0 });
}

# The server log from a place on; without one, the place of now.
sub log_place { return -s $_[0]->node->logfile }

sub log_since
{
	my ($self, $place) = @_;

	return slurp_file($self->node->logfile, $place);
}

#
# The emulator's controls
#

sub control
{
	my ($self, $method, $path, $body) = @_;
	my $response = $self->{http}->request($method, "$self->{url}/_control/$path",
		defined $body ? { content => $json->encode($body) } : {});

	croak "$method $path: $response->{status} $response->{content}" unless $response->{success};
	return $json->decode($response->{content});
}

# A request of somebody else to the provider's control plane, with this key and perhaps a
# body, a hash; returns what a JSON answer says.
sub http
{
	my ($self, $method, $key, $path, $body) = @_;
	my %options = (headers => { Authorization => "Bearer $key" });

	$options{content} = $json->encode($body) if defined $body;
	my $response = $self->{http}->request($method, $self->api . $path, \%options);
	croak "$method $path: $response->{status} $response->{content}" unless $response->{success};
	return json($response->{content});
}

# One rule for things to go wrong; Daytona's unless it says otherwise.
sub fault
{
	my ($self, %rule) = @_;

	$self->control('POST', 'faults', { provider => 'daytona', %rule });
	return;
}

sub clear_faults { $_[0]->control('DELETE', 'faults'); return }

# Settings of the emulated provider: delayMs, startDelayMs, deleteConflictMs, ...
sub config
{
	my ($self, %settings) = @_;

	$self->control('POST', 'config', { provider => 'daytona', %settings });
	return;
}

# As if just started: no sandboxes, faults, settings; held answers are dropped.
sub reset { $_[0]->control('POST', 'reset', {}); return }

# Every sandbox ever made, and the names of those that are alive.
sub audit { return @{ $_[0]->control('GET', 'audit')->{sandboxes} } }

sub alive
{
	my ($self) = @_;

	return map { $_->{name} } grep { $_->{alive} } $self->audit;
}

sub wait_none_alive
{
	my ($self) = @_;

	return poll('no sandbox is alive', sub { !$self->alive });
}

# The number of the latest request; requests() and count() take it as a start.
sub mark { return $_[0]->control('GET', 'requests?since=999999999')->{last} }

# From now on requests before this moment are not looked at, unless by a mark.
sub forget_requests { $_[0]->{since} = $_[0]->mark; return }

# Requests since a mark as hashes: method, path, op, headers, body, ...
sub requests
{
	my ($self, $since) = @_;
	my $number = $since // $self->{since} // 0;

	return @{ $self->control('GET', "requests?since=$number")->{requests} };
}

# How many requests with this method and a path like this.
sub count
{
	my ($self, $method, $path, $since) = @_;

	return scalar grep { $_->{method} eq $method && $_->{path} =~ $path } $self->requests($since);
}

# Paths as patterns.
our %path = (
	create => qr{^/daytona/api/sandbox$},
	one => qr{^/daytona/api/sandbox/[^/]+$},
	exec => qr{/process/session/[^/]+/exec$},
	session => qr{/process/session$},
	kill => qr{/process/session/[^/]+$},
	probe => qr{/process/execute$});

sub creates { return $_[0]->count('POST', $path{create}, $_[1]) }
sub deletes { return $_[0]->count('DELETE', $path{one}, $_[1]) }
sub execs { return $_[0]->count('POST', $path{exec}, $_[1]) }
sub looks { return $_[0]->count('GET', $path{one}, $_[1]) }

sub wait_requests
{
	my ($self, $method, $what, $since, $many) = @_;
	my $pattern = $path{$what};

	return poll("$method $what arrives",
		sub { $self->count($method, $pattern, $since) >= ($many // 1) });
}

1;
