# A crash of the server right after the client heard of a sandbox.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SbxTest;
use Test::More;

# What commits asynchronously is in memory only for ten seconds.
my $sbx = SbxTest->new(
	emulator => ['--no-exec'],
	conf => "synchronous_commit = off\nwal_writer_delay = 10s\nautovacuum = off\n");
my %settings = (
	daytona => { apiUrl => $sbx->api },
	e2b => { apiUrl => "$sbx->{url}/e2b", sandboxUrl => "$sbx->{url}/e2b-envd" });
my $admin = $sbx->session;
foreach my $kind (sort keys %settings)
{
	$admin->value('SELECT sbx_register_provider($1, $1, $2)', $kind, JSON::PP::encode_json($settings{$kind}));
}
$admin->value('CREATE TABLE other (what text)');
$admin->value('CHECKPOINT');

sub user
{
	my $session = $sbx->session;

	$session->value('SELECT sbx_set_credential($1, $2)', $_, 'key') foreach sort keys %settings;
	return $session;
}

# The commit of another transaction shows whether this one's could have been lost.  It may be
# written by chance, so there are some rounds.
my %ways = (
	'a launch' => sub { my ($s, $kind) = @_; return $s->value('SELECT sbx_provision($1)', qq({"providerId":"$kind"})) },
	'a launch in a subtransaction' => sub {
		my ($s, $kind) = @_;

		$s->query($_) foreach 'BEGIN', 'SAVEPOINT a';
		my $id = $s->value('SELECT sbx_provision($1)', qq({"providerId":"$kind"}));
		$s->query($_) foreach 'RELEASE a', 'COMMIT';
		return $id;
	},
	'launches of many' => sub { my ($s, $kind) = @_; return $s->value('SELECT min(id) FROM sbx_provision_many($1, 3) id', qq({"providerId":"$kind"})) });
my $lost = 0;
foreach my $way (sort keys %ways)
{
	foreach my $kind (sort keys %settings)
	{
		my $s = user();
		my $id = $ways{$way}->($s, $kind);
		$s->value(q{INSERT INTO other VALUES ('committed')});
		$sbx->node->stop('immediate');
		$sbx->node->start;
		$s = user();
		is($s->value('SELECT count(*) FROM sbx_mapping WHERE id = $1', $id), 1, "$kind: must fire: the row of $way outlives a crash");
		is($s->value('SELECT state FROM sbx_get($1)', $id), 'started', "$kind: and leads to the sandbox");
		$lost++ unless $s->value('SELECT count(*) FROM other');
		$s->value('TRUNCATE other');
		$s->value('CHECKPOINT');
	}
}
cmp_ok($lost, '>', 0, 'must not fire: other commits stay asynchronous, and are lost');

done_testing();
