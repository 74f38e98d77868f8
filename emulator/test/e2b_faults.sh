# Fault rules for E2B: each shows in the operation it is for, and in no other.

e2b_fault() { control faults "{\"provider\":\"e2b\",$1}"; }
e2b_alive()
{
	curl -sS "$base/_control/audit" | grep -o "\"name\":\"$1\"[^}]*}[^}]*\"alive\":[a-z]*" | sed 's/.*://'
}
named() { printf '{"templateID":"base","metadata":{"name":"%s"}}' "$1"; }

e2b_create "$(named f0)"
kept_id=$id kept_token=$token
restore() { id=$kept_id token=$kept_token; }

# Which request is which operation: a rule for each hits it and nothing else.
hits()
{
	local op=$1
	e2b_fault "\"op\":\"$op\",\"action\":\"status\",\"status\":418"
	"${@:2}"
	is "$code" 418 "e2b op $op: ${*:2:4}"
	call -X DELETE "$base/_control/faults"
	"${@:2}"
	[ "$code" != 418 ]
	is $? 0 "e2b op $op: and no more without the rule"
}

hits create e2b -X POST "$e2b_api/sandboxes" -d '{"templateID":"base"}'
hits create e2b -X POST "$e2b_api/v2/sandboxes" -d '{"templateID":"base"}'
hits list e2b "$e2b_api/v2/sandboxes?state=running"
hits list e2b "$e2b_api/sandboxes"
hits get e2b "$e2b_api/sandboxes/$id"
hits stop e2b -X POST "$e2b_api/sandboxes/$id/pause" -d '{}'
hits start e2b -X POST "$e2b_api/v2/sandboxes/$id/connect" -d '{}'
hits run run_in 'true'
tag=t hits start run_in 'true'
hits status rpc process.Process/List '{}'
hits logs stream Connect '{"process":{"pid":9999}}'
hits stop rpc process.Process/SendSignal '{"process":{"pid":9999}}'
hits upload envd --data-binary x -H 'Content-Type: application/octet-stream' "$e2b_envd/files?path=/tmp/u"
hits download envd "$e2b_envd/files?path=/tmp/u"
hits delete e2b -X DELETE "$e2b_api/sandboxes/inothing"
for op in create list get delete start status logs upload download stop; do
	e2b_fault "\"op\":\"$op\",\"action\":\"status\",\"status\":418"
done
run_in 'true'
is "$code" 200 'e2b op run: no other rule hits it'
call -X DELETE "$base/_control/faults"
control faults '{"provider":"daytona","op":"get","action":"status","status":418}'
e2b "$e2b_api/sandboxes/$id"
is "$code" 200 'e2b: a rule for Daytona does not hit it'
call -X DELETE "$base/_control/faults"

# Formats
e2b_fault '"op":"create","action":"status","status":500'
e2b_create "$(named f1)"
is "$code/$body" '500/{"code":500,"message":"injected by a fault rule"}' 'e2b status: in its error format'
is "$(e2b_alive f1)" '' 'e2b status: nothing was done'
e2b_create "$(named f1)"
is "$code" 201 'e2b status: once only'
e2b_fault '"op":"create","action":"status","status":503,"body":{"code":503,"message":"no room","error_code":"sandbox_capacity_unavailable"}'
e2b_create "$(named f2)"
is "$code/$body" '503/{"code":503,"message":"no room","error_code":"sandbox_capacity_unavailable"}' 'e2b status: a body'
e2b_fault '"op":"create","action":"status","status":429'
e2b_create "$(named f2)"
is "$code/$(header retry-after)" 429/1 'e2b status: a rate limit says when to retry'
restore
e2b_fault '"op":"run","action":"status","status":502'
run_in 'touch /tmp/f2'
is "$code/$body" "502/{\"sandboxId\":\"$id\",\"code\":502,\"message\":\"injected by a fault rule\"}" \
	'e2b status: of envd in the format of the proxy'
run_in 'test -e /tmp/f2'
like "$frames" '"exitCode":1' 'e2b status: the command was not run'
e2b_fault '"op":"run","action":"status","status":502,"work":true'
run_in 'touch /tmp/f2'
run_in 'test -e /tmp/f2'
is "$(tail -2 <<<"$frames")" "$end_ok" 'e2b status: with work it was'

# The answer of a create is lost, the sandbox is not
e2b_fault '"op":"create","action":"reset-after-work"'
e2b_create "$(named f3)"
is "$curl" 56 'e2b reset-after-work: the connection is reset'
is "$(e2b_alive f3)" true 'e2b reset-after-work: it was done'
e2b "$e2b_api/v2/sandboxes?metadata=name%3Df3"
like "$body" '"name":"f3"' 'e2b reset-after-work: and can be found by its label'
e2b_fault '"op":"create","action":"reset-before-read"'
e2b_create "$(named f4)"
is "$curl/$(e2b_alive f4)" 56/ 'e2b reset-before-read: nothing was done'
restore

# Streams that go wrong
e2b_fault '"op":"run","action":"truncate","bytes":50'
run_in 'echo text; touch /tmp/f5'
is "$curl/$(wc -c <"$work/body")" 18/50 'e2b truncate: the start of a stream'
run_in 'cat /tmp/f5 && echo there'
is "$(written_to stdout)" there 'e2b truncate: of a command that was run'
e2b_fault '"op":"run","action":"reset-after-work"'
run_in 'touch /tmp/f6'
is "$curl" 56 'e2b reset-after-work: of a run'
run_in 'cat /tmp/f6 && echo there'
is "$(written_to stdout)" there 'e2b reset-after-work: it was run'
e2b_fault '"op":"start","action":"reset-after-work"'
tag=lost run_in 'sleep 605'
is "$curl" 56 'e2b reset-after-work: of a start, at once'
rpc process.Process/List '{}'
like "$body" '"tag":"lost"' 'e2b reset-after-work: the process is there'
e2b_fault '"op":"start","action":"truncate","bytes":7'
tag=cut run_in 'sleep 606'
is "$curl/$(wc -c <"$work/body")" 18/7 'e2b truncate: of a start'
e2b_fault '"op":"run","action":"delay","ms":700'
begin=$(milliseconds)
run_in 'echo late'
is "$(written_to stdout)/$(($(milliseconds) - begin >= 700))" late/1 'e2b delay: of a run'
e2b_fault '"op":"run","action":"garbage","bytes":64'
run_in 'echo text'
is "$code/$(wc -c <"$work/body")" 200/64 'e2b garbage: instead of a stream'
for action in nul bad-utf8 duplicate-keys; do
	e2b_fault "\"op\":\"run\",\"action\":\"$action\""
	run_in 'echo text'
	cp "$work/body" "$work/spoiled"
	case $action in
		nul) grep -aq '":"\\u0000' "$work/spoiled" ;;
		bad-utf8) LC_ALL=C grep -aqP '":"\xFF\xC0\xAF' "$work/spoiled" ;;
		duplicate-keys) grep -aq '{"event":"0000.*"event":' "$work/spoiled" ;;
	esac
	is $? 0 "e2b $action: in a stream"
done
e2b_fault '"op":"run","action":"hang-after-headers"'
hold_stream Start "$(command_message 'echo text')"
still_held
is "$?/$(cat "$work/held")" 0/ 'e2b hang-after-headers: nothing comes'
let_go
e2b_fault '"op":"run","action":"slow","bytesPerSecond":200'
begin=$(milliseconds)
run_in 'echo text'
is "$(written_to stdout)/$(($(milliseconds) - begin >= 400))" text/1 'e2b slow: all of it, slowly'
run_in 'echo text'
is "$(tail -2 <<<"$frames")" "$end_ok" 'e2b: and then all is well again'
e2b_fault '"op":"get","action":"redirect"'
e2b "$e2b_api/sandboxes/$id"
is "$code" 307 'e2b redirect: status'
e2b_fault '"op":"get","action":"wrong-type"'
e2b "$e2b_api/sandboxes/$id"
like "$body" '"templateID":7' 'e2b wrong-type: of each member'
e2b_fault '"op":"list","action":"deep","depth":500'
e2b "$e2b_api/v2/sandboxes"
is "${#body}" 1007 'e2b deep: as deep as told'
e2b_fault '"op":"download","action":"truncate","bytes":3'
run_in 'echo 123456789 >/tmp/t'
envd "$e2b_envd/files?path=/tmp/t"
is "$curl/$body" 18/123 'e2b truncate: of a download'
