# What the tests of Microsandbox share: calls, and a client of the agent.

boxes=$base/microsandbox/v1/sandboxes

# A call.  Answers land where those of `call` do, except their headers.
msb()
{
	body=$(curl -sS -m "${limit:-60}" -w '\n%{http_code}' -H "Authorization: Bearer ${key:-key-one}" \
		-H 'Content-Type: application/json' "$@" 2>/dev/null)
	curl=$?
	code=${body##*$'\n'} body=${body%$'\n'*}
}

# Makes a sandbox that runs and sets $id and $box.  The rest of the body after
# its name and image, if any, begins with a comma.
msb_create()
{
	msb -X POST "$boxes?start=true" -d "{\"name\":\"$1\",\"image\":{\"type\":\"oci\",\"reference\":\"${image:-alpine}\"}${2:-}}"
	id=
	[[ $body =~ \"id\":\"([^\"]*)\" ]] && id=${BASH_REMATCH[1]}
	box=$boxes/$id
}

# A member of the answer that is a string.
msb_field() { [[ $body =~ \"$1\":\"([^\"]*)\" ]] && echo "${BASH_REMATCH[1]}"; }
msb_status() { msb "${1:-$box}"; msb_field status; }
msb_is() { [ "$(msb_status "${2:-$box}")" = "$1" ]; }

# A condition for eventually.
msb_answers()
{
	msb "${@:2}"
	[ "$code" = "$1" ]
}

msb_error() { printf '{"error":{"code":"%s","message":"' "$1"; }
msb_refused() { like "$code/$body" "$1/$(msb_error "$2")" "$3"; }
msb_settings() { control config "{\"provider\":\"microsandbox\",$1}"; }
msb_names() { grep -o '"name":"[^"]*"' <<<"$body" | cut -d'"' -f4 | tr '\n' ' '; }

# The agent of that sandbox: what was heard after it was ready, in $body.
agent()
{
	body=$(perl "$here/microsandbox_agent.pl" "$box/agent" "${key:-key-one}" "$@" | grep -av ' core.ready ')
}

# A command in a shell, to its end: $output, $errors and $outcome.
msb_run()
{
	local script=${1//\\/\\\\}
	agent begin core.exec.request "{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"${script//\"/\\\"}\"]}" \
		more core.exec.stdin '{"data":{"bytes":""}}' last
	output=$(msb_said stdout)
	errors=$(msb_said stderr)
	outcome=$(grep '^1 ' <<<"$body")
}

msb_said() { LC_ALL=C sed -n "s/^0 core.exec.$1 {\"data\":\"\(.*\)\"}$/\1/p" <<<"$body" | tr -d "\n"; }
msb_exited() { printf '1 core.exec.exited {"code":%s}' "$1"; }
