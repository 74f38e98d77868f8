# Vercel Sandbox: commands and files of a session.

v_create '"name":"work","env":{"A":"create","B":"create"}'

# Streams
v_run 'echo out; echo err >&2; exit 3'
is "$code/$(header content-type)" 200/application/x-ndjson 'vercel run: exactly this type'
is "$(v_text stdout)/$(v_text stderr)/$(v_exit)" 'out\n/err\n/3' 'vercel run: both streams and the exit code'
like "$(head -1 <<<"$body")" '{"command":{"id":"cmd_' 'vercel run: begins with the command'
like "$(head -1 <<<"$body")" "\"name\":\"sh\",\"args\":[\"-c\",\"echo out; echo err >&2; exit 3\"],\"cwd\":\"/vercel/sandbox\",\"sessionId\":\"$sid\",\"exitCode\":null,\"startedAt\":1" \
	'vercel run: as it was started'
like "$(tail -1 <<<"$body")" '"exitCode":3,"startedAt":1' 'vercel run: ends with it'
like "$(tail -1 <<<"$body")" '"durationMs":' 'vercel run: and how long it took'
v_run 'echo $A $B; pwd' '"env":{"B":"call"},"cwd":"/tmp"'
is "$(v_text stdout)" 'create call\n/tmp\n' 'vercel run: environment and directory'
v_run 'echo $B; pwd; echo $HOME'
is "$(v_text stdout)" 'create\n/vercel/sandbox\n/vercel/sandbox\n' 'vercel run: which the next one does not have'
v_session /cmd -d '{"command":"printf","args":["<%s>","a b","$A","é\"\\"],"wait":true,"logs":true}'
is "$(v_text stdout)" '<a b><$A><\u00e9\"\\>' 'vercel run: arguments as they are, no shell'
v_session /cmd -d '{"command":"sh","args":["-c","echo quiet; exit 4"],"wait":true}'
is "$(v_text stdout)/$(v_exit)/$(wc -l <<<"$body")" /4/2 'vercel run: without logs only the command'
v_run 'printf "x\303\274\342\202\254\360\237\230\200\377\t\001"'
is "$(v_text stdout)" 'x\u00fc\u20ac\ud83d\ude00\ufffd\t\u0001' 'vercel run: in ASCII'
[ "$(LC_ALL=C tr -d '\n -~' <"$work/body" | wc -c)" -eq 0 ]
is $? 0 'vercel run: and nothing else'
v_run 'for b in 303 274; do printf "\\$b"; sleep 0.05; done; printf "\360\237"'
is "$(v_text stdout)" '\u00fc\ufffd\ufffd' 'vercel run: a character in two pieces is one, half of one is none'
v_run 'kill -9 $$'
is "$(v_exit)" 137 'vercel run: ended by a signal'
v_run 'sudo -n true 2>/dev/null; id -un' '"sudo":true'
is "$(v_text stdout)" 'ubuntu\n' 'vercel run: one user for all'
for wrong in '{}' '{"command":""}' '{"command":7}' '{"command":"sh","args":"-c"}' '{"command":"sh","args":[1]}' '{"command":"sh","cwd":7}' \
	'{"command":"sh","env":[]}' '{"command":"sh","env":{"A":1}}' '{"command":"sh","timeout":99}' '{"command":"sh","wait":"true"}' \
	'{"command":"s\u0000h"}' '{"command":"/no/program","wait":true}' '{"command":"true","cwd":"/nowhere","wait":true}' 'no json'; do
	v_session /cmd -d "$wrong"
	is "$code/$(cut -c1-31 <<<"$body")" '400/{"error":{"code":"bad_request",' "vercel run: 400 for $wrong"
done

# As it comes
v_hold "v2/sandboxes/sessions/$sid/cmd?teamId=$team" \
	-d "$(v_script 'echo before; until [ -e /tmp/go ]; do sleep 0.05; done; echo after' '"wait":true,"logs":true')"
eventually v_held_shows '"data":"before\n"'
is "$(wc -l <"$work/held")" 2 'vercel stream: what is written comes at once'
still_held
is $? 0 'vercel stream: and the answer goes on'
v_run 'touch /tmp/go'
wait "$held"
is "$(tail -2 "$work/held" | head -1)" '{"stream":"stdout","data":"after\n"}' 'vercel stream: to the end'

# Timeouts
begin=$(milliseconds)
v_run 'echo begun; sleep 600; echo never' '"timeout":500'
is "$code/$(v_text stdout)/$(v_exit)/$(($(milliseconds) - begin < 30000))" '200/begun\n/137/1' 'vercel timeout: an exit code in the stream'
v_run 'sleep 0.2; echo fine' '"timeout":60000'
is "$(v_text stdout)/$(v_exit)" 'fine\n/0' 'vercel timeout: not before its time'

# In the background
v_start 'echo one; until [ -e /tmp/on ]; do sleep 0.05; done; echo two >&2; exit 5'
is "$code/$(header content-type)" '200/application/json; charset=utf-8' 'vercel start: 200'
like "$body" '"exitCode":null,"startedAt":1' 'vercel start: it runs'
v_session "/cmd/$cid"
like "$code/$body" "200/{\"command\":{\"id\":\"$cid\",\"name\":\"sh\"" 'vercel status: 200'
like "$body" '"exitCode":null' 'vercel status: it runs'
v_session /cmd
like "$body" "{\"commands\":[{\"id\":\"$cid\",\"name\":\"sh\"" 'vercel list of commands: the newest first'
v_hold "v2/sandboxes/sessions/$sid/cmd/$cid/logs?teamId=$team"
eventually v_held_shows '{"stream":"stdout","data":"one\n"}'
is $? 0 'vercel logs: from the beginning'
still_held
is $? 0 'vercel logs: followed while it runs'
v_run 'touch /tmp/on'
wait "$held"
is "$(cat "$work/held")" '{"stream":"stdout","data":"one\n"}
{"stream":"stderr","data":"two\n"}' 'vercel logs: to the end, and nothing else'
v_session "/cmd/$cid"
like "$body" '"exitCode":5' 'vercel status: it has ended'
v_session "/cmd/$cid/logs"
is "$(header content-type)/$body" 'application/x-ndjson/{"stream":"stdout","data":"one\n"}
{"stream":"stderr","data":"two\n"}' 'vercel logs: the same afterwards'
v_start 'exec sleep 700'
v_hold "v2/sandboxes/sessions/$sid/cmd/$cid?teamId=$team&wait=true"
still_held
is $? 0 'vercel wait: is held while it runs'
v_session "/cmd/$cid/kill" -d '{"signal":15}'
like "$code/$body" "200/{\"command\":{\"id\":\"$cid\"" 'vercel kill: 200'
wait "$held"
like "$(cat "$work/held")" '"exitCode":143' 'vercel wait: answered at its end'
v_session "/cmd/$cid/kill" -d '{"signal":15}'
like "$code/$body" '"exitCode":143' 'vercel kill: once more changes nothing'
for wrong in '{}' '{"signal":"SIGTERM"}' '{"signal":0}' '{"signal":65}'; do
	v_session "/cmd/$cid/kill" -d "$wrong"
	is "$code" 400 "vercel kill: 400 for $wrong"
done
v_start 'exec sleep 701' '"timeout":300'
vercel "v2/sandboxes/sessions/$sid/cmd/$cid?teamId=$team&wait=true"
like "$body" '"exitCode":137' 'vercel start: has a timeout too'
for where in /cmd/cmd_none /cmd/cmd_none/logs '/cmd/cmd_none/kill -d {"signal":9}'; do
	v_session $where
	is "$code" 404 "vercel: ${where%% *} is 404"
done
v_run 'sleep 702 >/dev/null 2>&1 & echo $!'
background=$(v_text stdout)
v_run "kill -0 ${background%\\n} && echo lives"
is "$(v_text stdout)" 'lives\n' 'vercel background: outlives the command that started it'

# Files
v_write() { type=${type:-application/gzip} v_session /fs/write --data-binary "@$1" "${@:2}"; }
v_read() { v_session /fs/read -d "{\"path\":\"$1\"${2:+,$2}}"; }
long=$(printf 'n%.0s' $(seq 120))
mkdir -p "$work/pack/tmp/new/dir"
printf 'a\0\377b' >"$work/pack/tmp/new/dir/bytes"
echo script >"$work/pack/tmp/new/run"
chmod 755 "$work/pack/tmp/new/run"
echo long >"$work/pack/tmp/$long"
(cd "$work/pack" && tar -c --no-recursion --format=pax tmp/new/dir/bytes tmp/new/run "tmp/$long") | gzip >"$work/packed"
v_write "$work/packed" -H 'X-Cwd: /'
is "$code/$body" '200/{}' 'vercel write: 200'
v_read /tmp/new/dir/bytes
is "$code/$(header content-type)/$(header content-disposition)" '200/application/octet-stream/attachment; filename="bytes"' 'vercel read: 200'
cmp -s "$work/body" "$work/pack/tmp/new/dir/bytes"
is $? 0 'vercel read: the same bytes'
v_run 'stat -c %a /tmp/new/run /tmp/new/dir/bytes'
is "$(v_text stdout)" '755\n644\n' 'vercel write: modes'
v_read "/tmp/$long"
is "$body" long 'vercel write: a name of more than 100 bytes'
v_write "$work/packed" -H 'X-Cwd: /tmp/below'
v_read tmp/new/run '"cwd":"/tmp/below"'
is "$body" script 'vercel write: below a directory, read from there'
v_write "$work/packed"
v_read tmp/new/run
is "$body" script 'vercel write: in the directory of the session otherwise'
v_write "$work/packed" -H 'X-Cwd: tmp'
is "$code" 400 'vercel write: x-cwd must be absolute'
v_write "$work/packed" -H 'X-Cwd: /usr'
is "$code" 400 'vercel write: not where the user may not'
type=application/octet-stream v_write "$work/packed" -H 'X-Cwd: /'
is "$code" 400 'vercel write: no other type'
echo plain >"$work/plain"
v_write "$work/plain" -H 'X-Cwd: /'
is "$code" 400 'vercel write: must be packed'
gzip -c "$work/plain" >"$work/plain.gz"
v_write "$work/plain.gz" -H 'X-Cwd: /'
is "$code" 400 'vercel write: must be an archive'
head -c 60 "$work/packed" >"$work/cut"
v_write "$work/cut" -H 'X-Cwd: /'
is "$code" 400 'vercel write: must be whole'
v_read /tmp/nothing
is "$code/$body" '404/{"error":{"code":"not_found","message":"File not found"}}' 'vercel read: 404'
v_read /tmp
is "$code" 400 'vercel read: no directory'
v_session /fs/read -d '{}'
is "$code" 400 'vercel read: needs a path'
v_session /fs/mkdir -d '{"path":"/tmp/made"}'
is "$code/$body" '200/{}' 'vercel mkdir: 200'
v_session /fs/mkdir -d '{"path":"/tmp/made"}'
is "$code" 400 'vercel mkdir: once'
v_session /fs/mkdir -d '{"path":"made/of/many"}'
is "$code" 400 'vercel mkdir: no parents'
v_session /fs/mkdir -d '{"path":"made/of/many","recursive":true}'
is "$code" 200 'vercel mkdir: but if told so'
v_session /fs/mkdir -d '{"path":"made/of/many","recursive":true}'
is "$code" 200 'vercel mkdir: then also more than once'
v_run 'test -d /tmp/made && test -d made/of/many && echo both'
is "$(v_text stdout)" 'both\n' 'vercel mkdir: they are there'

# The end of a session
v_run 'echo kept >kept; echo kept >/tmp/kept'
v_start 'exec sleep 703'
note_requests
v_hold "v2/sandboxes/sessions/$sid/cmd?teamId=$team" -d "$(v_script 'echo begun; exec sleep 704' '"wait":true,"logs":true')"
eventually v_held_shows begun
: >"$work/waiting"
curl -sS -m 600 -o "$work/waiting" -H 'Authorization: Bearer key-one' "$v_api/v2/sandboxes/sessions/$sid/cmd/$cid?teamId=$team&wait=true" &
waiting=$!
eventually requested "$cid?teamId=$team&wait=true"
v_session /stop -X POST
wait "$held"
is "$?/$(tail -1 "$work/held")" '0/{"stream":"error","data":{"code":"sandbox_stream_closed","message":"Sandbox stream was closed and is not accepting commands."}}' \
	'vercel stop: a stream ends with an error'
wait "$waiting"
like "$(cat "$work/waiting")" '"code":"sandbox_stopped"' 'vercel stop: who waits is told too'
vercel 'v2/sandboxes/work?+&resume=true'
sid=$(v_session_of)
v_run 'cat kept /tmp/kept; ls /proc | grep -c "^[0-9]"'
like "$(v_text stdout)" 'kept\nkept\n' 'vercel resume: files stay'
v_run 'cat /proc/[0-9]*/cmdline | tr "\0" " "'
unlike "$(v_text stdout)" 'sleep 702' 'vercel resume: processes do not'
v_session /cmd
unlike "$body" "$cid" 'vercel resume: nor do commands'
v_hold "v2/sandboxes/sessions/$sid/cmd?teamId=$team" -d "$(v_script 'echo begun; exec sleep 705' '"wait":true,"logs":true')"
eventually v_held_shows begun
v_delete work
wait "$held"
like "$(tail -1 "$work/held")" sandbox_stream_closed 'vercel delete: a stream ends with an error'
v_create '"name":"bare","persistent":false'
v_run 'echo lost >/tmp/lost; echo lost >lost'
v_session /stop -X POST
vercel 'v2/sandboxes/bare?+&resume=true'
sid=$(v_session_of)
v_run 'ls /tmp; ls'
is "$(v_text stdout)/$(v_exit)" /0 'vercel resume: of what does not persist, with no files'
v_delete bare
