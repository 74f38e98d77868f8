# Sessions, synchronous and asynchronous.

create '{"name":"sessions"}'
session=$box/process/session
open() { call -X POST "$session" -d "{\"sessionId\":\"$1\"}"; }
run() { call -X POST "$session/$1/exec" -d "$2"; }

open s1
is "$code/$body" 201/ 'a session is made'
open s1
is "$code" 409 'not twice'
open entrypoint
is "$code" 400 'entrypoint is reserved'
run nobody '{"command":"true"}'
is "$code" 404 'no command in a session that is not there'

run s1 '{"command":"cd /tmp\nexport A=1\necho out; echo err >&2; printf last","runAsync":false}'
is "$code" 200 'a synchronous command'
like "$body" '"output":"\u0001\u0001\u0001out\n\u0002\u0002\u0002err\n\u0001\u0001\u0001last\n"' \
	'output is framed by lines'
like "$body" '"stdout":"out\nlast\n","stderr":"err\n","exitCode":0' 'both streams are apart'
run s1 '{"command":"pwd; echo $A; (exit 7)"}'
like "$body" '"stdout":"/tmp\n1\n","stderr":"","exitCode":7' 'directory and variables stay'
version=0.100.0 run s1 '{"command":"echo out; echo err >&2"}'
unlike "$body" '"stdout"' 'an old client gets no streams'
like "$body" 'out\n' 'an old client gets plain output'
version= call -X POST "$session/s1/exec" -H 'X-Daytona-Split-Output: true' \
	-d '{"command":"echo out"}'
like "$body" '"output":"\u0001\u0001\u0001out\n","exitCode"' 'frames only, when asked for'
run s1 '{"command":"echo \u0027it\u0027 \"ü\" $(printf \u0027\\377\u0027)"}'
like "$body" '"stdout":"it ü '$'\xef\xbf\xbd''\n"' 'quotes, UTF-8 and other bytes'
run s1 '{"command":"sed -n 1p <<X\nhere\nX"}'
like "$body" '"stdout":"here\n"' 'a here-document'

# exit in a session
open s2
begin=$(milliseconds)
curl -sS -m 20 -o "$work/hanging" -w '%{http_code}' -H 'Authorization: Bearer key-one' \
	"$session/s2/exec" -d '{"command":"exit 3"}' >"$work/hanging.code" 2>&1 &
hanging=$!
sleep 0.5
kill -0 $hanging 2>/dev/null
is $? 0 'exit in a session is not answered'
run s1 '{"command":"echo others"}'
like "$body" '"stdout":"others\n"' 'while other sessions are'
call "$session/s2"
unlike "$body" 'exitCode' 'and has no exit code'
call -X DELETE "$session/s2"
is "$code/$body" 204/ 'the session can be deleted'
wait $hanging
[ $(($(milliseconds) - begin)) -lt 5000 ]
is $? 0 'which ends the call that hung'
is "$(cat "$work/hanging.code")" 400 'with an error'
like "$(cat "$work/hanging")" 'session cancelled' 'and the text of it'
call -X DELETE "$session/s2"
is "$code" 404 'a session is deleted once'
open s3
limit=0.5 run s3 '{"command":"exit 3"}'
is "$curl" 28 'a client may give up on one'
run s3 '{"command":"echo dead"}'
is "$code" 400 'its shell takes no more commands'
run s1 '{"command":"echo still here"}'
like "$body" 'still here' 'and the emulator lives on'
run s1 '{"command":"( exit 3 )"}'
like "$body" '"exitCode":3' 'exit in a subshell is answered'

# Delete kills the group
open s4
run s4 '{"command":"trap \"\" TERM; sleep 70 & sleep 71","runAsync":true}'
is "$code" 202 'an asynchronous command is 202'
like "$body" '"exitCode":null' 'with nothing but its id'
sleep 0.3
begin=$(milliseconds)
call -X DELETE "$session/s4"
is "$code" 204 'delete of a session that ignores SIGTERM'
execute '{"command":"for p in /proc/[0-9]*; do cat $p/cmdline | tr \"\\0\" \" \"; done"}'
unlike "$body" 'sleep 7' 'leaves nothing of it'

# Asynchronous commands
open s5
run s5 '{"command":"echo one; sleep 0.6; echo two >&2; (exit 5)","runAsync":true}'
command=$(sed 's/.*"cmdId":"\([^"]*\)".*/\1/' <<<"$body")
sleep 0.2
call "$session/s5/command/$command"
unlike "$body" 'exitCode' 'status while it runs'
call "$session/s5/command/$command/logs"
is "$body" '{"output":"\u0001\u0001\u0001one\n","stdout":"one\n","stderr":""}' 'log while it runs'
sleep 0.8
call "$session/s5/command/$command"
like "$body" '"exitCode":5' 'status when it has ended'
call "$session/s5/command/$command/logs"
like "$body" '"stdout":"one\n","stderr":"two\n"' 'log when it has ended'
call "$session/s5/command/nope"
is "$code" 404 'an unknown command'
call "$session/s5"
like "$body" '{"sessionId":"s5","commands":[{"id":"'"$command"'","command":"echo one;' 'the session lists it'
run s5 '{"command":"read line; echo got $line","runAsync":true}'
command=$(sed 's/.*"cmdId":"\([^"]*\)".*/\1/' <<<"$body")
call -X POST "$session/s5/command/$command/input" -d '{"data":"input\n"}'
is "$code" 204 'input is taken'
sleep 0.3
call "$session/s5/command/$command/logs"
like "$body" '"stdout":"got input\n"' 'and reaches the command'
run s5 '{"command":"(sleep 0.4; echo late) & echo early"}'
like "$body" '"stdout":"early\n"' 'a background job does not hold its command up'
run s5 '{"command":"sleep 0.2"}'
like "$body" '"exitCode":0' 'nor the next one'

# Stop ends all
curl -sS -m 20 -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer key-one' \
	"$session/s5/exec" -d '{"command":"sleep 50"}' >"$work/hanging.code" 2>&1 &
hanging=$!
sleep 0.3
call -X POST "$api/sessions/stop"
wait $hanging
is "$(cat "$work/hanging.code")" 502 'stop ends a call in progress with 502'
call -X POST "$api/sessions/start"
call "$session/s1"
is "$code" 404 'sessions do not outlive a stop'
call -X DELETE "$api/sessions"
