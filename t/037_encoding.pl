# A database that is not in UTF-8: what goes to a provider and comes back from it is the same
# text, and what providers count is characters.
#
# Behaviour comes in pairs: "must fire" is the defect, "must not fire" its harmless kin.
use strict;
use warnings;

use SbxKinds;
use SbxTest;
use Test::More;

my $sbx = SbxTest->new(conf => "log_statement = none\n");

$sbx->session->value(q{CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0});
my $s = $sbx->session(dbname => 'latin');
$s->value($_) foreach q{SET client_encoding = 'UTF8'}, 'CREATE EXTENSION sbx_router';
register_kinds($s, $sbx->url);
give_keys($s, 'key');

# Each is one byte in the database, two in UTF-8.
my ($e, $pound) = map { chr } 0xe9, 0xa3;

foreach my $kind (kinds())
{
	my $id = $s->value('SELECT sbx_provision($1)', qq({"providerId":"$kind","launch":{"name":"n$e","labels":{"l$e":"$pound"}}}));

	is($s->value('SELECT count(*) FROM sbx_find($1, $2)', $kind, qq({"l$e":"$pound"})), 1, "$kind: must not fire: found by its label");
	is($s->value('SELECT count(*) FROM sbx_find($1, $2)', $kind, qq({"l$e":"$e"})), 0, "$kind: must fire: not by another one");
	my ($row) = $sbx->run($s, $id, qq(printf '%s\\n' "$e \$X" "\$X" | od -An -tx1; echo "$e \$X"), env => { X => $pound });
	is($row->{stdout}, " c3 a9 20 c2 a3 0a c2 a3 0a\n$e $pound\n", "$kind: must not fire: a script, its variables and its output");
	($row) = $sbx->run($s, $id, q(printf '\342\202\254 \377\n'));
	is($row->{stdout}, "? ?\n", "$kind: what the database has no letter for");
	$s->value('SELECT sbx_upload($1, $2, $3)', $id, "/tmp/f$e", '\xc3a9');
	is($s->value('SELECT sbx_download($1, $2)', $id, "/tmp/f$e"), '\xc3a9', "$kind: must not fire: a path; and the bytes of a file are nobody's text");
	($row) = $sbx->run($s, $id, q(ls /tmp | grep '^f.' | od -An -tx1));
	is($row->{stdout}, " 66 c3 a9 0a\n", "$kind: of which the sandbox sees UTF-8");
	is($s->value('SELECT sbx_destroy($1)', $id), 't', "$kind: and its end");
}

# A tag of Vercel's has 256 characters; half of these bytes alone are no characters of UTF-8.
foreach my $case ([ 256, '{}' ], [ 257, '{LAUNCH_FIELD:labels}' ])
{
	my ($length, $rejections) = @$case;

	is($s->value(q{SELECT rejections::text FROM sbx_route_explain($1) WHERE provider_id = 'vercel'},
			'{"launch":{"labels":{"a":"' . $pound x $length . '"}}}'),
		$rejections, ($rejections eq '{}' ? 'must not fire' : 'must fire') . ": a label of $length characters");
}

done_testing();
