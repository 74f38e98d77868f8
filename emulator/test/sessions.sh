# Sessions, synchronous and asynchronous.

create '{"name":"sessions"}'
session=$box/process/session
open() { call -X POST "$session" -d "{\"sessionId\":\"$1\"}"; }
run() { call -X POST "$session/$1/exec" -d "$2"; }
listing='{"command":"for p in /proc/[0-9]*; do cat $p/cmdline | tr \"\\0\" \" \"; done"}'

# A shell that says who it is and exits: it has gone when its process has.
exiting='{"command":"echo $$ >/tmp/shell.new; mv /tmp/shell.new /tmp/shell; exit 3"}'
shell_gone()
{
	shows '"exitCode":0' -X POST "$box/process/execute" \
		-d '{"command":"[ -s /tmp/shell ] && ! kill -0 $(cat /tmp/shell) 2>/dev/null && rm /tmp/shell"}'
}

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
hold "$session/s2/exec" -d "$exiting"
eventually shell_gone
is $? 0 'exit in a session ends its shell'
still_held
is $? 0 'exit in a session is not answered'
run s1 '{"command":"echo others"}'
like "$body" '"stdout":"others\n"' 'while other sessions are'
call "$session/s2"
unlike "$body" 'exitCode' 'and has no exit code'
begin=$(milliseconds)
call -X DELETE "$session/s2"
is "$code/$body" 204/ 'the session can be deleted'
wait "$held"
[ $(($(milliseconds) - begin)) -lt 30000 ]
is $? 0 'which ends the call that hung'
is "$(cat "$work/held.code")" 400 'with an error'
like "$(cat "$work/held")" 'session cancelled' 'and the text of it'
call -X DELETE "$session/s2"
is "$code" 404 'a session is deleted once'
open s3
hold "$session/s3/exec" -d "$exiting"
eventually shell_gone
still_held
is "$?$(cat "$work/held")" 0 'a client may give up on one'
let_go
run s3 '{"command":"echo dead"}'
is "$code" 400 'its shell takes no more commands'
run s1 '{"command":"echo still here"}'
like "$body" 'still here' 'and the emulator lives on'
run s1 '{"command":"( exit 3 )"}'
like "$body" '"exitCode":3' 'exit in a subshell is answered'

# Delete kills the group
open s4
run s4 '{"command":"trap \"\" TERM; sleep 700 & sleep 701","runAsync":true}'
is "$code" 202 'an asynchronous command is 202'
like "$body" '"exitCode":null' 'with nothing but its id'
eventually shows 'sleep 701' -X POST "$box/process/execute" -d "$listing"
like "$body" 'sleep 701' 'and runs'
call -X DELETE "$session/s4"
is "$code" 204 'delete of a session that ignores SIGTERM'
execute "$listing"
unlike "$body" 'sleep 70' 'leaves nothing of it'

# Asynchronous commands
open s5
run s5 '{"command":"echo one; until [ -e /tmp/go ]; do sleep 0.05; done; echo two >&2; (exit 5)","runAsync":true}'
command=$(sed 's/.*"cmdId":"\([^"]*\)".*/\1/' <<<"$body")
eventually shows '"stdout":"one\n"' "$session/s5/command/$command/logs"
call "$session/s5/command/$command"
unlike "$body" 'exitCode' 'status while it runs'
call "$session/s5/command/$command/logs"
is "$body" '{"output":"\u0001\u0001\u0001one\n","stdout":"one\n","stderr":""}' 'log while it runs'
execute '{"command":"touch /tmp/go"}'
eventually shows '"exitCode"' "$session/s5/command/$command"
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
eventually shows 'got' "$session/s5/command/$command/logs"
like "$body" '"stdout":"got input\n"' 'and reaches the command'
run s5 '{"command":"(until [ -e /tmp/late ]; do sleep 0.05; done; echo late) & echo early"}'
like "$body" '"stdout":"early\n"' 'a background job does not hold its command up'
run s5 '{"command":"sleep 0.2"}'
like "$body" '"exitCode":0' 'nor the next one'
execute '{"command":"touch /tmp/late"}'

# Stop ends all
hold "$session/s5/exec" -d '{"command":"sleep 500"}'
eventually shows 'sleep 500' -X POST "$box/process/execute" -d "$listing"
like "$body" 'sleep 500' 'a call in progress'
call -X POST "$api/sessions/stop"
wait "$held"
is "$(cat "$work/held.code")" 502 'stop ends a call in progress with 502'
call -X POST "$api/sessions/start"
call "$session/s1"
is "$code" 404 'sessions do not outlive a stop'
call -X DELETE "$api/sessions"
