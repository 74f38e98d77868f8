# Everything that can go wrong with an exchange, in every operation, for every kind of
# provider: each fault meets each operation once.
#
# The tables are data and know no provider; a kind is an entry in SbxKinds.  Each cell
# asserts what comes of it, within which time, how often the provider was asked (never
# twice for what makes a sandbox or runs a script), that the next call works, and that
# neither descriptors nor sandboxes are left over.  Cells that wait do so at the same time,
# each in a session of its own, at an emulator of their own.
use strict;
use warnings;

use SbxKinds;
use SbxTest;
use Test::More;
use Time::HiRes qw(time);

#
# Faults: what they have in common, name, rule
#

my @faults = (
	[ harmless => 'no fault', undef ],
	[ harmless => 'delay', { action => 'delay', ms => 100 } ],
	[ harmless => 'slow-read', { action => 'slow-read', bytesPerSecond => 100_000 } ],
	[ lost => 'hang', { action => 'hang' } ],
	[ lost => 'hang-after-headers', { action => 'hang-after-headers' } ],
	[ lost => 'slow', { action => 'slow', bytesPerSecond => 1 } ],
	[ broken => 'reset-before-read', { action => 'reset-before-read' } ],
	[ broken => 'reset-after-work', { action => 'reset-after-work' } ],
	[ broken => 'close-reused', { action => 'close-reused', n => 1 } ],
	[ cut => 'truncate', { action => 'truncate', bytes => 1 } ],
	[ nonsense => 'garbage', { action => 'garbage' } ],
	[ nonsense => 'wrong-type', { action => 'wrong-type' } ],
	[ nonsense => 'deep', { action => 'deep' } ],
	[ nonsense => 'bad-utf8', { action => 'bad-utf8' } ],
	[ nonsense => 'nul', { action => 'nul' } ],
	[ nonsense => 'duplicate-keys', { action => 'duplicate-keys' } ],
	[ huge => 'huge', { action => 'huge', bytes => 70 << 20 } ],
	[ huge => 'huge without end', { action => 'huge' } ],
	[ huge => 'huge-header', { action => 'huge-header' } ],
	[ redirected => 'redirect', { action => 'redirect' } ],
	[ trouble => '500', { action => 'status', status => 500 } ],
	[ trouble => '502 with a page', { action => 'status', status => 502, body => '<html>' } ],
	[ trouble => '503', { action => 'status', status => 503 } ],
	[ trouble => '504 without a body', { action => 'status', status => 504, body => '' } ],
	[ trouble => '429 without Retry-After', { action => 'status', status => 429, body => { message => 'slow down' } } ],
	[ trouble => '429 with Retry-After', { action => 'status', status => 429, headers => { 'Retry-After' => '1' } } ]);

#
# Operations
#
# op: the emulator's name of the request that meets the fault; sql: the call, for a cell;
# sqlstate: of its failure; limit: seconds that it may take, by its own rules, or by
# statement_timeout where these are minutes; once: never delivered twice.  For each group
# of faults: works; fails; timeout = ended by statement_timeout; answers = succeeds, what
# came is taken for what was asked (the bytes of a file can be any).
#

my %operation = (
	# What was lost may exist: it is looked for and destroyed, for five seconds.
	launch => {
		op => 'create',
		sql => sub {
			qq{SELECT sbx_provision('{"providerId":"$_[0]{pool}-hurried"}', id => '$_[0]{new}')};
		},
		sqlstate => 'SB005',
		limit => 7,
		once => 1,
		expected => {},
	},

	# One answer is wanted now, so nothing is repeated but what libcurl repeats: where a
	# kept connection breaks.
	get => {
		op => 'get',
		sql => sub { "SELECT state FROM sbx_get('$_[0]{id}')" },
		sqlstate => 'SB008',
		limit => 10,
		expected => { broken => 'works' },
	},

	# Pages are asked for again.  A header line beyond libcurl's own bound looks like lack
	# of memory there, which passes.
	find => {
		op => 'list',
		sql => sub { "SELECT count(*) > 0 FROM sbx_find('$_[0]{pool}', '{}')" },
		sqlstate => 'SB008',
		limit => 30,
		expected =>
		  { lost => 'works', broken => 'works', cut => 'works', trouble => 'works', 'huge-header' => 'works' },
	},
	run => {
		op => 'run',
		script => 1,
		sql => sub {
			"SELECT stdout FROM sbx_run_script('$_[0]{id}', 'echo $_[0]{new} | tee -a /tmp/ran', timeout => '1 s')";
		},
		sqlstate => 'SB008',
		limit => 12,
		once => 1,
		expected => {},
	},

	# The same file once more is the same file.  The answer says nothing but its status.
	upload => {
		op => 'upload',
		sql => sub { "SELECT sbx_upload('$_[0]{id}', '/tmp/$_[0]{new}', '$_[0]{new}')" },
		sqlstate => 'SB008',
		limit => 2,
		expected => { lost => 'timeout', broken => 'works', nonsense => 'works' },
	},
	download => {
		op => 'download',
		sql => sub { "SELECT convert_from(sbx_download('$_[0]{id}', '/tmp/kept'), 'UTF8')" },
		sqlstate => 'SB008',
		limit => 2,
		expected => { lost => 'timeout', broken => 'works', nonsense => 'answers' },
	},

	# Goes on until it is gone; only the status of the answer counts.
	destroy => {
		op => 'delete',
		sql => sub { "SELECT sbx_destroy('$_[0]{id}')" },
		sqlstate => 'SB008',
		limit => 22,
		expected => {
			(map { $_ => 'works' } qw(lost broken cut nonsense huge trouble))
		},
	});

# In this order, so that what one that still waits does next hits no other's fault.
my @operations = qw(get find download upload destroy run launch);

sub expected
{
	my ($cell) = @_;
	my $table = $operation{ $cell->{operation} }{expected};

	return 'works' if $cell->{group} eq 'harmless';
	return kind_expected($cell->{kind}, "$cell->{operation}, $cell->{fault}")
	  // kind_expected($cell->{kind}, "$cell->{operation}, $cell->{group}")
	  // $table->{ $cell->{fault} } // $table->{ $cell->{group} } // 'fails';
}

#
# Two emulators: for cells that end at once, and for those that wait
#

my $sbx = SbxTest->new(conf => "max_connections = 300\nlog_statement = none\n");
my $cells = 0;
my %side = (quick => $sbx, waiting => $sbx->beside);
my %home;

# Long enough to be slow.
my $content = 'content ' x 200;

# Seconds for everything else, on a machine that is busy.
my $slack = 20;

# Descriptors of a session that met no fault.
my $usual;

# "hurried": a create has no time.
sub session
{
	my ($side, $kind) = @_;
	my $session = $sbx->session;

	$session->value('SELECT sbx_set_credential($1, $2)', $_, kind_credential($kind, 'key'))
	  foreach "$side-$kind", "$side-$kind-hurried";
	$session->value(q{SET sbx_router.abort_cleanup_timeout = '500ms'});
	return $session;
}

sub provision { return $_[0]->value('SELECT sbx_provision($1)', qq({"providerId":"$_[1]"})) }

foreach my $side (sort keys %side)
{
	foreach my $kind (kinds())
	{
		my $pool = "$side-$kind";
		my $url = $side{$side}->url;
		my $admin = $sbx->session;

		$admin->value('SELECT sbx_register_provider($1, $2, $3)', @$_)
		  foreach [ $pool, $kind, kind_settings($kind, $url) ],
		  [ "$pool-hurried", $kind, kind_settings($kind, $url, createTimeoutSeconds => 1) ];
		my $session = session($side, $kind);
		$home{$pool} = provision($session, $pool);
		$session->value('SELECT sbx_upload($1, $2, $3)', $home{$pool}, '/tmp/kept', $content);
		$usual = descriptors($session);
		$session->finish;
		$admin->finish;
	}
}

# Descriptors of a backend that are no files.
sub descriptors
{
	my ($session) = @_;

	return scalar grep { (readlink $_ // '') =~ /^(?:anon_inode|socket|pipe):/ }
	  glob '/proc/' . $session->pid . '/fd/*';
}

#
# Cells
#

sub request_of { return kind_request($_[0], $operation{ $_[1] }{op}) }

# Requests of the kind that met the fault.
sub arrived
{
	my ($cell) = @_;

	return grep { $_->{op} eq request_of($cell->{kind}, $cell->{operation}) && $_->{path} =~ m{^/$cell->{kind}} }
	  $side{ $cell->{side} }->requests($cell->{mark});
}

# How often the provider got it.  What must arrive once is known by what is in it, wherever
# it was sent; a body that was not read has nothing in it.
sub deliveries
{
	my ($cell) = @_;
	my $once = $operation{ $cell->{operation} }{once};

	return scalar grep {
		!$once
		  || $_->{body} =~ /$cell->{new}/
		  || ($_->{body} eq '' && $cell->{fault} eq 'reset-before-read')
	} arrived($cell);
}

# A cell, for a session; maker is one that may make what the call takes.
sub prepare
{
	my ($side, $kind, $operation, $fault, $session, $maker) = @_;
	my $pool = "$side-$kind";
	my $cell = {
		side => $side,
		kind => $kind,
		pool => $pool,
		operation => $operation,
		group => $fault->[0],
		fault => $fault->[1],
		session => $session,
		name => "$kind, $operation, $fault->[1]"
	};

	$cell->{id} = $operation eq 'destroy' ? provision($maker, $pool) : $home{$pool};
	$cell->{new} = $session->value('SELECT sbx_new_id()');
	$cell->{mark} = $side{$side}->mark;
	$cell->{expected} = expected($cell);
	$session->value(q{SET statement_timeout = '2s'}) if $cell->{expected} eq 'timeout';
	return $cell;
}

sub send_call
{
	my ($cell) = @_;

	$cell->{started} = time;
	$cell->{session}->send($operation{ $cell->{operation} }{sql}->($cell));
	return;
}

# Send the call, with the fault in its way.
sub begin
{
	my ($side, $kind, $operation, $fault, $session) = @_;
	my $cell = prepare($side, $kind, $operation, $fault, $session, $session);
	my $rule = $fault->[2];
	my @path = $operation{$operation}{script} ? (path => kind_script($kind)) : ();

	$side{$side}->fault(provider => $kind, op => request_of($kind, $operation), @path, %$rule) if $rule;
	send_call($cell);
	return $cell;
}

# What a call that works says; undef where any answer will do.
sub right_value
{
	my ($cell) = @_;
	my %value = (
		launch => $cell->{new},
		get => 'started',
		find => 't',
		run => "$cell->{new}\n",
		upload => '',
		download => $content,
		destroy => 't');

	return $value{ $cell->{operation} };
}

sub outcome
{
	my ($cell, $result) = @_;
	my $operation = $operation{ $cell->{operation} };

	return 'answers' if $cell->{expected} eq 'answers' && !$result->error;
	return 'works' if !$result->error && ($result->value // '') eq right_value($cell);
	return 'succeeds with something else' if !$result->error;
	return 'fails' if $result->sqlstate eq $operation->{sqlstate};
	return 'timeout' if $result->sqlstate eq '57014';
	return 'answers' if $cell->{expected} eq 'answers' && $result->sqlstate =~ /^22/;
	return $result->sqlstate;
}

# After what ran, or was said not to have: once, or not at all.
sub times_run
{
	my ($cell) = @_;

	return $cell->{session}->value('SELECT stdout FROM sbx_run_script($1, $2)',
		$cell->{id}, "touch /tmp/ran; grep -c -x $cell->{new} /tmp/ran || :") + 0;
}

sub alive
{
	my ($cell) = @_;

	return join ' ', sort grep { $_ ne $home{ $cell->{pool} } }
	  map { $_->{name} } grep { $_->{alive} && $_->{provider} eq $cell->{kind} }
	  $side{ $cell->{side} }->audit;
}

sub check
{
	my ($cell) = @_;
	my $operation = $operation{ $cell->{operation} };
	my $session = $cell->{session};
	my $result = $session->wait;
	my $elapsed = ($cell->{ended} // time) - $cell->{started};
	my $deliveries = deliveries($cell);
	my $outcome = outcome($cell, $result);

	$session->value('RESET statement_timeout');
	is($outcome, $cell->{expected}, "$cell->{name}: $cell->{expected}") or diag $result->everything;
	cmp_ok($elapsed, '<', $operation->{limit} + $slack, "$cell->{name}: in time");
	if ($operation->{once}) { cmp_ok($deliveries, '<=', 1, "$cell->{name}: one delivery") }
	elsif ($cell->{side} eq 'quick') { cmp_ok($deliveries, '<=', 3, "$cell->{name}: few deliveries") }

	# The next call in the same session, which also shows what was done.
	if ($cell->{operation} eq 'run')
	{
		my $run = times_run($cell);
		ok($outcome eq 'works' ? $run == 1 : $run <= 1, "$cell->{name}: the script ran "
			  . ($outcome eq 'works' ? 'once' : 'once at most') . ", and the next call works")
		  or diag "it ran $run times";
	}
	elsif ($cell->{operation} eq 'launch' && !$result->error)
	{
		is($session->query("SELECT sbx_destroy('$cell->{new}')")->value, 't', "$cell->{name}: the next call works");
	}
	elsif ($cell->{operation} eq 'upload' && $outcome eq 'works')
	{
		is($session->query("SELECT convert_from(sbx_download('$cell->{id}', '/tmp/$cell->{new}'), 'UTF8')")->value,
			$cell->{new}, "$cell->{name}: the next call works");
	}
	else
	{
		is($session->query("SELECT state FROM sbx_get('$home{$cell->{pool}}')")->value,
			'started', "$cell->{name}: the next call works");
	}
	$session->value("SELECT sbx_destroy('$cell->{id}')")
	  if $cell->{operation} eq 'destroy' && $result->error;
	cmp_ok(descriptors($session), '<=', $usual, "$cell->{name}: no descriptor is left");
	$cells++;
	return $result;
}

# When each of those that wait has its answer.
my @waiting;

sub note_ends
{
	$_->{ended} //= time foreach grep { $_->{session}->has_answer(0) } @waiting;
	return;
}

# Does a cell wait?  Launches do, while they look for what they may have made.
sub waits { return $_[0] eq 'lost' || ($_[1] eq 'launch' && $_[0] ne 'harmless') }

#
# Those that wait, begun one after the other as soon as the one before has met its fault
#

foreach my $operation (@operations)
{
	foreach my $kind (kinds())
	{
		foreach my $fault (grep { waits($_->[0], $operation) } @faults)
		{
			my $session = session('waiting', $kind);

			# With a kept connection: only there libcurl would repeat something.
			$session->value('SELECT state FROM sbx_get($1)', $home{"waiting-$kind"});
			my $cell = begin('waiting', $kind, $operation, $fault, $session);
			poll("$cell->{name} arrives", sub { scalar(my @requests = arrived($cell)) });
			push @waiting, $cell;
			note_ends();
		}
	}
}

#
# Those that end at once, in one session for each kind
#

foreach my $kind (kinds())
{
	my $session = session('quick', $kind);

	foreach my $operation (@operations)
	{
		foreach my $fault (grep { !waits($_->[0], $operation) } @faults)
		{
			my $cell = begin('quick', $kind, $operation, $fault, $session);
			check($cell);
			is(alive($cell), '', "$cell->{name}: no sandbox is left");
			$sbx->clear_faults;
			note_ends();
		}
	}
	$session->finish;
}

poll('all answers', sub { note_ends(); !grep { !$_->{ended} } @waiting });
foreach my $cell (@waiting)
{
	check($cell);
	$cell->{session}->finish;
}
is(alive($_), '', "$_->{kind}: no sandbox is left of those that waited")
  foreach map { { side => 'waiting', kind => $_, pool => "waiting-$_" } } kinds();

#
# Nobody listens, for longer than anything tries; with sessions that have no connection yet
#

my @refused;
foreach my $kind (kinds())
{
	my $maker = session('quick', $kind);
	push @refused, map { prepare('quick', $kind, $_, [ refused => 'refuse' ], session('quick', $kind), $maker) } @operations;
}
$_->{mark} = $sbx->mark foreach @refused;
$sbx->fault(action => 'refuse', ms => 5000);
poll('the emulator listens no more', sub { !HTTP::Tiny->new->get($sbx->url . '/_control/audit')->{success} });
send_call($_) foreach @refused;
poll('the emulator listens again', sub { HTTP::Tiny->new->get($sbx->url . '/_control/audit')->{success} });
is(scalar(arrived($_)), 0, "$_->{name}: nothing arrived") foreach @refused;
foreach my $cell (@refused)
{
	my $result = check($cell);
	is(json($result->detail)->{allocation}, 'none', "$cell->{name}: nothing can have been made")
	  if $cell->{operation} eq 'launch';
}
is(alive($_), '', "$_->{kind}: no sandbox is left of those that were refused")
  foreach map { { side => 'quick', kind => $_, pool => "quick-$_" } } kinds();

is($_->control('GET', 'redirects')->{connections}, 0, 'no redirect was followed') foreach values %side;
note("$cells cells");
done_testing();
