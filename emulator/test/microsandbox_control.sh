# Microsandbox sandboxes: made, found, listed, stopped, started, deleted.

# Who may
for refusal in bad:401:invalid_api_key denied:403:forbidden limited:429:rate_limited; do
	IFS=: read -r beginning status error <<<"$refusal"
	key=$beginning-key msb "$boxes"
	msb_refused "$status" "$error" "microsandbox: a key that begins with $beginning-"
done
key=limited-key call "$boxes"
unlike "$code $(cat "$work/headers")" 'Retry-After' 'microsandbox: which does not say when to retry'
body=$(curl -sS "$boxes")
like "$body" "$(msb_error invalid_api_key)" 'microsandbox: no key at all'
msb "$base/microsandbox/v1/nothing"
is "$code" 404 'microsandbox: no such path'
msb -X POST "$boxes/by-name/x/nothing"
msb_refused 404 not_found 'microsandbox: nor one of a sandbox'

# Create
msb_create one ',"labels":{"sbx-router-id":"r1","k":"v ü"},"resources":{"vcpus":2,"memory_mib":1024,"disk_size_mib":4096},"env":[{"key":"A","value":"1"}]'
like "$body" '"name":"one","slug":"brave-otter-' 'create: a name, and a slug'
like "$body" '"status":"running","status_reason":null,"spec":{' 'create: answers one that runs'
like "$body" '"image":"alpine"' 'create: whose image is shown as a text'
like "$body" '"resources":{"vcpus":2,"memory_mib":1024,"disk_size_mib":4096}' 'create: with its sizes'
like "$body" '"env":[{"key":"A","value":"1"}]' 'create: and the environment'
like "$body" '"last_failure_message":null}' 'create: and no failure'
unlike "$body" '"started_at":null' 'create: it was started'
like "$body" '"stopped_at":null' 'create: and never stopped'
one=$box one_id=$id
msb_create one
msb_refused 409 name_already_exists 'create: a name that is taken'
key=key-two msb_create one
is "$code" 200 'create: but not by another account'
key=key-two msb -X DELETE "$box"
msb -X POST "$boxes" -d '{"name":"record","image":{"type":"oci","reference":"alpine"}}'
is "$code/$(msb_field status)" 200/created 'create: without a start it is a record'
like "$body" '"spec":null' 'create: of which nothing more is known'
msb -X POST "$boxes/by-name/record/start" -d '{}'
is "$code/$(msb_field status)" 200/running 'start: of that'
like "$body" '"resources":{"vcpus":1,"memory_mib":512}' 'start: with the default sizes'
msb -X DELETE "$boxes/by-name/record"
is "$code/$body" '200/{"message":"sandbox destroyed"}' 'delete: by name'
msb_settings '"hideSpec":true'
msb "$one"
like "$body" '"spec":null' 'create: on request nothing is ever known'
msb_settings '"hideSpec":false'

bad() { msb -X POST "$boxes?start=true" -d "$1"; msb_refused 400 "${3:-invalid_request}" "create: 400 for $2"; }
with() { bad "{\"name\":\"bad\",\"image\":{\"type\":\"oci\",\"reference\":\"alpine\"},$1}" "$1" "${2:-}"; }
good() { msb_create "good$RANDOM" ",$1"; is "$code" 200 "create: but not for $1"; msb -X DELETE "$box"; }
bad '[]' 'a list'
bad '{"image":{"type":"oci","reference":"alpine"}}' 'no name'
bad '{"name":"bad"}' 'no image'
bad '{"name":"bad","image":"alpine"}' 'an image that is a text'
bad '{"name":".bad","image":{"type":"oci","reference":"alpine"}}' 'a name that begins with a dot'
bad "{\"name\":\"$(printf 'x%.0s' {1..129})\",\"image\":{\"type\":\"oci\",\"reference\":\"alpine\"}}" 'a name of 129'
with '"labels":{"sandbox.x":"1"}'
with '"labels":{"":"1"}'
with '"labels":{"a":1}'
good '"labels":{"sandbox":"1","a.b/c":""}'
with '"env":{"A":"1"}'
with '"env":[{"key":"A=B","value":"1"}]'
with '"resources":{"vcpus":0,"memory_mib":1}'
with '"resources":{"vcpus":17,"memory_mib":1}' invalid_sandbox_config
good '"resources":{"vcpus":16,"memory_mib":1}'
with '"network":{"enabled":true,"ports":[]}'
good '"network":{"enabled":true,"strict":false}'
with '"runtime":{"hostname":"x"}'
with '"runtime":{"workdir":"x"}'
with '"mounts":[{}]'
with '"lifecycle":{"max_duration_secs":0}'
with '"pull_policy":"sometimes"'
good '"pull_policy":"never","security_profile":"default","registry":{"mode":"anonymous"},"init":null'
with '"unknown":1'
with '"slug":"Upper"'
good '"slug":"a-slug"'
msb_create slug1 ',"slug":"taken"'
slug=$box
key=key-two msb_create slug2 ',"slug":"taken"'
msb_refused 409 name_already_exists 'create: a slug is taken for all accounts'
msb -X DELETE "$slug"
for query in start=yes wait_for=running 'start=true&wait_for=stopped' 'start=true&wait_timeout=5' 'start=true&wait_for=running&wait_timeout=91'; do
	msb -X POST "$boxes?$query" -d '{"name":"bad","image":{"type":"oci","reference":"alpine"}}'
	msb_refused 400 invalid_request "create: 400 for $query"
done
msb "$boxes/by-name/bad"
msb_refused 404 sandbox_not_found 'create: nothing of that was made'
image=no-such-image msb_create pull
is "$code/$(msb_field status)" 200/failed 'create: an image that cannot be pulled is no refusal'
like "$body" '"last_failure_message":"image pull failed"' 'create: but a failure'
pulled=$box
msb_settings '"startError":"no disk"'
msb_create broken
like "$body" '"status":"failed","status_reason":null,"spec":null' 'create: on request all fail'
msb_settings '"startError":null'
msb -X POST "$box/start?wait_for=running" -d '{}'
is "$(msb_field status)" running 'start: one that has failed starts again'
like "$body" '"last_failure_message":null' 'start: and then has not failed'
msb -X DELETE "$box"
msb -X DELETE "$pulled"
is "$code" 200 'delete: one that has failed'

# Names and ids
msb "$boxes/by-name/one"
is "$(msb_field id)" "$one_id" 'get: by name'
msb "$one"
is "$(msb_field name)" one 'get: by id'
key=key-two msb "$one"
msb_refused 404 sandbox_not_found 'get: not of another account'
msb -X PATCH "$one" -d '{"name":"renamed.x_Y-1"}'
is "$code/$(msb_field name)" 200/renamed.x_Y-1 'rename: it has the new name'
msb "$boxes/by-name/one"
is "$code" 404 'rename: and not the old one'
msb_create two
msb -X PATCH "$box" -d '{"name":"renamed.x_Y-1"}'
msb_refused 409 name_already_exists 'rename: not to one that is taken'
for wrong in '{}' '{"name":"a b"}' '{"name":"x","labels":{}}'; do
	msb -X PATCH "$box" -d "$wrong"
	msb_refused 400 invalid_request "rename: 400 for $wrong"
done
two=$box
msb -X DELETE "$two"
msb_create two
msb "$two"
msb_refused 404 sandbox_not_found 'delete: an id is never used again'
two=$box
msb "$boxes/by-name/two"
is "$(msb_field id)" "$id" 'delete: a name may be'

# Lists
msb_create three ',"labels":{"k":"v ü","n":"3"}'
three=$box
msb "$boxes"
is "$(msb_names)" 'three two renamed.x_Y-1 ' 'list: the newest first'
like "$body" '],"has_more":false,"next_cursor":null}' 'list: and that is all'
labels() { msb -G "$boxes" --data-urlencode "labels=$1" "${@:2}"; }
labels '{"k":"v ü"}'
is "$(msb_names)" 'three renamed.x_Y-1 ' 'list: by a label'
labels '{"k":"v ü","n":"3"}'
is "$(msb_names)" 'three ' 'list: by two'
labels '{"k":"v"}'
is "$(msb_names)" '' 'list: not by a part of a value'
labels '{}'
is "$(msb_names)" 'three two renamed.x_Y-1 ' 'list: by none'
labels '{"k":"v ü"}' -d limit=1
like "$(msb_names)$body" 'three {"data":[' 'list: a page'
like "$body" '"has_more":true' 'list: with more behind it'
cursor=$(msb_field next_cursor)
labels '{"k":"v ü"}' -d limit=1 --data-urlencode "cursor=$cursor"
is "$(msb_names)$(msb_field next_cursor)" 'renamed.x_Y-1 ' 'list: the next, which is the last'
msb -X DELETE "$three"
labels '{"k":"v ü"}' -d limit=1 --data-urlencode "cursor=$cursor"
is "$(msb_names)" 'renamed.x_Y-1 ' 'list: also when the one before is gone'
for query in limit=0 limit=101 limit=x cursor=x labels=x 'labels=\[\]' 'labels=\{"a":1\}'; do
	msb "$boxes?$query"
	msb_refused 400 invalid_request "list: 400 for $query"
done
for i in $(seq 20); do
	[ "$i" = 1 ] || echo next
	printf 'url = "%s"\nheader = "Authorization: Bearer key-many"\ndata = "%s"\noutput = /dev/null\n' \
		"$boxes" "{\\\"name\\\":\\\"many$i\\\",\\\"image\\\":{\\\"type\\\":\\\"oci\\\",\\\"reference\\\":\\\"x\\\"}}"
done | curl -sS -K -
key=key-many msb "$boxes"
is "$(msb_names | wc -w)" 20 'list: a page has 20'
like "$body" '"has_more":false' 'list: and no more if there are none'
key=key-many msb_create many21
key=key-many msb "$boxes"
is "$(msb_names | wc -w)" 20 'list: nor if there are more'
like "$body" '"has_more":true' 'list: of which it tells'
key=key-many msb "$boxes?limit=100"
is "$(msb_names | wc -w)" 21 'list: or as many as asked for'
msb_settings '"listLagMs":600000'
msb_create lagging
msb -X DELETE "$two"
msb "$boxes"
unlike "$body" '"name":"lagging"' 'list: one that lags has not what is new'
msb "$box"
is "$code" 200 'list: which is there'
msb_settings '"listLagMs":0'
msb -X DELETE "$box"

# Stop, start, delete
msb -X POST "$one/stop" -d '{}'
is "$code/$(msb_field status)" 200/stopping 'stop: answers that it stops'
msb "$one"
is "$(msb_field status)" stopped 'stop: which takes no time'
unlike "$body" '"stopped_at":null' 'stop: and says when'
msb -X POST "$one/stop" -d '{}'
msb_refused 409 invalid_state_transition 'stop: not twice'
msb "$boxes"
like "$body" '"status":"stopped"' 'stop: it is listed'
msb -X POST "$one/start" -d '{}'
is "$code/$(msb_field status)" 200/running 'start: runs'
msb -X POST "$one/start" -d '{}'
msb_refused 409 invalid_state_transition 'start: not twice'
msb_settings '"stopDelayMs":600000'
msb -X POST "$one/stop" -d '{}'
is "$(msb_status "$one")" stopping 'stop: on request it takes its time'
msb -X POST "$one/start" -d '{}'
msb_refused 409 invalid_state_transition 'stop: and no start meanwhile'
msb -X DELETE "$one"
is "$code" 200 'delete: but a delete'
msb_settings '"stopDelayMs":200'
msb_create slow
msb -X POST "$box/stop" -d '{}'
eventually msb_is stopped
is $? 0 'stop: and then it has stopped'
msb_settings '"stopDelayMs":0'
msb -X DELETE "$box"
msb -X DELETE "$box"
msb_refused 404 sandbox_not_found 'delete: not twice'
msb_create short ',"lifecycle":{"ephemeral":true}'
msb -X POST "$box/stop" -d '{}'
is "$code/$(msb_field status)" 200/stopping 'ephemeral: stops'
msb "$box"
msb_refused 404 sandbox_not_found 'ephemeral: and is gone'
begin=$(milliseconds)
msb_settings '"slowDestroyMs":300'
msb_create gone
msb -X DELETE "$box"
is "$code/$(($(milliseconds) - begin >= 300))" 200/1 'delete: on request the answer is late'
msb_settings '"slowDestroyMs":0'

# Lifetimes, with seconds of a tenth
msb_create lazy ',"lifecycle":{"idle_timeout_secs":6}'
lazy=$box
msb_settings '"secondMs":100'
msb_create brief ',"lifecycle":{"max_duration_secs":3}'
eventually msb_is stopped
is $? 0 'max_duration_secs: stops it'
msb -X DELETE "$box"
msb_create brief ',"lifecycle":{"ephemeral":true,"max_duration_secs":3}'
eventually msb_answers 404 "$box"
is $? 0 'max_duration_secs: an ephemeral one is gone'
box=$lazy
agent begin core.exec.request '{"cmd":"sleep","args":["1"]}' last
is "$(tail -1 <<<"$body")" "$(msb_exited 0)" 'idle_timeout_secs: not while something runs'
eventually msb_is stopped
is $? 0 'idle_timeout_secs: but then'
msb -X DELETE "$box"
msb_settings '"secondMs":1000'

# Waiting for it
msb_settings '"startDelayMs":600000,"secondMs":10'
msb_create waits
is "$code/$(msb_field status)/$(msb_field status_reason)" 200/starting/scheduling 'wait: without, the answer is of one that starts'
like "$body" '"spec":null' 'wait: of which little is known yet'
agent
like "$body" "409 $(msb_error invalid_state_transition)" 'wait: and which has no agent'
waiting=$box
msb -X POST "$boxes?start=true&wait_for=running&wait_timeout=30" -d '{"name":"waits2","image":{"type":"oci","reference":"alpine"}}'
is "$code/$(msb_field status)" 200/starting 'wait: as it is when the time is over'
msb -X DELETE "$boxes/by-name/waits2"
msb_settings '"secondMs":1000,"waitMaximum":0'
msb -X POST "$boxes?start=true&wait_for=running" -d '{"name":"waits3","image":{"type":"oci","reference":"alpine"}}'
msb_refused 429 rate_limited 'wait: 429 where too many do'
msb "$boxes/by-name/waits3"
is "$(msb_field status)" starting 'wait: and yet it was made'
msb_settings '"waitMaximum":-1'
hold -X POST "$boxes?start=true&wait_for=running&wait_timeout=90" -d '{"name":"waits4","image":{"type":"oci","reference":"alpine"}}'
eventually msb_answers 200 "$boxes/by-name/waits4"
still_held
is $? 0 'wait: the answer is held'
msb -X DELETE "$boxes/by-name/waits4"
wait "$held"
like "$(cat "$work/held.code")/$(cat "$work/held")" "404/$(msb_error sandbox_not_found)" 'wait: until it is deleted'
hold -X POST "$boxes?start=true&wait_for=running&wait_timeout=90" -d '{"name":"waits5","image":{"type":"oci","reference":"alpine"}}'
eventually msb_answers 200 "$boxes/by-name/waits5"
let_go
is "$(msb_status "$boxes/by-name/waits5")" starting 'wait: who goes away does not stop it'
msb -X POST "$waiting/stop" -d '{}'
is "$(msb_status "$waiting")" stopped 'stop: one that starts'
msb_settings '"startDelayMs":300'
begin=$(milliseconds)
msb -X POST "$waiting/start?wait_for=running" -d '{}'
is "$(msb_field status)/$(($(milliseconds) - begin >= 300))" running/1 'wait: until it runs'
msb_settings '"startDelayMs":0,"delayMs":300'
begin=$(milliseconds)
msb_create held
is "$(msb_field status)/$(($(milliseconds) - begin >= 300))" running/1 'create: on request the answer is late'
msb_settings '"delayMs":0'
for name in waits waits3 waits5 held; do msb -X DELETE "$boxes/by-name/$name"; done

# Room: what finds none waits for it, in the order in which it came
control quota '{"provider":"microsandbox","sandboxes":1}'
msb_create first
first=$box
is "$(msb_field status)" running 'queue: the first has room'
msb_create second
second=$box
is "$code/$(msb_field status)/$(msb_field status_reason)" 200/starting/insufficient_capacity 'queue: the second is made, and waits'
msb_create third
third=$box
msb -X POST "$first/stop" -d '{}'
is "$(msb_status "$second")/$(msb_status "$third")" running/starting 'queue: a stop makes room for one'
msb -X POST "$first/start" -d '{}'
is "$(msb_field status_reason)" insufficient_capacity 'queue: and who comes back is the last'
msb -X DELETE "$second"
is "$(msb_status "$third")/$(msb_status "$first")" running/starting 'queue: a delete makes room too'
msb -X DELETE "$first"
is "$code" 200 'queue: one that waits can be deleted'
msb -X DELETE "$third"
control quota '{"provider":"microsandbox","memory":1000}'
msb_create small
small=$box
msb_create large ',"resources":{"vcpus":1,"memory_mib":600}'
is "$(msb_field status_reason)" insufficient_capacity 'queue: memory counts'
large=$box
msb_create tiny ',"resources":{"vcpus":1,"memory_mib":10}'
is "$(msb_field status_reason)" insufficient_capacity 'queue: nobody overtakes'
control quota '{"provider":"microsandbox"}'
is "$(msb_status "$large")/$(msb_status)" running/running 'queue: with more room all run'
for name in small large tiny; do msb -X DELETE "$boxes/by-name/$name"; done
msb_settings '"sandboxMaximum":1'
msb_create only
only=$box
msb -X POST "$only/stop" -d '{}'
msb_create more
msb_refused 403 quota_exceeded 'quota: on request one more is refused, also when none runs'
msb "$base/microsandbox/v1/quotas"
like "$body" '{"total_sandboxes":1,"max_sandboxes":1,"concurrent_ephemeral_running":0,' 'quotas: what there is'
msb_settings '"sandboxMaximum":-1'
msb "$base/microsandbox/v1/quotas"
like "$body" '"max_sandboxes":null' 'quotas: null is no limit'
msb -X DELETE "$only"

# The audit
audit=$(curl -sS "$base/_control/audit")
like "$audit" '"provider":"microsandbox","account":' 'audit: has them'
like "$audit" "\"id\":\"$one_id\",\"name\":\"r1\",\"labels\":{\"sbx-router-id\":\"r1\"" 'audit: by their label'
is "$(grep -o '"name":"two","labels":[^}]*}[^}]*"creates":[0-9]*' <<<"$audit" | sed 's/.*://' | sort -u)" 2 'audit: and else by their name, with the creates of it'
msb "$boxes"
is "$(msb_names)" '' 'microsandbox: nothing is left'
