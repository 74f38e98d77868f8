# Commands in an E2B sandbox: process.Process of envd.

e2b_create '{"templateID":"base","envVars":{"FROM_CREATE":"one","BOTH":"create"}}'
box_id=$id box_token=$token

# Access
envd "$e2b_envd/health"
is "$code/$body" 204/ 'envd health: 204'
token= envd "$e2b_envd/health"
is "$code" 204 'envd health: without a token'
id=inothing envd "$e2b_envd/health"
is "$code" 502 'envd health: 502 for a sandbox that is not there'
like "$body" '{"sandboxId":"inothing","message":"' 'envd health: says which'
unlike "$body" '"port"' 'envd health: and no port'
port=8080 envd "$e2b_envd/health"
is "$code" 502 'envd: another port is closed'
like "$body" '"port":8080' 'envd: which is named'
code=$(curl -sS -o /dev/null -w '%{http_code}' -H "E2b-Sandbox-Id: $id" "$e2b_envd/health")
is "$code" 400 'envd: one of the two headers alone is 400'
token=wrong rpc process.Process/List '{}'
is "$code" 401 'envd: a wrong token is 401'
like "$body" '{"code":401,"message":"' 'envd: in the format of envd'
token=wrong run_in 'touch /tmp/ran'
is "$code" 401 'envd: nor does a command run with it'
run_in 'test -e /tmp/ran'
like "$frames" '"exitCode":1' 'envd: it did not'
envd "$e2b_envd/init"
is "$code" 404 'envd: other paths are 404'

# What a start answers
run_in 'echo out; echo err >&2'
is "$code/$(header content-type)/$(header connect-accept-encoding)" 200/application/connect+json/gzip \
	'start: 200, the type of a stream'
like "$(head -1 <<<"$frames")" '0 {"event":{"start":{"pid":' 'start: the first message has the pid'
is "$(written_to stdout)/$(written_to stderr)" out/err 'start: both streams'
is "$(tail -2 <<<"$frames")" "$end_ok" 'start: an end without an exit code is success'
is "$(xxd -p "$work/body" | tr -d '\n' | tail -c 14)" 02000000027b7d 'start: the bytes of the last envelope'
run_in 'exit 17'
is "$(tail -2 <<<"$frames")" \
	'0 {"event":{"end":{"exitCode":17,"exited":true,"status":"exit status 17","error":"exit status 17"}}}
2 {}' 'start: another exit code'
run_in 'kill -9 $$'
is "$(tail -2 <<<"$frames")" \
	'0 {"event":{"end":{"exitCode":-1,"status":"signal: killed","error":"signal: killed"}}}
2 {}' 'start: ended by a signal'
run_in 'kill -TERM $$'
like "$frames" '"exitCode":-1,"status":"signal: terminated"' 'start: by another one'
run_in 'printf "a\377b\000c"'
is "$(written_to stdout | xxd -p)" 61ff620063 'start: any bytes'
run_in 'head -c 3000000 /dev/zero | tr "\0" x'
is "$(written_to stdout | wc -c)" 3000000 'start: three MB of output are whole'
longest=$(grep -o '"stdout":"[^"]*"' <<<"$frames" | awk '{ if (length > most) most = length } END { print most - 11 }')
[ "$longest" -le 43692 ]
is $? 0 "start: in pieces of 32 KiB at most (base64: $longest)"
run_in 'pwd; echo $HOME $USER $LOGNAME; echo $FROM_CREATE $BOTH $MORE' ',"envs":{"MORE":"two","BOTH":"run"},"cwd":"/tmp"'
is "$(written_to stdout)" $'/tmp\n/home/user user user\none run two' 'start: cwd, variables of create and of the call'
run_in 'pwd; echo "[$MORE]"'
is "$(written_to stdout)" $'/home/user\n[]' 'start: nothing of it stays; the home without a cwd'
run_in 'mkdir -p dir'
run_in 'pwd' ',"cwd":"dir"'
is "$(written_to stdout)" /home/user/dir 'start: a relative cwd'
run_in 'pwd' ',"cwd":"~/dir"'
is "$(written_to stdout)" /home/user/dir 'start: a cwd in the home'
run_in 'cat; test -c /dev/stdin && echo null'
is "$(written_to stdout)" null 'start: standard input is /dev/null'
stream Start '{"process":{"cmd":"printf","args":["%s.","a b","","c"]}}'
is "$(written_to stdout)" 'a b..c.' 'start: a command and its arguments, as they are'
{
	printf '{"process":{"cmd":"/bin/bash","args":["-c","'
	for _ in $(seq 3000); do printf 'echo a 123456789 123456789 >/dev/null\\n'; done
	printf 'echo end"]}}'
} >"$work/long"
stream Start "$(cat "$work/long")"
is "$(written_to stdout)" end 'start: a script of 114 KB as an argument'
stream Start "{\"process\":{\"cmd\":\"/bin/true\",\"args\":[\"$(head -c 140000 /dev/zero | tr '\0' x)\"]}}"
is "$frames" '2 {"error":{"code":"invalid_argument","message":"could not start the command: Argument list too long"}}' \
	'start: one argument has 128 KiB at most, as on any Linux'

# Errors before the start: 200 and nothing but the last envelope
run_in true ',"cwd":"/nope"'
is "$code" 200 'start: an error before it has the status 200'
like "$frames" '2 {"error":{"code":"invalid_argument","message":"' 'start: no such cwd'
unlike "$frames" '"start"' 'start: and no start'
stream Start '{"process":{"cmd":"/bin/nothing"}}'
like "$frames" '2 {"error":{"code":"invalid_argument"' 'start: no such command'
for wrong in '{}' '{"process":{}}' '{"process":{"cmd":7}}' '{"process":{"cmd":"a","args":"b"}}' '{"process":{"cmd":"a","args":[1]}}' \
	'{"process":{"cmd":"a","envs":{"A":1}}}' '{"process":{"cmd":"a","envs":{"A=B":"1"}}}' '{"process":' '[]'; do
	stream Start "$wrong"
	like "$code/$frames" '200/2 {"error":{"code":"invalid_argument"' "start: $wrong is an invalid argument"
done
run_in true '' -H "Authorization: Basic $(printf nobody: | base64)"
like "$frames" '2 {"error":{"code":"unauthenticated"' 'start: a user that is not there'
run_in 'echo $USER' '' -H "Authorization: Basic $(printf root: | base64)"
is "$(written_to stdout)" root 'start: one that is'
stream Start '{"process":{"cmd":"/bin/true"},"pty":{"size":{"cols":80,"rows":24}}}'
like "$frames" '2 {"error":{"code":"unimplemented"' 'start: no terminals'

# Envelopes that are none
raw() { envd -X POST "$e2b_envd/process.Process/Start" -H 'Content-Type: application/connect+json' "$@"; }
for wrong in '{"process":{"cmd":"/bin/true"}}' '{}' ''; do
	raw --data-binary "$wrong"
	frames=$(read_frames "$work/body")
	like "$code/$frames" '200/2 {"error":{"code":"' "start: '$wrong' without an envelope is an error"
	unlike "$frames" '"start"' 'start: and runs nothing'
done
envd -X POST "$e2b_envd/process.Process/Start" -H 'Content-Type: application/json' -d '{}'
is "$code/$(header accept-post)" 415/application/connect+json 'start: another content type is 415'
envd "$e2b_envd/process.Process/Start"
is "$code" 405 'start: only by POST'
envelope "$(command_message true)" >"$work/envelope"
raw --data-binary "@$work/envelope" -H 'Connect-Protocol-Version: 2'
frames=$(read_frames "$work/body")
like "$frames" '2 {"error":{"code":"invalid_argument"' 'start: only version 1'
run_in true '' -H 'Connect-Timeout-Ms: 12345678901'
like "$frames" '2 {"error":{"code":"invalid_argument"' 'start: a timeout of eleven digits'

# Timeouts
begin=$(milliseconds)
run_in 'exec sleep 600' '' -H 'Connect-Timeout-Ms: 500'
took=$(($(milliseconds) - begin))
is "$(tail -1 <<<"$frames")" '2 {"error":{"code":"deadline_exceeded","message":"context deadline exceeded"}}' \
	'timeout: the last envelope tells'
unlike "$frames" '"end"' 'timeout: and without an end'
[ $took -ge 500 ] && [ $took -lt 30000 ]
is $? 0 "timeout: half a second ($took ms)"
listing='for p in /proc/[0-9]*; do cat $p/cmdline | tr "\0" " "; done 2>/dev/null'
gone_inside()
{
	run_in "$listing"
	[[ $(written_to stdout) != *"$1"* ]]
}
eventually gone_inside 'sleep 600'
is $? 0 'timeout: the process is killed'
run_in 'echo before; sleep 601 & sleep 600' '' -H 'Connect-Timeout-Ms: 3000'
is "$(written_to stdout)" before 'timeout: what was written comes first'
eventually gone_inside 'sleep 600 &'
run_in "$listing"
like "$(written_to stdout)" 'sleep 601' 'timeout: what it has started is not'
run_in 'sleep 0.2; echo fine' '' -H 'Connect-Timeout-Ms: 60000'
is "$(written_to stdout)/$(tail -2 <<<"$frames")" "fine/$end_ok" 'timeout: not before its time'
control config '{"provider":"e2b","deadlineAsEnd":true}'
run_in 'exec sleep 600' '' -H 'Connect-Timeout-Ms: 500'
is "$(tail -2 <<<"$frames")" \
	'0 {"event":{"end":{"exitCode":-1,"status":"signal: killed","error":"signal: killed"}}}
2 {}' 'timeout: it may also show as a kill'
control config '{"provider":"e2b","deadlineAsEnd":false}'

# A stream lasts as long as somebody holds the output open
run_in '(until [ -e /tmp/go ]; do sleep 0.05; done; echo late) & echo early' '' -H 'Connect-Timeout-Ms: 3000'
is "$(written_to stdout)" early 'background: what holds the output open'
like "$frames" deadline_exceeded 'background: keeps the stream open until the timeout'
run_in '(until [ -e /tmp/go ]; do sleep 0.05; done; echo late >/tmp/late) >/dev/null 2>&1 & echo early'
is "$(written_to stdout)/$(tail -2 <<<"$frames")" "early/$end_ok" 'background: what does not does not'
run_in 'touch /tmp/go; until [ -e /tmp/late ]; do sleep 0.05; done; cat /tmp/late'
is "$(written_to stdout)" late 'background: and it goes on'

# A client that goes away, a list, a signal
tag=job hold_stream Start "$(tag=job command_message 'echo one; until [ -e /tmp/b ]; do sleep 0.05; done; echo two; until [ -e /tmp/c ]; do sleep 0.05; done; exit 5' ',"envs":{"K":"v"}')"
eventually held_shows '"data"'
pid_inside=$(pid_of)
is "$(written_to stdout)" one 'stream: what is written comes at once'
still_held
is $? 0 'stream: and the answer goes on'
let_go
rpc process.Process/List '{}'
is "$code/$(header content-type)" 200/application/json 'list: 200'
like "$body" "\"envs\":{\"K\":\"v\"}},\"pid\":$pid_inside,\"tag\":\"job\"}" 'list: the client has gone, the process has not'
like "$body" '{"config":{"cmd":"/bin/bash","args":["-l","-c","echo one;' 'list: its command'
hold_stream Connect "{\"process\":{\"pid\":$pid_inside}}"
eventually held_shows '"start"'
run_in 'touch /tmp/b'
eventually held_shows '"data"'
is "$(pid_of)/$(written_to stdout)" "$pid_inside/two" 'connect: by pid, what comes from then on'
let_go
hold_stream Connect '{"process":{"tag":"job"}}'
eventually held_shows '"start"'
is "$(pid_of)" "$pid_inside" 'connect: by tag'
run_in 'touch /tmp/c'
wait "$held"
held_frames
like "$frames" '"end":{"exitCode":5,"exited":true' 'connect: and the end'
stream Connect "{\"process\":{\"pid\":$pid_inside}}"
like "$frames" "0 {\"event\":{\"start\":{\"pid\":$pid_inside}}}
0 {\"event\":{\"end\":{\"exitCode\":5,\"exited\":true," 'connect: after the end, the end again'
rpc process.Process/List '{}'
unlike "$body" '"tag":"job"' 'list: what has ended is not listed'
control config '{"provider":"e2b","exitRetentionMs":100}'
run_in 'true'
forgotten=$(pid_of)
connect_fails()
{
	stream Connect "{\"process\":{\"pid\":$forgotten}}"
	[[ $frames == *not_found* ]]
}
eventually connect_fails
is "$code/$frames" "200/2 {\"error\":{\"code\":\"not_found\",\"message\":\"process with pid $forgotten not found\"}}" \
	'connect: not for ever'
control config '{"provider":"e2b","exitRetentionMs":30000}'
stream Connect '{"process":{"tag":"nobody"}}'
like "$frames" '2 {"error":{"code":"not_found"' 'connect: to nothing'

hold_stream Start "$(command_message 'exec sleep 602')"
eventually held_shows '"start"'
pid_inside=$(pid_of)
hold_stream Connect "{\"process\":{\"pid\":$pid_inside}}" -H 'Connect-Timeout-Ms: 300'
wait "$held"
held_frames
like "$frames" deadline_exceeded 'connect: a timeout ends it'
rpc process.Process/SendSignal "{\"process\":{\"pid\":$pid_inside},\"signal\":\"SIGNAL_SIGINT\"}"
is "$code" 501 'signal: only two of them'
rpc process.Process/SendSignal "{\"process\":{\"pid\":$pid_inside},\"signal\":\"SIGNAL_SIGTERM\"}"
is "$code/$body" '200/{}' 'signal: and the process was still there'
stream Connect "{\"process\":{\"pid\":$pid_inside}}"
like "$frames" '"status":"signal: terminated"' 'signal: has reached it'
rpc process.Process/SendSignal "{\"process\":{\"pid\":$pid_inside},\"signal\":\"SIGNAL_SIGKILL\"}"
is "$code" 404 'signal: 404 if it has ended'
is "$body" "{\"code\":\"not_found\",\"message\":\"process with pid $pid_inside not found\"}" 'signal: in the format of the protocol'

# Input
hold_stream Start "$(stdin=true command_message 'read line; echo got $line; cat; echo end')"
eventually held_shows '"start"'
pid_inside=$(pid_of)
rpc process.Process/SendInput "{\"process\":{\"pid\":$pid_inside},\"input\":{\"stdin\":\"$(printf 'a\nb' | base64)\"}}"
is "$code/$body" '200/{}' 'input: is taken'
eventually held_shows '"data"'
still_held
is $? 0 'input: open, the command waits for more'
rpc process.Process/CloseStdin "{\"process\":{\"pid\":$pid_inside}}"
is "$code/$body" '200/{}' 'input: is closed'
wait "$held"
held_frames
is "$(written_to stdout)" $'got a\nbend' 'input: has come'
rpc process.Process/SendInput "{\"process\":{\"pid\":$pid_inside},\"input\":{\"stdin\":\"YQ==\"}}"
is "$code" 404 'input: 404 if it has ended'
hold_stream Start "$(command_message 'sleep 603')"
eventually held_shows '"start"'
rpc process.Process/SendInput "{\"process\":{\"pid\":$(pid_of)},\"input\":{\"stdin\":\"YQ==\"}}"
is "$code" 500 'input: none without one'
rpc process.Process/SendInput "{\"process\":{\"pid\":$(pid_of)},\"input\":{\"stdin\":\"?\"}}"
is "$code" 400 'input: must be base64'
let_go
rpc process.Process/Nonsense '{}'
is "$code" 501 'an unknown call'
rpc process.Process/List 'no json'
is "$code" 400 'a call that is no JSON'
envd -X POST "$e2b_envd/process.Process/List" -H 'Content-Type: text/plain' -d '{}'
is "$code" 415 'a call of another type'

# Keepalive
hold_stream Start "$(command_message 'until [ -e /tmp/d ]; do sleep 0.05; done; echo done')" -H 'Keepalive-Ping-Interval: 1'
eventually held_shows '0 {"event":{"keepalive":{}}}'
is $? 0 'keepalive: comes when nothing else does'
run_in 'touch /tmp/d'
wait "$held"
held_frames
is "$(written_to stdout)" 'done' 'keepalive: and is in nobody'"'"'s way'
run_in 'echo quick' '' -H 'Keepalive-Ping-Interval: 50'
unlike "$frames" keepalive 'keepalive: not before its time'

# Pause and connect
run_in '(while :; do echo x >>/tmp/ticks; sleep 0.05; done) >/dev/null 2>&1 &'
run_in 'until [ -s /tmp/ticks ]; do sleep 0.05; done; mkfifo /tmp/fifo'
hold_stream Start "$(command_message 'read line </tmp/fifo; echo $line; exit 3')"
eventually held_shows '"start"'
pid_inside=$(pid_of)
e2b -X POST "$e2b_api/sandboxes/$id/pause" -d '{}'
wait "$held"
is $? 18 'pause: a stream is cut'
stopped_processes() { for one in $(processes_of "$pid"); do grep -s '^State:.*T' "/proc/$one/status"; done | wc -l; }
all_stopped() { [ "$(stopped_processes)" -ge 2 ]; }
eventually all_stopped
is $? 0 'pause: processes are stopped where they are'
envd "$e2b_envd/health"
is "$code" 502 'pause: health is 502'
run_in true
is "$code" 502 'pause: nothing runs'
like "$body" "{\"sandboxId\":\"$id\"" 'pause: says which sandbox'
e2b -X POST "$e2b_api/v2/sandboxes/$id/connect" -d '{}'
like "$body" "\"envdAccessToken\":\"$token\"" 'connect: the token is the same'
run_in 'n=$(wc -l </tmp/ticks); until [ $(wc -l </tmp/ticks) -gt $n ]; do sleep 0.05; done; echo more'
like "$(written_to stdout)" more 'connect: processes go on'
is "$(stopped_processes)" 0 'connect: all of them'
hold_stream Connect "{\"process\":{\"pid\":$pid_inside}}"
eventually held_shows '"start"'
run_in 'echo back >/tmp/fifo'
wait "$held"
held_frames
is "$(written_to stdout)" back 'connect: a command from before can be watched'
run_in 'echo kept >~/kept'
e2b -X POST "$e2b_api/sandboxes/$id/pause" -d '{"memory":false}'
e2b -X POST "$e2b_api/v2/sandboxes/$id/connect" -d '{}'
run_in 'cat ~/kept; rm /tmp/ticks; sleep 0.3; cat /tmp/ticks'
is "$(written_to stdout)" kept 'pause without memory: files stay, processes do not'
rpc process.Process/List '{}'
is "$body" '{}' 'pause without memory: an empty list is left out'

# Kill
hold_stream Start "$(command_message 'sleep 604')"
eventually held_shows '"start"'
e2b -X DELETE "$e2b_api/sandboxes/$id"
wait "$held"
is $? 18 'kill: a stream is cut'
run_in true
is "$code" 502 'kill: nothing runs'
envd "$e2b_envd/health"
is "$code" 502 'kill: health is 502'

# An interval of 0 is more than the daemon can take
e2b_create '{"templateID":"base"}'
run_in 'echo fine' '' -H 'Keepalive-Ping-Interval: 0'
is "$code" 502 'keepalive 0: no answer'
run_in 'echo fine'
is "$code" 502 'keepalive 0: nor to anybody else'
like "$body" '"port":49983' 'keepalive 0: the daemon is down, the sandbox is not'
e2b "$e2b_api/sandboxes/$id"
like "$body" '"state":"running"' 'keepalive 0: which the control plane does not know'
e2b -X DELETE "$e2b_api/sandboxes/$id"
