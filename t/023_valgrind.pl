# The engine under valgrind: no access to memory that is not ours to read or write, and
# nothing lost for good, whatever happens to an exchange.
#
# The server is the ordinary one, so what it keeps in its own memory contexts is one block to
# valgrind; what libcurl, jansson and operations have is not.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxKinds;
use SbxTest;
use Test::More;

plan skip_all => 'sanitizers do not run under valgrind' if $ENV{SBX_SANITIZERS};
plan skip_all => 'valgrind is not installed' if system('valgrind --version >/dev/null 2>&1') != 0;

my $sbx = SbxTest->new(conf => "log_statement = none\nautovacuum = off\nmax_connections = 20\n");
my $node = $sbx->node;
{
	my $session = $sbx->session;
	register_kinds($session, $sbx->url);
	$session->value(q{SELECT sbx_register_provider('nobody', 'daytona', '{"apiUrl":"http://127.0.0.1:1/api"}')});
	$session->finish;
}
$node->stop('fast');

#
# The server once more, under valgrind
#

my $logs = PostgreSQL::Test::Utils::tempdir();
chomp(my $programs = `pg_config --bindir`);
my $server = fork // die "could not fork: $!";
if ($server == 0)
{
	open STDERR, '>', "$logs/server" or POSIX::_exit(2);
	open STDOUT, '>&', \*STDERR or POSIX::_exit(2);
	exec 'valgrind', '--trace-children=yes', '--leak-check=full', '--show-leak-kinds=definite',
	  '--num-callers=40', '--fullpath-after=', "--log-file=$logs/valgrind.%p", '--max-stackframe=16000000',
	  "$programs/postgres", '-D', $node->data_dir
	  or POSIX::_exit(2);
}

END
{
	my $status = $?;
	if ($server)
	{
		kill 'QUIT', $server;
		waitpid $server, 0;
	}
	$? = $status;
}

sub user
{
	my $session = poll('a session', sub { eval { $sbx->session } });

	$session->value(q{SELECT sbx_set_credential('nobody', 'key')});
	give_keys($session, 'key');
	$session->value(q{SET sbx_router.abort_cleanup_timeout = '10s'});
	return $session;
}

my $admin = user();
my $s = user();
my @backends = ($s->pid);

sub provision { return qq{SELECT sbx_provision('{"providerId":"$_[0]"}')} }

#
# What goes well, and what does not
#

my @kinds = kinds();
foreach my $number (0 .. $#kinds)
{
	my $kind = $kinds[$number];
	my $id = $s->value(provision($kind));
	my $turn = 0;

	is($sbx->run($s, $id, 'echo out; echo err >&2; exit 3', env => { A => 'b' })->{exit_code}, 3, "$kind: a script");
	$s->value('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/file', 'content' x 1000);
	is($s->value(q{SELECT length(sbx_download($1, '/tmp/file'))}, $id), 7000, "$kind: a file");
	$s->value('SELECT count(*) FROM sbx_find($1, $2)', $kind, '{}');
	if (kind_knows($s, $kind, 'startScript'))
	{
		my ($session, $command) = $s->execute(q{SELECT session_id, command_id FROM sbx_start_script($1, 'echo later')}, $id)->row;
		poll("$kind: it ends", sub { defined $s->value('SELECT sbx_script_status($1, $2, $3)', $id, $session, $command) });
		is($s->value('SELECT stdout FROM sbx_script_logs($1, $2, $3)', $id, $session, $command), "later\n", "$kind: in the background");
	}
	$s->value("SELECT $_(\$1)", $id) foreach 'sbx_stop', 'sbx_start';
	is($s->value(q{SELECT count(*) FROM sbx_run_script_many(ARRAY[$1, $1, 'sbx_x'], 'true')}, $id), 3, "$kind: many");

	my %fault = (
		'reset-before-read' => {},
		'reset-after-work' => {},
		'close-reused' => { n => 1 },
		'truncate' => {},
		'garbage' => {},
		'wrong-type' => {},
		'deep' => {},
		'huge' => {},
		'huge-header' => {},
		'bad-utf8' => {},
		'nul' => {},
		'duplicate-keys' => {},
		'redirect' => {},
		'status' => { status => 503 });
	my %call = (
		get => "SELECT sbx_get('$id')",
		run => "SELECT sbx_run_script('$id', 'true')",
		list => "SELECT count(*) FROM sbx_find('$kind', '{}')",
		download => "SELECT sbx_download('$id', '/tmp/file')");

	# Each fault in each operation once, with one of the kinds in turn: what is watched here is
	# the engine, which knows none.
	foreach my $action (sort keys %fault)
	{
		$turn++;
		foreach my $op (sort keys %call)
		{
			next unless $turn++ % scalar(@kinds) == $number;
			$sbx->fault(provider => $kind, op => $op, action => $action, %{ $fault{$action} });
			$s->query($call{$op});
			$sbx->clear_faults;
		}
	}
	$sbx->fault(provider => $kind, op => 'create', action => $_) and $s->query(provision($kind))
	  foreach qw(reset-after-work truncate garbage deep bad-utf8);
	$sbx->clear_faults;
	is($s->value('SELECT sbx_destroy($1)', $id), 't', "$kind: its end");
	is($s->value("SELECT count(*) FROM sbx_provision_many('{\"providerId\":\"$kind\"}', 3)"), 3, "$kind: many launches");
	is($s->value('SELECT count(*) FROM sbx_destroy_many(ARRAY(SELECT id FROM sbx_mapping))'), 3, "$kind: and ends");

	# A rollback, a cancel, an end of the session in the middle.
	$s->query($_) foreach 'BEGIN', provision($kind), 'SAVEPOINT one', provision($kind), 'ROLLBACK TO one', 'ROLLBACK';
	is($s->query(q{SET statement_timeout = '300ms'; } . provision('nobody'))->error ? 1 : 0, 1, "$kind: nobody listens");
	$s->value('RESET statement_timeout');
	foreach my $what ('cancel', 'terminate')
	{
		my $session = $what eq 'cancel' ? $s : user();
		my $mark = $sbx->mark;

		push @backends, $session->pid if $session != $s;
		$sbx->fault(provider => $kind, op => 'create', action => 'hang', work => JSON::PP::true);
		$session->send(provision($kind));
		poll('the create arrives', sub { scalar grep { $_->{op} eq 'create' } $sbx->requests($mark) });
		$admin->value("SELECT pg_${what}_backend(\$1)", $session->pid);
		is($session->wait->sqlstate, $what eq 'cancel' ? '57014' : '57P01', "$kind: $what");
		$sbx->clear_faults;
	}
}
is(scalar(my @alive = $sbx->alive), 0, 'nothing is left');

#
# What valgrind says
#

$s->value('SELECT sbx_clear_credentials()');
$s->finish;
poll("backend $_ ends", sub { !-e "/proc/$_" }) foreach @backends;
$admin->finish;
kill 'INT', $server;
waitpid $server, 0;
undef $server;

# Paragraphs about what happened under one of our functions.
my $ours = qr{/src/(?:core|flow|net|observe|store)/|/providers/|/sbx_router\.so};
my @reports;
my %seen;
foreach my $log (glob "$logs/valgrind.*")
{
	my $text = slurp_file($log) =~ s/^==\d+== ?//gmr;

	my ($pid) = $log =~ /\.(\d+)$/;
	$seen{$pid} = 1 if $text =~ /ERROR SUMMARY/;
	push @reports, grep { $_ =~ $ours } split /\n\s*\n/, $text;
}
is(scalar(grep { !$seen{$_} } @backends), 0, 'every session ran under valgrind, to its end');
is(scalar(@reports), 0, 'no report of an error or a loss in code of ours') or diag join "\n\n", @reports[ 0 .. ($#reports > 4 ? 4 : $#reports) ];

done_testing();
