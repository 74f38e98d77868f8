# E2B without running anything, and without bubblewrap.

[ -z "$pid" ] || stop_emulator
start_emulator --no-exec
. "$here/e2b.sh"
e2b_create '{"templateID":"base"}'
is "$code" 201 'no-exec: E2B creates'
run_in 'exit 3'
is "$frames" "0 {\"event\":{\"start\":{\"pid\":1}}}
$end_ok" 'no-exec: a command is over at once'
tag=t run_in 'exit 3'
is "$(tail -2 <<<"$frames")" "$end_ok" 'no-exec: one with a tag too'
rpc process.Process/List '{}'
is "$body" '{}' 'no-exec: no process'
envd "$e2b_envd/files?path=/tmp/x"
is "$code" 500 'no-exec: no files'
e2b -X POST "$e2b_api/sandboxes/$id/pause" -d '{}'
e2b -X POST "$e2b_api/v2/sandboxes/$id/connect" -d '{}'
is "$code" 201 'no-exec: pause and connect'
is "$(processes_of "$pid")" '' 'no-exec: nothing has run'
stop_emulator
is "$status" 0 'no-exec: exit status 0'

# A PATH with no bwrap in it
mkdir -p "$work/path-e2b"
for tool in sh cat; do ln -s "$(command -v $tool)" "$work/path-e2b/"; done
rm -f "$work/port2"
(PATH=$work/path-e2b exec "$emulator" --listen 127.0.0.1:0 --port-file "$work/port2" 2>/dev/null) &
pid=$!
eventually [ -s "$work/port2" ]
base=http://127.0.0.1:$(cat "$work/port2")
. "$here/e2b.sh"
e2b_create '{"templateID":"base"}'
run_in "touch $work/escaped-e2b"
like "$code/$frames" '200/2 {"error":{"code":"internal","message":"the sandbox could not be started by bubblewrap' \
	'without bubblewrap: an error instead of a start'
unlike "$frames" '"start"' 'without bubblewrap: no start'
envd --data-binary x -H 'Content-Type: application/octet-stream' "$e2b_envd/files?path=/tmp/x"
is "$code" 500 'without bubblewrap: an error of an upload'
[ -e "$work/escaped-e2b" ]
is $? 1 'without bubblewrap: nothing runs'
e2b -X DELETE "$e2b_api/sandboxes/$id"
is "$code" 204 'without bubblewrap: the rest works'
stop_emulator

# The end of the emulator, with a stream open
start_emulator
. "$here/e2b.sh"
e2b_create '{"templateID":"base"}'
hold_stream Start "$(command_message 'sleep 910')"
eventually held_shows '"start"'
begin=$(milliseconds)
stop_emulator
is "$status/$(($(milliseconds) - begin < 30000))" 0/1 'SIGTERM: at once, with a stream open'
wait "$held"
is $? 18 'SIGTERM: which is cut'
is "$(ls "$work/state")" '' 'SIGTERM: no file is left'
