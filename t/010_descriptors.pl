# A session that runs out of file descriptors: an error, nothing leaks, and it goes on
# when there are some again.
#
# The server counts the descriptors of libraries in slots.  dblink takes one for each
# of its connections, so with it they can be taken and given back one by one.
use strict;
use warnings;

use SbxTest;
use Test::More;

chomp(my $folder = `pg_config --pkglibdir`);
plan skip_all => 'dblink is not installed' unless -e "$folder/dblink.so";

my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => qq{
max_files_per_process = 80
max_connections = 60
sbx_router.abort_cleanup_timeout = '60s'
});
my $node = $sbx->node;
$sbx->register('pool');
$node->safe_psql('postgres', 'CREATE EXTENSION dblink');
my $to = sprintf 'host=%s port=%s dbname=postgres user=%s', $node->host, $node->port, scalar getpwuid $<;

# Take so many slots, or all; returns how many it got.
sub take
{
	my ($session, $many) = @_;
	my $taken = 0;

	while (!defined $many || $taken < $many)
	{
		my $result = $session->execute('SELECT dblink_connect($1, $2)', 'slot' . ($taken + 1), $to);
		last if $result->error;
		$taken++;
	}
	return $taken;
}

sub give_back
{
	my ($session, $number) = @_;

	$session->value('SELECT dblink_disconnect($1)', "slot$number");
	return;
}

# Descriptors of a backend that are no files.
sub descriptors
{
	my ($session) = @_;
	my $process = '/proc/' . $session->pid . '/fd';

	return scalar grep { (readlink $_ // '') =~ /^(?:anon_inode|socket|pipe):/ } glob "$process/*";
}

#
# R6
#

my $s = $sbx->user('pool', 'key');
my $all = take($s);
cmp_ok($all, '>', 8, 'R6: a session takes all slots');
my $result = $s->query('SELECT sbx_provision()');
is($result->sqlstate, '53000', 'R6: without a slot: the error of the server for that');
my $needed;
for my $free (1 .. $all)
{
	give_back($s, $all - $free + 1);
	my $before = descriptors($s);
	my @states = map { $s->query('SELECT sbx_provision()')->sqlstate } 1 .. 3;
	if (!defined $states[-1])
	{
		$needed = $free;
		last;
	}
	my $after = descriptors($s);
	my $kept = ($states[-1] eq $states[0] ? $after - $before : 0);

	# What is complete is kept for the next time; what is not, is not.
	is_deeply(\@states, [ ($states[0]) x 3 ], "R6 must fire: with $free: the same error each time");
	$before = descriptors($s);
	$s->query('SELECT sbx_provision()') for 1 .. 3;
	is(descriptors($s), $before, "R6 must fire: with $free: failing again costs no descriptors");
	cmp_ok($kept, '<=', 6, "R6 must fire: with $free: an engine at most");
}
ok(defined $needed, 'R6 must fire: when there are enough it works') or die 'nothing to compare with';
note("slots: $all, needed: $needed");
is(scalar(my @alive = $sbx->alive), 3, 'R6 must fire: what was made is what was returned, and no more');

# A session that never failed needs as many and no fewer.
my $fresh = $sbx->user('pool', 'key');
take($fresh, $all - $needed);
$result = $fresh->query('SELECT sbx_provision()');
ok(!$result->error, 'R6 must fire: one that was never short does with the same number') or diag $result->everything;
$fresh = $sbx->user('pool', 'key');
take($fresh, $all - $needed + 1);
ok($fresh->query('SELECT sbx_provision()')->error, 'R6 must fire: and not with one fewer');

# Never short at all.
$fresh = $sbx->user('pool', 'key');
$fresh->value('SELECT sbx_destroy(sbx_provision())');
my $before = descriptors($fresh);
$fresh->value('SELECT sbx_destroy(sbx_provision())') for 1 .. 5;
is(descriptors($fresh), $before, 'R6 must not fire: what works costs no more the next time');

done_testing();
