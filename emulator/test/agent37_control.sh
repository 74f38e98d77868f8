# Agent37's hosting plane.

agent37_create '{"name":"first","user":"u_1","metadata":{"app name":"a b&c=d/é","k":"100%"},"env":{"A":"1"}}'
first=$one
is "$code" 201 'agent37 create: 201'
[[ $id =~ ^[a-z0-9]{10}$ ]]
is $? 0 'agent37 create: the form of an id'
like "$body" "{\"id\":\"$id\",\"status\":\"running\",\"status_reason\":null,\"template\":\"agent37-hermes\",\"template_revision\":null," \
	'agent37 create: runs, of the default template'
like "$body" '"resources":{"cpu":2,"memory":4,"disk":4}' 'agent37 create: the default shape'
is "$plane" "$base/agent37-instance/$id" 'agent37 create: the URL has the origin of the request'
like "$body" '"domain_urls":[],"public_ports":[],"user":"u_1","name":"first","metadata":{"app name":"a b&c=d/é","k":"100%"},"auto_sleep":false,"idle_timeout_seconds":300,"past_due":false,"created":' \
	'agent37 create: what was given'
unlike "$body" '"A"' 'agent37 create: variables are not shown again'
unlike "$body" 'slept_at' 'agent37 create: nothing slept'
created=$body
agent37 "$first"
is "$code/$body" "200/$created" 'agent37 get: the same again'
agent37 -X POST "$instances"
is "$code" 201 'agent37 create: without a body'
like "$body" '"user":null,"name":null,"metadata":null' 'agent37 create: nothing given'
agent37_create '{"template":"my-agent@2","resources":{"cpu":4,"memory":8,"disk":20},"type":"dedicated","budget":{"credit_micros":1000000},"auto_sleep":true,"idle_timeout_seconds":600,"public_ports":[{"port":8644}],"metadata":{}}'
is "$code" 201 'agent37 create: with everything'
like "$body" '"template":"my-agent@2"' 'agent37 create: template and version'
like "$body" '"resources":{"cpu":4,"memory":8,"disk":20}' 'agent37 create: the shape'
like "$body" '"public_ports":[{"port":8644}]' 'agent37 create: ports'
like "$body" '"metadata":{},"auto_sleep":true,"idle_timeout_seconds":600' 'agent37 create: sleep'
agent37 -X DELETE "$one"
for shape in '4,"memory":8/6' '8,"memory":16/12' '2,"memory":4,"disk":12/12' '8,"memory":16,"disk":40/40'; do
	agent37_create "{\"resources\":{\"cpu\":${shape%/*}}}"
	like "$body" "\"disk\":${shape#*/}}" "agent37 create: disk of ${shape%/*}"
	agent37 -X DELETE "$one"
done
agent37 -X POST "$instances" -H 'Transfer-Encoding: chunked' -d '{}'
is "$code" 201 'agent37 create: a body in chunks'
agent37_create '{"template":"headless-thing"}'
like "$code/$body" '"url":null' 'agent37 create: a template without a URL'

repeat() { printf "%0$2d" 0 | sed "s/0/$1/g"; }
metadata() { printf '{"metadata":{"k":"%s"}}' "$(repeat x "$1")"; }
for wrong in '[]' 'no json' '{"nonsense":1}' '{"template":7}' '{"template":null}' '{"template":""}' \
	'{"template":"no-such-thing"}' '{"template":"agent37-hermes@no-such-version"}' '{"template":"ghcr.io/a/b:1"}' '{"template":"a@"}' \
	'{"resources":{}}' '{"resources":{"cpu":2}}' '{"resources":{"cpu":2,"memory":8}}' '{"resources":{"cpu":1,"memory":1}}' \
	'{"resources":{"cpu":"2","memory":4}}' '{"resources":{"cpu":2.0,"memory":4}}' '{"resources":{"cpu":2,"memory":4,"disk":1}}' \
	'{"resources":{"cpu":2,"memory":4,"disk":13}}' '{"resources":{"cpu":4,"memory":8,"disk":21}}' '{"resources":{"cpu":2,"memory":4,"gpu":1}}' \
	'{"type":"other"}' '{"user":7}' "{\"user\":\"$(repeat x 201)\"}" "{\"name\":\"$(repeat x 61)\"}" '{"name":null}' \
	'{"metadata":[]}' '{"metadata":"x"}' "$(metadata 4089)" '{"env":[]}' '{"env":{"lower":"x"}}' '{"env":{"1A":"x"}}' '{"env":{"_A":"x"}}' \
	'{"env":{"A":7}}' '{"env":{"A":"a\u0000b"}}' "{\"env\":{\"A\":\"$(repeat x 4097)\"}}" '{"env":{"AGENT37_INSTANCE_ID":"x"}}' \
	'{"env":{"OPENCLAW_GATEWAY_PORT":"x"}}' "{\"env\":{$(for i in $(seq 33); do printf '"A%d":"x",' "$i"; done | sed 's/,$//')}}" \
	'{"budget":{"credit_micros":-1}}' '{"budget":{"other":1}}' '{"auto_sleep":1}' '{"auto_sleep":true,"idle_timeout_seconds":59}' \
	'{"auto_sleep":true,"idle_timeout_seconds":86401}' '{"idle_timeout_seconds":300}' '{"public_ports":[{"port":8080}]}' \
	'{"public_ports":[{"port":0}]}' '{"public_ports":[{}]}' '{"public_ports":[7]}'; do
	agent37 -X POST "$instances" -d "$wrong"
	refused_with 400 invalid_request "agent37 create: 400 for ${wrong:0:60}"
done
agent37 -X POST "$instances" -d '{"type":"shared"}'
refused_with 403 shared_unavailable 'agent37 create: shared instances'
for right in "{\"user\":\"$(repeat ü 200)\",\"name\":\"$(repeat é 60)\"}" "$(metadata 4088)" '{"metadata":{"n":7,"o":{"p":[null]}}}' \
	"{\"env\":{\"A_1\":\"$(repeat x 4096)\",\"B\":\"\"}}" \
	"{\"env\":{$(for i in $(seq 32); do printf '"A%d":"x",' "$i"; done | sed 's/,$//')}}" '{"public_ports":[{"port":65535,"prefix":"web"}]}'; do
	agent37_create "$right"
	is "$code" 201 "agent37 create: 201 for ${right:0:60}"
	agent37 -X DELETE "$one"
done

for refused in bad:401:invalid_api_key denied:403:ip_not_allowed limited:429:rate_limited; do
	IFS=: read -r kind status name <<<"$refused"
	for where in "-X POST $instances" "$instances" "$first" "-X DELETE $first" "-X POST $first/exec" "-X POST $first/stop" "$base/agent37/nonsense"; do
		key=$kind-key agent37 $where
		refused_with "$status" "$name" "agent37: a $kind- key is refused: ${where//$base/}"
	done
done
is "$(header retry-after)" 1 'agent37: a rate limit says when to retry'
key=bad-key agent37 "$instances"
is "$code/$(header retry-after)" 401/ 'agent37: other refusals do not'
is "$(curl -sS -o /dev/null -w '%{http_code}' "$instances")" 401 'agent37: no key is 401'
is "$(curl -sS -o /dev/null -w '%{http_code}' -H 'X-Agent37-Key: key-one' "$instances")" 401 'agent37: nor is the header of the other plane one'
agent37 "$first"
is "$code" 200 'agent37: what was refused did nothing'
key=key-two agent37 "$first"
refused_with 404 not_found 'agent37 get: another account sees nothing'
agent37 "$instances/abcdefghij"
refused_with 404 not_found 'agent37 get: 404'
for nowhere in "$base/agent37/nonsense" "$base/agent37/v2/instances" "$base/agent37/v1/instances/$id/nonsense" "-X PUT $instances" "$first/exec"; do
	agent37 $nowhere
	refused_with 404 not_found "agent37: no such path: ${nowhere//$base/}"
done
for missing in "$first/signed-url" "$first/public-ports" "$first/update" "$first/resize"; do
	agent37 -X POST "$missing" -d '{}'
	refused_with 501 not_emulated "agent37: not emulated: ${missing##*/}"
done

# Lists
for n in 1 2 3; do key=lister agent37_create "{\"metadata\":{\"n\":\"l$n\"}}"; done
order() { grep -o '"n":"l[0-9]"' <<<"$body" | tr -dc '0-9'; }
key=lister agent37 "$instances"
like "$code/$body" '200/{"data":[{"id":"' 'agent37 list: in an object'
is "$(order)" 321 'agent37 list: newest first, in one second too'
key=lister agent37 "$instances?limit=1&user=x"
is "$(order)" 321 'agent37 list: no filter and no pages'
key=lister agent37 -X DELETE "$one"
key=lister agent37 "$instances"
is "$(order)" 21 'agent37 list: what is deleted is not in it'
key=nobody agent37 "$instances"
is "$body" '{"data":[]}' 'agent37 list: empty'

# Stop, start, restart
one=$first id=${first##*/}
agent37 -X POST "$one/stop"
is "$code/$body" "200/{\"id\":\"$id\",\"status\":\"stopped\"}" 'agent37 stop: 200'
status_is stopped
is $? 0 'agent37 stop: is stopped'
agent37 -X POST "$one/stop"
is "$code/$body" "200/{\"id\":\"$id\",\"status\":\"stopped\"}" 'agent37 stop: again'
agent37 -X POST "$one/restart"
refused_with 400 invalid_request 'agent37 restart: not if it is stopped'
agent37 -X POST "$one/start"
is "$code/$body" "200/{\"id\":\"$id\",\"status\":\"running\"}" 'agent37 start: 200'
agent37 -X POST "$one/start"
is "$code/$body" "200/{\"id\":\"$id\",\"status\":\"running\"}" 'agent37 start: again'
agent37 -X POST "$one/restart"
is "$code/$body" "200/{\"id\":\"$id\",\"status\":\"restarting\"}" 'agent37 restart: 200'
status_is running
is $? 0 'agent37 restart: runs'
for action in stop start restart exec; do
	agent37 -X POST "$instances/abcdefghij/$action" -d '{"command":"true"}'
	refused_with 404 not_found "agent37 $action: of nothing"
done

# Changes
agent37 -X PATCH "$one" -d '{"metadata":{"new":"1"},"name":"other"}'
like "$code/$body" '"user":"u_1","name":"other","metadata":{"new":"1"},"auto_sleep":false' 'agent37 patch: metadata is replaced'
agent37 "$one"
like "$body" '"metadata":{"new":"1"}' 'agent37 patch: and stays so'
agent37 -X PATCH "$one" -d '{"user":null,"metadata":null,"auto_sleep":true,"idle_timeout_seconds":90}'
like "$code/$body" '"user":null,"name":"other","metadata":null,"auto_sleep":true,"idle_timeout_seconds":90' 'agent37 patch: the rest'
for wrong in '{"template":"x"}' '{"env":{"A":"1"}}' '{"resources":{"cpu":2,"memory":4}}' '{"auto_sleep":null}' '{"auto_sleep":false,"idle_timeout_seconds":90}' \
	"$(metadata 4089)" "{\"name\":\"$(repeat x 61)\"}" '[]'; do
	agent37 -X PATCH "$one" -d "$wrong"
	refused_with 400 invalid_request "agent37 patch: 400 for ${wrong:0:60}"
done
agent37 "$one"
like "$body" '"auto_sleep":true,"idle_timeout_seconds":90' 'agent37 patch: what was refused changed nothing'

# The console
agent37 "$one/logs"
like "$code/$body" '200/{"logs":"20' 'agent37 logs: 200'
is "$(grep -o 'gateway is listening' <<<"$body" | wc -l)" 3 'agent37 logs: a line for each start'
like "$body" '"truncated":false,"health":{"running":true,"restart_count":1,"exit_code":null,"oom_suspected":false,"resource_verdict":{' 'agent37 logs: health'
agent37 "$one/logs?tail=2"
is "$(grep -o 'gateway is listening' <<<"$body" | wc -l)" 2 'agent37 logs: the last lines'
for wrong in 0 2001 x ''; do
	agent37 "$one/logs?tail=$wrong"
	refused_with 400 invalid_request "agent37 logs: 400 for tail=$wrong"
done
agent37 -X POST "$one/stop"
agent37 "$one/logs"
like "$code/$body" '"health":{"running":false' 'agent37 logs: of a stopped one too'
agent37 -X POST "$one/start"

# Delete
agent37 -X DELETE "$one"
is "$code/$body" "200/{\"id\":\"$id\",\"deleted\":true}" 'agent37 delete: 200'
agent37 -X DELETE "$one"
refused_with 404 not_found 'agent37 delete: gone'
agent37 "$one"
refused_with 404 not_found 'agent37 get: gone'
agent37_create '{}'
agent37 -X POST "$one/stop"
agent37 -X DELETE "$one"
is "$code" 200 'agent37 delete: a stopped one'

# Quota: every one that is listed counts; stopped ones keep only their disk
quota37() { control quota "{\"provider\":\"agent37\",$1}"; }
quota37 '"sandboxes":2'
key=quota agent37_create '{}'
quota_one=$one
key=quota agent37_create '{}'
is "$code" 201 'agent37 quota: within it'
key=quota agent37_create '{}'
refused_with 409 instance_limit_reached 'agent37 quota: above it'
key=quota agent37 -X POST "$quota_one/stop"
key=quota agent37_create '{}'
refused_with 409 instance_limit_reached 'agent37 quota: a stopped one counts'
key=quota agent37_create '{"template":"no-such-thing"}'
refused_with 400 invalid_request 'agent37 quota: what is wrong with the request comes first'
key=quota agent37 -X DELETE "$quota_one"
key=quota agent37_create '{}'
is "$code" 201 'agent37 quota: a delete frees a place'
key=quota-two agent37_create '{}'
is "$code" 201 'agent37 quota: of each account'
for limit37 in '"cpu":4' '"memory":8' '"disk":8'; do
	quota37 "$limit37"
	key="of-$limit37" agent37_create '{}'
	kept=$one
	key="of-$limit37" agent37_create '{}'
	is "$code" 201 "agent37 quota: within $limit37"
	key="of-$limit37" agent37_create '{}'
	refused_with 503 no_capacity "agent37 quota: no room with $limit37"
	key="of-$limit37" agent37 -X POST "$kept/stop"
	key="of-$limit37" agent37_create '{}'
	if [ "$limit37" = '"disk":8' ]; then
		refused_with 503 no_capacity 'agent37 quota: a stopped one keeps its disk'
	else
		is "$code" 201 "agent37 quota: a stopped one gives back $limit37"
		key="of-$limit37" agent37 -X POST "$kept/start"
		refused_with 409 capacity_unavailable "agent37 start: no room with $limit37"
		key="of-$limit37" agent37 "$kept"
		like "$body" '"status":"stopped"' 'agent37 start: and nothing has changed'
		key="of-$limit37" agent37 -X DELETE "$one"
	fi
	key="of-$limit37" agent37 -X POST "$kept/start"
	is "$code" 200 "agent37 start: with room, $limit37"
done
quota37 '"cpu":null'

# Settings
settings37 '"delayMs":600000'
hold -X POST "$instances" -d '{"metadata":{"sbx-router-id":"held"}}'
eventually agent37_shows '"metadata":{"sbx-router-id":"held"}' "$instances"
like "$body" '{"data":[{"id":"' 'agent37 delay: listed meanwhile'
one=$instances/$(sed 's/{"data":\[{"id":"\([^"]*\)".*/\1/' <<<"$body")
agent37 "$one"
like "$body" '"status":"provisioning"' 'agent37 delay: as provisioning'
still_held
is $? 0 'agent37 delay: the create is held'
agent37 -X DELETE "$one"
refused_with 409 try_again 'agent37 delay: no delete meanwhile'
agent37 -X POST "$one/exec" -d '{"command":"true"}'
refused_with 400 invalid_request 'agent37 delay: no command either'
agent37 -X POST "$one/stop"
refused_with 400 invalid_request 'agent37 delay: no stop either'
let_go
agent37 "$one"
is "$code" 200 'agent37 delay: it is there all the same if its client goes away'
settings37 '"delayMs":1000'
hold -X POST "$instances" -d '{"metadata":{"sbx-router-id":"left"}}'
eventually agent37_shows '"metadata":{"sbx-router-id":"left"}' "$instances"
one=$instances/$(sed 's/{"data":\[{"id":"\([^"]*\)".*/\1/' <<<"$body")
let_go
eventually status_is running
is $? 0 'agent37 delay: and runs in the end'
settings37 '"delayMs":300'
begin=$(milliseconds)
agent37_create '{}'
like "$code/$(($(milliseconds) - begin >= 300))/$body" '201/1/{"id":"'"$id"'","status":"running"' 'agent37 delay: answered when it runs'
settings37 '"delayMs":0,"bootDelayMs":600000'
agent37_create '{}'
like "$code/$body" '"status":"running"' 'agent37 boot: runs'
execute37 'true'
is "$code/$body" '502/{"error":"container_unreachable"}' 'agent37 boot: but no command does yet'
inside "$plane/v1/health"
is "$code/$body" '502/{"error":"container_unreachable"}' 'agent37 boot: nor the gateway'
inside "$plane/health"
is "$code" 200 'agent37 boot: the edge says nothing about that'
agent37 -X DELETE "$one"
is "$code" 200 'agent37 boot: a delete is possible'
settings37 '"bootDelayMs":200'
agent37_create '{}'
eventually agent37_answers 200 -X POST "$one/exec" -d '{"command":"true"}'
is "$code" 200 'agent37 boot: later one does'
settings37 '"bootDelayMs":0,"stopDelayMs":600000'
agent37 -X POST "$one/stop"
is "$code/$body" "200/{\"id\":\"$id\",\"status\":\"stopped\"}" 'agent37 stop delay: the answer has the end'
agent37 "$one"
like "$body" '"status":"stopping"' 'agent37 stop delay: which is not there yet'
for busy in "-X POST $one/stop" "-X POST $one/start" "-X POST $one/restart" "-X DELETE $one"; do
	agent37 $busy
	refused_with 409 try_again "agent37 stop delay: meanwhile no ${busy%% http*} ${busy##*/}"
done
settings37 '"stopDelayMs":100,"startDelayMs":600000'
agent37_create '{}'
agent37 -X POST "$one/stop"
eventually status_is stopped
is $? 0 'agent37 stop delay: it ends'
agent37 -X POST "$one/start"
is "$code/$body" "200/{\"id\":\"$id\",\"status\":\"running\"}" 'agent37 start delay: the answer has the end'
status_is starting
is $? 0 'agent37 start delay: which is not there yet'
execute37 'true'
refused_with 400 invalid_request 'agent37 start delay: no command meanwhile'
inside "$plane/v1/health"
is "$code/$body" '502/{"error":"container_unreachable"}' 'agent37 start delay: and no gateway'
agent37_create '{}'
agent37 -X POST "$one/restart"
status_is restarting
is $? 0 'agent37 start delay: of a restart too'
agent37 -X POST "$one/start"
refused_with 409 try_again 'agent37 start delay: no start during a restart'
settings37 '"stopDelayMs":0,"startDelayMs":100'
agent37_create '{}'
agent37 -X POST "$one/restart"
eventually status_is running
is $? 0 'agent37 start delay: a restart ends'
settings37 '"startDelayMs":0,"checkpointMs":600000'
agent37_create '{}'
agent37 -X POST "$one/stop"
refused_with 409 try_again 'agent37 checkpoint: no stop right after a start'
execute37 'true'
is "$code" 200 'agent37 checkpoint: but commands'
settings37 '"checkpointMs":100'
agent37_create '{}'
eventually agent37_answers 200 -X POST "$one/stop"
is "$code" 200 'agent37 checkpoint: and later a stop'
settings37 '"checkpointMs":0,"slowDestroyMs":300'
begin=$(milliseconds)
agent37 -X DELETE "$one"
is "$code/$(($(milliseconds) - begin >= 300))" 200/1 'agent37 slow destroy: answered later'
settings37 '"slowDestroyMs":0,"listLagMs":600000'
key=lagging agent37_create '{}'
key=lagging agent37 "$instances"
is "$body" '{"data":[]}' 'agent37 list lag: a new one is missing'
key=lagging agent37 "$one"
is "$code" 200 'agent37 list lag: but can be got'
settings37 '"listLagMs":0,"startError":"no disk"'
key=lagging agent37 "$instances"
like "$body" "$id" 'agent37 list lag: it comes'
key=failing agent37_create '{"metadata":{"a":"1"}}'
is "$code/$body" '502/{"error":{"code":"provisioning_failed","message":"the instance did not come up","detail":"no disk"}}' 'agent37 start error: 502'
key=failing agent37 "$instances"
like "$body" '"status":"failed","status_reason":{"code":"provisioning_failed","message":"the instance did not come up","detail":"no disk","operation":"create","at":' \
	'agent37 start error: an instance is left'
like "$body" '"metadata":{"a":"1"}' 'agent37 start error: with its metadata'
one=$instances/$(sed 's/{"data":\[{"id":"\([^"]*\)".*/\1/' <<<"$body")
for action in start stop restart exec; do
	key=failing agent37 -X POST "$one/$action" -d '{"command":"true"}'
	refused_with 400 invalid_request "agent37 start error: no $action"
done
key=failing agent37 "$one/logs"
like "$body" '{"logs":"no disk\n","truncated":false,"health":null' 'agent37 start error: its console'
key=failing agent37 -X DELETE "$one"
is "$code" 200 'agent37 start error: a delete'
settings37 '"startError":null'
settings37 '"cpuMaximum":4'
agent37_create '{"resources":{"cpu":8,"memory":16}}'
refused_with 403 tier_limit 'agent37 tier: a shape above it'
agent37_create '{"resources":{"cpu":4,"memory":8}}'
is "$code" 201 'agent37 tier: one within it'
settings37 '"cpuMaximum":8,"pastDue":true'
agent37 -X POST "$instances" -d '{}'
refused_with 402 insufficient_balance 'agent37 past due: no create'
agent37 -X POST "$one/start"
refused_with 402 insufficient_balance 'agent37 past due: no start'
inside "$plane/v1/health"
is "$code/$body" '402/{"error":"instance_suspended"}' 'agent37 past due: nothing at its URL'
agent37 "$one"
like "$code/$body" '"past_due":true' 'agent37 past due: which it says'
agent37 -X DELETE "$one"
is "$code" 200 'agent37 past due: a delete is possible'
settings37 '"pastDue":false'
agent37_create '{}'
like "$code/$body" '"past_due":false' 'agent37 past due: and when all is paid a create'
like "$(settings37 '"pastDue":false'; echo "$body")" '"execLimitMs":280000,"wakeLimitMs":180000,"idleMinimumSeconds":60,"cpuMaximum":8,"pastDue":false,"startError":null}' 'agent37 config: shows all settings'
for wrong in '"nonsense":1' '"delayMs":-1' '"delayMs":true' '"startError":1' '"execLimitMs":0'; do
	settings37 "$wrong"
	is "$code" 400 "agent37 config: $wrong is refused"
done

# The audit: named by a label that is meant to be unique, else by the name
note_requests
agent37_create '{"name":"n","metadata":{"sbx-router-id":"sbx_1"}}'
agent37 -X POST "$instances" -d '{"template":"no-such-thing","metadata":{"sbx-router-id":"sbx_1"}}'
entry() { call "$base/_control/audit"; grep -o "{[^{]*\"id\":\"$id\"[^}]*}[^}]*}" <<<"$body"; }
like "$(entry)" '"provider":"agent37"' 'agent37 audit: the provider'
like "$(entry)" '"name":"sbx_1","labels":{"sbx-router-id":"sbx_1"}' 'agent37 audit: the name'
like "$(entry)" '"alive":true,"creates":2' 'agent37 audit: both creates'
agent37 -X DELETE "$one"
like "$(entry)" '"alive":false' 'agent37 audit: dead'
agent37_create '{"name":"only this"}'
like "$(entry)" '"name":"only this"' 'agent37 audit: else the name'
agent37 -X DELETE "$one"

# The log of requests
inside "$plane/v1/health"
call "$base/_control/requests?since=$last"
like "$body" '"provider":"agent37","op":"create"' 'agent37 requests: a create'
like "$body" '"authorization":"Bearer ***"' 'agent37 requests: the key is masked'
like "$body" '"x-agent37-key":"***"' 'agent37 requests: on the other plane too'
unlike "$body" 'key-one' 'agent37 requests: no key anywhere'
