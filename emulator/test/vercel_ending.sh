# Vercel Sandbox without running anything, and without bubblewrap.

[ -z "$pid" ] || stop_emulator
start_emulator --no-exec
. "$here/vercel.sh"
v_create '"name":"one"'
is "$code" 200 'no-exec: Vercel creates'
v_run 'exit 3'
is "$(wc -l <<<"$body")/$(v_exit)" 2/0 'no-exec: a command is over at once'
v_start 'exit 3'
like "$code/$body" '200/{"command":{"id":"cmd_' 'no-exec: one in the background too'
v_session "/cmd/$cid"
like "$body" '"exitCode":0' 'no-exec: as its status tells'
v_session "/cmd/$cid/logs"
is "$code/$body" 200/ 'no-exec: no logs'
v_session /fs/read -d '{"path":"/tmp/x"}'
is "$code" 500 'no-exec: no files'
v_session /stop -X POST
vercel 'v2/sandboxes/one?+&resume=true'
is "$(v_status)" running 'no-exec: stop and resume'
is "$(processes_of "$pid")" '' 'no-exec: nothing has run'
stop_emulator
is "$status" 0 'no-exec: exit status 0'

# A PATH with no bwrap in it
mkdir -p "$work/path-vercel"
for tool in sh cat; do ln -s "$(command -v $tool)" "$work/path-vercel/"; done
rm -f "$work/port2"
(PATH=$work/path-vercel exec "$emulator" --listen 127.0.0.1:0 --port-file "$work/port2" 2>/dev/null) &
pid=$!
eventually [ -s "$work/port2" ]
base=http://127.0.0.1:$(cat "$work/port2")
. "$here/vercel.sh"
v_create '"name":"one"'
v_run "touch $work/escaped-vercel"
like "$code/$body" '500/{"error":{"code":"internal_server_error","message":"the sandbox could not be started by bubblewrap' \
	'without bubblewrap: an error instead of a stream'
v_start "touch $work/escaped-vercel"
is "$code" 500 'without bubblewrap: an error of a start'
v_session /fs/read -d '{"path":"/etc/passwd"}'
is "$code" 500 'without bubblewrap: an error of a download'
[ -e "$work/escaped-vercel" ]
is $? 1 'without bubblewrap: nothing runs'
v_delete one
is "$code" 200 'without bubblewrap: the rest works'
stop_emulator

# The end of the emulator, with a stream open
start_emulator
. "$here/vercel.sh"
v_create '"name":"one"'
v_hold "v2/sandboxes/sessions/$sid/cmd?teamId=$team" -d "$(v_script 'exec sleep 920' '"wait":true,"logs":true')"
eventually v_held_shows '"command"'
begin=$(milliseconds)
stop_emulator
is "$status/$(($(milliseconds) - begin < 30000))" 0/1 'SIGTERM: at once, with a stream of Vercel open'
wait "$held"
is $? 18 'SIGTERM: which is cut'
is "$(ls "$work/state")" '' 'SIGTERM: no file is left'

# A reset, with a stream open
start_emulator
. "$here/vercel.sh"
v_create '"name":"one"'
v_hold "v2/sandboxes/sessions/$sid/cmd?teamId=$team" -d "$(v_script 'exec sleep 921' '"wait":true,"logs":true')"
eventually v_held_shows '"command"'
control reset ''
wait "$held"
is $? 18 'reset: a stream is cut'
v_create '"name":"one"'
is "$code" 200 'reset: names are free'
