#!/usr/bin/perl
#
# Sends the requests that the official E2B clients were seen to send, byte by
# byte but for ids and credentials, and compares the answers with those that
# the clients understood: status, kind of content, a few headers, and the
# shape of the body.  Prints "ok" or "not ok" and a name for each.
#
#   e2b_recorded.pl RECORDING BASE-URL
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP;

my ($recording, $base) = @ARGV;
my $json = JSON::PP->new->canonical->allow_nonref->utf8(0);
my $http = HTTP::Tiny->new(timeout => 60);
my $serial = 0;
my @children;
my %state;    # of the entry at hand: key, id, token, pid

# --- requests ----------------------------------------------------------------

sub control {
	my ($method, $path, $body) = @_;
	my $answer = $http->request($method, "$base/_control/$path",
		{ defined $body ? (content => $json->encode($body)) : () });
	die "$path: $answer->{status} $answer->{content}" if $answer->{status} != 200;
	return $json->decode($answer->{content});
}

sub api {
	my ($method, $path, $body) = @_;
	my $answer = $http->request($method, "$base/e2b$path",
		{ headers => { 'X-API-KEY' => $state{key} }, defined $body ? (content => $body) : () });
	return $answer->{content} ? $json->decode($answer->{content}) : undef;
}

sub envelope { return "\0" . pack('N', length $_[0]) . $_[0] }

sub envd {
	my ($path, $content, $type) = @_;
	return $http->request('POST', "$base/e2b-envd/$path", {
		headers => {
			'E2b-Sandbox-Id' => $state{id}, 'E2b-Sandbox-Port' => 49983,
			'X-Access-Token' => $state{token}, 'Content-Type' => $type || 'application/json',
		},
		content => $content,
	});
}

sub start {
	my ($message) = @_;
	return envd('process.Process/Start', envelope($message), 'application/connect+json');
}

sub shell { return start($json->encode({ process => { cmd => '/bin/bash', args => ['-c', $_[0]] }, stdin => JSON::PP::false })) }
sub upload { return envd("files?path=$_[0]", $_[1], 'application/octet-stream') }
sub processes { return @{ $json->decode(envd('process.Process/List', '{}')->{content})->{processes} || [] } }

# What has to happen at the same time as the recorded request.
sub meanwhile {
	my ($work) = @_;
	my $child = fork;
	if ($child == 0) {
		$http = HTTP::Tiny->new(timeout => 60);
		$work->();
		exec '/bin/true';
	}
	push @children, $child;
}

sub until_true {
	my ($condition) = @_;
	for (1 .. 600) {
		return 1 if $condition->();
		select undef, undef, undef, 0.05;
	}
	die "waited in vain";
}

sub create {
	my ($body) = @_;
	my $made = api('POST', '/v2/sandboxes', $json->encode($body || { templateID => 'base', metadata => { a => '1' } }));
	@state{qw(id token)} = @$made{qw(sandboxID envdAccessToken)};
}

sub background {
	my ($message) = @_;
	my $before = processes();
	meanwhile(sub { start($message) });
	until_true(sub { processes() > $before });
	($state{pid}) = map $_->{pid}, processes();
}

# --- what comes before each --------------------------------------------------

my %label = ('app name' => 'a b&c=d/é', k => '100%');
my $three = sub {
	create({ templateID => 'base', metadata => \%label }) for 1 .. 3;
};
my $pause = sub { create(); api('POST', "/sandboxes/$state{id}/pause", '{}') };
my %before = (
	'create refused: team concurrency quota' => sub { control(POST => 'quota', { provider => 'e2b', sandboxes => 0 }) },
	'create rate limited, retried by SDK (request 1 of 2)' => sub { $state{key} = "limited-$serial" },
	'create rate limited: not retried' => sub { $state{key} = "limited-$serial" },
	'create: bad key' => sub { $state{key} = "bad-$serial" },
	'create: no capacity' => sub {
		control(POST => 'faults', { provider => 'e2b', op => 'create', action => 'status', status => 503,
			body => { code => 503, message => 'no room', error_code => 'sandbox_capacity_unavailable' } });
	},
	'list by metadata, page 1' => $three,
	'list by metadata, page 2' => sub {
		$three->();
		my $first = $http->get("$base/e2b/v2/sandboxes?limit=2", { headers => { 'X-API-KEY' => $state{key} } });
		$state{next} = $first->{headers}{'x-next-token'};
	},
	'list running (capacity)' => sub { create() for 1, 2 },
	'list, no filter' => sub { },
	'pause: already paused' => $pause,
	'connect/resume' => $pause,
	'run: killed by signal' => sub {
		create();
		meanwhile(sub {
			until_true(sub { processes() > 0 });
			my ($process) = processes();
			envd('process.Process/SendSignal', qq({"process":{"pid":$process->{pid}},"signal":"SIGNAL_SIGKILL"}));
		});
	},
	'run: sandbox gone' => sub { create(); api('DELETE', "/sandboxes/$state{id}") },
	'run: bad envd token' => sub { create(); $state{token} = 'wrong' },
	'run: proxy 429' => sub {
		create();
		control(POST => 'faults', { provider => 'e2b', op => 'run', action => 'status', status => 429,
			body => { sandboxId => 'i1', message => 'connection cap', code => 429, connectionLimit => 1 } });
	},
	'process list' => sub {
		create();
		background('{"process":{"cmd":"/bin/cat"},"tag":"start_cmd"}');
		background('{"process":{"cmd":"/bin/bash","args":["-l","-c","sleep 607"],"envs":{"K":"v"},"cwd":"/home/user"}}');
	},
	'process connect by pid' => sub {
		create();
		background($json->encode({ process => { cmd => '/bin/bash',
			args => ['-c', 'until [ -e /tmp/go ]; do sleep 0.05; done; printf late'] } }));
		my $since = control(GET => 'requests?since=999999999')->{last};
		meanwhile(sub {
			until_true(sub { grep $_->{op} eq 'logs', @{ control(GET => "requests?since=$since")->{requests} } });
			shell('touch /tmp/go');
		});
	},
	'process kill' => sub { create(); background('{"process":{"cmd":"/bin/cat"}}') },
	'file download text' => sub { create(); upload('/home/user/a%20b.txt', "hello\n") },
	'file download bytes' => sub { create(); upload('/home/user/bin', "\0\xFE\xFF") },
	'download, envd 0.3.0 (username query)' => sub { create(); upload('/tmp/a', 'x') },
	'health: gone' => sub { create(); api('DELETE', "/sandboxes/$state{id}") },
);

# The output in these recordings is not what their commands write.
my %invented = map { $_ => 1 } 'run: non-zero exit', 'run as user root';

# --- sending -----------------------------------------------------------------

# Ids, keys and names that cannot be the same here.
sub adapt {
	my ($text, $op) = @_;
	my $id = $state{id} || 'inone';
	$text =~ s/i1a2b3c4d5e6f7g8h9j0k/$id/g;
	$text =~ s/"nope"/"no-such-nope"/g;
	$text =~ s/\b4242\b/$state{pid} || 99999/ge;
	$text =~ s/nextToken=[^&]*/'nextToken=' . $state{next} =~ s{=}{%3D}gr/e if $state{next};
	$text =~ s{path=%2Fa&}{path=%2Ftmp%2Fa&};
	return $text;
}

sub send_recorded {
	my ($op, $request) = @_;
	my %headers = %{ $request->{headers} };
	delete $headers{'user-agent'};
	$headers{'x-api-key'} = $state{key} if exists $headers{'x-api-key'};
	$headers{'x-access-token'} = $state{token} if exists $headers{'x-access-token'};
	$headers{'e2b-sandbox-id'} = $state{id} if exists $headers{'e2b-sandbox-id'};
	my $plane = exists $headers{'x-api-key'} ? 'e2b' : 'e2b-envd';
	my $content =
		defined $request->{hex} ? pack('H*', $request->{hex})
		: defined $request->{message} ? adapt($request->{message}, $op)
		: defined $request->{body} ? adapt($request->{body}, $op) : undef;
	utf8::encode($content) if defined $content && !defined $request->{hex};
	$content = envelope($content) if defined $request->{message};
	my $whole = $content;
	my @body = !defined $content ? ()
		: $request->{chunked} ? (content => sub { my $piece = $whole; $whole = ''; $piece })
		: (content => $content);
	return $http->request($request->{method}, "$base/$plane" . adapt($request->{path}, $op),
		{ headers => \%headers, @body });
}

# --- comparing ---------------------------------------------------------------

sub shape {
	my ($value) = @_;
	return 'null' if !defined $value;
	return 'bool' if JSON::PP::is_bool($value);
	if (ref $value eq 'HASH') {
		return '{' . join(',', map "$_:" . ($_ eq 'metadata' || $_ eq 'envs' ? 'object' : shape($value->{$_})), sort keys %$value) . '}';
	}
	if (ref $value eq 'ARRAY') {
		my %seen = map { shape($_) => 1 } @$value;
		return '[' . join('|', sort keys %seen) . ']';
	}
	return $json->encode($value) =~ /^"/ ? 'text' : 'number';
}

# Which envelopes there are; how often, and how streams mix, is chance.
sub frames_shape {
	my %seen = map { ("$_->[0] " . shape($json->decode($_->[1]))) => 1 } grep { $_->[1] !~ /keepalive/ } @_;
	return join ' ', sort keys %seen;
}

sub frames_of {
	my ($content) = @_;
	my @frames;
	while (length $content >= 5) {
		my ($flags, $length) = unpack 'CN', $content;
		push @frames, [$flags, substr $content, 5, $length];
		$content = substr $content, 5 + $length;
	}
	return @frames;
}

sub body_shape {
	my ($answer, $content) = @_;
	return '' if !defined $content || $content eq '';
	return shape($json->decode($content)) if $content =~ /^[\[{]/;
	return 'bytes';
}

sub describe {
	my ($status, $headers, $shape) = @_;
	my $type = ($headers->{'content-type'} || '') =~ s/;.*//r;
	return join ' ', $status, $type, (map { defined $headers->{$_} ? $_ : () } qw(retry-after x-next-token x-total-running)), $shape;
}

sub check {
	my ($entry) = @_;
	my $op = $entry->{op};
	my $wanted = $entry->{answer};
	%state = (key => 'recorded-' . ++$serial);
	my $prepare = $before{$op} || ($entry->{request}{path} =~ /igone/ || $op =~ /^create/ ? sub { } : sub { create() });
	$prepare->();
	my $got = send_recorded($op, $entry->{request});
	my @got = $wanted->{frames} ? frames_of($got->{content}) : ();
	my @wanted = @{ $wanted->{frames} || [] };
	@got = $got[0] if $op =~ /^run background/;
	if ($invented{$op}) {
		@$_ = grep { $_->[1] !~ /"data"/ } @$_ for \@got, \@wanted;
	}
	my $mine = describe($got->{status}, $got->{headers},
		$wanted->{frames} ? frames_shape(@got)
		: defined $wanted->{hex} || ($got->{headers}{'content-encoding'} || '') eq 'gzip' ? 'bytes'
		: body_shape($got, $got->{content}));
	my $theirs = describe($wanted->{status}, $wanted->{headers},
		$wanted->{frames} ? frames_shape(@wanted)
		: defined $wanted->{hex} ? 'bytes' : body_shape($wanted, $wanted->{body}));
	print $mine eq $theirs ? "ok" : "not ok", " $entry->{client} $op\t", $mine eq $theirs ? '' : "$mine instead of $theirs", "\n";
	kill KILL => @children;
	waitpid $_, 0 for splice @children;
	control(POST => 'quota', { provider => 'e2b' });
	control(DELETE => 'faults');
}

open my $file, '<:encoding(UTF-8)', $recording or die "$recording: $!\n";
$| = 1;
binmode STDOUT, ':encoding(UTF-8)';
check($_) for @{ $json->decode(join '', <$file>) };
