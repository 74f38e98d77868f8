# What the tests of Agent37 share: calls to both planes.

instances=$base/agent37/v1/instances

# A call to the hosting plane.  Answers land where those of `call` do.
agent37()
{
	: >"$work/body"
	code=$(curl -sS -m "${limit:-60}" -o "$work/body" -D "$work/headers" -w '%{http_code}' \
		-H "Authorization: Bearer ${key:-key-one}" -H 'Content-Type: application/json' \
		"$@" 2>"$work/curl")
	curl=$?
	body=$(tr -d '\0' <"$work/body")
}

# Makes an instance and sets $id, $one (its address) and $plane (its URL).
agent37_create()
{
	agent37 -X POST "$instances" -d "$1"
	id=$(sed -n 's/^{"id":"\([^"]*\)".*/\1/p' <<<"$body")
	one=$instances/$id
	plane=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' <<<"$body")
}

# A call to the URL of that instance.
inside()
{
	: >"$work/body"
	code=$(curl -sS -m "${limit:-60}" -o "$work/body" -D "$work/headers" -w '%{http_code}' \
		-H "X-Agent37-Key: ${key:-key-one}" "$@" 2>"$work/curl")
	curl=$?
	body=$(tr -d '\0' <"$work/body")
}

# A command in that instance, which must need no escapes in JSON but of ".
execute37()
{
	agent37 -X POST "$one/exec" -d "{\"command\":\"${1//\"/\\\"}\"}"
}

ran() { printf '{"exit_code":%s,"stdout":"%s","stderr":"%s","truncated":false}' "$1" "$2" "$3"; }

# Conditions for eventually.
agent37_shows()
{
	agent37 "${@:2}"
	[[ $body == *"$1"* ]]
}

agent37_answers()
{
	agent37 "${@:2}"
	[ "$code" = "$1" ]
}

header() { tr -d '\r' <"$work/headers" | sed -n "s/^$1: //Ip"; }
status_is() { agent37_shows "\"status\":\"$1\"" "$one"; }
error37() { printf '{"error":{"code":"%s"' "$1"; }
refused_with() { like "$code/$body" "$1/$(error37 "$2")" "$3"; }
settings37() { control config "{\"provider\":\"agent37\",$1}"; }
