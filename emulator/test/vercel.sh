# What the tests of Vercel Sandbox share.

v_api=$base/vercel
team=team_1 project=prj_1

# A call to a path below the address; `?+` in it stands for the team and the
# project of a sandbox.  Answers land where those of `call` do.
vercel()
{
	: >"$work/body"
	code=$(curl -sS -m "${limit:-60}" -o "$work/body" -D "$work/headers" -w '%{http_code}' \
		-H "Authorization: Bearer ${key:-key-one}" -H "Content-Type: ${type:-application/json}" \
		"${@:2}" "$(v_address "$1")" 2>"$work/curl")
	curl=$?
	body=$(tr -d '\0' <"$work/body")
}

v_address() { echo "$v_api/${1/'?+'/"?teamId=$team&projectId=$project"}"; }

# Makes a sandbox from the members of a create and sets $name and $sid.
v_create()
{
	vercel "v3/sandboxes?teamId=$team" -d "{\"projectId\":\"$project\"${1:+,$1}}"
	name=$(sed -n 's/^{"sandbox":{"name":"\([^"]*\)".*/\1/p' <<<"$body")
	sid=$(v_session_of)
}

v_session_of() { sed -n 's/.*"session":{"id":"\([^"]*\)".*/\1/p' <<<"$body"; }

v_get() { vercel "v2/sandboxes/$1?+"; }
v_delete() { vercel "v2/sandboxes/$1?+" -X DELETE; }
v_list() { vercel "v2/sandboxes?teamId=$team&project=$project${1:+&$1}"; }

# What is in the session: the rest of the path, then options of curl.
v_session() { vercel "v2/sandboxes/sessions/$sid$1?teamId=$team" "${@:2}"; }

# A shell command as JSON, with more members behind it.
v_script()
{
	local script=${1//\\/\\\\}
	printf '{"command":"sh","args":["-c","%s"]%s}' "${script//\"/\\\"}" "${2:+,$2}"
}

v_run() { v_session /cmd -d "$(v_script "$1" "\"wait\":true,\"logs\":true${2:+,$2}")"; }

# In the background; sets $cid.
v_start()
{
	v_session /cmd -d "$(v_script "$1" "$2")"
	cid=$(sed -n 's/^{"command":{"id":"\([^"]*\)".*/\1/p' <<<"$body")
}

# What a stream in $body has of one of the two streams of a command.
v_text() { sed -n "s/^{\"stream\":\"$1\",\"data\":\"\(.*\)\"}\$/\1/p" <<<"$body" | tr -d '\n'; }
v_exit() { tail -1 <<<"$body" | sed -n 's/.*"exitCode":\([0-9]*\),.*/\1/p'; }

# Conditions for eventually.
v_shows()
{
	vercel "${@:2}"
	[[ $body == *"$1"* ]]
}

v_answers()
{
	vercel "${@:2}"
	[ "$code" = "$1" ]
}

v_held_shows() { grep -qF "$1" "$work/held"; }
v_hold() { hold "${@:2}" "$(v_address "$1")"; }
v_status() { sed -n 's/.*"status":"\([a-z]*\)","cwd".*/\1/p' <<<"${body%%\"session\":\{*}"; }
v_session_status() { sed -n 's/.*"session":{[^}]*"status":"\([a-z]*\)".*/\1/p' <<<"$body"; }
v_audit() { curl -sS "$base/_control/audit" | grep -o "\"id\":\"$1\",\"name\"[^}]*}[^}]*}"; }
header() { tr -d '\r' <"$work/headers" | sed -n "s/^$1: //Ip"; }
