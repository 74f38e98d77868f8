# Fault rules for Agent37: each shows in the operation it is for, and in no other.

agent37_fault() { control faults "{\"provider\":\"agent37\",$1}"; }
agent37_alive()
{
	curl -sS "$base/_control/audit" | grep -o "\"name\":\"$1\"[^}]*}[^}]*\"alive\":[a-z]*" | sed 's/.*://'
}
labelled() { printf '{"metadata":{"sbx-router-id":"%s"}}' "$1"; }

agent37_create "$(labelled a0)"
kept=$one kept_plane=$plane
hits()
{
	local op=$1
	agent37_fault "\"op\":\"$op\",\"action\":\"status\",\"status\":418"
	"${@:2}"
	is "$code" 418 "agent37 op $op: ${*:2:4}"
	call -X DELETE "$base/_control/faults"
	"${@:2}"
	[ "$code" != 418 ]
	is $? 0 "agent37 op $op: and no more without the rule"
}

hits create agent37 -X POST "$instances" -d '{}'
hits list agent37 "$instances"
hits get agent37 "$one"
hits stop agent37 -X POST "$one/stop"
hits start agent37 -X POST "$one/start"
hits run agent37 -X POST "$one/exec" -d '{"command":"true"}'
hits logs agent37 "$one/logs"
hits upload inside -T "$work/curl" "$plane/v1/files/content?path=/tmp/u"
hits download inside "$plane/v1/files/content?path=/tmp/u"
hits delete agent37 -X DELETE "$instances/abcdefghij"
for op in create list get delete start status logs upload download stop; do
	agent37_fault "\"op\":\"$op\",\"action\":\"status\",\"status\":418"
done
execute37 'true'
is "$code" 200 'agent37 op run: no other rule hits it'
call -X DELETE "$base/_control/faults"
control faults '{"provider":"e2b","op":"get","action":"status","status":418}'
agent37 "$one"
is "$code" 200 'agent37: a rule for E2B does not hit it'
call -X DELETE "$base/_control/faults"

# Formats of the three that may answer
for status in 400:invalid_request 409:instance_limit_reached 500:provisioning_failed 503:no_capacity 599:internal_error; do
	agent37_fault "\"op\":\"create\",\"action\":\"status\",\"status\":${status%:*}"
	agent37_create "$(labelled a1)"
	is "$code/$body" "${status%:*}/$(error37 "${status#*:}"),\"message\":\"injected by a fault rule\"}}" "agent37 status: ${status%:*} of a create"
	is "$(agent37_alive a1)" '' 'agent37 status: nothing was done'
done
agent37_fault '"op":"delete","action":"status","status":409'
agent37 -X DELETE "$kept"
refused_with 409 try_again 'agent37 status: 409 of a delete is another'
agent37_fault '"op":"upload","action":"status","status":502'
inside -T "$work/curl" "$kept_plane/v1/files/content?path=/tmp/u"
is "$code/$body" '502/{"error":"container_unavailable"}' 'agent37 status: of the edge'
agent37_fault '"op":"upload","action":"status","status":409'
inside -T "$work/curl" "$kept_plane/v1/files/content?path=/tmp/u"
like "$code/$body" '409/{"error":{"code":"file_exists","message":"injected by a fault rule","param":null' 'agent37 status: of the gateway'
agent37_fault '"op":"create","action":"status","status":402,"body":{"error":{"code":"insufficient_balance","message":"$3.20 left"}}'
agent37_create "$(labelled a1)"
is "$code/$body" '402/{"error":{"code":"insufficient_balance","message":"$3.20 left"}}' 'agent37 status: a body'
agent37_create "$(labelled a1)"
is "$code" 201 'agent37 status: once only'

# Work that is done and not heard of
agent37_fault '"op":"create","action":"reset-after-work"'
agent37_create "$(labelled a2)"
is "$curl/$(agent37_alive a2)" 56/true 'agent37 reset-after-work: it was done'
agent37 "$instances"
like "$body" '"metadata":{"sbx-router-id":"a2"}' 'agent37 reset-after-work: and can be found by its label'
agent37_fault '"op":"create","action":"reset-before-read"'
agent37_create "$(labelled a3)"
is "$curl/$(agent37_alive a3)" 56/ 'agent37 reset-before-read: nothing was done'
one=$kept plane=$kept_plane
agent37_fault '"op":"run","action":"reset-after-work"'
execute37 'touch /tmp/f1'
is "$curl" 56 'agent37 reset-after-work: of a command'
execute37 'cat /tmp/f1 && echo there'
is "$body" "$(ran 0 'there\n' '')" 'agent37 reset-after-work: it was run'
agent37_fault '"op":"run","action":"status","status":502'
execute37 'touch /tmp/f2'
refused_with 502 provisioning_failed 'agent37 status: of a command'
execute37 'cat /tmp/f2'
like "$body" '{"exit_code":1' 'agent37 status: it was not run'
agent37_fault '"op":"run","action":"truncate","bytes":20'
execute37 'echo text'
is "$curl/$body" '18/{"exit_code":0,"stdo' 'agent37 truncate: of a command'
agent37_fault '"op":"run","action":"wrong-type"'
execute37 'echo text'
is "$body" '{"exit_code":"7","stdout":7,"stderr":7,"truncated":"true"}' 'agent37 wrong-type: of each member'
agent37_fault '"op":"list","action":"wrong-type"'
agent37 "$instances"
is "$body" '{"data":{}}' 'agent37 wrong-type: a list that is none'
agent37_fault '"op":"get","action":"redirect"'
agent37 "$one"
is "$code" 307 'agent37 redirect: status'
agent37_fault '"op":"download","action":"truncate","bytes":3'
execute37 'echo 123456789 >/tmp/t'
inside "$plane/v1/files/content?path=/tmp/t"
is "$curl/$body" 18/123 'agent37 truncate: of a download'
agent37_fault '"op":"upload","action":"reset-after-work"'
inside -T "$work/small" "$plane/v1/files/content?path=/tmp/w"
is "$curl" 56 'agent37 reset-after-work: of an upload'
execute37 'cat /tmp/w'
is "$body" "$(ran 0 hello '')" 'agent37 reset-after-work: of an upload, which is there'
