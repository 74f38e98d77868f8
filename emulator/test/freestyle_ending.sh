# Freestyle without running anything, without bubblewrap, and the emulator's end.

[ -z "$pid" ] || stop_emulator
start_emulator --no-exec
. "$here/freestyle.sh"
freestyle_create
is "$code" 200 'no-exec: Freestyle creates'
execute_vm 'exit 3'
is "$code/$body" "$(gave 0 '' '')" 'no-exec: a command is over at once'
freestyle "$vm/fs/read?path=/tmp/x"
vm_refused 500 INTERNAL_ERROR 'no-exec: no files'
freestyle -X POST "$vm/pause" -d '{}'
execute_vm true
is "$code" 200 'no-exec: pause and wake'
is "$(processes_of "$pid")" '' 'no-exec: nothing has run'
stop_emulator
is "$status" 0 'no-exec: exit status 0'

# A PATH with no bwrap in it
mkdir -p "$work/path-freestyle"
for tool in sh cat; do ln -s "$(command -v $tool)" "$work/path-freestyle/"; done
rm -f "$work/port2"
(PATH=$work/path-freestyle exec "$emulator" --listen 127.0.0.1:0 --port-file "$work/port2" 2>/dev/null) &
pid=$!
eventually [ -s "$work/port2" ]
base=http://127.0.0.1:$(cat "$work/port2")
. "$here/freestyle.sh"
freestyle_create
execute_vm "touch $work/escaped-freestyle"
vm_refused 500 INTERNAL_ERROR 'without bubblewrap: an error of a command'
freestyle -X PUT "$vm/fs/write?path=/tmp/x" -d x
vm_refused 500 INTERNAL_ERROR 'without bubblewrap: an error of an upload'
[ -e "$work/escaped-freestyle" ]
is $? 1 'without bubblewrap: nothing runs'
freestyle -X DELETE "$vm"
is "$code" 204 'without bubblewrap: the rest works'
stop_emulator

# The end of the emulator, and a reset, with commands that run
start_emulator
. "$here/freestyle.sh"
for end in reset SIGTERM; do
	freestyle_create
	freestyle -X POST "$vm/exec-await" -H 'x-freestyle-background-after-secs: 0' -d '{"command":"sleep 910"}'
	request=$(vm_header x-freestyle-background-request-id)
	hold -X POST "$vm/exec-await" -d '{"command":"echo >/tmp/begun; sleep 910"}'
	eventually freestyle_shows '"statusCode":0' -X POST "$vm/exec-await" -d '{"command":"cat /tmp/begun"}'
	begin=$(milliseconds)
	if [ $end = reset ]; then control reset ''; else stop_emulator; fi
	wait "$held"
	is "$?/$(($(milliseconds) - begin < 30000))" 52/1 "$end: a command that runs ends without an answer"
	[ $end = SIGTERM ] || freestyle "$base/freestyle/v5/background-requests/$request"
	[ $end = SIGTERM ] || is "$code" 404 'reset: what is in the background is forgotten'
done
is "$status" 0 'SIGTERM: exit status 0'
is "$(ls "$work/state")" '' 'SIGTERM: no file is left'
