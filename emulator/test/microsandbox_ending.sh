# Microsandbox without running anything, without bubblewrap, and the emulator's end.

[ -z "$pid" ] || stop_emulator
start_emulator --no-exec
. "$here/microsandbox.sh"
msb_create one
is "$code/$(msb_field status)" 200/running 'no-exec: Microsandbox creates'
msb_run 'exit 3'
is "$outcome" "$(msb_exited 0)" 'no-exec: a command is over at once'
agent begin core.fs.request '{"op":{"Stat":{"path":"/","follow_symlink":true}}}' last
like "$body" '"error":"files need a sandbox that runs"' 'no-exec: no files'
msb -X POST "$box/stop" -d '{}'
msb -X POST "$box/start" -d '{}'
is "$code" 200 'no-exec: stop and start'
is "$(processes_of "$pid")" '' 'no-exec: nothing has run'
stop_emulator
is "$status" 0 'no-exec: exit status 0'

# A PATH with no bwrap in it
mkdir -p "$work/path-microsandbox"
for tool in sh cat; do ln -s "$(command -v $tool)" "$work/path-microsandbox/"; done
rm -f "$work/port2"
(PATH=$work/path-microsandbox exec "$emulator" --listen 127.0.0.1:0 --port-file "$work/port2" 2>/dev/null) &
pid=$!
eventually [ -s "$work/port2" ]
base=http://127.0.0.1:$(cat "$work/port2")
. "$here/microsandbox.sh"
msb_create one
msb_run "touch $work/escaped-microsandbox"
like "$outcome" '1 core.exec.failed {"errno":null,"errno_name":null,"kind":"other","message":"the sandbox could not be started by bubblewrap' \
	'without bubblewrap: an error of a command'
agent begin core.fs.request '{"op":{"Mkdir":{"path":"/tmp/x","mode":null}}}' last
like "$body" '"error":"the sandbox could not be started by bubblewrap' 'without bubblewrap: an error of a file'
[ -e "$work/escaped-microsandbox" ]
is $? 1 'without bubblewrap: nothing runs'
msb -X DELETE "$box"
is "$code" 200 'without bubblewrap: the rest works'
stop_emulator

# The end of the emulator, and a reset, with a command that runs
start_emulator
. "$here/microsandbox.sh"
for end in reset SIGTERM; do
	msb_create one
	rm -f "$work/runs"
	perl "$here/microsandbox_agent.pl" "$box/agent" key-one begin core.exec.request '{"cmd":"sleep","args":["910"]}' \
		wait started touch "$work/runs" end >"$work/ended" &
	socket=$!
	eventually [ -e "$work/runs" ]
	if [ $end = reset ]; then control reset ''; else stop_emulator; fi
	wait "$socket"
	unlike "$(tail -1 "$work/ended")" nothing "$end: the socket of a command that runs ends"
done
is "$status" 0 'SIGTERM: exit status 0'
is "$(ls "$work/state")" '' 'SIGTERM: no file is left'
