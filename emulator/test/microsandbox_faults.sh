# Fault rules for Microsandbox: for its requests, and for what its agent says.

msb_fault() { control faults "{\"provider\":\"microsandbox\",$1}"; }
forget_faults() { call -X DELETE "$base/_control/faults"; }

msb_create f0
kept=$box

# Which request is which operation: a rule for each hits it and nothing else.
msb_hits()
{
	local op=$1
	msb_fault "\"op\":\"$op\",\"action\":\"status\",\"status\":418"
	"${@:2}"
	is "$code" 418 "microsandbox op $op: ${*:2:4}"
	forget_faults
	"${@:2}"
	[ "$code" != 418 ]
	is $? 0 "microsandbox op $op: and no more without the rule"
}

msb_hits create msb -X POST "$boxes" -d '{}'
msb_hits list msb "$boxes"
msb_hits get msb "$box"
msb_hits get msb "$boxes/by-name/f0"
msb_hits stop msb -X POST "$box/stop" -d '{}'
msb_hits start msb -X POST "$box/start" -d '{}'
msb_hits run msb "$box/agent"
msb_hits logs msb "$box/logs"
msb_hits delete msb -X DELETE "$boxes/by-name/none"
for op in create list get delete start status logs upload download stop; do
	msb_fault "\"op\":\"$op\",\"action\":\"status\",\"status\":418"
done
msb_run 'exit 3'
is "$outcome" "$(msb_exited 3)" 'microsandbox op run: no other rule hits it'
msb "$base/microsandbox/v1/quotas"
is "$code" 200 'microsandbox: none hits the quotas'
forget_faults

# Formats
for status in 400:invalid_request 403:forbidden 409:name_already_exists 429:rate_limited 502:orchestrator_unreachable 500:internal_error; do
	msb_fault "\"op\":\"create\",\"action\":\"status\",\"status\":${status%:*}"
	msb_create f1
	is "$code/$body" "${status%:*}/$(msb_error "${status#*:}")injected by a fault rule\",\"details\":null}}" "microsandbox status: ${status%:*} of a create"
	msb "$boxes/by-name/f1"
	is "$code" 404 'microsandbox status: nothing was done'
done
msb_fault '"op":"delete","action":"status","status":409'
msb -X DELETE "$kept"
msb_refused 409 invalid_state_transition 'microsandbox status: 409 of a delete is another'

# Work that is done and not heard of
msb_fault '"op":"create","action":"reset-after-work"'
msb_create f2
is "$curl" 56 'microsandbox reset-after-work: of a create'
msb -X DELETE "$boxes/by-name/f2"
is "$code" 200 'microsandbox reset-after-work: it was done'
msb_fault '"op":"create","action":"reset-before-read"'
msb_create f3
msb "$boxes/by-name/f3"
is "$code" 404 'microsandbox reset-before-read: nothing was done'
msb_fault '"op":"list","action":"wrong-type"'
msb "$boxes"
is "$body" '{"data":{},"has_more":"true","next_cursor":{}}' 'microsandbox wrong-type: of each member'

# The handshake
box=$kept
for action in reset-after-work:reset close-reused,\"n\":1:eof; do
	msb_fault "\"op\":\"run\",\"action\":\"${action%%[:,]*}\"$(sed -n 's/^[^,]*\(,.*\):.*$/\1/p' <<<"$action")"
	agent begin core.exec.request '{"cmd":"touch","args":["/tmp/shaken"]}' last
	is "$body" "${action##*:}" "microsandbox ${action%%[:,]*}: of the handshake"
done
msb_fault '"op":"run","action":"redirect"'
agent begin core.exec.request '{"cmd":"touch","args":["/tmp/shaken"]}' last
is "${body:0:4}" '307 ' 'microsandbox redirect: of the handshake'
msb_run 'ls /tmp/shaken'
like "$outcome" '{"code":2}' 'microsandbox: nothing has come through any of those'

# Rules for frames: what they hit, and what they do not
frame_fault() { msb_fault "\"frame\":\"$1\",\"action\":$2"; }
for wrong in '"frame":"*","action":"redirect"' '"action":"pause"' '"action":"wrong-id"' '"action":"ping"' '"frame":"*","op":"run","action":"hang"' '"frame":7,"action":"hang"'; do
	msb_fault "$wrong"
	is "$code" 400 "microsandbox frames: 400 for $wrong"
done
frame_fault 'core.exec.exited' '"truncate","bytes":0'
msb "$box"
is "$code" 200 'frame: a rule for frames hits no request'
control faults '{"provider":"daytona","frame":"*","action":"hang"}'
agent begin core.exec.request '{"cmd":"echo","args":["text"]}' end
is "$(tail -2 <<<"$body")" '0 core.exec.stdout {"data":"text\n"}'$'\neof' 'frame: truncate before one: the connection ends, without a goodbye'
msb_run 'echo text'
is "$output/$outcome" 'text\n/'"$(msb_exited 0)" 'frame: once only, and none of another provider'
forget_faults
frame_fault 'core.exec.std*' '"truncate","bytes":0,"after":1'
agent begin core.exec.request '{"cmd":"sh","args":["-c","echo one; sleep 0.2; echo two"]}' end
is "$(grep -c stdout <<<"$body")/$(tail -1 <<<"$body")" 1/eof 'frame: by a pattern, and after others'
msb_fault "\"frame\":\"*\",\"path\":\"*/none/agent\",\"action\":\"hang\""
msb_run 'echo text'
is "$output" 'text\n' 'frame: not on another path'
forget_faults

# Each action, before all and in the middle
ran='0 core.exec.stdout {"data":"text\n"}'
spoiled() { frame_fault "$1" "$2"; body=$(perl "$here/microsandbox_agent.pl" ${3:-} "$box/agent" key-one begin core.exec.request '{"cmd":"echo","args":["text"]}' last); }
for frame in core.ready core.exec.stdout core.exec.exited; do
	for action in '"delay","ms":200' '"pause","ms":200' '"pause","ms":200,"bytes":1'; do
		begin=$(milliseconds)
		spoiled $frame "$action"
		is "$(($(milliseconds) - begin >= 200))/$(tail -2 <<<"$body")" "1/$ran"$'\n'"$(msb_exited 0)" "frame $frame: $action"
	done
	spoiled $frame '"truncate"'
	is "$(tail -1 <<<"$body")" eof "frame $frame: truncate in the middle"
	spoiled $frame '"reset-after-work"'
	is "$(tail -1 <<<"$body")" reset "frame $frame: reset-after-work"
	spoiled $frame '"huge"'
	is "$(tail -1 <<<"$body")" 'too long' "frame $frame: huge"
	spoiled $frame '"ping"' --messages
	like "$body" $'part' "frame $frame: ping, in the middle of a message"
	like "$body" $'frame 9 whole' "frame $frame: ping, which is there"
	like "$(grep -v ^frame <<<"$body" | tail -2)" "$ran"$'\n'"$(msb_exited 0)" "frame $frame: ping, and all is well"
done
spoiled core.exec.stdout '"garbage","bytes":30'
is "$(tail -2 <<<"$body")" '0 nonsense'$'\n'"$(msb_exited 0)" 'frame: garbage in the place of a body'
spoiled core.exec.stdout '"wrong-type"'
is "$(tail -2 <<<"$body")" '0 nonsense'$'\n'"$(msb_exited 0)" 'frame: wrong-type'
spoiled core.exec.stdout '"wrong-id"'
is "$(tail -2 <<<"$body")" "outside $ran"$'\n'"$(msb_exited 0)" 'frame: wrong-id'
frame_fault core.exec.exited '"hang"'
perl "$here/microsandbox_agent.pl" "$box/agent" key-one begin core.exec.request '{"cmd":"touch","args":["/tmp/ran"]}' wait started touch "$work/hangs" last >"$work/hung" &
held=$!
eventually [ -e "$work/hangs" ]
msb_run 'until [ -e /tmp/ran ]; do sleep 0.05; done'
kill -0 $held
is "$?/$(grep -c exited "$work/hung")" 0/0 'frame: hang, and nothing comes any more'
let_go

# How it is cut
shaped()
{
	msb_settings "$1"
	heard=$(perl "$here/microsandbox_agent.pl" --messages "$box/agent" key-one begin core.exec.request '{"cmd":"echo","args":["text"]}' last)
	is "$(grep -v ^frame <<<"$heard" | tail -2)" "$ran"$'\n'"$(msb_exited 0)" "cut: $1"
	msb_settings '"messageBytes":0,"fragmentBytes":0,"segmentBytes":0,"coalesce":false,"ping":false'
}
shaped '"messageBytes":1'
is "$(grep ^frame <<<"$heard" | sort -u)" 'frame 2 whole 1' 'cut: a byte in each message'
shaped '"messageBytes":11'
is "$(grep ^frame <<<"$heard" | sort | uniq -c | sort -rn | head -1 | sed 's/^ *[0-9]* //')" 'frame 2 whole 11' 'cut: or eleven'
shaped '"fragmentBytes":1'
is "$(grep ^frame <<<"$heard" | sort -u | tr '\n' ' ')" 'frame 0 part 1 frame 0 whole 1 frame 2 part 1 ' 'cut: messages of frames of a byte'
shaped '"fragmentBytes":7,"ping":true'
like "$heard" 'frame 9 whole' 'cut: with pings between them'
shaped '"segmentBytes":1'
shaped '"segmentBytes":5,"messageBytes":3'
shaped '"coalesce":true'
is "$(grep -c ^frame <<<"$heard")" 2 'cut: all to an operation in a message'
shaped '"coalesce":true,"messageBytes":60,"fragmentBytes":9,"segmentBytes":20'
shaped '"ping":true'
shaped '"ping":false'
is "$(grep ^frame <<<"$heard" | cut -d' ' -f1-3 | sort -u)" 'frame 2 whole' 'cut: and none of that without being asked'
msb_settings '"messageBytes":100000,"coalesce":true'
msb_run 'head -c 300000 /dev/zero | tr "\0" x'
is "${#output}/$outcome" "300000/$(msb_exited 0)" 'cut: much output'
msb_settings '"messageBytes":0,"coalesce":false'
msb -X DELETE "$kept"
