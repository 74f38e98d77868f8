# The life of a sandbox as test/scenario.sql tells it, with each provider kind: what is
# printed is the same.
use strict;
use warnings;

use Cwd qw(abs_path);
use FindBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SbxKinds;
use SbxTest;
use Test::More;

my $folder = abs_path("$FindBin::Bin/../test");
my $expected = slurp_file("$folder/scenario.out");
my $sbx = SbxTest->new;

# Our ids by the order of their appearance; those of the providers are never printed.
sub mask
{
	my ($text) = @_;
	my %number;
	my $next = 0;

	$text =~ s/sbx_(?!0{32})[0-9a-f]{32}/'sbx_<' . ($number{$&} ||= ++$next) . '>'/ge;
	return $text;
}

# The same for a kind whose launch has no environment: the script is given all of it.
sub for_kind
{
	my ($kind, $text) = @_;

	return $text if kind_launch_env($kind);
	$text =~ s/,"env":\{"GIVEN":"at launch"\}// or die 'no environment at launch';
	$text =~ s/(?<=env => '\{)(?="NOW")/"GIVEN":"at launch",/ or die 'no environment of the script';
	return $text;
}

sub transcript
{
	my ($kind, $settings, $credential) = @_;
	my $script = for_kind($kind, slurp_file("$folder/scenario.sql"));
	my $lines = int(kind_output($kind) / 64);
	my @psql = ('psql', '-X', '-q', '-d', $sbx->node->connstr('postgres'));
	my @given =
	  map { ('-v', $_) } "kind=$kind", "settings=$settings", "credential=$credential", "lines=$lines";
	my $printed;

	IPC::Run::run([ @psql, @given ], '<', \$script, '>&', \$printed);
	return mask($printed);
}

my $session = $sbx->session;
is(join(' ', grep { kind_knows($session, $_, 'startScript') } kinds()), 'daytona e2b microsandbox', 'these kinds know scripts in the background');
foreach my $kind (kinds())
{
	my $settings = kind_settings($kind, $sbx->url);
	my $printed = transcript($kind, $settings, kind_credential($kind, 'key-of-the-scenario'));

	my $wanted = for_kind($kind, $expected);
	$wanted =~ s/^-- A script in the background\n.*?(?=^-- )//ms unless kind_knows($session, $kind, 'startScript');
	is($printed, $wanted, "$kind: prints what is expected");
	is(scalar(my @left = $sbx->alive), 0, "$kind: nothing is left");
	unlike($printed, qr/\Q$settings\E|key-of-the-scenario/, "$kind: no key is printed");
}

done_testing();
