# Following the log of a session command: over a WebSocket, and without one.

create '{"name":"follow"}'
session=$box/process/session
call -X POST "$session" -d '{"sessionId":"f"}'

# Starts a command in session f and sets $command and $log.
start()
{
	call -X POST "$session/f/exec" -d "{\"command\":\"$1\",\"runAsync\":true}"
	command=$(sed 's/.*"cmdId":"\([^"]*\)".*/\1/' <<<"$body")
	log=$session/f/command/$command/logs
}

# The key and its answer are the example of RFC 6455.
handshake()
{
	printf 'GET %s HTTP/1.1\r\nHost: here\r\nConnection: keep-alive, Upgrade\r\n' "${1#"$base"}"
	printf 'Upgrade: websocket\r\nSec-WebSocket-Version: %s\r\n' "${2:-13}"
	printf 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
	printf 'Authorization: Bearer %s\r\n\r\n' "${key:-key-one}"
}

# A WebSocket in the background.  All that comes is in $work/dialed.
dial()
{
	: >"$work/dialed"
	exec {line}<>"/dev/tcp/127.0.0.1/${base##*:}"
	handshake "$@" >&"$line"
	cat <&"$line" >"$work/dialed" &
	dialed=$!
}

hang_up()
{
	kill "$dialed"
	wait "$dialed"
	exec {line}>&-
} 2>/dev/null

# The server says goodbye, we too, and then it closes the connection.
goodbye='\x88\x82\0\0\0\0\x03\xe8'
until_closed()
{
	eventually heard 8802
	printf "$goodbye" >&"$line"
	wait "$dialed"
	exec {line}>&-
} 2>/dev/null

status_line() { head -1 "$work/dialed" | tr -d '\r'; }

# What followed the handshake, in hexadecimal.
frames() { xxd -p "$work/dialed" | tr -d '\n' | sed 's/^.*0d0a0d0a//'; }
heard() { [[ $(frames) == *"$1"* ]]; }

frame_one=8207$(printf '\1\1\1one\n' | xxd -p)
frame_two=8207$(printf '\2\2\2two\n' | xxd -p)
normal=880203e8
away=880203e9
protocol_error=880203ea

start 'echo one; until [ -e /tmp/f1 ]; do sleep 0.05; done; echo two >&2; printf last'
eventually shows '"stdout":"one\n"' "$log"
dial "$log?follow=true"
eventually heard "$frame_one"
is "$(status_line)" 'HTTP/1.1 101 Switching Protocols' 'a WebSocket is made'
like "$(tr -d '\0\r' <"$work/dialed" | head -20)" 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=' \
	'with the answer to its key'
is "$(frames)" "$frame_one" 'it gets what was written before'
for _ in 1 2 3 4 5; do kill -0 "$dialed"; sleep 0.05; done
is "$(frames)/$(kill -0 "$dialed" && echo open)" "$frame_one/open" 'and nothing more while the command runs'
printf '\x89\x80\0\0\0\0' >&"$line"
eventually heard 8a00
is $? 0 'a ping is answered'
execute '{"command":"touch /tmp/f1"}'
until_closed
is "$(frames)" "${frame_one}8a00${frame_two}8208$(printf '\1\1\1last\n' | xxd -p)$normal" \
	'then the rest as it is written, and a normal end'
dial "$log?follow=true"
until_closed
is "$(frames)" "8216$(printf '\1\1\1one\n\2\2\2two\n\1\1\1last\n' | xxd -p)$normal" \
	'the log of a command that has ended comes whole'

start 'head -c 5000 /dev/zero | tr \"\\0\" x'
eventually shows exitCode "$session/f/command/$command"
dial "$log?follow=true"
until_closed
like "$(frames)" "827e1000010101787878" 'a long line is cut into messages'
like "$(frames)" "827e038c787878" 'wherever that falls'

start 'head -c 4089 /dev/zero | tr \"\\0\" x; echo; echo y'
eventually shows exitCode "$session/f/command/$command"
dial "$log?follow=true"
until_closed
like "$(frames)" "827e0fff010101787878" 'but not right after a marker'
like "$(frames)" "780a0101820301790a$normal" 'it is the marker that is cut'

call "$session/f/command/nope/logs?follow=true"
is "$code" 404 'an unknown command has no log to follow'
dial "$session/f/command/nope/logs?follow=true"
eventually grep -q 'command not found' "$work/dialed"
is "$(status_line)" 'HTTP/1.1 404 Not Found' 'nor over a WebSocket'
hang_up
key=key-two dial "$log?follow=true"
eventually grep -q unauthorized "$work/dialed"
is "$(status_line)" 'HTTP/1.1 401 Unauthorized' 'nor has another account'
hang_up
dial "$log?follow=true" 8
eventually grep -q 'not a WebSocket handshake' "$work/dialed"
is "$(status_line)" 'HTTP/1.1 400 Bad Request' 'an old version of the protocol is refused'
hang_up
dial "$log"
eventually grep -q xxx "$work/dialed"
is "$(status_line)" 'HTTP/1.1 200 OK' 'without follow the log is an ordinary answer'
hang_up
control faults '{"provider":"daytona","op":"logs","action":"status","status":503}'
dial "$log?follow=true"
eventually grep -q 'injected' "$work/dialed"
is "$(status_line)" 'HTTP/1.1 503 Service Unavailable' 'a fault rule hits a handshake'
hang_up
dial "$log?follow=true"
until_closed
is "$(status_line)" 'HTTP/1.1 101 Switching Protocols' 'once only'

# Ends before the end
start 'echo one; sleep 600'
dial "$log?follow=true"
eventually heard "$frame_one"
printf '\x81\x01x' >&"$line"
until_closed
like "$(frames)" "$frame_one$protocol_error" 'a message without a mask is an error of the protocol'
dial "$log?follow=true"
eventually heard "$frame_one"
printf '\x81\x81\0\0\0\0x' >&"$line"
printf '\x89\x80\0\0\0\0' >&"$line"
eventually heard 8a00
is "$(frames)" "${frame_one}8a00" 'one with a mask is not'
hang_up
dial "$log?follow=true"
eventually heard "$frame_one"
printf "$goodbye" >&"$line"
wait "$dialed"
is "$(frames)" "$frame_one$normal" 'a goodbye is answered'
call "$log"
like "$body" '"stdout":"one\n"' 'the command goes on'
dial "$log?follow=true"
eventually heard "$frame_one"
call -X DELETE "$session/f"
is "$code" 204 'delete of a session that is followed'
wait "$dialed"
is "$(frames)" "$frame_one$away" 'ends that with another code, also if the client says nothing'

# Without a WebSocket
call -X POST "$session" -d '{"sessionId":"f"}'
start 'echo one; until [ -e /tmp/f2 ]; do sleep 0.05; done; echo two >&2'
hold "$log?follow=true"
eventually grep -q one "$work/held"
still_held
is "$?/$(cat "$work/held")" 0/one 'without a WebSocket: what is there, as plain text'
execute '{"command":"touch /tmp/f2"}'
wait "$held"
is "$(cat "$work/held.code")/$(tr '\n' ' ' <"$work/held")" '200/one two ' \
	'without a WebSocket: the rest, and the end with the command'
like "$(tr -d '\r' <"$work/held.headers")" 'Content-Type: application/octet-stream' \
	'without a WebSocket: its type'
call "$log?follow=true"
is "$body" $'one\ntwo' 'without a WebSocket: the log of a command that has ended'
call "$log?follow=false"
like "$body" '"stdout":"one\n"' 'follow=false is an ordinary answer'
start 'echo one; sleep 600'
hold "$log?follow=true"
eventually grep -q one "$work/held"
let_go
call "$log"
like "$body" '"stdout":"one\n"' 'without a WebSocket: a client may go away'
hold "$log?follow=true"
eventually grep -q one "$work/held"
call -X POST "$api/follow/stop"
wait "$held"
is "$?" 0 'without a WebSocket: a stop of the sandbox ends it'
call -X DELETE "$api/follow"
