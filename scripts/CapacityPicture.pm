# CapacityPicture: what capacity-plot has read and judged, as SVG.
#
# The SVG is written as it is, with no fonts or scripts from elsewhere, and what it looks
# like in the dark is told by its own style.  All names in it are prefixed, so that a page
# can have it among its own.
package CapacityPicture;

use strict;
use warnings;

use Exporter 'import';
use POSIX qw(floor);

our @EXPORT_OK = qw(picture $warning $critical @levels);

# Percent of the limit from which a resource is called so.
our $warning = 80;
our $critical = 95;

# What is worth the first look comes first.
our @levels = qw(critical warning unknown ok);

my %resource_names =
	(cpu => 'CPU', memory => 'Memory', disk => 'Disk', sandboxes => 'Sandboxes');

# Others are told by the words in their name.
my %reasons = (
	LIMIT_NOT_CONFIGURED => 'no limit configured',
	READER_TIMEOUT => 'no answer in time',
	CREDENTIALS => 'no usable credentials',
);

# Where things are, in pixels.  Right of the track is a gutter, for what goes over the limit.
my %at = (
	width => 1040,
	margin => 20,
	left => 44,
	track => 136,
	track_width => 460,
	gutter => 26,
	level => 634,
	percent => 700,
	amounts => 712,
	right => 1000,
	verdict => 912,
	first_card => 118,
	card_head => 46,
	row => 28,
	card_foot => 10,
	card_gap => 12,
	bar => 14,
);

# class, property, in the light, in the dark.  The levels are colours of Okabe and Ito, of
# which the sky blue is for the dark.
my @colours = (
	[ 'page', 'fill', '#f4f5f7', '#0e1116' ],
	[ 'card', 'fill', '#ffffff', '#171b22' ],
	[ 'card', 'stroke', '#dfe3e8', '#2a313b' ],
	[ 'ink', 'fill', '#1a1f26', '#e8ebf0' ],
	[ 'muted', 'fill', '#58626f', '#9ca7b5' ],
	[ 'track', 'fill', '#e6e9ed', '#2c343f' ],
	[ 'empty', 'stroke', '#8a94a1', '#75808e' ],
	[ 'tick', 'stroke', '#1a1f26', '#e8ebf0' ],
	[ 'next', 'fill', '#ffffff', '#171b22' ],
	[ 'edge', 'stroke', '#3d4752', '#c5ccd6' ],
	[ 'mark', 'stroke', '#ffffff', '#171b22' ],
	[ 'ok', 'fill', '#0072b2', '#56b4e9' ],
	[ 'warning', 'fill', '#e69f00', '#e69f00' ],
	[ 'critical', 'fill', '#d55e00', '#d55e00' ],
	[ 'unknown', 'fill', '#6b7683', '#8a95a3' ],
);

# Each level has its shape, for those to whom colours say little.
my %shapes = (
	ok => '<circle class="ok" r="7"/><path class="mark" d="M-3 .3L-.9 2.5L3.2-2.3"/>',
	warning => '<path class="warning" d="M0-7.5L8 6.5H-8Z"/><path class="mark" d="M0-2.6V1.6M0 3.9V4.3"/>',
	critical => '<path class="critical" d="M-3.2-7.5H3.2L7.5-3.2V3.2L3.2 7.5H-3.2L-7.5 3.2V-3.2Z"/>'
	  . '<path class="mark" d="M-2.7-2.7L2.7 2.7M2.7-2.7L-2.7 2.7"/>',
	unknown => '<circle class="unknown" r="7"/>'
	  . '<path class="mark" d="M-2.1-1.6C-2.1-4.6 2.3-4.4 2.1-1.8C2-.4 0-.4 0 1.2M0 3.8V4.1"/>',
);

#
# How it is said
#

# A number for reading: as many digits as help.
sub readable
{
	my ($number) = @_;
	my $size = abs $number;

	return sprintf '%.3g', $number if $size >= 1e9;
	my $text = sprintf '%.*f', $size < 10 ? 2 : $size < 1000 ? 1 : 0, $number;
	$text =~ s/0+\z// if $text =~ /\./;
	$text =~ s/\.\z//;
	1 while $text =~ s/\A(-?\d+)(\d{3})/$1,$2/;
	return $text;
}

# What to divide by, and the unit then.
sub scale
{
	my ($largest, $unit) = @_;
	my $divisor = 1;

	return ($divisor, $unit) if $unit ne 'MiB';
	for my $larger (qw(GiB TiB PiB))
	{
		last if $largest / $divisor < 1024;
		$divisor *= 1024;
		$unit = $larger;
	}
	return ($divisor, $unit);
}

sub amounts
{
	my ($row) = @_;
	my ($used, $limit) = @$row{qw(used limit)};
	my ($divisor, $unit) = scale($used > $limit ? $used : $limit, $row->{unit});

	return join(' ', readable($used / $divisor), '/', readable($limit / $divisor), $unit);
}

sub amount
{
	my ($number, $given) = @_;
	my ($divisor, $unit) = scale(abs $number, $given);

	return readable($number / $divisor) . " $unit";
}

# Rounded, but never over a mark that the number itself has not reached.
sub percent
{
	my ($row) = @_;
	my $exact = $row->{percent};

	return "\x{2013}" if !defined $exact;
	return '<1 %' if $exact > 0 && $exact < 0.5;
	my $rounded = floor($exact + 0.5);
	for my $mark ($warning, $critical, 100)
	{
		$rounded = $mark - 1 if $exact < $mark && $rounded >= $mark;
	}
	$rounded = 101 if $exact > 100 && $rounded <= 100;
	return readable($rounded) . ' %';
}

sub fits
{
	my ($row) = @_;

	return '' if !defined $row->{fits};
	return readable($row->{fits}) . ($row->{fits} == 1 ? ' more fits' : ' more fit');
}

sub room
{
	my ($account) = @_;
	my $fits = $account->{fits};

	return '' if !defined $fits;
	return 'no room for another launch' if $fits == 0;
	return 'room for ' . readable($fits) . ($fits == 1 ? ' more launch' : ' more launches');
}

# The reason in words, and its name behind it.
sub why
{
	my ($row) = @_;
	my $reason = $row->{reason};

	return ('unknown: no reason given', '') if $reason eq '';
	return ('unknown: ' . ($reasons{$reason} // lc $reason =~ tr/_/ /r), "($reason)");
}

sub resource { return $resource_names{ $_[0]{resource} } // $_[0]{resource} }

# All of a row, for whoever points at it.
sub sentence
{
	my ($row) = @_;

	return join ' ', grep { $_ ne '' } why($row) if $row->{level} eq 'unknown';
	my $text = resource($row) . ': ' . join " \x{b7} ", grep { $_ ne '' } amounts($row),
	  percent($row), fits($row);
	$text .= "\n" . amount(-$row->{headroom}, $row->{unit}) . ' over the limit'
	  if $row->{headroom} < 0;
	$text .= "\none more launch needs " . amount($row->{required}, $row->{unit})
	  if $row->{required} > 0;
	return $text;
}

# What the picture says to those who do not see it.
sub description
{
	my @accounts = @_;
	my @parts;

	for my $level (@levels)
	{
		my @names = map { $_->{name} } grep { $_->{level} eq $level } @accounts;
		push @parts, scalar(@names) . " $level: " . join(', ', @names) . '.' if @names;
	}
	return join ' ', @parts;
}

#
# SVG
#

# Characters that XML cannot have, or that turn the direction of what follows, are replaced.
sub escaped
{
	my ($text) = @_;
	my %entities =
		('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', "'" => '&#39;');

	$text =~ s/[^\t\n\x20-\x7e\x{a0}-\x{d7ff}\x{e000}-\x{fffd}\x{10000}-\x{10ffff}]/\x{fffd}/g;
	$text =~ s/[\x{202a}-\x{202e}\x{2066}-\x{2069}]/\x{fffd}/g;
	return $text =~ s/([&<>"'])/$entities{$1}/gr;
}

# How wide a text may get, by the wider of the common fonts.
sub width_of
{
	my ($text, $size, $bold) = @_;
	my $ems = 0;

	for my $character (split //, $text)
	{
		$ems +=
			$character =~ /[ iljI.,:;'|!\/()\[\]]/ ? 0.36
		  : $character =~ /[frt]/ ? 0.43
		  : $character =~ /[mwMW@%]/ ? 0.98
		  : $character =~ /[A-Z]/ ? 0.72
		  : $character =~ /[\x{1100}-\x{11ff}\x{2e80}-\x{d7ff}\x{f900}-\x{faff}\x{fe30}-\x{fe4f}\x{ff00}-\x{ff60}\x{10000}-\x{10ffff}]/ ? 1.05
		  : 0.62;
	}
	return $ems * $size * ($bold ? 1.11 : 1);
}

sub shortened
{
	my ($text, $width, $size, $bold) = @_;

	return $text if width_of($text, $size, $bold) <= $width;
	while ($text ne '' && width_of("$text\x{2026}", $size, $bold) > $width)
	{
		chop $text;
	}
	return $text =~ s/\s+\z//r . "\x{2026}";
}

# Coordinates: a tenth of a pixel is enough.
sub px { return sprintf('%.1f', $_[0]) =~ s/\.0\z//r }

sub text
{
	my ($x, $y, $class, $text) = @_;

	return $text eq '' ? () : sprintf '<text x="%s" y="%s" class="%s">%s</text>', px($x), px($y),
	  $class, escaped($text);
}

sub shape
{
	my ($level, $x, $y) = @_;

	return sprintf '<g transform="translate(%s %s)">%s</g>', px($x), px($y), $shapes{$level};
}

sub rectangle
{
	my ($class, $x, $y, $width, $height, $more) = @_;

	return sprintf '<rect class="%s" x="%s" y="%s" width="%s" height="%s"%s/>', $class, px($x),
	  px($y), px($width), px($height), $more // '';
}

sub style
{
	my (@light, @dark);

	for (@colours)
	{
		my ($class, $property, $light, $dark) = @$_;
		push @light, ".sbx-capacity .$class\{$property:$light\}";
		push @dark, ".sbx-capacity .$class\{$property:$dark\}" if $dark ne $light;
	}
	return (
		'<style>',
		'.sbx-capacity text{font-family:system-ui,sans-serif;font-size:13px;font-variant-numeric:tabular-nums}',
		'.sbx-capacity .title{font-size:22px;font-weight:700}',
		'.sbx-capacity .name{font-size:15px;font-weight:700}',
		'.sbx-capacity .strong{font-weight:700}',
		'.sbx-capacity .small{font-size:11px}',
		'.sbx-capacity .end{text-anchor:end}',
		'.sbx-capacity .middle{text-anchor:middle}',
		'.sbx-capacity .empty{fill:none;stroke-dasharray:5 4}',
		'.sbx-capacity .tick{fill:none;stroke-width:1}',
		'.sbx-capacity .heavy{stroke-width:2}',
		'.sbx-capacity .edge{fill:none;stroke-width:1.2}',
		'.sbx-capacity .mark{fill:none;stroke-width:1.7;stroke-linecap:round;stroke-linejoin:round}',
		@light,
		'@media (prefers-color-scheme:dark){',
		@dark,
		'}',
		'</style>',
	);
}

sub definitions
{
	return (
		'<defs>',
		'<pattern id="sbx-capacity-hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
		  . '<path class="edge" d="M2 0V4"/></pattern>',
		'</defs>',
	);
}

# Over the end of the track: there is more than fits into it.
sub overflow
{
	my ($x, $y) = @_;

	return map { sprintf '<path class="critical" d="M%s %sh4l6 7l-6 7h-4l6-7z"/>', px($x + $_), px($y) }
	  3, 12;
}

sub next_launch
{
	my ($x, $y, $width) = @_;

	return map { rectangle(@$_[ 0, 1 ], $y + 2.6, $width, $at{bar} - 5.2, $_->[2]) }
	  [ 'next', $x ], [ 'edge', $x, ' style="fill:url(#sbx-capacity-hatch)"' ];
}

sub ticks
{
	my ($y) = @_;
	my @ticks;

	for ([ 'tick', $warning ], [ 'tick heavy', $critical ])
	{
		my ($class, $percent) = @$_;
		push @ticks, sprintf '<path class="%s" d="M%s %sv%s"/>', $class,
		  px($at{track} + $at{track_width} * $percent / 100), px($y - 3), px($at{bar} + 6);
	}
	return @ticks;
}

# Used, then one more launch, which may stick out of the track.
sub bar
{
	my ($row, $y) = @_;
	my ($left, $width) = @at{qw(track track_width)};
	my $percent = $row->{percent} // ($row->{used} > 0 ? 101 : 0);
	my $used = $width * ($percent > 100 ? 100 : $percent) / 100;
	my @parts = rectangle('track', $left, $y, $width, $at{bar}, ' rx="3"');

	push @parts, rectangle($row->{level}, $left, $y, $used < 2 ? 2 : $used, $at{bar}, ' rx="3"')
	  if $used > 0;
	if ($percent > 100)
	{
		push @parts, overflow($left + $width, $y);
	}
	elsif ($row->{required} > 0)
	{
		my $end = $width + ($row->{fits} ? 0 : $at{gutter});
		my $next = $row->{limit} > 0 ? $width * $row->{required} / $row->{limit} : $width * 2;
		my $least = $row->{fits} // 1 ? 4 : $width - $used + 6;
		$next = $least if $next < $least;
		$next = $end - $used if $used + $next > $end;
		push @parts, next_launch($left + $used, $y, $next);
		push @parts, sprintf '<path class="edge" d="M%s %sv%s"/>', px($left + $width), px($y),
		  $at{bar} if $used + $next > $width;
	}
	return (@parts, ticks($y));
}

sub known_row
{
	my ($row, $y) = @_;
	my $base = $y + 11.5;
	my $fits = fits($row);
	my $full = defined $row->{fits} && $row->{fits} == 0;
	my $amounts = shortened(amounts($row),
		$at{right} - $at{amounts} - ($fits eq '' ? 0 : width_of($fits, 13, $full) + 8), 13);

	return (
		text($at{left}, $base, 'ink', shortened(resource($row), $at{track} - $at{left} - 8, 13)),
		bar($row, $y),
		shape($row->{level}, $at{level}, $y + $at{bar} / 2),
		text($at{percent}, $base, 'ink strong end', percent($row)),
		text($at{amounts}, $base, 'ink', $amounts),
		text($at{right}, $base,
			'end ' . (defined $row->{fits} && $row->{fits} == 0 ? 'ink strong' : 'muted'), $fits));
}

# The name of the reason is for looking it up, so it is below the words.
sub unknown_row
{
	my ($row, $y) = @_;
	my ($words, $name) = why($row);
	my $x = $at{level} - 7;
	my $width = $at{right} - $x;

	return (
		rectangle('empty', $at{track} + 0.5, $y + 0.5, $at{track_width} - 1, $at{bar} - 1, ' rx="3"'),
		sprintf('<text x="%s" y="%s" class="ink">%s%s</text>',
			px($x), px($y + ($name eq '' ? 11.5 : 4)),
			escaped(shortened($words, $width, 13)),
			$name eq '' ? '' : sprintf ' <tspan x="%s" dy="16" class="muted small">%s</tspan>', px($x),
			escaped(shortened($name, $width, 11))));
}

sub card_height { return $at{card_head} + $at{row} * @{ $_[0]{rows} } + $at{card_foot} }

sub card
{
	my ($account, $y) = @_;
	my ($level, $base) = ($account->{level}, $y + 29);
	my $room = room($account);
	my $room_end = $at{verdict} - 16;
	my $name = shortened($account->{name},
		$room_end - width_of($room, 13) - $at{left} - 16, 15, 1);
	my @parts = (
		'<g>',
		rectangle('card', $at{margin} + 0.5, $y + 0.5, $at{width} - 2 * $at{margin} - 1,
			card_height($account) - 1, ' rx="8"'),
		rectangle($level, $at{margin} + 8, $y + 12, 4, card_height($account) - 24, ' rx="2"'),
		'<g><title>' . escaped($account->{name}) . '</title>',
		text($at{left}, $base, 'ink name', $name),
		'</g>',
		text($room_end, $base, 'muted end', $room),
		shape($level, $at{verdict}, $base - 4.5),
		text($at{verdict} + 14, $base, 'ink strong', $level));

	$y += $at{card_head};
	for my $row (@{ $account->{rows} })
	{
		push @parts, '<g><title>' . escaped(sentence($row)) . '</title>',
		  $row->{level} eq 'unknown' ? unknown_row($row, $y) : known_row($row, $y), '</g>';
		$y += $at{row};
	}
	return (@parts, '</g>');
}

# How many accounts there are, and of which level.
sub head
{
	my ($title, @accounts) = @_;
	my $y = 76;
	my $total = @accounts . (@accounts == 1 ? ' account' : ' accounts');
	my $x = $at{margin} + width_of($total, 13) + 18;
	my @parts = (
		text($at{margin}, 46, 'ink title',
			shortened($title, $at{width} - 2 * $at{margin}, 22, 1)),
		text($at{margin}, $y, 'muted', $total));

	for my $level (@levels)
	{
		my $count = grep { $_->{level} eq $level } @accounts;
		next if $count == 0;
		push @parts, shape($level, $x + 7, $y - 4.5), text($x + 20, $y, 'ink', "$count $level");
		$x += 20 + width_of("$count $level", 13) + 16;
	}
	for ([ 0, '0' ], [ $warning, $warning ], [ $critical, $critical ], [ 100, '100 %' ])
	{
		my ($percent, $label) = @$_;
		push @parts, text($at{track} + $at{track_width} * $percent / 100 - ($percent == 100 ? 8 : 0),
			$at{first_card} - 10, $percent == 100 ? 'muted small' : 'muted small middle', $label);
	}
	return @parts;
}

# Each entry a sample and its words, as many in a line as there is room for.
sub legend
{
	my ($y) = @_;
	my $top = -$at{bar} / 2;
	my $x = $at{left};
	my $tick = '<path class="%s" d="M1 %sv20"/>';
	my @parts;
	my @entries = (
		[ 15, "below $warning %", shape('ok', 8, 0) ],
		[ 16, "$warning % or more", shape('warning', 8, 0) ],
		[ 15, "$critical % or more, or no room for another launch", shape('critical', 8, 0) ],
		[ 45, 'unknown', shape('unknown', 8, 0),
			rectangle('empty', 21.5, $top + 0.5, 23, $at{bar} - 1, ' rx="3"') ],
		[ 24, 'one more launch', next_launch(0, $top, 24) ],
		[ 20, 'over the limit', overflow(-2, $top) ],
		[ 2, "$warning % of the limit", sprintf $tick, 'tick', px($top - 3) ],
		[ 2, "$critical % of the limit", sprintf $tick, 'tick heavy', px($top - 3) ],
	);

	for (@entries)
	{
		my ($sample_width, $words, @sample) = @$_;
		my $width = $sample_width + 8 + width_of($words, 13);
		if ($x + $width > $at{right})
		{
			$x = $at{left};
			$y += 28;
		}
		push @parts, sprintf('<g transform="translate(%s %s)">', px($x), px($y)), @sample,
		  text($sample_width + 8, 4.5, 'muted', $words), '</g>';
		$x += $width + 20;
	}
	return ($y, @parts);
}

sub picture
{
	my ($title, @accounts) = @_;
	my $y = $at{first_card};
	my @cards;

	for my $account (@accounts)
	{
		push @cards, card($account, $y);
		$y += card_height($account) + $at{card_gap};
	}
	my ($bottom, @legend) = legend($y + 16);
	my $height = $bottom + 28;

	return join "\n",
	  sprintf('<svg xmlns="http://www.w3.org/2000/svg" class="sbx-capacity" width="%s" height="%s" viewBox="0 0 %s %s" role="img" aria-labelledby="sbx-capacity-title sbx-capacity-desc">',
		($at{width}, px($height)) x 2),
	  '<title id="sbx-capacity-title">' . escaped($title) . '</title>',
	  '<desc id="sbx-capacity-desc">' . escaped(description(@accounts)) . '</desc>',
	  style(), definitions(),
	  rectangle('page', 0, 0, $at{width}, $height),
	  head($title, @accounts), @cards, @legend, "</svg>\n";
}

1;
