# The trace of requests: a line in the server log for each, and nothing that is secret.
#
# Behaviour comes in pairs: "must fire" is what is to be seen, "must not fire" what is not.
use strict;
use warnings;

use SbxTest;
use Test::More;

my $sbx = SbxTest->new(conf => "sbx_router.abort_cleanup_timeout = '500ms'\nlog_statement = none\n");
my $node = $sbx->node;
my ($port) = $sbx->url =~ /:(\d+)$/;
my $host = "127.0.0.1:$port";
my $key = 'dtn_key-of-the-trace-0815';

$sbx->register('pool');
$node->safe_psql('postgres', qq{
	SELECT sbx_register_provider('box', 'e2b', '{"apiUrl":"$sbx->{url}/e2b","sandboxUrl":"$sbx->{url}/e2b-envd"}');
	CREATE ROLE ordinary LOGIN});
my $s = $sbx->user('pool', $key);
$s->value('SELECT sbx_set_credential($1, $2)', 'box', $key);
$s->value('SET sbx_router.trace = requests');

# What the server log has of requests since a place, each as a hash.
sub lines
{
	my ($place) = @_;

	return map { my $line = $_; +{ text => $line, $line =~ /(\w+)=(\S+)/g } }
	  $sbx->log_since($place) =~ /LOG:  sandbox request: (.*)/g;
}

# What the emulator has of them, in the same words.
sub arrived
{
	my ($mark) = @_;

	return map { "$_->{method} $_->{path}" =~ s/\?.*//r } $sbx->requests($mark);
}

sub said { return map { "$_->{method} $_->{path}" } @_ }

#
# Every request, and what is told of it
#

foreach my $pool ('pool', 'box')
{
	my ($place, $mark) = ($sbx->log_place, $sbx->mark);
	my $id = $s->value('SELECT sbx_provision($1)',
		qq({"providerId":"$pool","launch":{"env":{"SECRET":"env-of-the-trace"},"labels":{"tag":"label-of-the-trace"}}}));
	$sbx->run($s, $id, 'echo script-of-the-trace', env => { MORE => 'env-of-the-trace' });
	$s->value('SELECT sbx_upload($1, $2, $3)', $id, '/tmp/path-of-the-trace', 'content-of-the-trace');
	$s->value('SELECT sbx_download($1, $2)', $id, '/tmp/path-of-the-trace');
	$s->value('SELECT sbx_find($1, $2)', $pool, '{"tag":"label-of-the-trace"}');
	$s->value('SELECT sbx_destroy($1)', $id);
	my @lines = lines($place);
	my $log = $sbx->log_since($place);

	is_deeply([ said(@lines) ], [ arrived($mark) ], "$pool: must fire: a line for each request, in their order");
	is(scalar(grep { $_->{host} ne $host } @lines), 0, "$pool: with its host");
	is(scalar(grep { $_->{status} !~ /^2\d\d$/ } @lines), 0, "$pool: with its status");
	is(scalar(grep { $_->{text} !~ /connection=(?:new|kept) name=[\d.]+ connect=[\d.]+ tls=[\d.]+ wait=[\d.]+ receive=[\d.]+ total=[\d.]+ ms$/ } @lines),
		0, "$pool: with its times");
	is(scalar(grep { $_->{total} <= 0 || $_->{wait} > $_->{total} } @lines), 0, "$pool: which are parts of a whole");
	is_deeply([ map { $_->{operation} } grep { $_->{method} eq 'DELETE' && $_->{path} !~ /process/ } @lines ],
		['destroy'], "$pool: with the operation it is part of");
	unlike($log, qr/of-the-trace/, "$pool: must not fire: no key, no script, no body, no header, no query");
	unlike($log, qr/sandbox request:[^\n]*\?/, "$pool: must not fire: no query at all");
	unlike($log, qr/STATEMENT|CONTEXT/, "$pool: must not fire: nor the statement");
}
{
	my $place = $sbx->log_place;
	my $mark = $sbx->mark;

	$s->value('SELECT count(*) FROM sbx_find($1, $2)', 'pool', '{}') for 1 .. 2;
	is_deeply([ map { $_->{connection} } lines($place) ], [ ('kept') x 2 ], 'must fire: a connection that was kept');
	$sbx->fault(op => 'list', action => 'close-reused');
	$s->value('SELECT count(*) FROM sbx_find($1, $2)', 'pool', '{}');
	is((lines($place))[-1]->{connection}, 'new', 'must fire: one that was made');
}

#
# Failures
#

# The fields of the last line, without times.
sub last_line
{
	my ($place) = @_;
	my ($last) = (lines($place))[-1];

	return $last->{text} =~ s/ connection=.*//r =~ s/^.* path=\S+ //r;
}

my $id = $s->value('SELECT sbx_provision($1)', '{"providerId":"pool"}');
my %failure = (
	'status=503' => { action => 'status', status => 503, times => 9 },
	'status=307' => { action => 'redirect' },
	'failed=receive' => { action => 'reset-before-read', times => 9 },
	'failed=too-large' => { action => 'huge' },
	'failed=abandoned' => { action => 'hang' });
foreach my $what (sort keys %failure)
{
	my $place = $sbx->log_place;

	$sbx->fault(op => 'get', %{ $failure{$what} });
	$s->value(q{SET statement_timeout = '1s'}) if $what =~ /abandoned/;
	ok($s->query("SELECT sbx_get('$id')")->error, "$what: the call fails");
	is(last_line($place), $what, "$what: must fire: and the log says how its last request ended");
	$s->value('RESET statement_timeout');
	$sbx->clear_faults;
}
{
	my $place = $sbx->log_place;

	$node->safe_psql('postgres',
		q{SELECT sbx_register_provider('nobody', 'daytona', '{"apiUrl":"http://127.0.0.1:1/api"}')});
	$s->value('SELECT sbx_set_credential($1, $2)', 'nobody', $key);
	$s->query(q{SELECT sbx_provision('{"providerId":"nobody"}')});
	is(last_line($place), 'failed=connect', 'must fire: nobody listens');
	is((lines($place))[-1]->{host}, '127.0.0.1:1', 'where');
	$place = $sbx->log_place;
	$s->value('SET sbx_router.allow_private_addresses = off');
	$s->query(q{SELECT sbx_provision('{"providerId":"nobody"}')});
	$s->value('RESET sbx_router.allow_private_addresses');
	is(last_line($place), 'failed=denied', 'must fire: an address that is not allowed');
}

#
# In a rollback, and at the end of a session
#

{
	my $place = $sbx->log_place;

	$s->query('BEGIN');
	$s->value('SELECT sbx_provision($1)', '{"providerId":"pool"}');
	$s->query('ROLLBACK');
	my ($last) = (lines($place))[-1];
	is("$last->{method} $last->{operation} $last->{status}", 'DELETE destroy 200', 'must fire: a rollback that destroys');
	$sbx->fault(op => 'delete', action => 'hang', times => 9);
	$s->query('BEGIN');
	$s->value('SELECT sbx_provision($1)', '{"providerId":"pool"}');
	$s->query('ROLLBACK');
	is(scalar(grep { $_->{text} =~ /^operation=destroy method=DELETE .* failed=receive timeout / } lines($place)),
		1, 'must fire: and one that cannot');
	$sbx->clear_faults;
}

#
# Off
#

$s->value('SET sbx_router.trace = off');
my $place = $sbx->log_place;
$s->value('SELECT sbx_destroy($1)', $id);
is(scalar(my @none = lines($place)), 0, 'must not fire: off');
my $ordinary = $sbx->session(user => 'ordinary');
$ordinary->query('SELECT 1');
is($ordinary->query("LOAD 'sbx_router'; SET sbx_router.trace = requests")->sqlstate, '42501',
	'must fire: nobody but a superuser turns it on');

# The client hears nothing of it, whatever it wants to hear.
$s->value('SET sbx_router.trace = requests');
$s->value('SET client_min_messages = debug1');
my $result = $s->query(q{SELECT sbx_destroy(sbx_provision('{"providerId":"pool"}'))});
unlike($result->everything, qr/sandbox request/, 'must not fire: for a client');

done_testing();
