# What the tests of E2B share: calls to both planes, and envelopes.

e2b_api=$base/e2b
e2b_envd=$base/e2b-envd

# A call to the control plane.  Answers land where those of `call` do.
e2b()
{
	: >"$work/body"
	code=$(curl -sS -m "${limit:-60}" -o "$work/body" -D "$work/headers" -w '%{http_code}' \
		-H "X-API-KEY: ${key:-key-one}" -H 'Content-Type: application/json' \
		"$@" 2>"$work/curl")
	curl=$?
	body=$(tr -d '\0' <"$work/body")
}

# Makes a sandbox and sets $id and $token.
e2b_create()
{
	e2b -X POST "$e2b_api/v2/sandboxes" -d "$1"
	id=$(sed -n 's/.*"sandboxID":"\([^"]*\)".*/\1/p' <<<"$body")
	token=$(sed -n 's/.*"envdAccessToken":"\([^"]*\)".*/\1/p' <<<"$body")
}

# A call to envd of that sandbox.
envd()
{
	: >"$work/body"
	code=$(curl -sS -m "${limit:-60}" -o "$work/body" -D "$work/headers" -w '%{http_code}' \
		-H "E2b-Sandbox-Id: $id" -H "E2b-Sandbox-Port: ${port:-49983}" \
		-H "X-Access-Token: $token" "$@" 2>"$work/curl")
	curl=$?
	body=$(tr -d '\0' <"$work/body")
}

# A call with one answer: service and method, message, options of curl.
rpc()
{
	envd -X POST "$e2b_envd/$1" -H 'Connect-Protocol-Version: 1' \
		-H 'Content-Type: application/json' -d "$2" "${@:3}"
}

envelope()
{
	printf '\0%b%s' "$(printf '%08x' ${#1} | sed 's/../\\x&/g')" "$1"
}

# A call whose answer is a stream; $frames has one line per envelope: its
# flags and its message, without the spaces that come and go.
stream()
{
	LC_ALL=C envelope "$2" >"$work/envelope"
	envd -X POST "$e2b_envd/process.Process/$1" -H 'Connect-Protocol-Version: 1' \
		-H 'Content-Type: application/connect+json' --data-binary "@$work/envelope" "${@:3}"
	frames=$(read_frames "$work/body")
}

read_frames()
{
	perl -0777 -ne 'while (length > 4) {
			my ($flags, $length) = unpack "CN", $_;
			last if length() < 5 + $length;
			my $text = substr $_, 5, $length;
			$text =~ s/(":|,) +/$1/g if $text =~ /^\{"event":\{"end"/;
			print "$flags $text\n";
			$_ = substr $_, 5 + $length;
		}
		printf "%d bytes more\n", length if length' "$1"
}

# What a command wrote to one of its streams.
written_to()
{
	sed -n "s/^0 {\"event\":{\"data\":{\"$1\":\"\([^\"]*\)\"}}}\$/\1/p" <<<"$frames" |
		while read -r piece; do base64 -d <<<"$piece"; done
}

# A shell command, as the official client starts one.
command_message()
{
	local script=${1//\\/\\\\}
	printf '{"process":{"cmd":"/bin/bash","args":["-l","-c","%s"]%s},"stdin":%s%s}' \
		"${script//\"/\\\"}" "${2:-}" "${stdin:-false}" "${tag:+,\"tag\":\"$tag\"}"
}

run_in()
{
	stream Start "$(command_message "$1" "$2")" "${@:3}"
}

# The same in the background; what comes is in $work/held, see hold.
hold_stream()
{
	LC_ALL=C envelope "$2" >"$work/envelope.held"
	: >"$work/held" >"$work/held.code"
	curl -sS -N -m 600 -o "$work/held" -w '%{http_code}' -X POST "$e2b_envd/process.Process/$1" \
		-H "E2b-Sandbox-Id: $id" -H 'E2b-Sandbox-Port: 49983' -H "X-Access-Token: $token" \
		-H 'Content-Type: application/connect+json' --data-binary "@$work/envelope.held" \
		"${@:3}" >"$work/held.code" 2>/dev/null &
	held=$!
}

held_frames() { frames=$(read_frames "$work/held"); }

# Conditions for eventually.
held_shows()
{
	held_frames
	[[ $frames == *"$1"* ]]
}

e2b_shows()
{
	e2b "${@:2}"
	[[ $body == *"$1"* ]]
}

e2b_answers()
{
	e2b "${@:2}"
	[ "$code" = "$1" ]
}

pid_of() { sed -n 's/^0 {"event":{"start":{"pid":\([0-9]*\)}}}$/\1/p' <<<"$frames" | head -1; }
header() { tr -d '\r' <"$work/headers" | sed -n "s/^$1: //Ip"; }

end_ok='0 {"event":{"end":{"exited":true,"status":"exit status 0"}}}
2 {}'
