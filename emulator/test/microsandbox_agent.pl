#!/usr/bin/perl
#
# A client of the agent in a Microsandbox sandbox: does what it is told, step
# by step, and prints what it hears.
#
#   microsandbox_agent.pl [--messages] ADDRESS KEY STEP...
#
# Steps:
#   begin TYPE JSON          a frame with a number of its own, flag 2
#   more TYPE JSON           one with the number of the last, no flags
#   as NUMBER FLAGS TYPE JSON   any frame; the number counts from the begin of
#                            the range, "end" is its end
#   raw HEX                  these bytes
#   wait PATTERN             until a frame whose line matches was heard
#   last                     until a frame with flag 1 was heard
#   end                      until the connection has ended, and how
#   touch FILE               makes a file
#
# A line for each frame: flags, type, payload.  In JSON {"bytes": text} is a
# byte string; what is heard has them as strings.  With --messages a line for
# each frame of the WebSocket as well: opcode, whether it is the last of its
# message, length.
use strict;
use warnings;
use IO::Socket::INET;
use JSON::PP;

my $messages = @ARGV && $ARGV[0] eq '--messages' ? shift : 0;
my ($address, $key, @steps) = @ARGV;
my $json = JSON::PP->new->canonical->allow_nonref->latin1;
my ($host, $path) = $address =~ m{^http://([^/]*)(/.*)$} or die "no address: $address";
my $socket = IO::Socket::INET->new(PeerAddr => $host) or die "$host: $!";
my ($heard, $stream) = ('', '');    # of the WebSocket; of the agent
my ($least, $most, $number);
my $ended;

local $SIG{PIPE} = 'IGNORE';
local $SIG{ALRM} = sub { print "nothing more came\n"; exit 1 };
alarm 60;
$| = 1;

# --- CBOR, as far as it is needed ----------------------------------------------

sub head {
	my ($major, $count) = @_;
	return pack('C', $major << 5 | $count) if $count < 24;
	return pack('CC', $major << 5 | 24, $count) if $count < 0x100;
	return pack('Cn', $major << 5 | 25, $count) if $count < 0x10000;
	return pack('CN', $major << 5 | 26, $count);
}

sub encode {
	my ($value) = @_;
	return "\xf6" if !defined $value;
	return $value ? "\xf5" : "\xf4" if JSON::PP::is_bool($value);
	return head(4, scalar @$value) . join('', map { encode($_) } @$value) if ref $value eq 'ARRAY';
	if (ref $value eq 'HASH') {
		return head(2, length $value->{bytes}) . $value->{bytes} if exists $value->{bytes};
		return head(5, scalar keys %$value) . join('', map { encode("$_") . encode($value->{$_}) } sort keys %$value);
	}
	return $value < 0 ? head(1, -1 - $value) : head(0, $value) if $value =~ /^-?\d+$/ && !($value ^ $value);
	return head(3, length $value) . $value;
}

# Takes an item from the front.
sub decode {
	my ($text) = @_;
	my $first = ord substr($$text, 0, 1, '');
	my ($major, $count) = ($first >> 5, $first & 31);
	return $count == 20 ? JSON::PP::false : $count == 21 ? JSON::PP::true : undef if $major == 7;
	my $size = { 24 => 1, 25 => 2, 26 => 4, 27 => 8 }->{$count};
	$count = unpack($size == 8 ? 'Q>' : $size == 4 ? 'N' : $size == 2 ? 'n' : 'C', substr($$text, 0, $size, '')) if $size;
	return $count if $major == 0;
	return -1 - $count if $major == 1;
	return substr($$text, 0, $count, '') if $major == 2 || $major == 3;
	return [map { decode($text) } 1 .. $count] if $major == 4;
	return { map { my $name = decode($text); ($name, decode($text)) } 1 .. $count };
}

# --- the WebSocket ---------------------------------------------------------------

sub take {
	my $count = sysread $socket, my $bytes, 65536;
	if (!$count) {
		$ended //= defined $count ? 'eof' : 'reset';
		return 0;
	}
	$heard .= $bytes;
	return 1;
}

sub send_frame {
	my ($opcode, $data) = @_;
	my $length = length $data;
	my $size = $length < 126 ? pack('C', 0x80 | $length) : $length < 0x10000 ? pack('Cn', 0x80 | 126, $length) : pack('CQ>', 0x80 | 127, $length);
	my $mask = 'mask';
	my $masked = $data ^ substr($mask x ($length / 4 + 1), 0, $length);
	my $all = pack('C', 0x80 | $opcode) . $size . $mask . $masked;
	while (length $all) {
		my $sent = syswrite $socket, $all;
		last if !$sent;
		substr($all, 0, $sent, '');
	}
	return;
}

# Takes a frame of the WebSocket; false if there is none yet.
sub take_frame {
	return 0 if length $heard < 2;
	my ($first, $length) = unpack 'CC', $heard;
	my $place = 2;
	if ($length >= 126) {
		$place = $length == 126 ? 4 : 10;
		return 0 if length $heard < $place;
		$length = unpack $place == 4 ? 'x2n' : 'x2Q>', $heard;
	}
	return 0 if length $heard < $place + $length;
	my $data = substr $heard, $place, $length;
	my $opcode = $first & 15;
	substr $heard, 0, $place + $length, '';
	printf "frame %d %s %d\n", $opcode, $first & 0x80 ? 'whole' : 'part', $length if $messages;
	$stream .= $data if $opcode == 2 || $opcode == 0;
	send_frame(10, $data) if $opcode == 9;
	if ($opcode == 8) {
		$ended //= 'goodbye ' . unpack 'n', $data;
		send_frame(8, $data);
	}
	return 1;
}

# --- the agent -------------------------------------------------------------------

sub frame {
	my ($id, $flags, $type, $payload) = @_;
	my $body = encode({ v => 7, t => $type, p => { bytes => encode($json->decode($payload)) } });
	return pack('NNC', 5 + length $body, $id, $flags) . $body;
}

# The line of the next frame; undef when there will be none.
sub next_line {
	for (;;) {
		if (!defined $least && length $stream >= 8) {
			($least, $most) = unpack 'NN', substr $stream, 0, 8, '';
			$number = $least;
		}
		if (defined $least && length $stream >= 4) {
			my $length = unpack 'N', $stream;
			if ($length > 4194304) {
				print "too long\n";
				exit;
			}
			if (length $stream >= 4 + $length) {
				my ($id, $flags) = unpack 'x4NC', $stream;
				my $body = substr $stream, 9, $length - 5;
				substr $stream, 0, 4 + $length, '';
				my $envelope = eval { decode(\$body) };
				my $where = $id != 0 && ($id < $least || $id >= $most) ? 'outside ' : '';
				return "${where}$flags nonsense" if ref $envelope ne 'HASH' || !defined $envelope->{t} || ref $envelope->{p};
				return "${where}$flags $envelope->{t} " . $json->encode(decode(\$envelope->{p}));
			}
		}
		next if take_frame();
		return if $ended || !take();
	}
}

sub hear_until {
	my ($pattern) = @_;
	while (defined(my $line = next_line())) {
		print "$line\n";
		return if $line =~ $pattern;
	}
	print "$ended\n";
	exit;
}

my %step = (
	begin => sub { $number++; send_frame(2, frame($number, 2, splice @steps, 0, 2)) },
	more => sub { send_frame(2, frame($number, 0, splice @steps, 0, 2)) },
	as => sub {
		my ($id, $flags) = splice @steps, 0, 2;
		send_frame(2, frame($id eq 'end' ? $most : $least + $id, $flags, splice @steps, 0, 2));
	},
	raw => sub { send_frame(2, pack 'H*', shift @steps) },
	wait => sub { my $pattern = shift @steps; hear_until(qr/$pattern/) },
	last => sub { hear_until(qr/^(outside )?1 /) },
	end => sub { hear_until(qr/^$/) },
	touch => sub { open my $file, '>', shift @steps or die $!; close $file },
);

# The key is the example of RFC 6455.
syswrite $socket, "GET $path HTTP/1.1\r\nHost: $host\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
  . "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer $key\r\n\r\n";
1 while $heard !~ /\r\n\r\n/ && take();
$heard =~ s/^HTTP\/1\.1 (\d+).*?\r\n\r\n//s or do { print "$ended\n"; exit };
if ($1 != 101) {
	print "$1 $heard\n";
	exit;
}
hear_until(qr/core\.ready/) if !@steps || $steps[0] ne 'end';
while (@steps) {
	my $name = shift @steps;
	($step{$name} or die "no step: $name")->();
}
