# Commands of Microsandbox sandboxes, and the socket to their agent.

msb_create agent ',"env":[{"key":"FROM_CREATE","value":"one"}],"runtime":{"workdir":"/app"}'
is "$code/$(msb_field status)" 200/running 'microsandbox agent: a sandbox'
heard=$(perl "$here/microsandbox_agent.pl" --messages "$box/agent" key-one)
like "$heard" '0 core.ready {"agent_version":"0.6.18","boot_time_ns":' 'agent: says that it is ready'
is "$(grep -c ^frame <<<"$heard")" 1 'agent: in one message with the range of numbers'
key=key-two agent
like "$body" "404 $(msb_error sandbox_not_found)" 'agent: not of another account'
key=bad-key agent
like "$body" "401 $(msb_error invalid_api_key)" 'agent: nor with a wrong key'
msb "$box/agent"
is "$code" 400 'agent: nor without a WebSocket'

# A command
msb_run 'echo out; echo err >&2; exit 3'
is "$output/$errors/$outcome" 'out\n/err\n/'"$(msb_exited 3)" 'exec: both streams and the exit code'
like "$body" '0 core.exec.started {"pid":' 'exec: and that it was started'
msb_run 'pwd; echo $HOME $FROM_CREATE; id -un; [ -z "$BASH_VERSION" ] && echo sh'
is "$output" '/app\n/app one\nroot\nsh\n' 'exec: in the working directory, with the environment, as root'
msb_settings '"forgetEnvironment":true'
msb_run 'echo $HOME $FROM_CREATE'
is "$output" '/app\n' 'exec: on request without that of the create'
msb_settings '"forgetEnvironment":false'
agent begin core.exec.request '{"cmd":"env","env":["A=x y","FROM_CREATE=two","nothing","=x"],"cwd":"/tmp","user":null,"tty":false,"rows":24,"cols":80,"rlimits":[]}' last
like "$body" 'A=x y\n' 'exec: an environment of its own'
like "$body" 'FROM_CREATE=two\n' 'exec: which is the stronger one'
unlike "$body" 'nothing' 'exec: and what is no variable is passed over'
agent begin core.exec.request '{"cmd":"pwd","cwd":"/tmp"}' last
like "$body" '{"data":"/tmp\n"}' 'exec: a directory of its own'
agent begin core.exec.request '{"cmd":"printf","args":["%s|","a b","","\"$x"]}' last
like "$body" '{"data":"a b||\"$x|"}' 'exec: arguments as they are'
msb_run 'printf "a\377\000b"'
is "$output" 'a'$'\xff''\u0000b' 'exec: bytes that are no text'
msb_run 'kill -9 $$'
is "$outcome" "$(msb_exited -1)" 'exec: ended by a signal'
msb_run 'head -c 10000 /dev/zero | tr "\0" x'
is "$output" "$(head -c 10000 /dev/zero | tr '\0' x)" 'exec: more output than a piece holds'
is "$(grep stdout <<<"$body" | awk 'length($0) > 4096 + 40' | wc -l)" 0 'exec: which are of 4096 bytes at most'

# It never ran
failed() { agent begin core.exec.request "$1" last; like "$body" "1 core.exec.failed {\"errno\":$2,\"errno_name\":$3,\"kind\":\"$4\"" "$5"; }
failed '{"cmd":"/no/such"}' 2 '"ENOENT"' not_found 'exec: a program that is not there'
unlike "$body" core.exec.started 'exec: which was not started'
failed '{"cmd":"/etc/passwd"}' 13 '"EACCES"' permission_denied 'exec: one that is none'
failed '{"cmd":"true","cwd":"/etc/passwd"}' 20 '"ENOTDIR"' bad_cwd 'exec: a directory that is none'
failed '{"cmd":"true","user":"no-such-user"}' null null user_setup_failed 'exec: an unknown user'
failed '{"cmd":"true","tty":true}' null null pty_setup_failed 'exec: no terminals'
failed '{"cmd":"true","rlimits":[{"resource":"nofile","soft":1,"hard":1}]}' null null resource_limit 'exec: nor limits'
agent begin core.exec.request '{"cmd":"true","user":"root","rlimits":[]}' last
is "$(tail -1 <<<"$body")" "$(msb_exited 0)" 'exec: but a user that is known, and no limits'

# Input and signals
agent begin core.exec.request '{"cmd":"cat"}' more core.exec.stdin '{"data":{"bytes":"one "}}' wait 'one ' \
	more core.exec.stdin '{"data":{"bytes":"two"}}' more core.exec.stdin '{"data":{"bytes":""}}' last
is "$(msb_said stdout)/$(tail -1 <<<"$body")" "one two/$(msb_exited 0)" 'exec: standard input, until it ends'
agent begin core.exec.request '{"cmd":"cat"}' wait started more core.exec.signal '{"signal":15}' last
is "$(tail -1 <<<"$body")" "$(msb_exited -1)" 'exec: which stays open until then'
agent begin core.exec.request '{"cmd":"sh","args":["-c","trap : USR1; sh -c \"echo ready; exec sleep 600\" & wait; wait; echo over; exit 7"]}' \
	wait ready more core.exec.signal '{"signal":10}' last
is "$(msb_said stdout)/$(tail -1 <<<"$body")" 'ready\nover\n/'"$(msb_exited 7)" 'exec: a signal goes to the whole group'
agent begin core.exec.request '{"cmd":"true"}' last more core.exec.signal '{"signal":9}' \
	begin core.exec.request '{"cmd":"echo","args":["next"]}' last
like "$body" '{"data":"next\n"}' 'exec: what comes too late for one does no harm'

# It has ended when nobody holds its output any more
msb_run 'sleep 600 >/dev/null 2>&1 </dev/null & echo $!'
background=${output%\\n}
msb_run "kill -0 $background && echo alive"
is "$output" 'alive\n' 'exec: what is left in the background lives on'
msb_run '(until [ -e /tmp/go ]; do sleep 0.05; done; echo late) & echo early; (sleep 0.2; touch /tmp/go) >/dev/null 2>&1 &'
is "$output/$outcome" 'early\nlate\n/'"$(msb_exited 0)" 'exec: what holds its output is waited for'

# The socket and what runs on it
agent begin core.exec.request '{"cmd":"sh","args":["-c","(trap \"\" TERM; sleep 600) & echo $$ >/tmp/lost; echo up; wait"]}' wait stdout
msb_run 'until ! kill -s 0 -- -$(cat /tmp/lost) 2>/dev/null; do sleep 0.05; done; echo gone'
is "$output" 'gone\n' 'agent: a socket that is lost kills what runs, with its group'
agent begin core.exec.request '{"cmd":"sh","args":["-c","until [ -e /tmp/second ]; do sleep 0.05; done; echo first"]}' \
	begin core.exec.request '{"cmd":"sh","args":["-c","touch /tmp/second; echo second"]}' wait exited wait exited
like "$body" '"first\n"' 'agent: two at once: the first'
like "$body" '"second\n"' 'agent: and the second'

# What is no frame, and what is none at its place
error() { printf '1 core.error {"kind":"%s"' "$1"; }
agent begin core.nonsense '{}' last begin core.exec.request '{"cmd":"true"}' last
like "$body" "$(error unsupported_message_type)" 'agent: an unknown type'
like "$body" "$(msb_exited 0)" 'agent: after which all goes on'
agent begin core.exec.request '{"args":[]}' last
like "$body" "$(error invalid_payload)" 'agent: a command that is none'
agent as 1 0 core.exec.request '{"cmd":"true"}' last
like "$body" "$(error invalid_flags)" 'agent: one that does not say that it begins'
agent as 1 2 core.exec.request '{"cmd":"cat"}' wait started as 1 2 core.exec.request '{"cmd":"true"}' last
like "$body" "$(error invalid_session)" 'agent: a number that is in use'
agent as end 2 core.exec.request '{"cmd":"touch","args":["/tmp/outside"]}' end
is "$body" 'goodbye 1001' 'agent: a number outside of the range ends the connection'
agent as 0 2 core.exec.request '{"cmd":"touch","args":["/tmp/outside"]}' end
is "$body" 'goodbye 1001' 'agent: as does 0'
agent raw 00400001 end
is "$body" 'goodbye 1001' 'agent: and a frame that is too long'
agent raw 00000004 end
is "$body" 'goodbye 1001' 'agent: and one that is too short'
agent raw 000000060000000102ff last
like "$body" "$(error malformed_message)" 'agent: but not one without CBOR'
msb_run 'ls /tmp/outside'
like "$outcome" 'exited {"code":2}' 'agent: nothing of that was run'
frames=$(perl -e 'my $b = "\xa3\x61v\x07\x61t\x71core.exec.request\x61p\x4a\xa1\x63cmd\x64true"; print unpack "H*", pack("NNC", 5 + length $b, 1, 2) . $b')
agent raw "${frames:0:6}" raw "${frames:6}" last
is "$(tail -1 <<<"$body")" "$(msb_exited 0)" 'agent: a frame in two messages'
agent raw "$frames${frames/0000000102/0000000202}" last last
is "$(grep -c exited <<<"$body")" 2 'agent: two frames in a message'

# Many clients: each has a range of its own, and there are so many
perl -e 'use IO::Socket::INET; my ($host, $path) = $ARGV[0] =~ m{^http://([^/]*)(/.*)$}; my @all;
	for (1 .. 130) {
		my $s = IO::Socket::INET->new(PeerAddr => $host);
		print $s "GET $path HTTP/1.1\r\nHost: $host\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer key-one\r\n\r\n";
		my $got = ""; 1 while $got !~ /\r\n\r\n.{4}/s && sysread $s, $got, 4096, length $got;
		my ($rest) = $got =~ /\r\n\r\n(.*)$/s; push @all, $s;
		print ord($rest) == 0x88 ? "refused" : unpack("x" . (ord(substr $rest, 1) == 126 ? 4 : 2) . "N", $rest), "\n";
	}' "$box/agent" >"$work/ranges"
is "$(sort -u "$work/ranges" | grep -vc refused)/$(grep -c refused "$work/ranges")" 128/2 'agent: 128 clients have ranges of their own, more are dropped'
agent begin core.exec.request '{"cmd":"true"}' last
is "$(tail -1 <<<"$body")" "$(msb_exited 0)" 'agent: and when they have left there is room again'

# A sandbox that breaks down, which its first process does
perl "$here/microsandbox_agent.pl" "$box/agent" key-one begin core.exec.request '{"cmd":"sleep","args":["912"]}' \
	wait started touch "$work/sleeps" end >"$work/ended" &
other=$!
eventually [ -e "$work/sleeps" ]
for process in $(processes_of "$pid"); do
	[ "$(tr '\0' ' ' <"/proc/$process/cmdline")" = 'sleep 912 ' ] || continue
	kill -KILL "$(sed -n 's/^PPid:\t//p' "/proc/$process/status")"
done 2>/dev/null
wait "$other"
is "$(tail -1 "$work/ended")" 'goodbye 1001' 'agent: a sandbox that breaks down ends the socket'
msb_run 'echo again'
is "$output" 'again\n' 'agent: and comes back with the next command'

# What commands write, as events
hold "$box/logs?sources=stderr,output"
eventually grep -q '^HTTP' "$work/held.headers"
msb_run 'echo to-output; echo to-errors >&2; touch /tmp/logged'
eventually grep -q to-errors "$work/held"
is $? 0 'logs: what is written is told'
like "$(tr -d '\r' <"$work/held.headers")" 'Content-Type: text/event-stream' 'logs: as events'
like "$(cat "$work/held")" $'event: log\ndata: {"source":"stderr","ts":"' 'logs: that say where it came from'
unlike "$(cat "$work/held")" to-output 'logs: but not what was not asked for'
key=key-two msb "$box/logs"
msb_refused 404 sandbox_not_found 'logs: not to another account'

# The end of the sandbox
agent begin core.exec.request '{"cmd":"sh","args":["-c","echo up >/tmp/up; echo up; sleep 600"]}' wait up touch "$work/up" end >/dev/null &
socket=$!
perl "$here/microsandbox_agent.pl" "$box/agent" key-one begin core.exec.request '{"cmd":"sleep","args":["600"]}' wait started touch "$work/held_socket" end >"$work/ended" &
other=$!
eventually [ -e "$work/up" ]
eventually [ -e "$work/held_socket" ]
msb -X POST "$box/stop" -d '{}'
wait "$other"
is "$(tail -1 "$work/ended")" 'goodbye 1001' 'agent: a stop ends the socket, without a word of what ran'
wait "$socket"
wait "$held"
is "$(cat "$work/held.code")/$(tail -3 "$work/held")" $'200/event: end\ndata: {}' 'logs: a stop is their end'
msb "$box/logs"
msb_refused 409 invalid_state_transition 'logs: a stopped sandbox has none'
agent
like "$body" "409 $(msb_error invalid_state_transition)" 'agent: a stopped sandbox has none'
msb -X POST "$box/start" -d '{}'
msb_run 'cat /tmp/up; kill -0 '"$background"' 2>/dev/null || echo none'
is "$output" 'up\nnone\n' 'start: files are there again, processes are not'
perl "$here/microsandbox_agent.pl" "$box/agent" key-one touch "$work/held_again" end >"$work/ended" &
other=$!
eventually [ -e "$work/held_again" ]
msb -X DELETE "$box"
wait "$other"
is "$(tail -1 "$work/ended")" 'goodbye 1001' 'agent: a delete ends the socket'
agent
like "$body" "404 $(msb_error sandbox_not_found)" 'agent: and then there is none'
