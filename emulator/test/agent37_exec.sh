# Commands of Agent37 instances, and instances that fall asleep.

agent37_create '{"env":{"FROM_CREATE":"one"}}'
execute37 'echo out; echo err >&2; exit 3'
is "$code/$body" "200/$(ran 3 'out\n' 'err\n')" 'exec: both streams and the exit code, and still 200'
execute37 'uname -s; pwd; echo $HOME $USER $FROM_CREATE; id -un; [ -z "$BASH_VERSION" ] && echo sh'
is "$body" "$(ran 0 'Linux\n/\n/home/node node one\nnode\nsh\n' '')" 'exec: really run, at /, as node, by sh'
execute37 'cat; echo after'
is "$body" "$(ran 0 'after\n' '')" 'exec: nothing on standard input'
execute37 ''
is "$body" "$(ran 0 '' '')" 'exec: an empty command'
execute37 'kill -9 $$'
is "$body" "$(ran 137 '' '')" 'exec: ended by a signal'
execute37 'no-such-command-here'
like "$body" '{"exit_code":127' 'exec: a command that is not there'
agent37 -X POST "$one/exec" -d '{"command":"cd /nowhere || { printf \"%s\\n\" mark >&2; exit 191; }\nexport X='\''it'\''\\'\'''\''s'\''\necho $X\n"}'
like "$body" '{"exit_code":191' 'exec: several lines'
agent37 -X POST "$one/exec" -d '{"command":"printf \"a\\377b\\000c\""}'
is "$body" "$(ran 0 'a'$'\xef\xbf\xbd''b\u0000c' '')" 'exec: bytes that are no UTF-8'
for wrong in '{}' '[]' 'no json' '{"command":7}' '{"command":"true","timeout":5}' '{"command":"a\u0000b"}' '{"command":null}'; do
	agent37 -X POST "$one/exec" -d "$wrong"
	refused_with 400 invalid_request "exec: 400 for $wrong"
done
key=key-two agent37 -X POST "$one/exec" -d '{"command":"true"}'
refused_with 404 not_found 'exec: of another account'
agent37 -X POST "$one/exec" -H 'Transfer-Encoding: chunked' -d '{"command":"echo chunks"}'
is "$body" "$(ran 0 'chunks\n' '')" 'exec: a body in chunks'

# Output: 512 KB of each stream, without the middle
output() { sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/" <<<"$body"; }
execute37 'head -c 524288 /dev/zero | tr "\\0" x; echo err >&2'
is "$(output stdout | tr -d '\n' | wc -c)" 524288 'exec: 512 KB of output are whole'
like "$body" '"stderr":"err\n","truncated":false}' 'exec: and not truncated'
execute37 'echo begin; head -c 524288 /dev/zero | tr "\\0" x; echo end; echo err >&2'
like "$body" '"stderr":"err\n","truncated":true}' 'exec: more is truncated'
shown=$(output stdout)
is "$(printf '%b' "$shown" | wc -c)" 524288 'exec: to 512 KB'
like "${shown:0:20}" 'begin\nxxx' 'exec: the begin is there'
like "$(tail -c 20 <<<"$shown")" 'xxxend\n' 'exec: the end is there'
like "$shown" '[output truncated]' 'exec: and a mark between them'
execute37 'for i in $(seq 99); do head -c 65536 /dev/zero | tr "\\0" x; done >&2; echo end >&2; echo out'
like "$body" '"stdout":"out\n"' 'exec: the streams are cut apart'
is "$(printf '%b' "$(output stderr)" | wc -c)" 524288 'exec: six MB, to 512 KB'
like "$(output stderr | tail -c 20)" 'xxxend\n' 'exec: and the end of that'

# An argument of a program is never larger than this
long37()
{
	printf '{"command":"' >"$work/long"
	head -c "$1" /dev/zero | tr '\0' '#' >>"$work/long"
	printf '"}' >>"$work/long"
	agent37 -X POST "$one/exec" -d "@$work/long"
}
long37 131071
is "$body" "$(ran 0 '' '')" 'exec: a command of nearly 128 KiB'
long37 131072
like "$code/$body" '200/{"exit_code":126,"stdout":"","stderr":"' 'exec: one of 128 KiB cannot be run'

# What a command leaves behind, and who waits for it
execute37 'sleep 600 & echo $!'
background=$(output stdout | sed 's/\\n//')
execute37 "kill -0 $background && echo alive"
is "$body" "$(ran 0 'alive\n' '')" 'exec: what is left in the background lives on'
hold -X POST "$one/exec" -d '{"command":"echo >/tmp/begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo done >/tmp/done"}'
eventually agent37_shows '{"exit_code":0' -X POST "$one/exec" -d '{"command":"cat /tmp/begun"}'
still_held
is $? 0 'exec: waits for its command'
let_go
execute37 '[ -e /tmp/done ] && echo early; touch /tmp/go'
unlike "$body" 'early' 'exec: whose client goes away'
eventually agent37_shows 'done\n' -X POST "$one/exec" -d '{"command":"cat /tmp/done"}'
is $? 0 'exec: but it goes on to its end'
settings37 '"execLimitMs":300'
begin=$(milliseconds)
execute37 'until [ -e /tmp/go2 ]; do sleep 0.05; done; echo done >/tmp/done2'
refused_with 502 provisioning_failed 'exec: a command at the limit'
is $(($(milliseconds) - begin >= 300)) 1 'exec: not before it'
settings37 '"execLimitMs":280000'
execute37 'touch /tmp/go2'
eventually agent37_shows 'done\n' -X POST "$one/exec" -d '{"command":"cat /tmp/done2"}'
is $? 0 'exec: the limit ends the answer, not the command'

# Stop and start
execute37 'echo kept >~/kept; echo kept >/tmp/kept'
hold -X POST "$one/exec" -d '{"command":"echo >/tmp/begun2; sleep 600"}'
eventually agent37_shows '{"exit_code":0' -X POST "$one/exec" -d '{"command":"cat /tmp/begun2"}'
agent37 -X POST "$one/stop"
wait "$held"
like "$(cat "$work/held.code")/$(cat "$work/held")" "502/$(error37 provisioning_failed)" 'exec: a stop ends what runs'
execute37 'true'
refused_with 400 invalid_request 'exec: not in a stopped one'
agent37 -X POST "$one/start"
execute37 'cat ~/kept /tmp/kept; echo $FROM_CREATE'
is "$body" "$(ran 0 'kept\nkept\none\n' '')" 'start: files and variables are there again'
execute37 "kill -0 $background"
unlike "$body" '"exit_code":0' 'start: processes are not'
agent37 -X POST "$one/restart"
execute37 'cat ~/kept'
is "$body" "$(ran 0 'kept\n' '')" 'restart: files are there'
agent37 -X PATCH "$one" -d '{"name":"x"}'
hold -X POST "$one/exec" -d '{"command":"echo >/tmp/begun3; sleep 600"}'
eventually agent37_shows '{"exit_code":0' -X POST "$one/exec" -d '{"command":"cat /tmp/begun3"}'
agent37 -X DELETE "$one"
is "$code" 200 'exec: a delete while it runs'
wait "$held"
like "$(cat "$work/held.code")/$(cat "$work/held")" "502/$(error37 provisioning_failed)" 'exec: which ends it'
execute37 'true'
refused_with 404 not_found 'exec: and then there is nothing'

# Sleep: nothing but requests to the URL counts as use
settings37 '"idleMinimumSeconds":1'
agent37_create '{"auto_sleep":true,"idle_timeout_seconds":600,"env":{"A":"1"}}'
sleeper=$one
execute37 'echo kept >/tmp/kept; sleep 600 >/dev/null 2>&1 & echo started'
like "$body" 'started' 'sleep: at first it runs'
awake=$instances/$(agent37_create '{}'; echo "$id")
one=$sleeper id=${sleeper##*/} plane=$base/agent37-instance/$id
agent37 -X PATCH "$one" -d '{"idle_timeout_seconds":1}'
eventually status_is sleeping
is $? 0 'sleep: it falls asleep, though a command runs'
like "$body" '"slept_at":' 'sleep: and says since when'
execute37 'true'
refused_with 400 invalid_request 'sleep: a command does not wake it'
status_is sleeping
is $? 0 'sleep: nor does a look'
inside "$plane/health"
status_is sleeping
is $? 0 'sleep: nor the health of the edge'
key=bad-key inside "$plane/v1/health"
status_is sleeping
is $? 0 'sleep: nor a wrong key'
agent37 "$awake"
like "$body" '"status":"running"' 'sleep: another one does not sleep'
agent37 -X PATCH "$one" -d '{"idle_timeout_seconds":600}'
inside "$plane/v1/files/content?path=/tmp/kept"
is "$code/$body" '200/kept' 'wake: a request to its URL wakes it'
status_is running
is $? 0 'wake: it runs'
unlike "$body" 'slept_at' 'wake: and does not sleep'
agent37 -X PATCH "$one" -d '{"auto_sleep":false}'
agent37 -X PATCH "$one" -d '{"auto_sleep":true,"idle_timeout_seconds":1}'
eventually status_is sleeping
agent37 -X PATCH "$one" -d '{"idle_timeout_seconds":600}'
agent37 -X POST "$one/start"
is "$code/$body" "200/{\"id\":\"$id\",\"status\":\"running\"}" 'wake: a start wakes it too'
execute37 'echo $A'
is "$body" "$(ran 0 '1\n' '')" 'wake: and it works'
doze() { agent37 -X PATCH "$one" -d '{"idle_timeout_seconds":1}'; eventually status_is sleeping; agent37 -X PATCH "$one" -d '{"idle_timeout_seconds":600}'; }
doze
agent37 -X POST "$one/stop"
is "$code/$body" "200/{\"id\":\"$id\",\"status\":\"stopped\"}" 'sleep: one that sleeps is stopped'
agent37 -X POST "$one/start"
doze
control quota '{"provider":"agent37","cpu":1}'
inside "$plane/v1/health"
is "$code/$body" '503/{"error":"wake_failed"}' 'wake: not without room'
control quota '{"provider":"agent37"}'
settings37 '"startDelayMs":600000,"wakeLimitMs":300'
begin=$(milliseconds)
inside "$plane/v1/health"
is "$code/$body/$(($(milliseconds) - begin >= 300))" '503/{"error":"wake_timeout"}/1' 'wake: held, but not for ever'
agent37 "$one"
like "$body" '"status":"waking"' 'wake: which goes on'
like "$body" '"slept_at":' 'wake: and says since when it has slept'
agent37 -X POST "$one/stop"
refused_with 400 invalid_request 'wake: no stop meanwhile'
settings37 '"startDelayMs":300,"bootDelayMs":300,"wakeLimitMs":180000'
agent37_create '{"auto_sleep":true,"idle_timeout_seconds":1}'
eventually status_is sleeping
agent37 -X PATCH "$one" -d '{"idle_timeout_seconds":600}'
begin=$(milliseconds)
inside -T "$work/curl" "$plane/v1/files/content?path=/tmp/late"
is "$code/$(($(milliseconds) - begin >= 600))" 200/1 'wake: a request is held until somebody answers in it'
settings37 '"startDelayMs":0,"bootDelayMs":600000,"idleMinimumSeconds":60'
agent37 -X PATCH "$one" -d '{"idle_timeout_seconds":600}'
agent37 -X POST "$one/stop"
agent37 -X POST "$one/start"
settings37 '"bootDelayMs":0'
inside "$plane/v1/health"
is "$code/$body" '502/{"error":"container_unreachable"}' 'wake: a start is no wake, and is not waited for'
agent37 -X DELETE "$one"
agent37 -X DELETE "$awake"
