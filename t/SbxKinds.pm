# SbxKinds: the kinds of providers, for tests that run once for each.
#
# A new kind is an entry in %kind: then the scenario, the fault matrix, the ways in which a
# transaction ends, the soak and what else asks for kinds() run for it.
package SbxKinds;

use strict;
use warnings;

use Exporter 'import';
use JSON::PP;

our @EXPORT = qw(kinds kind_settings kind_credential kind_script kind_output kind_expected kind_knows kind_request kind_launch_env register_kinds give_keys);

# settings: of a registration, for the address of an emulator.  long_life: those with which
# a sandbox outlives any test.  keeps: those with which it outlives a stop.  credential: for a
# key, where it is more than that.  script: the path, as a pattern, of the request that runs a
# script.  requests: of operations, the emulator's names, where they are not its own.  output: bytes of it that arrive whole, if less than 1 MiB.  expected: of the fault
# matrix, by "operation, fault" or "operation, group of faults", where this kind differs from
# others; say why.  no_launch_env: a launch that gives an environment is refused.
my %kind = (
	agent37 => {
		settings => sub { (apiUrl => "$_[0]/agent37", instanceUrl => "$_[0]/agent37-instance") },
		script => '*/exec',
		output => 512_000,
		expected => {
			# A file is asked for again: what is in front of an instance says such things
			# while the program behind it starts.  The answer to an upload says its size.
			'download, trouble' => 'works',
			'upload, trouble' => 'works',
			'upload, nonsense' => 'fails',

			# The answer of a script has time to arrive, and its first text is the output.
			'run, slow' => 'works',
			'run, nul' => 'answers',
		},
	},
	daytona => {
		settings => sub { (apiUrl => "$_[0]/daytona/api") },
		script => '*/exec',

		# The first text of such an answer is not looked at, and a NUL is legal in JSON.
		expected => { 'run, nul' => 'works' },
	},
	e2b => {
		settings => sub { (apiUrl => "$_[0]/e2b", sandboxUrl => "$_[0]/e2b-envd") },
		long_life => { timeoutSeconds => 7200 },
		script => '*/process.Process/Start',

		# The answer to an upload says what was stored.
		expected => { 'upload, nonsense' => 'fails' },
	},
	microsandbox => {
		settings => sub { (apiUrl => "$_[0]/microsandbox", image => 'alpine') },
		script => '*/agent',

		# All that is done inside goes through the agent's socket.
		requests => { upload => 'run', download => 'run' },
		expected => {
			# What is asked for there is not repeated.  Behind its head the answer is no body
			# that could be spoiled: what an agent says wrong is another test's.
			(map { ("upload, $_" => 'fails', "download, $_" => 'fails') } qw(broken trouble)),
			(map {
				my $operation = $_;
				map { ("$operation, $_" => 'works') }
				  qw(cut nonsense huge slow hang-after-headers)
			} qw(run upload download)),
			(map { ("$_, huge-header" => 'fails') } qw(run upload download)),
		},
	},
	freestyle => {
		settings => sub { (apiUrl => "$_[0]/freestyle") },
		script => '*/exec-await',
		no_launch_env => 1,
		expected => {
			# The answer to an upload is a status without a body.
			'upload, cut' => 'works',
			'upload, huge' => 'works',
			'upload, huge-header' => 'fails',
			'upload, hang-after-headers' => 'works',
			'upload, slow' => 'works',

			# The answer of a script has time to arrive, and its first text is the output.
			'run, slow' => 'works',
			'run, nul' => 'answers',
		},
	},
	vercel => {
		settings => sub { (apiUrl => "$_[0]/vercel") },
		long_life => { timeoutSeconds => 7200 },
		keeps => { persistent => JSON::PP::true },
		credential => sub { { token => $_[0], teamId => 'team_of_the_test', projectId => 'prj_of_the_test' } },
		script => '*/cmd',
		expected => {
			# The answer to an upload is two bytes long: an object, in which nothing is that
			# could be spoiled.
			'upload, slow' => 'works',
			'upload, garbage' => 'fails',
			'upload, deep' => 'fails',

			# The first text of such an answer is not looked at.
			'run, nul' => 'works',
		},
	});

my $json = JSON::PP->new->canonical;

# kinds(): their names, in the order in which tests go through them; as a number, how many.
sub kinds { my @names = sort keys %kind; return @names }

# kind_settings(kind, address of the emulator, further settings): as JSON.
sub kind_settings
{
	my ($kind, $url, %more) = @_;

	return $json->encode({
		$kind{$kind}{settings}->($url),
		(map { %{ $kind{$kind}{$_} // {} } } qw(long_life keeps)), %more });
}

# kind_credential(kind, key): what sbx_set_credential takes.
sub kind_credential
{
	my ($kind, $key) = @_;

	return $kind{$kind}{credential} ? $json->encode($kind{$kind}{credential}->($key)) : $key;
}

sub kind_output { return $kind{ $_[0] }{output} // 1 << 20 }
sub kind_script { return $kind{ $_[0] }{script} }

# kind_launch_env(kind): can a launch give an environment?
sub kind_launch_env { return !$kind{ $_[0] }{no_launch_env} }

# kind_knows(session, kind, operation): does it have that operation at all?
sub kind_knows
{
	my ($session, @asked) = @_;

	return $session->value('SELECT $2 = ANY (operations) FROM sbx_provider_kinds() WHERE kind = $1', @asked) eq 't';
}

# kind_request(kind, name): what the emulator calls the request that others have that name for.
sub kind_request { return $kind{ $_[0] }{requests}{ $_[1] } // $_[1] }

sub kind_expected { return $kind{ $_[0] }{expected}{ $_[1] } }

# register_kinds(session, address): a pool for each kind, with its name.
sub register_kinds
{
	my ($session, $url) = @_;

	$session->value('SELECT sbx_register_provider($1, $1, $2)', $_, kind_settings($_, $url)) foreach kinds();
	return;
}

# give_keys(session, key, kinds: all): so that the session can use their pools.
sub give_keys
{
	my ($session, $key, @kinds) = @_;

	$session->value('SELECT sbx_set_credential($1, $2)', $_, kind_credential($_, $key)) foreach @kinds ? @kinds : kinds();
	return;
}

1;
