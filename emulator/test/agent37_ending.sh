# Agent37 without running anything, without bubblewrap, and the emulator's end.

[ -z "$pid" ] || stop_emulator
start_emulator --no-exec
. "$here/agent37.sh"
agent37_create '{}'
is "$code" 201 'no-exec: Agent37 creates'
execute37 'exit 3'
is "$code/$body" "200/$(ran 0 '' '')" 'no-exec: a command is over at once'
inside "$plane/v1/files/content?path=/tmp/x"
is "$code" 500 'no-exec: no files'
agent37 -X POST "$one/stop"
agent37 -X POST "$one/start"
is "$code" 200 'no-exec: stop and start'
is "$(processes_of "$pid")" '' 'no-exec: nothing has run'
stop_emulator
is "$status" 0 'no-exec: exit status 0'

# A PATH with no bwrap in it
mkdir -p "$work/path-agent37"
for tool in sh cat; do ln -s "$(command -v $tool)" "$work/path-agent37/"; done
rm -f "$work/port2"
(PATH=$work/path-agent37 exec "$emulator" --listen 127.0.0.1:0 --port-file "$work/port2" 2>/dev/null) &
pid=$!
eventually [ -s "$work/port2" ]
base=http://127.0.0.1:$(cat "$work/port2")
. "$here/agent37.sh"
agent37_create '{}'
execute37 "touch $work/escaped-agent37"
like "$code/$body" "502/$(error37 provisioning_failed),\"message\":\"the sandbox could not be started by bubblewrap" \
	'without bubblewrap: an error of a command'
inside -T "$work/curl" "$plane/v1/files/content?path=/tmp/x"
is "$code/$body" '502/{"error":"container_unavailable"}' 'without bubblewrap: an error of an upload'
[ -e "$work/escaped-agent37" ]
is $? 1 'without bubblewrap: nothing runs'
agent37 -X DELETE "$one"
is "$code" 200 'without bubblewrap: the rest works'
stop_emulator

# The end of the emulator, and a reset, with a command that runs
start_emulator
. "$here/agent37.sh"
for end in reset SIGTERM; do
	agent37_create '{}'
	hold -X POST "$one/exec" -d '{"command":"echo >/tmp/begun; sleep 910"}'
	eventually agent37_shows '{"exit_code":0' -X POST "$one/exec" -d '{"command":"cat /tmp/begun"}'
	begin=$(milliseconds)
	if [ $end = reset ]; then control reset ''; else stop_emulator; fi
	wait "$held"
	is "$?/$(($(milliseconds) - begin < 30000))" 52/1 "$end: a command that runs ends without an answer"
done
is "$status" 0 'SIGTERM: exit status 0'
is "$(ls "$work/state")" '' 'SIGTERM: no file is left'
