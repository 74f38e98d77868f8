# What the tests of Freestyle share: calls, and what is to be seen in answers.

vms=$base/freestyle/v5/vms

# Answers land where those of `call` do.
freestyle()
{
	: >"$work/body"
	code=$(curl -sS -m "${limit:-60}" -o "$work/body" -D "$work/headers" -w '%{http_code}' \
		-H "Authorization: Bearer ${key:-key-one}" -H 'Content-Type: application/json' \
		"$@" 2>"$work/curl")
	curl=$?
	body=$(tr -d '\0' <"$work/body")
}

# A create from all members but the firewall; sets $id and $vm (its address).
freestyle_create()
{
	freestyle -X POST "$vms" -d "{\"firewall\":{\"rules\":[]}${1:+,$1}}" "${@:2}"
	id=$(sed -n 's/^{"id":"\([^"]*\)".*/\1/p' <<<"$body")
	vm=$vms/$id
}

# A command in that VM, which must need no escapes in JSON but of "; more members.
execute_vm()
{
	freestyle -X POST "$vm/exec-await" -d "{\"command\":\"${1//\"/\\\"}\"${2:+,$2}}"
}

gave() { printf '200/{"stdout":"%s","stderr":"%s","statusCode":%s}' "$2" "$3" "$1"; }

# Conditions for eventually.
freestyle_shows()
{
	freestyle "${@:2}"
	[[ $body == *"$1"* ]]
}

freestyle_answers()
{
	freestyle "${@:2}"
	[ "$code" = "$1" ]
}

freestyle_hides()
{
	"${@:2}"
	[[ $code == 200 && $body != *"$1"* ]]
}

vm_header() { tr -d '\r' <"$work/headers" | sed -n "s/^$1: //Ip"; }
vm_state() { freestyle_shows "\"state\":\"$1\"" "$vm"; }
vm_refused() { like "$code/$body" "$1/{\"code\":\"$2\",\"message\":\"" "$3"; }
vm_settings() { control config "{\"provider\":\"freestyle\",$1}"; }
