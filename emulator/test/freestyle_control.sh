# Freestyle's VMs: creating, finding, changing, ending them.

. "$here/freestyle.sh"

# Keys
for refusal in bad-key/401/INVALID_API_KEY denied-key/403/FORBIDDEN limited-key/429/RATE_LIMITED; do
	IFS=/ read -r refused status reason <<<"$refusal"
	key=$refused freestyle_create
	vm_refused "$status" "$reason" "freestyle key: $refused creates nothing"
	key=$refused freestyle "$vms"
	vm_refused "$status" "$reason" "freestyle key: $refused lists nothing"
	key=$refused freestyle "$base/freestyle/v5/background-requests/ri-1"
	vm_refused "$status" "$reason" "freestyle key: $refused asks for nothing"
done
is "$(vm_header retry-after)" 1 'freestyle key: a rate limit says when to come again'
is "$(curl -sS -w '%{http_code}' "$vms")" '{"code":"MISSING_CREDENTIALS","message":"an API key is needed"}401' 'freestyle key: none'
unlike "$(curl -sS "$base/_control/audit")" '"provider":"freestyle"' 'freestyle key: no VM is left of these'

# A create
freestyle_create '"slug":"sbx-1","displayName":"job 7","snapshotId":"freestyle/ubuntu-sm","metadata":{"sbx-router-id":"sbx_1","a":"b c"},"idleTimeoutSeconds":-1,"ttlSeconds":3600,"automaticRestart":false'
is "$code" 200 'freestyle create: 200'
is "$(grep -cE '^vm-[0-9a-f]{32}$' <<<"$id")" 1 'freestyle create: the form of an id'
like "$body" '"state":"running","slug":"sbx-1","displayName":"job 7","resources":{"cpu":2,"memory":4096,"storage":16384},"snapshotId":"sh-' 'freestyle create: the answer'
like "$body" '"sourceSnapshotSlug":"freestyle/ubuntu-sm","idleTimeoutSeconds":null,"autoDeleteSeconds":null,"ttlSeconds":3600,"maxRunSeconds":null,"maxRunTotalSeconds":null,"totalRunSeconds":0,"automaticRestart":false,"metadata":{"sbx-router-id":"sbx_1","a":"b c"},"vpcs":[],"networks":[],"createdAt":"20' 'freestyle create: -1 goes in, nothing comes out'
like "$body" '"firewallRules":[],"tlsRules":[]}' 'freestyle create: no rules'
first=$id
freestyle "$vm"
unlike "$body" 'firewallRules' 'freestyle get: without the rules'
by_id=$body
freestyle "$vms/sbx-1"
is "$body" "$by_id" 'freestyle get: by slug'
key=key-two freestyle "$vm"
vm_refused 404 NOT_FOUND 'freestyle get: not by another account'
like "$(curl -sS "$base/_control/audit")" "\"id\":\"$first\",\"name\":\"sbx_1\",\"labels\":{\"sbx-router-id\":\"sbx_1\",\"a\":\"b c\"}" 'freestyle audit: named by the label'
freestyle_create '"slug":null,"displayName":null,"snapshotId":null,"idleTimeoutSeconds":null'
like "$code/$body" '200/{"id":"vm-' 'freestyle create: null is as if it were not there'
like "$body" '"resources":{"cpu":4,"memory":8192,"storage":32768}' 'freestyle create: the default size'
like "$body" '"automaticRestart":true' 'freestyle create: restarts by default'
freestyle -X DELETE "$vm"
vm_settings '"createStatus":201,"defaultIdleSeconds":300,"autoDeleteCapSeconds":600'
freestyle_create
like "$code/$body" '201/{"id":"vm-' 'freestyle create: 201'
like "$body" '"idleTimeoutSeconds":300,"autoDeleteSeconds":600,"autoDeleteFromPlan":true' 'freestyle create: windows that nobody asked for'
freestyle -X DELETE "$vm"
freestyle_create '"idleTimeoutSeconds":-1,"autoDeleteSeconds":60'
like "$body" '"idleTimeoutSeconds":null,"autoDeleteSeconds":60,"ttlSeconds"' 'freestyle create: but not if somebody did'
freestyle -X DELETE "$vm"
freestyle_create '"autoDeleteSeconds":601'
vm_refused 400 BAD_REQUEST 'freestyle create: a window above the cap'
vm_settings '"createStatus":200,"defaultIdleSeconds":-1,"autoDeleteCapSeconds":-1'

# What is refused
x63=$(printf 'x%.0s' {1..63})
u63=$(printf 'ü%.0s' {1..63})
m64=$(seq -s, -f '"k%g":"v"' 64)
for good in "\"slug\":\"$x63\"" "\"metadata\":{\"$u63\":\"$u63\"}" "\"metadata\":{$m64}" '"slug":"a"' '"tls":null' '"vpcs":[]'; do
	freestyle_create "$good"
	is "$code" 200 "freestyle create: ${good:0:40}"
	freestyle -X DELETE "$vm"
done
for wrong in '"slug":"Bad_Slug"' '"slug":"a--b"' '"slug":"-a"' '"slug":"a-"' '"slug":""' "\"slug\":\"${x63}x\"" '"slug":7' \
	"\"metadata\":{\"a\":\"${x63}x\"}" "\"metadata\":{\"${u63}ü\":\"a\"}" "\"metadata\":{$m64,\"x\":\"y\"}" '"metadata":{"a":1}' '"metadata":[]' \
	'"env":{}' '"cpu":2' '"image":"x"' '"ttlSeconds":0' '"ttlSeconds":1.5' '"idleTimeoutSeconds":-2' '"displayName":7' '"automaticRestart":1' '"reassignSlug":true'; do
	freestyle_create "$wrong"
	vm_refused 400 BAD_REQUEST "freestyle create: not ${wrong:0:40}"
done
freestyle_create '"tls":{"rules":[]}'
is "$code" 501 'freestyle create: what is not emulated is not ignored'
freestyle_create '"snapshotId":"no-such-snapshot","slug":"unmade"'
vm_refused 404 NOT_FOUND 'freestyle create: a snapshot that is not known'
freestyle -X POST "$vms" -d 'no json'
vm_refused 400 BAD_REQUEST 'freestyle create: no JSON'
freestyle "$vms/unmade"
vm_refused 404 NOT_FOUND 'freestyle create: and none of these is there'

# Slugs are unique in an account, and only there
freestyle_create '"slug":"sbx-1"'
vm_refused 409 CONFLICT 'freestyle slug: taken'
key=key-two freestyle_create '"slug":"sbx-1"'
is "$code" 200 'freestyle slug: not by another account'
key=key-two freestyle -X DELETE "$vm"
freestyle "$vms/sbx-1"
like "$body" "\"id\":\"$first\"" 'freestyle slug: the holder is as before'
freestyle_create '"slug":"sbx-1","reassignSlug":true'
second=$id
freestyle "$vms/sbx-1"
like "$body" "\"id\":\"$second\"" 'freestyle slug: reassigned'
freestyle "$vms/$first"
like "$body" '"slug":null' 'freestyle slug: its former holder has none'
freestyle -X PATCH "$vms/$first" -d '{"slug":"sbx-1"}'
vm_refused 409 CONFLICT 'freestyle slug: taken for an update as well'
freestyle -X DELETE "$vms/sbx-1"
is "$code/$body" 204/ 'freestyle delete: by slug'
freestyle -X DELETE "$vms/$second"
vm_refused 404 NOT_FOUND 'freestyle delete: twice'
freestyle -X PATCH "$vms/$first" -d '{"slug":"sbx-1"}'
like "$code/$body" '200/' 'freestyle slug: free once its holder is deleted'

# Firewalls: in each pair the second differs in what is wrong with it
rule() { freestyle -X POST "$vms" -d "{\"firewall\":$1}"; vm=$vms/$(sed -n 's/^{"id":"\([^"]*\)".*/\1/p' <<<"$body"); }
for good in '{"rules":[]}' '{"rules":[{"action":"allow","source":{},"destination":{"public":true}}]}' \
	'{"rules":[{"action":"allow","source":{},"destination":{"public":true,"port":443,"protocol":"tcp"},"description":"out"}]}' \
	'{"rules":[{"action":"allow","source":{"cidr":"10.0.0.0/8"},"destination":{"port":22,"protocol":"tcp"}}]}' \
	'{"rules":[{"action":"allow","source":{"vmId":"vm-1"},"destination":{"protocol":"icmp"}}]}'; do
	rule "$good"
	is "$code" 200 "freestyle firewall: ${good:0:90}"
	freestyle -X DELETE "$vm"
done
for wrong in null '{}' '[]' '{"rules":{}}' '{"rules":[],"x":1}' '{"rules":[7]}' \
	'{"rules":[{"source":{},"destination":{"public":true}}]}' '{"rules":[{"action":"deny","source":{},"destination":{"public":true}}]}' \
	'{"rules":[{"action":"allow","source":{}}]}' '{"rules":[{"action":"allow","source":{},"destination":{"public":false}}]}' \
	'{"rules":[{"action":"allow","source":{},"destination":{}}]}' '{"rules":[{"action":"allow","source":{"vmId":"a"},"destination":{"public":true}}]}' \
	'{"rules":[{"action":"allow","source":{},"destination":{"public":true,"port":443}}]}' \
	'{"rules":[{"action":"allow","source":{},"destination":{"public":true,"port":443,"protocol":"icmp"}}]}' \
	'{"rules":[{"action":"allow","source":{},"destination":{"public":true,"port":0,"protocol":"tcp"}}]}' \
	'{"rules":[{"action":"allow","source":{},"destination":{"public":true,"vmId":"a"}}]}' \
	'{"rules":[{"action":"allow","source":{},"destination":{"public":true,"host":"a"}}]}' \
	'{"rules":[{"action":"allow","source":{},"destination":{"public":true},"name":"a"}]}'; do
	rule "$wrong"
	vm_refused 400 BAD_REQUEST "freestyle firewall: not $wrong"
done
freestyle -X POST "$vms" -d '{}'
vm_refused 400 BAD_REQUEST 'freestyle firewall: is required'
freestyle -X POST "$vms" -d '{"slug":"late","firewall":{"rules":[7]}}'
freestyle "$vms/late"
is "$code" 404 'freestyle firewall: a wrong rule leaves no VM'
vm_settings '"lateRules":true'
freestyle -X POST "$vms" -d '{"slug":"late","firewall":{"rules":[7]}}'
vm_refused 400 BAD_REQUEST 'freestyle firewall: found late'
freestyle -X DELETE "$vms/late"
is "$code" 204 'freestyle firewall: when the VM is there already'
vm_settings '"lateRules":false'

# Lists
freestyle -X DELETE "$vms/sbx-1"
freestyle "$vms"
is "$body" '{"vms":[],"totalCount":0,"runningCount":0,"startingCount":0,"pausingCount":0,"pausedCount":0,"stoppedCount":0}' 'freestyle list: nothing'
for i in 1 2 3 4 5; do freestyle_create "\"slug\":\"vm-$i\",\"metadata\":{\"n\":\"$i\",\"odd\":\"$((i % 2))\",\"s\":\"a b\"}"; done
listed() { freestyle "$vms?$1"; grep -o '"slug":"vm-[0-9]' <<<"$body" | tr -dc '0-9\n' | paste -sd' '; }
is "$(listed '')" '5 4 3 2 1' 'freestyle list: newest first'
is "$(listed 'limit=2&offset=1')" '4 3' 'freestyle list: a page'
freestyle "$vms?limit=2&offset=1"
like "$body" '"totalCount":5,"runningCount":5' 'freestyle list: whose counts are those of all'
is "$(listed 'offset=5')" '' 'freestyle list: after the end'
is "$(listed 'metadata=odd%3A1')" '5 3 1' 'freestyle list: by a pair'
is "$(listed 'metadata=odd%3A1%2Cn%3A3')" '3' 'freestyle list: by two pairs'
is "$(listed 'metadata=odd%3A1%2Cn%3A4')" '' 'freestyle list: all pairs must match'
is "$(listed 'metadata=s%3Aa+b%2Cn%3A4')" '4' 'freestyle list: a space in a value'
is "$(listed 'slug=vm-2')" '2' 'freestyle list: by slug'
is "$(listed 'slug=vm-')" '' 'freestyle list: the whole of it'
is "$(listed 'snapshotId=freestyle%2Fubuntu&limit=1')" '5' 'freestyle list: by snapshot'
is "$(listed 'snapshotId=freestyle%2Fubuntu-sm')" '' 'freestyle list: not by another'
freestyle -X POST "$vms/vm-2/pause" -d '{}'
is "$(listed 'state=paused')" '2' 'freestyle list: by state'
freestyle "$vms?metadata=odd:0"
like "$body" '"totalCount":2,"runningCount":1,"startingCount":0,"pausingCount":0,"pausedCount":1' 'freestyle list: counts follow the filter'
for wrong in limit=0 limit=x offset=-1 state=asleep; do
	freestyle "$vms?$wrong"
	vm_refused 400 BAD_REQUEST "freestyle list: not $wrong"
done
vm_settings '"pageSize":2'
is "$(listed 'limit=100')" '5 4' 'freestyle list: no page is larger than that'
vm_settings '"pageSize":100,"listLagMs":600000'
is "$(listed '')" '' 'freestyle list: lags'
freestyle "$vms/vm-1"
is "$code" 200 'freestyle list: a get does not'
vm_settings '"listLagMs":0,"surfaceDelayMs":600000'
freestyle -X DELETE "$vms/vm-1"
vm_refused 404 NOT_FOUND 'freestyle surface: one that nobody finds yet'
freestyle_create '"slug":"vm-1"'
vm_refused 409 CONFLICT 'freestyle surface: but that has its slug'
vm_settings '"surfaceDelayMs":0'
for i in 1 2 3 4 5; do freestyle -X DELETE "$vms/vm-$i"; done

# Updates
freestyle_create '"metadata":{"a":"1","b":"2"}'
freestyle -X PATCH "$vm" -d '{"slug":"named","displayName":"d","metadata":{"b":"","c":"3"},"ttlSeconds":7200,"automaticRestart":false}'
like "$code/$body" '200/' 'freestyle update: 200'
like "$body" '"slug":"named","displayName":"d"' 'freestyle update: names'
like "$body" '"ttlSeconds":7200' 'freestyle update: a window'
like "$body" '"metadata":{"a":"1","c":"3"}' 'freestyle update: metadata are merged, an empty value takes away'
freestyle -X PATCH "$vm" -d '{"slug":"","ttlSeconds":-1}'
like "$body" '"slug":null' 'freestyle update: no slug'
like "$body" '"ttlSeconds":null' 'freestyle update: no window'
for wrong in '{"firewall":{"rules":[]}}' '{"snapshotId":"x"}' '{"slug":"A"}' '{"x":1}'; do
	freestyle -X PATCH "$vm" -d "$wrong"
	vm_refused 400 BAD_REQUEST "freestyle update: not $wrong"
done
freestyle -X POST "$vm/resize" -d '{"cpu":8,"storage":65536}'
like "$body" '"resources":{"cpu":8,"memory":8192,"storage":65536}' 'freestyle resize: grows'
freestyle -X POST "$vm/resize" -d '{"memory":4096}'
vm_refused 400 BAD_REQUEST 'freestyle resize: does not shrink'
freestyle -X PATCH "$vm" -d '{"ttlSeconds":1}'
eventually freestyle_answers 404 "$vm"
is $? 0 'freestyle update: a lifetime is counted from the creation'

# Quota
control quota '{"provider":"freestyle","cpu":8,"disk":98304,"sandboxes":2}'
freestyle_create '"slug":"q-1"'; one=$vm
freestyle_create '"slug":"q-2"'
freestyle_create '"slug":"q-3"'
vm_refused 409 CONFLICT 'freestyle quota: full'
freestyle "$vms/q-3"
is "$code" 404 'freestyle quota: and nobody has that slug'
freestyle -X POST "$one/pause"
freestyle_create '"slug":"q-3"'
is "$code" 200 'freestyle quota: a paused one leaves room'
freestyle -X POST "$one/start"
vm_refused 409 CONFLICT 'freestyle quota: and needs it again'
freestyle -X POST "$one/exec-await" -d '{"command":"true"}'
vm_refused 409 CONFLICT 'freestyle quota: also to wake'
freestyle -X POST "$vms/q-2/pause"
freestyle_create '"slug":"q-4"'
vm_refused 409 CONFLICT 'freestyle quota: the disk of a paused one is still its own'
control quota '{"provider":"freestyle"}'
vm_settings '"allowanceSpent":true'
freestyle_create
vm_refused 429 LIMIT_EXCEEDED 'freestyle allowance: spent, no create'
is "$(vm_header retry-after)" '' 'freestyle allowance: waiting does not help'
freestyle -X POST "$one/start"
vm_refused 429 LIMIT_EXCEEDED 'freestyle allowance: no start'
freestyle "$one"
is "$code" 200 'freestyle allowance: but a look'
vm_settings '"allowanceSpent":false,"blocked":true'
freestyle -X POST "$one/start"
vm_refused 403 FORBIDDEN 'freestyle blocked: no change'
freestyle "$vms"
is "$code" 200 'freestyle blocked: but a list'
vm_settings '"blocked":false'
for i in 1 2 3; do freestyle -X DELETE "$vms/q-$i"; done

# States on the way
vm_settings '"startDelayMs":600000'
freestyle_create
like "$body" '"state":"starting"' 'freestyle start: a create may be early'
for action in exec-await pause; do
	freestyle -X POST "$vm/$action" -d '{"command":"true"}'
	[ $action = exec-await ] || freestyle -X POST "$vm/$action" -d '{}'
	vm_refused 409 CONFLICT "freestyle start: no $action meanwhile"
done
freestyle -X POST "$vm/start" -d '{}'
like "$code/$body" '200/' 'freestyle start: again, meanwhile'
freestyle -X DELETE "$vm"
is "$code" 204 'freestyle start: a delete meanwhile'
vm_settings '"startDelayMs":0,"pauseDelayMs":600000'
freestyle_create
freestyle -X POST "$vm/start" -d '{}'
like "$code/$body" '"state":"running"' 'freestyle start: of a running one'
freestyle -X POST "$vm/pause" -d '{}'
like "$code/$body" '"state":"pausing"' 'freestyle pause: takes its time'
freestyle -X POST "$vm/start" -d '{}'
vm_refused 409 CONFLICT 'freestyle pause: no start meanwhile'
execute_vm true
vm_refused 409 CONFLICT 'freestyle pause: no command meanwhile'
freestyle -X DELETE "$vm"
vm_settings '"pauseDelayMs":0'
freestyle_create
freestyle -X POST "$vm/pause" -d '{}'
freestyle -X POST "$vm/pause" -d '{}'
like "$code/$body" '"state":"paused"' 'freestyle pause: of a paused one'
freestyle -X DELETE "$vm"
is "$code" 204 'freestyle delete: of a paused one'

# Windows
freestyle_create '"ttlSeconds":2'; short=$vm
freestyle_create '"ttlSeconds":600'; long=$vm
eventually freestyle_answers 404 "$short"
is $? 0 'freestyle window: a life of two seconds'
freestyle "$long"
is "$code" 200 'freestyle window: another one lives'
freestyle -X DELETE "$long"
freestyle_create '"idleTimeoutSeconds":1'
eventually vm_state paused
is $? 0 'freestyle window: idle is paused'
freestyle -X DELETE "$vm"
freestyle_create '"autoDeleteSeconds":0'
vm_state running
is $? 0 'freestyle window: what runs is not deleted'
freestyle -X POST "$vm/pause" -d '{}'
eventually freestyle_answers 404 "$vm"
is $? 0 'freestyle window: what does not run is'
freestyle_create '"maxRunTotalSeconds":1'
eventually vm_state paused
freestyle -X POST "$vm/start" -d '{}'
vm_refused 409 CONFLICT 'freestyle window: a lifetime of running is over'
freestyle -X DELETE "$vm"
freestyle_create '"maxRunSeconds":1'
eventually vm_state paused
freestyle -X POST "$vm/start" -d '{}'
is "$code" 200 'freestyle window: one run is over, another begins'
freestyle -X DELETE "$vm"

# Paths
freestyle "$base/freestyle/v5/nonsense"
vm_refused 404 ROUTE_NOT_FOUND 'freestyle path: unknown'
freestyle "$base/freestyle/v5/snapshots"
is "$code" 501 'freestyle path: known there, not here'
like "$(curl -sS "$base/_control/audit" | grep -o '"provider":"freestyle"[^}]*}[^}]*"alive":true' | wc -l)" 0 'freestyle: no VM is left'
