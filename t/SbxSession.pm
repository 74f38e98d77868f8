# SbxSession: one connection to the server, spoken byte by byte.
#
# psql would do for statements that end.  These tests also need a statement that
# is under way while something else happens, the fields of an error apart, real
# bind parameters, COPY data, and a client that vanishes: hence the protocol.
package SbxSession;

use strict;
use warnings;

use Encode qw(decode encode_utf8);
use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw(time);

# Far above anything that happens; only a hang reaches it.
our $patience = 120;

# connect(host => socket folder, port =>, user =>, dbname =>, options => '-c a=b')
sub connect
{
	my ($class, %to) = @_;
	my $path = "$to{host}/.s.PGSQL.$to{port}";
	my $socket = IO::Socket::UNIX->new(Peer => $path) or die "could not connect to $path: $!";
	my $self = bless {
		socket => $socket,
		select => IO::Select->new($socket),
		input => '',
		notices => [],
	}, $class;
	my %parameters = (
		user => $to{user},
		database => $to{dbname},
		client_encoding => 'UTF8',
		application_name => $to{application_name} // 'sbx test');

	$parameters{options} = $to{options} if defined $to{options};
	my $startup =
	  pack('N', 196608) . join('', map { "$_\0$parameters{$_}\0" } sort keys %parameters) . "\0";
	$self->_write(pack('N', length($startup) + 4) . $startup);
	my $result = $self->_collect(time + $patience);
	die 'could not log in: ' . $result->message if $result->error || $result->closed;
	return $self;
}

# Process id of the backend.
sub pid { return $_[0]->{pid} }

# Run SQL (several statements are fine) and return what came of it.
sub query
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->wait;
}

# Begin SQL; wait() returns what came of it.
sub send
{
	my ($self, $sql) = @_;

	$self->_send('Q', encode_utf8($sql) . "\0");
	return;
}

# The end of what send() began.  Dies when there is none in time.
sub wait
{
	my ($self, $seconds) = @_;

	return $self->_collect(time + ($seconds // $patience));
}

# Is there an answer, or a part of one, within so many seconds?
sub has_answer
{
	my ($self, $seconds) = @_;

	return length $self->{input} || $self->{select}->can_read($seconds // 0);
}

# One statement with bind parameters, which are never part of its text.
sub execute
{
	my ($self, $sql, @parameters) = @_;
	my $bind = "\0\0" . pack('nn', 0, scalar @parameters);

	foreach my $parameter (@parameters)
	{
		my $bytes = defined $parameter ? encode_utf8($parameter) : undef;
		$bind .= defined $bytes ? pack('N', length $bytes) . $bytes : pack('N', 0xFFFFFFFF);
	}
	$self->_send('P', "\0" . encode_utf8($sql) . "\0" . pack('n', 0));
	$self->_send('B', $bind . pack('n', 0));
	$self->_send('D', "P\0");
	$self->_send('E', "\0" . pack('N', 0));
	$self->_send('S', '');
	return $self->wait;
}

# COPY ... FROM STDIN with these bytes.
sub copy_in
{
	my ($self, $sql, $data) = @_;

	return $self->copy_in_bytes($sql, encode_utf8($data));
}

# The same with bytes that need not be UTF-8.
sub copy_in_bytes
{
	my ($self, $sql, $bytes) = @_;

	$self->{copy} = $bytes;
	my $result = $self->query($sql);
	delete $self->{copy};
	return $result;
}

# Run what must not fail; returns the first column of the first row.
sub value
{
	my ($self, $sql, @parameters) = @_;
	my $result = @parameters ? $self->execute($sql, @parameters) : $self->query($sql);

	die sprintf("%s: %s %s\n%s\n",
		$sql,
		$result->sqlstate // 'no end',
		$result->message // '',
		$result->detail // '')
	  if $result->error || $result->closed;
	return $result->value;
}

# The client vanishes: no Terminate message, whatever is under way.
sub vanish
{
	my ($self) = @_;

	close $self->{socket};
	return;
}

# A proper good-bye.
sub finish
{
	my ($self) = @_;

	$self->_send('X', '');
	close $self->{socket};
	return;
}

#
# The protocol
#

sub _write
{
	my ($self, $bytes) = @_;

	while (length $bytes)
	{
		my $sent = syswrite($self->{socket}, $bytes);
		return unless defined $sent;    # the answer, or its absence, will tell
		substr($bytes, 0, $sent, '');
	}
	return;
}

sub _send
{
	my ($self, $type, $body) = @_;

	$self->_write($type . pack('N', length($body) + 4) . $body);
	return;
}

# Type and body of the next message; nothing at the end of the connection.
sub _message
{
	my ($self, $deadline) = @_;

	for (;;)
	{
		my $have = length $self->{input};
		my $need = $have >= 5 ? 1 + unpack('N', substr($self->{input}, 1, 4)) : 5;

		if ($have >= 5 && $have >= $need)
		{
			my $message = substr($self->{input}, 0, $need, '');
			return (substr($message, 0, 1), substr($message, 5));
		}
		my $left = $deadline - time;
		die "the server did not answer in time\n"
		  if $left <= 0 || !$self->{select}->can_read($left);
		my $count = sysread($self->{socket}, $self->{input}, 65536, $have);
		return unless $count;
	}
}

# Everything up to ReadyForQuery, or to the end of the connection.
sub _collect
{
	my ($self, $deadline) = @_;
	my $result = SbxResult->new;

	for (;;)
	{
		my ($type, $body) = $self->_message($deadline);

		if (!defined $type)
		{
			$result->{closed} = 1;
			return $result;
		}
		elsif ($type eq 'Z')
		{
			$result->{transaction} = $body;
			return $result;
		}
		elsif ($type eq 'K') { $self->{pid} = unpack('N', $body) }
		elsif ($type eq 'T') { $result->{rows} = [] }
		elsif ($type eq 'D') { push @{ $result->{rows} }, _row($body) }
		elsif ($type eq 'C') { push @{ $result->{tags} }, $body =~ s/\0//r }
		elsif ($type eq 'E') { $result->{error} = _fields($body) }
		elsif ($type eq 'N') { push @{ $result->{notices} }, _fields($body) }
		elsif ($type eq 'G')
		{
			$self->_send('d', $self->{copy} // '');
			$self->_send('c', '');
		}
	}
}

sub _row
{
	my ($body) = @_;
	my ($count) = unpack('n', $body);
	my $place = 2;
	my @row;

	for (1 .. $count)
	{
		my $length = unpack('N', substr($body, $place, 4));
		$place += 4;
		if ($length == 0xFFFFFFFF)
		{
			push @row, undef;
			next;
		}
		push @row, decode('UTF-8', substr($body, $place, $length));
		$place += $length;
	}
	return \@row;
}

sub _fields
{
	my ($body) = @_;
	my %fields;

	foreach my $field (split /\0/, $body)
	{
		$fields{ substr($field, 0, 1) } = decode('UTF-8', substr($field, 1)) if length $field;
	}
	return \%fields;
}

# What came of one query.
package SbxResult;

sub new { return bless { rows => [], tags => [], notices => [] }, $_[0] }

sub rows { return $_[0]->{rows} }
sub row { return @{ $_[0]->{rows}[0] // [] } }
sub value { return $_[0]->{rows}[0] ? $_[0]->{rows}[0][0] : undef }
sub tags { return @{ $_[0]->{tags} } }
sub closed { return $_[0]->{closed} }
sub transaction { return $_[0]->{transaction} // '' }

# The error, all fields as a hash, or undef; and the fields by name.
sub error { return $_[0]->{error} }
sub sqlstate { return $_[0]->{error} ? $_[0]->{error}{C} : undef }
sub message { return $_[0]->{error} ? $_[0]->{error}{M} : undef }
sub detail { return $_[0]->{error} ? $_[0]->{error}{D} : undef }
sub hint { return $_[0]->{error} ? $_[0]->{error}{H} : undef }
sub context { return $_[0]->{error} ? $_[0]->{error}{W} : undef }

# Warnings as hashes of fields.
sub warnings
{
	return grep { $_->{V} eq 'WARNING' } @{ $_[0]->{notices} };
}

# Everything the client was told, as one text.
sub everything
{
	my ($self) = @_;

	return join "\n", map {
		my $fields = $_;
		map { "$_: $fields->{$_}" } sort keys %$fields
	  }
	  grep { defined } $self->{error}, @{ $self->{notices} };
}

1;
