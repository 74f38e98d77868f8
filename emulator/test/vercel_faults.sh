# Fault rules for Vercel: each shows in the operation it is for, and in no other.

v_fault() { control faults "{\"provider\":\"vercel\",$1}"; }

v_create '"name":"f0"'
v_start 'true'

# Which request is which operation: a rule for each hits it and nothing else.
v_hits()
{
	local op=$1
	v_fault "\"op\":\"$op\",\"action\":\"status\",\"status\":418"
	"${@:2}"
	is "$code" 418 "vercel op $op: ${*:2:3}"
	call -X DELETE "$base/_control/faults"
	"${@:2}"
	[ "$code" != 418 ]
	is $? 0 "vercel op $op: and no more without the rule"
}

v_hits create vercel "v3/sandboxes?teamId=$team" -d '{"projectId":"prj_1"}'
v_hits create vercel "v2/sandboxes?teamId=$team" -d '{"projectId":"prj_1","runtime":"node24"}'
v_hits list v_list limit=1
v_hits list vercel "v2/sandboxes/sessions?teamId=$team&project=$project"
v_hits get v_get f0
v_hits get v_session ''
v_hits start vercel 'v2/sandboxes/f0?+&resume=true'
v_hits start v_start true
v_hits run v_run true
v_hits status v_session "/cmd/$cid"
v_hits status v_session /cmd
v_hits logs v_session "/cmd/$cid/logs"
v_hits stop v_session "/cmd/$cid/kill" -d '{"signal":9}'
v_hits upload v_session /fs/write -d x
v_hits download v_session /fs/read -d '{"path":"/tmp/x"}'
v_hits delete v_delete nothing
for op in create get list delete start status logs upload download stop; do
	v_fault "\"op\":\"$op\",\"action\":\"status\",\"status\":418"
done
v_run true
is "$code" 200 'vercel op run: no other rule hits it'
v_session /fs/mkdir -d '{"path":"/tmp/made"}'
is "$code" 200 'vercel: none hits fs/mkdir'
call -X DELETE "$base/_control/faults"
v_fault '"path":"*/fs/mkdir","action":"status","status":418'
v_session /fs/mkdir -d '{"path":"/tmp/other"}'
is "$code" 418 'vercel: but one with its path'
control faults '{"provider":"e2b","op":"get","action":"status","status":418}'
v_get f0
is "$code" 200 'vercel: a rule for E2B does not hit it'
call -X DELETE "$base/_control/faults"

# Formats
v_fault '"op":"create","action":"status","status":500'
v_create '"name":"f1"'
is "$code/$body" '500/{"error":{"code":"internal_server_error","message":"injected by a fault rule"}}' 'vercel status: in its error format'
is "$(v_audit f1)" '' 'vercel status: nothing was done'
v_create '"name":"f1"'
is "$code" 200 'vercel status: once only'
v_fault '"op":"create","action":"status","status":429'
v_create '"name":"f2"'
is "$code/$(header retry-after)" 429/1 'vercel status: a rate limit says when to retry'
v_get f0
sid=$(v_session_of)
v_fault '"op":"run","action":"status","status":502'
v_run 'touch /tmp/f2'
is "$code" 502 'vercel status: of a run'
v_run 'test -e /tmp/f2'
is "$(v_exit)" 1 'vercel status: the command was not run'
v_fault '"op":"run","action":"status","status":502,"work":true'
v_run 'touch /tmp/f2'
v_run 'test -e /tmp/f2'
is "$(v_exit)" 0 'vercel status: with work it was'

# The answer is lost, what was asked for is done
v_fault '"op":"create","action":"reset-after-work"'
v_create '"name":"f3"'
is "$curl" 56 'vercel reset-after-work: the connection is reset'
v_get f3
is "$code" 200 'vercel reset-after-work: it was done'
v_fault '"op":"create","action":"reset-before-read"'
v_create '"name":"f4"'
is "$curl/$(v_audit f4)" 56/ 'vercel reset-before-read: nothing was done'
v_get f0
sid=$(v_session_of)
v_fault '"op":"run","action":"reset-after-work"'
v_run 'touch /tmp/f5'
is "$curl" 56 'vercel reset-after-work: of a run'
v_run 'test -e /tmp/f5'
is "$(v_exit)" 0 'vercel reset-after-work: it was run'
v_fault '"op":"start","action":"reset-after-work"'
v_start 'exec sleep 800'
is "$curl" 56 'vercel reset-after-work: of a start, at once'
v_session /cmd
like "$body" '"args":["-c","exec sleep 800"],"cwd":"/vercel/sandbox"' 'vercel reset-after-work: the command is there'

# Streams that go wrong
v_fault '"op":"run","action":"truncate","bytes":50'
v_run 'echo text'
is "$curl/$(wc -c <"$work/body")" 18/50 'vercel truncate: the start of a stream'
v_fault '"op":"run","action":"delay","ms":700'
begin=$(milliseconds)
v_run 'echo late'
is "$(v_text stdout)/$(($(milliseconds) - begin >= 700))" 'late\n/1' 'vercel delay: of a run'
is "$(header content-type)" application/x-ndjson 'vercel delay: the type is the same'
v_fault '"op":"run","action":"garbage","bytes":64'
v_run 'echo text'
is "$code/$(wc -c <"$work/body")" 200/64 'vercel garbage: instead of a stream'
v_fault '"op":"run","action":"nul"'
v_run 'echo text'
like "$body" '{"command":{"id":"\u0000cmd_' 'vercel nul: in a stream'
v_fault '"op":"run","action":"bad-utf8"'
v_run 'echo text'
LC_ALL=C grep -aqP '"id":"\xFF\xC0\xAF' "$work/body"
is $? 0 'vercel bad-utf8: in a stream'
v_fault '"op":"run","action":"duplicate-keys"'
v_run 'echo text'
like "$body" '{"command":"00000000-0000-4000-8000-000000000000","state":"error","exitCode":77,"command":{' 'vercel duplicate-keys: in a stream'
v_fault '"op":"run","action":"wrong-type"'
v_run 'echo text'
is "$body" '{"command":[]}' 'vercel wrong-type: the first line of a stream'
v_fault '"op":"get","action":"wrong-type"'
v_get f0
is "$body" '{"sandbox":[],"session":[],"routes":{},"resumed":"true"}' 'vercel wrong-type: of each member'
v_fault '"op":"run","action":"hang-after-headers"'
v_hold "v2/sandboxes/sessions/$sid/cmd?teamId=$team" -d "$(v_script 'echo text' '"wait":true,"logs":true')"
still_held
is "$?/$(cat "$work/held")" 0/ 'vercel hang-after-headers: nothing comes'
let_go
v_fault '"op":"run","action":"slow","bytesPerSecond":400'
begin=$(milliseconds)
v_run 'echo text'
is "$(v_text stdout)/$(v_exit)/$(($(milliseconds) - begin >= 400))" 'text\n/0/1' 'vercel slow: all of it, slowly'
v_start 'echo one; echo two'
eventually v_shows '"exitCode":0' "v2/sandboxes/sessions/$sid/cmd/$cid?teamId=$team"
v_fault '"op":"logs","action":"truncate","bytes":20'
v_session "/cmd/$cid/logs"
is "$curl/$body" '18/{"stream":"stdout","' 'vercel truncate: of logs'
v_fault '"op":"list","action":"deep","depth":500'
v_list
is "${#body}" 1007 'vercel deep: as deep as told'
v_run 'echo 123456789 >/tmp/t'
v_fault '"op":"download","action":"truncate","bytes":3'
v_session /fs/read -d '{"path":"/tmp/t"}'
is "$curl/$body" 18/123 'vercel truncate: of a download'
v_session /fs/read -d '{"path":"/tmp/t"}'
is "$curl/$body" 0/123456789 'vercel: and then all is well again'
