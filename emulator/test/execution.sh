# One-shot commands.

create '{"name":"exec","env":{"FROM_CREATE":"one"}}'
execute '{"command":"echo out; echo err >&2; exit 3"}'
is "$body" '{"exitCode":3,"result":"out\nerr\n"}' 'both streams in one result, and the exit code'
execute '{"command":"uname -s; echo $((6 * 7))"}'
is "$body" '{"exitCode":0,"result":"Linux\n42\n"}' 'a command is really run'
execute '{"command":"pwd; echo $FROM_CREATE $MORE","cwd":"/tmp","envs":{"MORE":"two"}}'
is "$body" '{"exitCode":0,"result":"/tmp\none two\n"}' 'cwd, env of the sandbox, env of the call'
execute '{"command":"pwd; echo $HOME; echo \"[$MORE]\""}'
is "$body" '{"exitCode":0,"result":"/home/daytona\n/home/daytona\n[]\n"}' 'nothing of it stays'
execute '{"command":"cat\necho AFTER"}'
is "$body" '{"exitCode":0,"result":"echo AFTER\n"}' 'the script is on standard input, as in reality'
execute '{"command":"true","envs":{"A-B":"x"}}'
is "$code" 400 'a bad name of a variable'
execute '{"command":"true","cwd":"/nowhere"}'
like "$body" '{"exitCode":-1' 'what cannot be started has exit code -1'
execute '{"command":"kill -9 $$"}'
like "$body" '{"exitCode":-1' 'what a signal ended has exit code -1'
execute '{"command":"printf \"a\\377b\\000c\""}'
is "$body" '{"exitCode":0,"result":"a'$'\xef\xbf\xbd''b\u0000c"}' 'bytes that are no UTF-8'

begin=$(milliseconds)
execute '{"command":"sleep 600 & sleep 600","timeout":1}'
took=$(($(milliseconds) - begin))
is "$code" 408 'timeout'
like "$body" '"code":"PROCESS_EXECUTION_TIMEOUT"' 'the code of a timeout'
[ $took -ge 1000 ] && [ $took -lt 30000 ]
is $? 0 "a timeout of one second takes a second, not ten minutes ($took ms)"
eventually hides 'sleep 600' -X POST "$box/process/execute" \
	-d '{"command":"for p in /proc/[0-9]*; do cat $p/cmdline | tr \"\\0\" \" \"; done"}'
is "$code" 200 'the processes can be listed'
unlike "$body" 'sleep 600' 'a timeout kills the whole group'
execute '{"command":"sleep 0.2; echo fine","timeout":60}'
is "$body" '{"exitCode":0,"result":"fine\n"}' 'no timeout before its time'

execute '{"command":"(sleep 600; echo never) >/tmp/bg 2>&1 & echo $!"}'
like "$body" '"exitCode":0' 'a command may leave something in the background'
background=$(sed 's/.*"result":"\([0-9]*\).*/\1/' <<<"$body")
execute "{\"command\":\"kill -0 $background && echo alive\"}"
like "$body" 'alive' 'which outlives it'
execute '{"command":"sleep 600 & echo started"}'
is "$body" '{"exitCode":0,"result":"started\n"}' 'even if it holds the output open'

execute '{"command":"head -c 1048576 /dev/zero | tr \"\\0\" x"}'
is "${#body}" $((1048576 + 26)) 'one MiB of output is whole'
execute '{"command":"head -c 3000000 /dev/zero | tr \"\\0\" x"}'
is "${#body}" $((1048576 + 26)) 'what is more is cut'
{
	printf '{"command":"'
	for _ in $(seq 10000); do printf 'echo a 123456789 123456789 >/dev/null\\n'; done
	printf 'echo end"}'
} >"$work/long"
execute "@$work/long"
is "$body" '{"exitCode":0,"result":"end\n"}' 'a script of 380 KB'

execute '{"command":"echo kept >~/file; echo kept >/tmp/file"}'
call -X POST "$api/exec/stop"
execute '{"command":"true"}'
is "$code" 400 'no command in a stopped sandbox'
like "$body" 'no IP address found. Is the Sandbox started?' 'the text of that'
call -X POST "$api/exec/start"
execute '{"command":"cat ~/file /tmp/file"}'
is "$body" '{"exitCode":0,"result":"kept\nkept\n"}' 'home and /tmp outlive stop and start'
execute "{\"command\":\"kill -0 $background\"}"
unlike "$body" '"exitCode":0' 'processes do not'
key=key-two execute '{"command":"true"}'
is "$code" 401 'the toolbox of another account is 401'
call "$box/user-home-dir"
is "$body" '{"dir":"/home/daytona"}' 'home directory'
call -X DELETE "$api/exec"
execute '{"command":"true"}'
is "$code" 401 'the toolbox of a deleted sandbox is 401'
