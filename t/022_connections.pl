# Connections: one that dies under a request, too few descriptors for all, many failures in
# a row, and a server that dies while a backend waits.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxKinds;
use SbxTest;
use Test::More;

#
# A server that may open a hundred files, emulator apart
#

sub limit_files
{
	my ($soft) = @_;

	return system('prlimit', '--pid', $$, "--nofile=$soft:") == 0;
}
my ($usual) = slurp_file('/proc/self/limits') =~ /^Max open files\s+(\d+)/m;
limit_files(100) or die 'prlimit does not work';
my $sbx = SbxTest->new(
	conf => "log_statement = none\nmax_connections = 30\n",
	emulator => [ '--listen', '0.0.0.0:0', '--allow-non-loopback' ]);
limit_files($usual);

my $admin = $sbx->session;
register_kinds($admin, $sbx->url);
$admin->value(q{SELECT sbx_register_provider('nobody', 'daytona', '{"apiUrl":"http://127.0.0.1:1/api"}')});
$admin->value(q{SELECT sbx_register_provider('no-tls', 'daytona', $1)},
	JSON::PP::encode_json({ apiUrl => $sbx->api =~ s/^http/https/r }));

sub user
{
	my $session = $sbx->session;

	$session->value('SELECT sbx_set_credential($1, $2)', $_, 'key') foreach 'nobody', 'no-tls';
	give_keys($session, 'key');
	$session->value(q{SET sbx_router.abort_cleanup_timeout = '300ms'});
	return $session;
}

sub provision { return $_[0]->value('SELECT sbx_provision($1)', qq({"providerId":"$_[1]"})) }

# Descriptors that are no files, and memory of its own in kB.
sub descriptors
{
	my ($session) = @_;

	return scalar grep { (readlink $_ // '') =~ /^(?:anon_inode|socket|pipe):/ } glob '/proc/' . $session->pid . '/fd/*';
}

sub resident
{
	my ($session) = @_;
	my ($size) = slurp_file('/proc/' . $session->pid . '/status') =~ /^RssAnon:\s+(\d+) kB/m;

	return $size;
}

my ($limit) = slurp_file('/proc/' . $admin->pid . '/limits') =~ /^Max open files\s+(\d+)/m;
is($limit, 100, 'the server may open a hundred files');

#
# A kept connection that dies
#

my $s = user();
my %sandbox = map { $_ => provision($s, $_) } kinds();

# Requests of an operation since a mark.
sub sent { my ($mark, $op) = @_; return grep { $_->{op} eq $op } $sbx->requests($mark) }

# Each of the first requests on a connection may be the one that is closed.
sub dies
{
	my ($kind, $op, $sql, $works, %rule) = @_;
	my $mark = $sbx->mark;

	$s->value('SELECT state FROM sbx_get($1)', $sandbox{$kind});
	$sbx->fault(provider => $kind, op => $op, action => 'close-reused', n => 1, %rule);
	my $result = $s->query($sql);
	$sbx->clear_faults;
	is($result->error ? 'fails' : 'works', $works, "$kind, $op, its connection dies: $works") or diag $result->everything;
	return sent($mark, $op);
}
foreach my $kind (kinds())
{
	is(scalar(my @creates = dies($kind, 'create', qq{SELECT sbx_provision('{"providerId":"$kind"}')}, 'fails')),
		1, "$kind: must fire: a create, which has a body: one delivery");
	my @runs = dies($kind, 'run', "SELECT sbx_run_script('$sandbox{$kind}', 'echo very-script')", 'fails');

	# Where it goes over a socket, the request for that has no body.
	is(scalar(grep { $_->{bodyBytes} == 0 || $_->{body} =~ /very-script/ } @runs), 1, "$kind: must fire: a script: one delivery");
	is(scalar(my @lists = dies($kind, 'list', "SELECT sbx_find('$kind', '{}')", 'works')),
		2, "$kind: must not fire: a list is asked for again");
}

# Requests without a body, of which nothing could be sent by halves.  They are done, and only
# the answer is missing: a second one would be libcurl's, since the operation looks first.
my @done = (work => JSON::PP::true);
my @stops = grep { $_->{method} eq 'POST' }
  dies('daytona', 'stop', "SELECT sbx_stop('$sandbox{daytona}')", 'works', @done);
is(scalar(@stops), 1, 'daytona: must fire: a stop, which has no body: one delivery');
is($stops[0]{body}, '', 'daytona: it has none');
is($stops[0]{connectionRequest}, 1, 'daytona: and a connection of its own');
{
	my $mark = $sbx->mark;
	$sbx->fault(provider => 'daytona', op => 'start', action => 'close-reused', n => 1, @done);
	$s->value("SELECT sbx_start('$sandbox{daytona}')");
	is(scalar(sent($mark, 'start')), 1, 'daytona: must fire: a start: one delivery');
}

# Connections outlive statements and transactions.
{
	my $mark = $sbx->mark;
	my $get = "SELECT state FROM sbx_get('$sandbox{daytona}')";

	$s->query($_) foreach $get, 'BEGIN', $get, 'ROLLBACK', 'BEGIN', $get, 'SELECT 1/0', 'ROLLBACK', $get;
	my %connection = map { $_->{connection} => 1 } sent($mark, 'get');
	is(scalar(sent($mark, 'get')), 4, 'four requests');
	is(scalar(keys %connection), 1, 'must not fire: statements, commits and rollbacks keep the connection');
}

#
# More at once than there are descriptors
#

{
	my $session = user();
	my $count = 60;
	my $ids = '{' . join(',', ($sandbox{daytona}, $sandbox{e2b}) x ($count / 2)) . '}';
	my $place = $sbx->log_place;
	my $result = $session->execute(
		q{SELECT count(*) FILTER (WHERE stdout = E'here\n'), string_agg(DISTINCT error_message, '; ')
		FROM sbx_run_script_many($1, 'echo here')}, $ids);
	is(($result->row)[0], $count, 'must fire: many scripts with few descriptors all run') or diag +($result->row)[1];
	cmp_ok(descriptors($session), '<', 60, 'and they are given back');
	unlike($sbx->log_since($place), qr/PANIC|FATAL|out of file descriptors/, 'the server has enough for itself');

	$result = $session->execute(q{SELECT count(*) FROM sbx_provision_many('{"providerId":"e2b"}', 60)});
	is($result->value, $count, 'must fire: many launches, too') or diag $result->everything;
	$result = $session->query(q{SELECT count(*) FILTER (WHERE destroyed) FROM sbx_destroy_many(ARRAY(
		SELECT id FROM sbx_mapping WHERE provider_id = 'e2b' AND id <> '} . $sandbox{e2b} . q{'))});
	is($result->value, $count, 'must fire: and their ends');
	is($session->value('SELECT state FROM sbx_get($1)', $sandbox{daytona}), 'started', 'the session goes on');

	# An operation that waits for a descriptor has its whole time then.
	$sbx->fault(provider => 'daytona', path => '*/exec', action => 'delay', ms => 1500, times => 40);
	$ids = '{' . join(',', ($sandbox{daytona}) x 40) . '}';
	$result = $session->execute(
		q{SELECT count(*) FILTER (WHERE exit_code = 0), string_agg(DISTINCT error_message, '; ')
		FROM sbx_run_script_many($1, 'true', timeout => '4 s')}, $ids);
	is(($result->row)[0], 40, 'must not fire: none runs out of time while it waits') or diag +($result->row)[1];
	$sbx->clear_faults;

	# A cancel does not wait for those that wait.
	$sbx->fault(provider => 'daytona', path => '*/exec', action => 'hang', times => 60);
	$ids = '{' . join(',', ($sandbox{daytona}) x 60) . '}';
	$session->send("SELECT count(*) FROM sbx_run_script_many('$ids', 'true')");
	poll('some are under way', sub { $sbx->count('POST', qr{/exec$}) > 10 });
	$admin->value('SELECT pg_cancel_backend($1)', $session->pid);
	is($session->wait->sqlstate, '57014', 'must not fire: a cancel ends those that run and those that wait');
	$sbx->clear_faults;
	is($sbx->run($session, $sandbox{e2b}, 'echo well')->{stdout}, "well\n", 'and the session goes on');
	$session->finish;
}

# Many hosts, each with connections of its own: what is kept for one is in the way of others.
{
	my $count = 50;
	my $session = user();
	my @ids;

	foreach my $n (1 .. $count)
	{
		my $api = $sbx->api =~ s{//[^:/]+}{//127.0.1.$n}r;
		$admin->value('SELECT sbx_register_provider($1, $2, $3)', "host-$n", 'daytona', JSON::PP::encode_json({ apiUrl => $api }));
		$session->value('SELECT sbx_set_credential($1, $2)', "host-$n", 'key');
		push @ids, provision($session, "host-$n");
	}
	my $result = $session->execute(
		q{SELECT count(*) FILTER (WHERE stdout = E'here\n'), string_agg(DISTINCT error_message, '; ')
		FROM sbx_run_script_many($1, 'echo here')}, '{' . join(',', @ids) . '}');
	is(($result->row)[0], $count, 'must fire: scripts on many hosts with few descriptors all run') or diag +($result->row)[1];
	is($sbx->run($session, $ids[-1], 'echo one')->{stdout}, "one\n", 'must fire: and one alone, when others are kept');
	$session->finish;
}

#
# A thousand failures
#

$admin->value(q{
	CREATE FUNCTION fail_often(statement text, times integer) RETURNS integer LANGUAGE plpgsql AS $$
	DECLARE failed integer := 0;
	BEGIN
		FOR i IN 1 .. times LOOP
			BEGIN
				EXECUTE statement;
			EXCEPTION WHEN OTHERS THEN
				failed := failed + 1;
			END;
		END LOOP;
		RETURN failed;
	END $$});
my %failing = (
	'nobody listens' => q{SELECT sbx_provision('{"providerId":"nobody"}')},
	'no TLS there' => q{SELECT sbx_provision('{"providerId":"no-tls"}')},
	'a refusal' => q{SELECT sbx_provision('{"providerId":"daytona"}')},
	'trouble' => "SELECT sbx_get('$sandbox{daytona}')");
foreach my $what (sort keys %failing)
{
	my $session = user();

	$sbx->fault(provider => 'daytona', op => 'create', action => 'status', status => 401, times => 2000) if $what eq 'a refusal';
	$sbx->fault(provider => 'daytona', op => 'get', action => 'status', status => 500, times => 2000) if $what eq 'trouble';
	is($session->value('SELECT fail_often($1, 200)', $failing{$what}), 200, "$what: two hundred failures");
	my ($descriptors, $resident) = (descriptors($session), resident($session));
	is($session->value('SELECT fail_often($1, 1000)', $failing{$what}), 1000, "$what: a thousand more");
	is(descriptors($session), $descriptors, "$what: must fire: no descriptor is left over");
  SKIP:
	{
		skip 'sanitizers keep memory', 1 if $ENV{SBX_SANITIZERS};
		cmp_ok(resident($session) - $resident, '<', 1024, "$what: must fire: no memory is left over");
	}
	$sbx->clear_faults;
	is($session->value('SELECT state FROM sbx_get($1)', $sandbox{daytona}), 'started', "$what: must not fire: the session goes on");
	$session->finish;
}

#
# The postmaster dies
#

{
	my $launching = user();
	my $rolling_back = user();
	my $idle = user();

	$_->value(q{SET sbx_router.abort_cleanup_timeout = '60s'}) foreach $launching, $rolling_back;
	$rolling_back->query('BEGIN');
	provision($rolling_back, 'daytona');
	$sbx->fault(provider => 'daytona', op => 'create', action => 'hang');
	$sbx->fault(provider => 'daytona', op => 'delete', action => 'hang', times => 9);
	my $mark = $sbx->mark;
	$launching->send(q{SELECT sbx_provision('{"providerId":"daytona"}')});
	$sbx->wait_requests('POST', 'create', $mark);
	$rolling_back->send('ROLLBACK');
	$sbx->wait_requests('DELETE', 'one', $mark);
	$sbx->node->kill9;
	foreach my $case ([ 'waits for a create', $launching ], [ 'cleans up after a rollback', $rolling_back ], [ 'is idle', $idle ])
	{
		my ($what, $session) = @$case;
		my $pid = $session->pid;
		poll("the backend that $what ends", sub { !-e "/proc/$pid" });
		pass("must fire: the backend that $what ends with the postmaster");
	}
}

done_testing();
