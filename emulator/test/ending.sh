# Starting and ending, without bubblewrap, as an ordinary user, TLS.

left_over() { ls "$work/state"; }
all_gone()
{
	local one
	for one in $1; do kill -0 "$one" 2>/dev/null && return 1; done
	return 0
}
runs()
{
	local one
	for one in $(processes_of "$pid"); do
		[ "$(tr '\0' ' ' 2>/dev/null <"/proc/$one/cmdline")" = "$1 " ] && return 0
	done
	return 1
}

stop_emulator
is "$(left_over)" '' 'the emulator of the tests before left no file'
start_emulator
create '{"name":"e1"}'
execute '{"command":"sleep 900 >/dev/null 2>&1 & mkdir -p /tmp/a/b; chmod 0 /tmp/a/b /tmp/a"}'
hold "$box/process/execute" -d '{"command":"sleep 901"}'
eventually runs 'sleep 900' && eventually runs 'sleep 901'
is $? 0 'two commands are running'
session=$box/process/session
call -X POST "$session" -d '{"sessionId":"f"}'
start 'echo one; sleep 902'
dial "$log?follow=true"
eventually heard "$frame_one"
is $? 0 'a log is followed over a WebSocket'
inside=$(processes_of "$pid")
is "$(left_over | wc -l)" 1 'there are files to remove'
[ "$(wc -l <<<"$inside")" -ge 4 ]
is $? 0 'there are processes to end'
begin=$(milliseconds)
stop_emulator
is "$status" 0 'SIGTERM: exit status 0'
[ $(($(milliseconds) - begin)) -lt 30000 ]
is $? 0 'SIGTERM: at once, with a command running'
eventually all_gone "$inside"
is $? 0 'SIGTERM: no process is left'
is "$(left_over)" '' 'SIGTERM: no file is left'
wait "$held"
wait "$dialed"
is "$(frames)" "$frame_one" 'SIGTERM: the WebSocket ends too'

start_emulator
create '{"name":"e2"}'
execute '{"command":"sleep 900 >/dev/null 2>&1 &"}'
eventually runs 'sleep 900'
inside=$(processes_of "$pid")
kill -KILL "$pid"
wait "$pid" 2>/dev/null
eventually all_gone "$inside"
is $? 0 'SIGKILL: the sandboxes die too'
is "$(left_over)" '' 'SIGKILL: and their files go'

start_emulator --no-exec
create '{"name":"e3"}'
execute '{"command":"exit 3"}'
is "$body" '{"exitCode":0,"result":""}' 'no-exec: a one-shot command'
call -X POST "$box/process/session" -d '{"sessionId":"s"}'
call -X POST "$box/process/session/s/exec" -d '{"command":"exit 3"}'
like "$body" '"output":"","stdout":"","stderr":"","exitCode":0' 'no-exec: a session command'
call -X DELETE "$box/process/session/s"
is "$code" 204 'no-exec: delete of the session'
is "$(processes_of "$pid")" '' 'no-exec: no process'
stop_emulator
is "$status" 0 'no-exec: exit status 0'

start_emulator --latency-ms 300
begin=$(milliseconds)
create '{"name":"e4"}'
[ $(($(milliseconds) - begin)) -ge 300 ]
is $? 0 'latency: every answer is held'
stop_emulator

ids=
for _ in 1 2; do
	start_emulator --seed 42 --no-exec
	create '{}'
	ids="$ids $id"
	stop_emulator
done
is "$(tr ' ' '\n' <<<"$ids" | sort -u | wc -l)" 2 'the same seed, the same ids'
start_emulator --seed 43 --no-exec
create '{}'
unlike "$ids" "$id" 'another seed, other ids'
stop_emulator

# A PATH with no bwrap in it
mkdir "$work/path"
for tool in sh cat; do ln -s "$(command -v $tool)" "$work/path/"; done
(PATH=$work/path exec "$emulator" --listen 127.0.0.1:0 --port-file "$work/port2" 2>/dev/null) &
pid=$!
eventually [ -s "$work/port2" ]
base=http://127.0.0.1:$(cat "$work/port2") api=http://127.0.0.1:$(cat "$work/port2")/daytona/api/sandbox
create '{"name":"e5"}'
execute "{\"command\":\"touch $work/escaped\"}"
like "$body" '{"exitCode":-1,"result":"the sandbox could not be started by bubblewrap' \
	'without bubblewrap: an error'
call -X POST "$box/process/session" -d '{"sessionId":"s"}'
call -X POST "$box/process/session/s/exec" -d "{\"command\":\"touch $work/escaped\"}"
is "$code" 502 'without bubblewrap: an error in a session'
call -X DELETE "$box/process/session/s"
is "$code" 204 'without bubblewrap: the session can be deleted'
[ -e "$work/escaped" ]
is $? 1 'without bubblewrap: nothing runs'
call -X DELETE "$api/e5"
is "$code" 200 'without bubblewrap: the rest works'
stop_emulator

"$emulator" --listen 0.0.0.0:0 2>/dev/null
is $? 2 'another address than loopback is refused'
"$emulator" --nonsense 2>/dev/null
is $? 2 'an unknown option is refused'

# As another user: root tries one that is no root, the others are one already.
user=$(getent passwd sbxtest nobody | head -1 | cut -d: -f1)
if [ "$(id -u)" -eq 0 ] && [ -n "$user" ]; then
	mkdir "$work/user"
	chmod 1777 "$work/state"
	cp "$emulator" "${emulator}_agent" "$work/user/"
	chown -R "$user" "$work/user"
	(cd / && exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups \
		"$work/user/sbx_emulator" --listen 127.0.0.1:0 --port-file "$work/user/port") &
	pid=$!
	eventually [ -s "$work/user/port" ]
	base=http://127.0.0.1:$(cat "$work/user/port")
	api=$base/daytona/api/sandbox
	create '{"name":"e6"}'
	execute '{"command":"id -un; mkdir -p /tmp/a/b; touch /tmp/a/b/c; chmod 0 /tmp/a/b /tmp/a; ulimit -u"}'
	is "$body" '{"exitCode":0,"result":"daytona\n1024\n"}' "as $user: a command runs"
	inside=$(processes_of "$pid")
	stop_emulator
	is "$status" 0 "as $user: exit status 0"
	eventually all_gone "$inside"
	is $? 0 "as $user: no process is left"
	is "$(left_over)" '' "as $user: no file is left"
fi

if command -v openssl >/dev/null; then
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/tls.key" -out "$work/tls.crt" \
		-days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
	start_emulator --tls "$work/tls.crt" "$work/tls.key"
	api=https${api#http}
	call --cacert "$work/tls.crt" -X POST "$api" -d '{"name":"e7"}'
	is "$code" 200 'TLS: create'
	like "$body" "\"toolboxProxyUrl\":\"https://127.0.0.1:" 'TLS: the URL says https'
	call_over_tls() { call --cacert "$work/tls.crt" "$@"; }
	box=https${base#http}/daytona/toolbox/$(sed 's/^{"id":"\([^"]*\)".*/\1/' <<<"$body")
	session=$box/process/session
	call_over_tls -X POST "$session" -d '{"sessionId":"f"}'
	call_over_tls -X POST "$session/f/exec" -d '{"command":"seq 20000"}'
	command=$(sed 's/.*"cmdId":"\([^"]*\)".*/\1/' <<<"$body")
	handshake "${session#https"${base#http}"}/f/command/$command/logs?follow=true" |
		openssl s_client -quiet -ign_eof -CAfile "$work/tls.crt" \
			-connect "${base#http://}" >"$work/dialed" 2>/dev/null
	like "$(frames)" 010101$(printf '20000\n' | xxd -p)880203e8 'TLS: a WebSocket, to its end'
	call -X POST "$api" -d '{"name":"e8"}'
	is "$curl" 60 'TLS: an unknown certificate is noticed'
	stop_emulator
fi
