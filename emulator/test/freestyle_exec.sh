# Commands of Freestyle's VMs, answers in the background.

freestyle_create
execute_vm 'echo out; echo err >&2; exit 3'
is "$code/$body" "$(gave 3 'out\n' 'err\n')" 'freestyle exec: both streams and the exit code'
execute_vm 'uname -s; pwd; echo $HOME $USER; [ -z "$BASH_VERSION" ] && echo sh'
is "$code/$body" "$(gave 0 'Linux\n/home/ubuntu\n/home/ubuntu ubuntu\nsh\n' '')" 'freestyle exec: really run, at home, by sh'
execute_vm 'cat; echo $A; echo $USER' '"stdin":"aW4K","env":{"A":"b '"'c'"'"},"linuxUser":"root"'
is "$code/$body" "$(gave 0 "in\\nb 'c'\\nroot\\n" '')" 'freestyle exec: input, environment, user'
execute_vm 'cat; echo $A'
is "$code/$body" "$(gave 0 '\n' '')" 'freestyle exec: without them, nothing'
execute_vm 'kill -9 $$'
is "$code/$body" "$(gave 137 '' '')" 'freestyle exec: ended by a signal'
freestyle -X POST "$vm/exec-await" -d '{"command":"printf \"a\\377b\""}'
is "$code/$body" "$(gave 0 'a'$'\xef\xbf\xbd''b' '')" 'freestyle exec: bytes that are no UTF-8'
for wrong in '{}' 'no json' '{"command":7}' '{"command":"a\u0000b"}' '{"command":"true","cwd":"/"}' '{"command":"true","env":{"1A":"x"}}' \
	'{"command":"true","env":{"A":1}}' '{"command":"true","stdin":"?"}' '{"command":"true","timeoutMs":0}' '{"command":"true","timeoutMs":"1"}' \
	'{"command":"true","timeoutMs":86400001}'; do
	freestyle -X POST "$vm/exec-await" -d "$wrong"
	vm_refused 400 BAD_REQUEST "freestyle exec: not $wrong"
done
execute_vm true '"linuxUser":"nobody"'
vm_refused 404 NOT_FOUND 'freestyle exec: nobody of that name'
key=key-two execute_vm true
vm_refused 404 NOT_FOUND 'freestyle exec: of another account'
long_command()
{
	(printf '{"command":"'; head -c "$1" /dev/zero | tr '\0' '#'; printf '"}') >"$work/long"
	freestyle -X POST "$vm/exec-await" -d "@$work/long"
}
long_command 65536
is "$code/$body" "$(gave 0 '' '')" 'freestyle exec: a command of 64 KiB'
long_command 65537
vm_refused 400 BAD_REQUEST 'freestyle exec: and no longer one'
execute_vm 'head -c 1048576 /dev/zero | tr "\\0" x'
is "$(wc -c <"$work/body")" $((1048576 + 40)) 'freestyle exec: 1 MiB of output is whole'

# Timeouts
begin=$(milliseconds)
execute_vm 'echo before; sleep 600; echo after' '"timeoutMs":500'
is "$code/$body/$(($(milliseconds) - begin >= 500))" "$(gave null 'before\n' '')/1" 'freestyle timeout: a null, and what was said'
count_sleeps() { execute_vm 'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline; done 2>/dev/null | grep -o "sleep 61[12]" | sort -u | paste -sd,'; }
execute_vm 'nohup sleep 611 >/dev/null 2>&1 & echo begun'
execute_vm 'sleep 612 & sleep 612' '"timeoutMs":300'
like "$body" '"statusCode":null' 'freestyle timeout: with a child'
eventually freestyle_hides 'sleep 612' count_sleeps
is $? 0 'freestyle timeout: of which nothing is left'
like "$body" 'sleep 611' 'freestyle timeout: others go on'
execute_vm 'sleep 0.1; echo fine' '"timeoutMs":60000'
is "$code/$body" "$(gave 0 'fine\n' '')" 'freestyle timeout: not before its time'
execute_vm true '"timeoutMs":300001'
vm_refused 400 BAD_REQUEST 'freestyle timeout: a long one needs the header'
freestyle -X POST "$vm/exec-await" -H 'x-freestyle-background-after-secs: 5' -d '{"command":"true","timeoutMs":300001}'
is "$code/$body" "$(gave 0 '' '')" 'freestyle timeout: with which it is good'
vm_settings '"oldAgent":true'
freestyle -X POST "$vm/exec-await" -H 'x-freestyle-background-after-secs: 5' -d '{"command":"true","timeoutMs":300001}'
vm_refused 400 AGENT_UNSUPPORTED 'freestyle timeout: unless the agent is old'
execute_vm true '"timeoutMs":300000'
is "$code" 200 'freestyle timeout: which can do less'
vm_settings '"oldAgent":false'

# What a command leaves behind, and who waits for it
execute_vm 'nohup sh -c "until [ -e /tmp/go ]; do sleep 0.05; done; echo done >/tmp/done" >/dev/null 2>&1 & echo begun'
is "$code/$body" "$(gave 0 'begun\n' '')" 'freestyle exec: the background is not waited for'
execute_vm 'touch /tmp/go'
eventually freestyle_shows 'done\n' -X POST "$vm/exec-await" -d '{"command":"cat /tmp/done"}'
is $? 0 'freestyle exec: and goes on'
hold -X POST "$vm/exec-await" -d '{"command":"echo >/tmp/begun; until [ -e /tmp/go2 ]; do sleep 0.05; done; echo done >/tmp/done2"}'
eventually freestyle_shows '"statusCode":0' -X POST "$vm/exec-await" -d '{"command":"cat /tmp/begun"}'
still_held
is $? 0 'freestyle exec: waits for its command'
let_go
execute_vm 'touch /tmp/go2'
eventually freestyle_shows 'done\n' -X POST "$vm/exec-await" -d '{"command":"cat /tmp/done2"}'
is $? 0 'freestyle exec: which goes on without its client'

# Pauses keep the memory, a power off does not
execute_vm 'echo kept >/tmp/kept; echo kept >~/kept; nohup sh -c "until [ -e /tmp/go3 ]; do sleep 0.05; done; echo three >/tmp/done3" >/dev/null 2>&1 &'
freestyle -X POST "$vm/pause" -d '{}'
vm_state paused
is $? 0 'freestyle wake: a look does not wake'
execute_vm 'cat /tmp/kept ~/kept; touch /tmp/go3'
is "$code/$body" "$(gave 0 'kept\nkept\n' '')" 'freestyle wake: a command does'
vm_state running
is $? 0 'freestyle wake: it runs'
eventually freestyle_shows 'three\n' -X POST "$vm/exec-await" -d '{"command":"cat /tmp/done3"}'
is $? 0 'freestyle wake: and so does what ran before'
freestyle -X POST "$vm/pause" -d '{}'
vm_settings '"startDelayMs":300'
begin=$(milliseconds)
freestyle -H 'Range: bytes=1-2' "$vm/fs/read?path=/tmp/kept"
is "$code/$body/$(($(milliseconds) - begin >= 300))" '206/ep/1' 'freestyle wake: a file does, and is waited for'
freestyle -X POST "$vm/pause" -d '{}'
vm_settings '"startDelayMs":600000'
hold -X POST "$vm/exec-await" -d '{"command":"true"}'
eventually vm_state starting
freestyle -X DELETE "$vm"
wait "$held"
is "$(cat "$work/held.code")" 409 'freestyle wake: a delete meanwhile'
vm_settings '"startDelayMs":0'
freestyle_create
execute_vm 'echo kept >/tmp/kept'
execute_vm 'poweroff'
vm_refused 409 CONFLICT 'freestyle stop: power off takes its own answer'
vm_state stopped
is $? 0 'freestyle stop: it is stopped'
execute_vm true
vm_refused 409 CONFLICT 'freestyle stop: a command does not wake it'
freestyle -X POST "$vm/start" -d '{}'
execute_vm 'cat /tmp/kept'
is "$code/$body" "$(gave 0 'kept\n' '')" 'freestyle stop: a start does'
hold -X POST "$vm/exec-await" -d '{"command":"echo >/tmp/begun; sleep 600"}'
eventually freestyle_shows '"statusCode":0' -X POST "$vm/exec-await" -d '{"command":"cat /tmp/begun"}'
freestyle -X DELETE "$vm"
wait "$held"
is "$(cat "$work/held.code")/$(cat "$work/held")" '409/{"code":"CONFLICT","message":"the VM went away"}' 'freestyle exec: ends with its VM'
execute_vm true
vm_refused 404 NOT_FOUND 'freestyle exec: then there is nothing'

# Answers in the background
freestyle_create
after() { freestyle -X POST "$vm/exec-await" -H "x-freestyle-background-after-secs: $1" -d "{\"command\":\"$2\"}"; }
request_id() { vm_header x-freestyle-background-request-id; }
results=$base/freestyle/v5/background-requests
after 0 'until [ -e /tmp/go ]; do sleep 0.05; done; echo x; exit 3'
request=$(request_id)
is "$code/$body" "202/{\"requestId\":\"$request\",\"resultUrl\":\"/v5/background-requests/$request\"}" 'background: at once with 0 seconds'
is "$(grep -cE '^[A-Za-z0-9_-]+$' <<<"$request")" 1 'background: the form of an id'
freestyle "$results/$request"
is "$code/$body/$(request_id)" "202/{\"requestId\":\"$request\"}/$request" 'background: it runs'
key=key-two freestyle "$results/$request"
vm_refused 404 NOT_FOUND 'background: not for another account'
execute_vm 'touch /tmp/go'
eventually freestyle_answers 200 "$results/$request"
is "$code/$body/$(request_id)" "$(gave 3 'x\n' '')/$request" 'background: the stored answer'
freestyle "$results/$request"
is "$code/$body" "$(gave 3 'x\n' '')" 'background: as often as one likes'
freestyle "$results/ri-0"
is "$code/$(request_id)" 404/ 'background: unknown, and without the header'
begin=$(milliseconds)
after 1 'sleep 600'
is "$code/$(($(milliseconds) - begin >= 1000))" 202/1 'background: after as many seconds as the header has'
after 600 'echo x'
is "$code/$body" "$(gave 0 'x\n' '')" 'background: not what is faster'
after nonsense 'sleep 0.1; echo x'
is "$code/$body" "$(gave 0 'x\n' '')" 'background: a header that is no number'
freestyle -X DELETE "$vm"

# By settings, for any call; errors are stored as well
vm_settings '"backgroundAfterMs":0'
stored() { freestyle "$@"; request=$(request_id); eventually polled; }
polled() { freestyle "$results/$request"; [ "$code" != 202 ]; }
stored -X POST "$vms" -d '{"slug":"bg","firewall":{"rules":[]}}'
like "$code/$body" '200/{"id":"vm-' 'background: a create'
vm=$vms/bg
stored -X POST "$vms" -d '{"slug":"bg","firewall":{"rules":[]}}'
like "$code/$(request_id)/$body" "409/$request/{\"code\":\"CONFLICT\"" 'background: a stored error, with the header'
stored "$vms"
like "$code/$body" '"totalCount":1' 'background: a list'
stored -X PUT "$vm/fs/write?path=/tmp/a" -d 'text'
is "$code/$body" 204/ 'background: an upload'
stored "$vm/fs/read?path=/tmp/a"
is "$code/$body" 200/text 'background: a download'
vm_settings '"hideRequestId":true'
freestyle "$vms/bg-none"
request=$(request_id)
freestyle "$results/$request"
is "$code/$(request_id)" 404/ 'background: a stored error, without the header'
vm_settings '"hideRequestId":false,"storedStatus":503,"storedCode":"NO_ROOM"'
stored -X POST "$vm/pause" -d '{}'
is "$code/$(request_id)/$body" "503/$request/{\"code\":\"NO_ROOM\",\"message\":\"set by a setting\"}" 'background: an error of our choice'
vm_settings '"storedStatus":0,"storedCode":null'
stored "$vm"
like "$body" '"state":"paused"' 'background: of a call that was carried out'
control faults '{"provider":"freestyle","op":"status","action":"status","status":503}'
freestyle "$vm"
request=$(request_id)
freestyle "$results/$request"
is "$code/$(request_id)" 503/ 'background: an error of the polling alone'
freestyle "$results/$request"
is "$code" 200 'background: after which there is the answer'
vm_settings '"storedLimitBytes":20'
stored "$vm"
vm_refused 500 BACKGROUND_RESULT_UNSTORABLE 'background: too large to store'
vm_settings '"storedLimitBytes":1000000,"resultRetentionMs":0'
freestyle "$vm"
request=$(request_id)
eventually freestyle_answers 404 "$results/$request"
is $? 0 'background: not kept for ever'
vm_settings '"resultRetentionMs":600000,"backgroundRunMs":600000'
freestyle "$vm"
request=$(request_id)
freestyle "$results/$request"
is "$code" 202 'background: runs for as long as it is told'
vm_settings '"backgroundRunMs":0,"resultOrigin":"http://127.0.0.1:9"'
freestyle "$vm"
like "$body" '"resultUrl":"http://127.0.0.1:9/v5/background-requests/ri-' 'background: a result of elsewhere'
vm_settings '"resultOrigin":null'
for locators in requestId:0,1,0 resultUrl:0,0,1 header:1,0,0 header,requestId:1,1,0 :0,0,0; do
	vm_settings "\"locators\":\"${locators%%:*}\""
	freestyle "$vm"
	is "$([ -n "$(request_id)" ]; echo $((!$?))),$(grep -c '"requestId"' <<<"$body"),$(grep -c resultUrl <<<"$body")" "${locators##*:}" "background: locators ${locators%%:*}"
done
vm_settings '"locators":null,"backgroundOperations":"run,delete"'
freestyle "$vm"
is "$code" 200 'background: of some operations only'
stored -X DELETE "$vm"
is "$code/$body/$(vm_header content-type)" 204// 'background: a delete, and it has no body'
vm_settings '"backgroundAfterMs":-1,"backgroundOperations":null'

# A client that hangs up does not take back what it asked for
vm_settings '"delayMs":300'
limit=0.1 freestyle_create '"slug":"hung-up"' -H 'x-freestyle-background-after-secs: 5'
is "$curl" 28 'background: a client that hangs up'
eventually freestyle_shows '"state":"running"' "$vms/hung-up"
is $? 0 'background: has its VM all the same'
vm_settings '"delayMs":0'
freestyle -X DELETE "$vms/hung-up"
