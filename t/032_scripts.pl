# Scripts in a sandbox and files: in the background, in sessions that are waited for, up and
# down.
use strict;
use warnings;
use utf8;

use SbxTest;
use Test::More;

my $key = 'key-operations';

# Nothing of what a provider says, and no key, may come out in an error.
my $marker = 'text-of-the-provider-4711';
sub is_silent { return $_[0]->everything !~ /\Q$marker\E|\Q$key\E/ ? 1 : 0 }
my %refusal = (
	action => 'status',
	body => { statusCode => 403, message => $marker, code => $marker, error => $marker });

my $sbx = SbxTest->new(
	conf => q{
sbx_router.abort_cleanup_timeout = '30s'
});
$sbx->register('pool');
my $s = $sbx->user('pool', $key);

sub failure { my ($sql, @parameters) = @_; return failure_of(@parameters ? $s->execute($sql, @parameters) : $s->query($sql)) }

sub run { return $sbx->run($s, @_) }

#
# Scripts in the background
#

my $id = $s->value('SELECT sbx_provision()');

# start(script, options as of run): a hash of the columns.
sub start
{
	my ($script, %options) = @_;
	my $result = $s->execute(
		'SELECT * FROM sbx_start_script($1, $2, $3, $4, $5, $6)',
		$id, $script, $options{env} // '{}',
		$options{cwd}, $options{timeout}, $options{session});
	my %row;

	die $result->message if $result->error;
	@row{qw(session_id command_id reconciled)} = $result->row;
	return \%row;
}

sub status
{
	my ($script) = @_;

	return $s->value('SELECT sbx_script_status($1, $2, $3)', $id,
		@$script{qw(session_id command_id)});
}

sub logs
{
	my ($script) = @_;
	my $result = $s->execute('SELECT * FROM sbx_script_logs($1, $2, $3)',
		$id, @$script{qw(session_id command_id)});
	my %row;

	die $result->message if $result->error;
	@row{qw(output stdout stderr truncated)} = $result->row;
	return \%row;
}

sub wait_end
{
	my ($script) = @_;
	my $code;

	poll('the script ends', sub { defined($code = status($script)) });
	return $code;
}

{
	my $script = start(
		'echo begun; echo trouble >&2; until [ -f /tmp/go ]; do sleep 0.05; done; echo "$A in $(pwd)"; exit 3',
		env => '{"A":"b"}',
		cwd => '/tmp');

	like($script->{session_id}, qr/^sbx-run-[0-9a-f]{16}$/, 'background: a session of its own');
	is($script->{reconciled}, 'f', 'background: which is new');
	is(status($script), undef, 'background: NULL while it runs');
	poll('the script writes', sub { logs($script)->{stdout} eq "begun\n" });
	is(logs($script)->{stderr}, "trouble\n", 'background: output is there while it runs');
	is(status($script), undef, 'background: still NULL');
	run($id, 'touch /tmp/go');
	is(wait_end($script), 3, 'background: the exit code');
	is(status($script), 3, 'background: as often as it is asked for');
	my $row = logs($script);
	is_deeply(
		[ @$row{qw(stdout stderr truncated)} ],
		[ "begun\nb in /tmp\n", "trouble\n", 'f' ],
		'background: the whole output');
	like($row->{output}, qr/begun\n.*b in \/tmp\n/s, 'background: both streams together');

	$s->query('BEGIN READ ONLY');
	is(status($script), 3, 'background: status in a read-only transaction');
	is(logs($script)->{stderr}, "trouble\n", 'background: logs in a read-only transaction');
	$s->query('ROLLBACK');

	is( failure(
			q{SELECT sbx_script_status($1, $2, $3)}, $id,
			'no-such-session', $script->{command_id}),
		'SB008 SCRIPT_UNKNOWN',
		'background: an unknown session');
	is( failure(
			q{SELECT sbx_script_logs($1, $2, $3)},
			$id, 'no-such-session', $script->{command_id}),
		'SB008 SCRIPT_UNKNOWN',
		'background: an unknown session has no output either');
}

# What the shell cannot be harmed by, and what a script may end with.
foreach my $case (
	[ 'exit 0', 0 ],
	[ '(exit 7)', 7 ],
	[ 'kill -KILL $$', 137 ],
	[ "echo 'unbalanced", 2 ],
	[ 'no-such-command', 127 ])
{
	my ($script, $code) = @$case;

	is(wait_end(start($script)), $code, "background: '$script' is $code");
}

# Output as of scripts that are waited for.
{
	my $script = start(q{printf 'a\377b\0c\n'; printf '\303\n' >&2});

	wait_end($script);
	my $row = logs($script);
	is($row->{stdout}, "a\x{FFFD}b\x{FFFD}c\n", 'background: invalid UTF-8 and NUL become U+FFFD');
	is($row->{stderr}, "\x{FFFD}\n", 'background: on standard error, too');
	$script = start('printf "%s\n" "žluťoučký 🐘"');
	wait_end($script);
	is(logs($script)->{stdout}, "žluťoučký 🐘\n", 'background: UTF-8 arrives as it is');

	$script = start(q{printf '%03000d\n' 7});
	wait_end($script);
	$s->query(q{SET sbx_router.max_script_output = '2kB'});
	$row = logs($script);
	is_deeply(
		[ length $row->{stdout}, $row->{truncated} ],
		[ 2048, 't' ],
		'background: what is too long is cut, and marked');
	$s->query('RESET sbx_router.max_script_output');
	$row = logs($script);
	is_deeply(
		[ length $row->{stdout}, $row->{truncated} ],
		[ 3001, 'f' ],
		'background: what is not is not');
	is(logs(start('true'))->{stdout}, '', 'background: no output is an empty text');
}

# A session names a script: the same one is started once.
{
	my $text = 'echo ran >>/tmp/counted; sleep 1000';
	my $first = start($text, session => 'Job_7-a');

	is($first->{session_id}, 'Job_7-a', 'session: the name is the session');
	is($first->{reconciled}, 'f', 'session: the first start starts');
	my $again = start($text, session => 'Job_7-a');
	is($again->{reconciled}, 't', 'session: the second one finds it');
	is_deeply(
		[ @$again{qw(session_id command_id)} ],
		[ @$first{qw(session_id command_id)} ],
		'session: as the same script');
	poll('the script runs', sub { run($id, 'cat /tmp/counted 2>/dev/null')->{stdout} ne '' });
	is(run($id, 'cat /tmp/counted')->{stdout}, "ran\n", 'session: which ran once');
	my $result =
	  $s->execute('SELECT sbx_start_script($1, $2, session => $3)', $id, 'echo another', 'Job_7-a');
	is(json($result->detail)->{code}, 'SESSION_IN_USE', 'session: another script there is refused');
	is($result->message, qq{could not start a script in sandbox "$id"},
		'MESSAGE names the sandbox');
	like($result->hint, qr/another name/i, 'HINT says what to do');

	# Stopped under it: there will be no end.
	$s->query("SELECT sbx_stop('$id')");
	is( failure(q{SELECT sbx_script_status($1, $2, $3)}, $id, @$first{qw(session_id command_id)}),
		'SB008 NOT_STARTED',
		'session: status in a stopped sandbox');
	$s->query("SELECT sbx_start('$id')");
	is( failure(q{SELECT sbx_script_status($1, $2, $3)}, $id, @$first{qw(session_id command_id)}),
		'SB008 SCRIPT_LOST',
		'session: a script that the stop ended is lost, not running for ever');
	is(start($text, session => 'Job_7-a')->{reconciled}, 't',
		'must not fire: one that was lost is not started again');
	is(run($id, 'cat /tmp/counted')->{stdout}, "ran\n", 'session: it still ran once');
}

# The name stays the script's: also when its end was seen, and over a stop.
{
	my $text = 'echo ran >>/tmp/ended; exit 6';
	my $first = start($text, session => 'ended');

	is(wait_end($first), 6, 'session, ended: its end is seen');
	my $again = start($text, session => 'ended');
	is_deeply(
		[ @$again{qw(session_id command_id reconciled)} ],
		[ @$first{qw(session_id command_id)}, 't' ],
		'must not fire: one that has ended is found, not started again');
	is(status($again), 6, 'session, ended: with its exit code');
	is( failure(q{SELECT sbx_start_script($1, $2, session => $3)}, $id, 'echo another', 'ended'),
		'SB008 SESSION_IN_USE',
		'session, ended: another script is refused as before');
	is( failure(q{SELECT sbx_script_status($1, $2, $3)}, $id, 'ended', start('true')->{command_id}),
		'SB008 SCRIPT_UNKNOWN',
		'session, ended: both ids count');
	is( failure(q{SELECT sbx_script_logs($1, $2, $3)}, $id, 'ended', start('true')->{command_id}),
		'SB008 SCRIPT_UNKNOWN',
		'session, ended: for logs, too');
	$s->query("SELECT sbx_stop('$id')");
	$s->query("SELECT sbx_start('$id')");
	is(start($text, session => 'ended')->{reconciled}, 't', 'must not fire: nor after a stop');
	is(status($first), 6, 'session, ended: its exit code outlives the stop');
	is(run($id, 'cat /tmp/ended')->{stdout}, "ran\n", 'session, ended: it ran once');
}

# Many at once start it once.  Each has seen an empty session when the first is started.
{
	my @callers = map { $sbx->session } 1 .. 4;

	$_->value('SELECT sbx_set_credential($1, $2)', 'pool', $key) foreach @callers;
	$sbx->fault(op => 'start', path => '*/exec', action => 'delay', ms => 300, times => 4);
	$_->send("SELECT reconciled FROM sbx_start_script('$id', "
		  . q{'echo ran >>/tmp/raced; exit 2', session => 'raced')}) foreach @callers;
	my @reconciled = sort map { $_->wait->value // 'failed' } @callers;
	is_deeply(\@reconciled, [qw(f t t t)], 'session, raced: all have it, one of them as new');
	$sbx->clear_faults;
	is(wait_end(start('echo ran >>/tmp/raced; exit 2', session => 'raced')), 2,
		'session, raced: it ends');
	is(run($id, 'cat /tmp/raced')->{stdout}, "ran\n", 'must not fire: it ran once');
}

# An answer that is too large proves nothing: it may run, or not.
{
	my $text = 'echo ran >>/tmp/large';

	$sbx->fault(op => 'start', path => '*/exec', action => 'huge', bytes => 30_000_000);
	my $script = start($text, session => 'large');
	is($script->{reconciled}, 't', 'an answer that is too large: it is found again');
	is(wait_end($script), 0, 'an answer that is too large: and followed to its end');
	is(run($id, 'cat /tmp/large')->{stdout}, "ran\n", 'an answer that is too large: it ran once');
}

# Names of sessions of either kind meet no file of the sandbox, nor each other.
{
	run($id, 'mkdir -p /tmp/.X11-unix; export KEPT=1', session => 'work');
	is(wait_end(start('exit 1', session => 'X11-unix')), 1, 'must not fire: a name that /tmp has');
	is(wait_end(start('exit 1', session => 'sbx-session-work')), 1,
		'must not fire: a name like a file of ours');
	is(run($id, 'echo "$KEPT"; ls -d /tmp/.X11-unix', session => 'work')->{stdout},
		"1\n/tmp/.X11-unix\n", 'and both are as they were');
}

# Without a place for its files a script is not started, and that is said.
{
	run($id, 'chmod a-w /tmp');
	is( failure(q{SELECT sbx_start_script($1, 'true', session => 'full')}, $id),
		'SB008 TMP_NOT_WRITABLE', 'no place for the files of a script');
	run($id, 'chmod u+w /tmp');
	is(wait_end(start('exit 3', session => 'full')), 3, 'and with one it is');
}

# Refusals and nonsense of the toolbox.
{
	my $script = start('true');

	foreach my $case (
		[ 'scriptStatus', 'run', status => 403, %refusal ],
		[ 'scriptStatus', 'run', action => 'garbage' ],
		[ 'startScript', 'run', status => 403, %refusal ],
		[ 'startScript', 'start', status => 403, %refusal ])
	{
		my ($operation, $op, %rule) = @$case;

		$sbx->fault(op => $op, times => 20, %rule);
		my $result =
			$operation eq 'startScript'
		  ? $s->query("SELECT sbx_start_script('$id', 'true')")
		  : $s->execute('SELECT sbx_script_status($1, $2, $3)',
			$id, @$script{qw(session_id command_id)});
		is_deeply(
			[ $result->sqlstate, json($result->detail)->{operation}, is_silent($result) ],
			[ 'SB008', $operation, 1 ],
			"$operation: trouble in the toolbox is SB008");
		$sbx->clear_faults;
	}
}

# A lost answer.
{
	my $mark = $sbx->mark;

	$sbx->fault(op => 'start', path => '*/exec', action => 'reset-after-work');
	my $script = start('echo once >>/tmp/once; sleep 0.2');
	is($sbx->execs($mark), 1, 'a start whose answer is lost: one delivery');
	is($script->{reconciled}, 't', 'a start whose answer is lost: it is found again');
	is(wait_end($script), 0, 'a start whose answer is lost: and followed to its end');
	is(run($id, 'cat /tmp/once')->{stdout}, "once\n", 'a start whose answer is lost: it ran once');
}

# It outlives the transaction that started it.
{
	$s->query('BEGIN');
	my $script = start('echo done');
	$s->query('ROLLBACK');
	is(wait_end($script), 0, 'background: a rollback does not end it');
}

#
# Sessions of scripts that are waited for
#

is( run($id, 'cd /tmp; export LEFT="it\'s  \"behind\"
twice" ; HERE=only', session => 'work')->{exit_code},
	0,
	'run session: the first run');
is( run($id, 'pwd; printf "%s." "$LEFT" "${HERE-unset}"', session => 'work')->{stdout},
	qq{/tmp\nit's  "behind"\ntwice.unset.\n},
	'run session: directory and exported variables are there again');
is(run($id, 'pwd; echo "${LEFT-unset}"', session => 'other')->{stdout} =~ s/^.*\n(?=unset)//r,
	"unset\n", 'run session: not in another one');
is(run($id, 'echo "${LEFT-unset}"')->{stdout}, "unset\n", 'run session: nor without');
is(run($id, 'exit 4', session => 'work')->{exit_code},
	4, 'run session: the exit code is the script\'s');
is( run($id, 'pwd; echo "$LEFT"', session => 'work', cwd => '/', env => { LEFT => 'given' })
	  ->{stdout},
	"/\ngiven\n",
	'run session: cwd and env of the call come last');

#
# Files
#

sub upload { return $s->query("SELECT sbx_upload('$id', " . quote($_[0]) . ", $_[1])") }

$s->query(
	q{CREATE TEMP TABLE content AS
	SELECT 'every byte'::text AS name, string_agg(set_byte('\x00', 0, i), '' ORDER BY i) AS bytes FROM generate_series(0, 255) i
	UNION ALL SELECT '5 MiB', string_agg(sha256(i::text::bytea), '' ORDER BY i) FROM generate_series(1, 163840) i
	UNION ALL SELECT 'nothing', ''
	UNION ALL SELECT 'one NUL', '\x00'
	UNION ALL SELECT 'line ends', '\x0d0a0d0a2d2d7362782d0d0a'});
foreach my $name ('every byte', '5 MiB', 'nothing', 'one NUL', 'line ends')
{
	my $mark = $sbx->mark;

	is( $s->execute(q{SELECT sbx_upload($1, $2, bytes) FROM content WHERE name = $2}, $id, $name)
		  ->sqlstate,
		undef,
		"$name: goes up");
	is( run($id, "sha256sum <'$name'")->{stdout} =~ s/ .*\n//r,
		$s->value(q{SELECT encode(sha256(bytes), 'hex') FROM content WHERE name = $1}, $name),
		"$name: and is in the sandbox as it was");
	is( $s->value(q{SELECT sbx_download($1, $2) = bytes FROM content WHERE name = $2}, $id, $name),
		't',
		"$name: and comes down as it was");
}
is(run($id, 'cd; cat "every byte" | wc -c')->{stdout},
	"256\n", 'a relative path starts at the home directory');
is(upload('/tmp/a/new/folder/file', q{'x'})->sqlstate,
	undef, 'directories that lead there are made');
is(run($id, 'cat /tmp/a/new/folder/file; echo')->{stdout}, "x\n", 'and the file is in them');
is(upload('/tmp/a/new/folder/file', q{'yz'})->sqlstate, undef, 'a file that exists is replaced');
is($s->value(qq{SELECT convert_from(sbx_download('$id', '/tmp/a/new/folder/file'), 'UTF8')}),
	'yz', 'by the whole new one');
foreach my $path ('with blanks', q{it's "quoted"}, 'žluťoučký 🐘', '$HOME `id` \\ * & ? # %2e + ;',
	'-dash')
{
	is(upload($path, q{'content'})->sqlstate, undef, "path $path: goes up");
	is($s->value('SELECT sbx_download($1, $2)', $id, $path),
		'\x636f6e74656e74', "path $path: comes down");
}

is( failure(qq{SELECT sbx_download('$id', 'no/such/file')}),
	'SB008 FILE_NOT_FOUND',
	'a file that is missing');
my $result = $s->query(qq{SELECT sbx_download('$id', 'no/such/file')});
is( $result->message,
	qq{could not download a file from sandbox "$id"},
	'MESSAGE names the sandbox, not the path');
like($result->hint, qr/no file of that path/, 'HINT says what is wrong');
is( failure(qq{SELECT sbx_download('$id', '/tmp')}),
	'SB008 INVALID_FILE_PATH',
	'a directory is no file');

# How large.
$s->query(q{SET sbx_router.max_file_size = '16kB'});
run($id, 'head -c 16384 /dev/zero >fits; head -c 16385 /dev/zero >above');
is($s->value(qq{SELECT length(sbx_download('$id', 'fits'))}),
	16384, 'a file of just the largest size comes down');
$result = $s->query(qq{SELECT sbx_download('$id', 'above')});
is_deeply(
	[ $result->sqlstate, json($result->detail)->{code} ],
	[ 'SB008', 'FILE_TOO_LARGE' ],
	'one more byte is too many');
like($result->hint, qr/sbx_router\.max_file_size/, 'HINT names the setting');
is(upload('up', q{decode(repeat('00', 16384), 'hex')})->sqlstate,
	undef, 'a file of just the largest size goes up');
my $mark = $sbx->mark;
is(upload('up', q{decode(repeat('00', 16385), 'hex')})->sqlstate,
	'SB001', 'one more byte is too many');
is($sbx->mark, $mark, 'and nothing is sent');
$s->query('RESET sbx_router.max_file_size');
is($s->value(qq{SELECT length(sbx_download('$id', 'above'))}), 16385, 'by default it is not');
$s->query(q{SET sbx_router.max_response = '16kB'});
is($s->value(qq{SELECT length(sbx_download('$id', 'above'))}),
	16385, 'the limit for answers of a control plane is another');
$s->query('RESET sbx_router.max_response');

# Trouble on the way.
foreach my $case (
	[ 'download', 'a cut answer', action => 'truncate' ],
	[ 'download', 'a refusal', status => 403, %refusal ],
	[ 'upload', 'a refusal', status => 403, %refusal ],
	[ 'upload', '500', status => 500, %refusal ])
{
	my ($op, $what, %rule) = @$case;

	$sbx->fault(op => $op, times => 10, %rule);
	$result = $s->query(
		$op eq 'upload'
		? qq{SELECT sbx_upload('$id', 'f', 'x')}
		: qq{SELECT sbx_download('$id', 'fits')});
	is_deeply(
		[ $result->sqlstate, json($result->detail)->{operation}, is_silent($result) ],
		[ 'SB008', $op, 1 ],
		"$op: $what is SB008");
	$sbx->clear_faults;
}

$s->query('BEGIN READ ONLY');
is($s->value(qq{SELECT length(sbx_download('$id', 'fits'))}),
	16384, 'a download in a read-only transaction');
is(upload('f', q{'x'})->sqlstate, '25006', 'but no upload');
$s->query('ROLLBACK');

is($s->value("SELECT sbx_destroy('$id')"), 't', 'it is destroyed');
is(scalar(my @left = $sbx->alive), 0, 'nothing is left');

done_testing();
