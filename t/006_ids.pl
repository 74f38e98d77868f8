# An id that is used again, by another session or by another database of the same
# account: what one launch cleans up is its own sandbox and never the other's.
#
# Every part is a pair: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use SbxTest;
use Test::More;

my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "sbx_router.abort_cleanup_timeout = '60s'\n");
my $node = $sbx->node;
$sbx->register('pool');
my $admin = $sbx->user('pool', 'key');

# The other database; its pool has the same account.
$node->safe_psql('postgres', 'CREATE DATABASE other');
my $other = $sbx->session(dbname => 'other');
$other->value('CREATE EXTENSION sbx_router');
$other->value('SELECT sbx_register_provider($1, $2, $3)', 'pool', 'daytona', qq({"apiUrl":"${\$sbx->api}"}));
$other->value('SELECT sbx_set_credential($1, $2)', 'pool', 'key');

sub new_id { return $admin->value('SELECT sbx_new_id()') }
sub provision { return "SELECT sbx_provision(id => '$_[0]')" }
sub state_of { return $_[0]->value("SELECT state FROM sbx_get('$_[1]')") }
sub rows_of { return $_[0]->value("SELECT count(*) FROM sbx_mapping WHERE id = '$_[1]'") }
sub count_alive { return scalar grep { $_ eq $_[0] } $sbx->alive }
sub labels { return map { $_->{labels} } grep { $_->{name} eq $_[0] } $sbx->audit }
sub looks_of { return $sbx->count('GET', qr{/sandbox/$_[0]$}) }

sub creates_of
{
	my ($id) = @_;

	return scalar grep { $_->{op} eq 'create' && $_->{body} =~ /"name":"$id"/ } $sbx->requests;
}

# Start over: nothing anywhere.
sub clean
{
	$sbx->reset;
	$_->value('TRUNCATE sbx_mapping') foreach $admin, $other;
	return $sbx->mark;
}

# A session whose provision with this id was cancelled while its create was held.
sub cancelled
{
	my ($id, %fault) = @_;
	my $session = $sbx->user('pool', 'key');

	$sbx->fault(op => 'create', action => 'hang', %fault);
	$session->send(provision($id));
	poll('the create arrives', sub { creates_of($id) == 1 });
	$admin->value('SELECT pg_cancel_backend($1)', $session->pid);
	return $session;
}

#
# R1: another session retries the id while the first one cleans up
#

my $mark = clean();
my $id = new_id();
my $first = cancelled($id);

# It looks for what its create may have made; its lock is free by then.
poll('the first one cleans up', sub { looks_of($id) >= 1 });
my $second = $sbx->user('pool', 'key');
my $result = $second->query(provision($id));
is($result->value, $id, 'R1 must fire: another session takes the id while the first one cleans up')
  or diag $result->everything;
$result = $first->wait;
is($result->sqlstate, '57014', 'R1 must fire: the first one was cancelled');
is(scalar(my @warnings = $result->warnings), 0, 'R1 must fire: it knows that nothing of its own is left');
is(count_alive($id), 1, "R1 must fire: the second one's sandbox is alive");
is($sbx->deletes($mark), 0, 'R1 must fire: nothing was deleted');
is(state_of($second, $id), 'started', 'R1 must fire: and it can be used');

# The second one's transaction is still open when the first one looks.
clean();
$id = new_id();
$first = cancelled($id);
poll('the first one cleans up', sub { looks_of($id) >= 1 });
$second->query('BEGIN');
is($second->value(provision($id)), $id, 'R1 must fire: the same inside a transaction');
$first->wait;
is(count_alive($id), 1, "R1 must fire: the second one's sandbox is alive");
$second->query('ROLLBACK');
is(count_alive($id), 0, 'R1 must not fire: until its own transaction is rolled back');

$mark = clean();
$id = new_id();
$first = cancelled($id, work => JSON::PP::true);
$result = $first->wait;
is($result->sqlstate, '57014', 'R1 must not fire: cancelled while the sandbox is there and nobody took the id');
is(scalar(@warnings = $result->warnings), 0, 'R1 must not fire: without a warning');
is(count_alive($id), 0, 'R1 must not fire: what the launch made is destroyed, found by its name');
is($sbx->deletes($mark), 1, 'R1 must not fire: with one delete');
is($second->value(provision($id)), $id, 'R1 must not fire: the id can be used again');
is(count_alive($id), 1, 'R1 must not fire: and is alive');
my @tokens = map { $_->{'sbx-router-launch'} } labels($id);
is(scalar @tokens, 2, 'R1: two launches of one id');
isnt($tokens[0], $tokens[1], 'R1: carry tokens of their own');

# The same within the statement, which looks for itself.
foreach my $given (1, 0)
{
	my $what = $given ? 'an id of the caller' : 'a fresh id';
	$mark = clean();
	$sbx->fault(op => 'create', action => 'reset-after-work');
	$result = $second->query($given ? provision(new_id()) : 'SELECT sbx_provision()');
	is($result->sqlstate, 'SB005', "R1 must not fire: the answer of the create is lost, $what");
	is(scalar(@warnings = $result->warnings), 0, "R1 must not fire: $what: without a warning");
	my @made = $sbx->audit;
	is(scalar @made, 1, "R1 must not fire: $what: it was made");
	ok(!$made[0]{alive}, "R1 must not fire: $what: and is destroyed, found by its name");
	is($sbx->deletes($mark), 1, "R1 must not fire: $what: with one delete");
}

#
# R2: another database has the id
#

$mark = clean();
$id = new_id();
$admin->value(provision($id));
$result = $other->query(provision($id));
is($result->sqlstate, 'SB005', 'R2 must fire: the name is taken by the other database');
like($result->hint, qr/HTTP status: 409/, 'R2 must fire: which the provider says');
is(scalar(@warnings = $result->warnings), 0, 'R2 must fire: nothing is left to worry about');
is(count_alive($id), 1, "R2 must fire: the other database's sandbox is alive");
is($sbx->deletes($mark), 0, 'R2 must fire: nothing was deleted');
is(state_of($admin, $id), 'started', 'R2 must fire: and it can be used');
is(rows_of($other, $id), 0, 'R2 must fire: no row where it failed');

# In a transaction: the rollback does not do it either.
$other->query('BEGIN');
is($other->query(provision($id))->sqlstate, 'SB005', 'R2 must fire: the same inside a transaction');
$result = $other->query('ROLLBACK');
is(scalar(@warnings = $result->warnings), 0, 'R2 must fire: the rollback has nothing to do');
is(count_alive($id), 1, "R2 must fire: the other database's sandbox is alive");

# One whose id was not given, as in a copy of the database.
my $fresh = $admin->value('SELECT sbx_provision()');
is($other->query(provision($fresh))->sqlstate, 'SB005', 'R2 must fire: the id is taken and was not given there');
is(count_alive($fresh), 1, "R2 must fire: that sandbox is alive");
is(state_of($admin, $fresh), 'started', 'R2 must fire: and it can be used');

my $third = new_id();
is($other->value(provision($third)), $third, 'R2 must not fire: an id that nobody has');
is(state_of($other, $third), 'started', 'R2 must not fire: can be used');
is($admin->value("SELECT sbx_destroy('$id')"), 't', 'R2 must not fire: the owner destroys its own');
is(count_alive($id), 0, 'R2 must not fire: it is gone');
is($other->value(provision($id)), $id, 'R2 must not fire: then the id is free for the other database');
is($other->value("SELECT sbx_destroy('$id')"), 't', 'R2 must not fire: which destroys its own');

#
# R1, R2: the label
#

clean();
$id = new_id();
$admin->value(provision($id));
$fresh = $admin->value('SELECT sbx_provision()');
my ($given_labels) = labels($id);
my ($fresh_labels) = labels($fresh);
like($given_labels->{'sbx-router-launch'}, qr/^[0-9a-f]{16}$/, 'an id of the caller: the launch has a token');
ok(!exists $fresh_labels->{'sbx-router-launch'}, 'a fresh id: it needs none');
is($given_labels->{'sbx-router-id'}, $id, 'the id is a label');
is($fresh_labels->{'sbx-router-id'}, $fresh, 'here, too');

done_testing();
