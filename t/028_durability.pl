# A crash of the server right after the client heard of a sandbox.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxKinds;
use SbxTest;
use Test::More;

# What commits asynchronously is in memory only for ten seconds.
my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "synchronous_commit = off\nwal_writer_delay = 10s\nautovacuum = off\n");
my $admin = $sbx->session;
register_kinds($admin, $sbx->url);
$admin->value('CREATE TABLE other (what text)');
$admin->value('CHECKPOINT');

sub user
{
	my $session = $sbx->session;

	give_keys($session, 'key');
	return $session;
}

# Each makes something known to the client: which sandbox, and its state.
my %ways = (
	'a launch' => sub { my ($s, $kind) = @_; return ($s->value('SELECT sbx_provision($1)', qq({"providerId":"$kind"})), 'started') },
	'a launch in a subtransaction' => sub {
		my ($s, $kind) = @_;

		$s->query($_) foreach 'BEGIN', 'SAVEPOINT a';
		my $id = $s->value('SELECT sbx_provision($1)', qq({"providerId":"$kind"}));
		$s->query($_) foreach 'RELEASE a', 'COMMIT';
		return ($id, 'started');
	},
	'launches of many' => sub {
		my ($s, $kind) = @_;

		return ($s->value('SELECT min(id) FROM sbx_provision_many($1, 3) id', qq({"providerId":"$kind"})), 'started');
	},

	# What changes a row that is there; at some providers only a start may.
	'another state' => sub {
		my ($s, $kind) = @_;
		my $id = $s->value('SELECT sbx_provision($1)', qq({"providerId":"$kind"}));

		$s->value(q{UPDATE sbx_mapping SET state = 'stopped' WHERE id = $1}, $id);
		$admin->value('CHECKPOINT');
		$s->value('SELECT sbx_start($1)', $id);
		return ($id, 'started');
	});

# One way, and the commit of another transaction after it, which says whether this one's
# could have been lost; then the server crashes.
sub crash_after
{
	my ($way, $kind) = @_;
	my $s = user();
	my ($id, $state) = $ways{$way}->($s, $kind);

	$s->value(q{INSERT INTO other VALUES ('committed')});
	$sbx->node->stop('immediate');
	$sbx->node->start;
	$admin = $sbx->session;
	is($admin->value('SELECT state FROM sbx_mapping WHERE id = $1', $id), $state, "$kind: must fire: $way: the row outlives a crash");
	is(user()->value('SELECT state FROM sbx_get($1)', $id), $state, "$kind: $way: and leads to the sandbox");
	my $lost = $admin->value('SELECT count(*) FROM other') == 0;
	$admin->value($_) foreach 'TRUNCATE other', 'CHECKPOINT';
	return $lost;
}

# The other commit may be written by chance: then that round proves nothing.
my $attempts = 5;
foreach my $way (sort keys %ways)
{
	foreach my $kind (kinds())
	{
		my $lost = 0;
		for (my $attempt = 0; !$lost && $attempt < $attempts; $attempt++) { $lost = crash_after($way, $kind) }
		ok($lost, "$kind: must not fire: $way: the commit of another transaction stays asynchronous, and is lost");
	}
}

done_testing();
