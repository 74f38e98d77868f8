# The control plane: accounts, creates, names, lists, deletes, settings.

# For the lists that lag, far below: by then it is old, however fast the machine.
key=lag create '{"name":"old"}'
born=$(milliseconds)

create '{"name":"first","labels":{"run":"1","k":"a b"},"env":{"FOO":"bar"}}'
is "$code" 200 'create answers 200'
like "$body" '"state":"started"' 'create answers started when no delay is set'
like "$body" '"snapshot":"daytona-small"' 'the default snapshot is named'
like "$body" '"cpu":1,"gpu":0,"memory":1,"disk":3' 'sizes of the default snapshot'
like "$body" '"labels":{"run":"1","k":"a b"}' 'labels are kept'
like "$body" "\"toolboxProxyUrl\":\"$base/daytona/toolbox\"" 'the toolbox is at the same origin'
first=$id

call "$api/$first"
is "$code" 200 'get by id'
call "$api/first"
like "$body" "\"id\":\"$first\"" 'get by name'
call "$api/f%69rst"
like "$body" "\"id\":\"$first\"" 'the path is unescaped'
call "$api/second"
is "$code" 404 'get of an unknown name'
like "$body" '"path":"/api/sandbox/second"' 'errors carry the path'
like "$body" '"message":"Sandbox with ID or name second not found"' 'errors carry the message'
key=key-two call "$api/$first"
is "$code" 404 'another account does not see the sandbox'

call -X POST "$api" -d '{"name":"first"}'
is "$code" 409 'a name is taken once'
like "$body" 'Sandbox with name first already exists' 'the text of a name conflict'
key=key-two create '{"name":"first"}'
is "$code" 200 'the same name is free in another account'

create '{"name":"image","buildInfo":{"dockerfileContent":"FROM debian:12\n"},"cpu":2,"memory":4,"disk":8}'
like "$body" '"cpu":2,"gpu":0,"memory":4,"disk":8' 'an image create has the sizes of the call'
call -X POST "$api" -d '{"snapshot":"x","cpu":2}'
is "$code" 400 'snapshot and sizes are refused'
like "$body" 'Cannot specify Sandbox resources when using a snapshot' 'with the text for that'
call -X POST "$api" -d '{"snapshot":"x","buildInfo":{"dockerfileContent":"FROM a"}}'
is "$code" 400 'snapshot and build info are refused'
call -X POST "$api" -d '{"autoStopInterval":-1}'
is "$code" 400 'a negative interval is refused'
call -X POST "$api" -d '{"snapshot":"no-such-thing"}'
is "$code" 400 'an unknown snapshot is 400'
like "$body" 'Snapshot no-such-thing not found' 'with the text for that'
call -X POST "$api" -d '{"name":'
is "$code" 400 'a body that is no JSON is 400'
call -X POST "$api" -d '{"labels":{"a":1}}'
is "$code" 400 'a label that is no string is 400'

for refused in bad:401 denied:403 limited:429; do
	for where in "-X POST $api" "$api" "$api/$first" "-X DELETE $api/$first"; do
		key=${refused%:*}-key call $where
		is "$code" "${refused#*:}" "a ${refused%:*}- key gets ${refused#*:} from ${where//$base/}"
	done
done
key=limited-key call -X POST "$api" -d 'no json'
like "$(tr -d '\r' <"$work/headers")" 'Retry-After-sandbox-create: 1' 'a 429 says when to retry, with suffix'
code=$(curl -sS -o /dev/null -w '%{http_code}' "$api")
is "$code" 401 'no Authorization is 401'
is "$(curl -sS -o /dev/null -w '%{http_code}' "$base/daytona/api/socket.io/?EIO=4&transport=websocket")" \
	404 'the event socket is refused at once'
like "$(curl -sS "$base/daytona/sandbox")" '<html>' 'a base without /api answers a page'

# Lists
for n in 1 2 3; do
	key=lister create "{\"name\":\"l$n\",\"labels\":{\"n\":\"$n\",\"all\":\"yes ü\"}}"
done
key=lister call "$api?limit=2&sort=createdAt&order=asc"
like "$body" '"name":"l1"' 'first page has the first'
unlike "$body" '"name":"l3"' 'first page has not the third'
cursor=$(sed 's/.*"nextCursor":"\([^"]*\)".*/\1/; s/=/%3D/g; s/+/%2B/g' <<<"$body")
key=lister call "$api?limit=2&sort=createdAt&order=asc&cursor=$cursor"
like "$body" '"name":"l3"' 'second page has the third'
unlike "$body" '"name":"l2"' 'second page does not repeat'
like "$body" '"nextCursor":null' 'the last page has no cursor'
key=lister call "$api?labels=%7B%22n%22%3A%222%22%2C%22all%22%3A%22yes+%C3%BC%22%7D&states=started&states=creating"
like "$body" '"name":"l2"' 'labels filter finds'
unlike "$body" '"name":"l1"' 'labels filter excludes'
key=lister call "$api?states=stopped"
is "$body" '{"items":[],"nextCursor":null}' 'states filter excludes'
for wrong in 'labels=nope' 'limit=0' 'limit=201' 'states=destroyed' 'cursor=zz' 'sort=zz'; do
	key=lister call "$api?$wrong"
	is "$code" 400 "list with $wrong is 400"
done

# Stop, start, delete
call -X POST "$api/$first/autostop/30"
like "$body" '"autoStopInterval":30' 'autostop is set'
call -X POST "$api/$first/autoarchive/0"
like "$body" '"autoArchiveInterval":43200' 'autoarchive 0 is the longest'
call -X POST "$api/$first/autoarchive/-1"
is "$code" 400 'a negative one is refused'
call -X PUT "$api/$first/labels" -d '{"labels":{"new":"ü"}}'
is "$code/$body" '200/{"labels":{"new":"ü"}}' 'labels are replaced'
call -X PUT "$api/$first/labels" -d '{"labels":{"new":1}}'
is "$code" 400 'not by something else'
call "$api/$first"
like "$body" '"labels":{"new":"ü"}' 'and kept'
call "$api/$first/toolbox-proxy-url"
is "$body" "{\"url\":\"$base/daytona/toolbox\"}" 'the toolbox URL can be asked for'
call -X POST "$api/$first/stop"
is "$code" 200 'stop'
call "$api/$first"
like "$body" '"state":"stopped"' 'stopped'
call -X POST "$api/$first/start"
call "$api/$first"
like "$body" '"state":"started"' 'started again'
create '{"name":"ephemeral","autoDeleteInterval":0}'
call -X POST "$api/ephemeral/stop"
call "$api/$id"
is "$code" 404 'stop of an ephemeral sandbox deletes it'

call -X DELETE "$api/$first"
is "$code" 200 'delete'
like "$body" '"state":"destroying"' 'delete answers destroying'
like "$body" '"name":"DESTROYED_first_' 'delete frees the name'
call -X DELETE "$api/$first"
is "$code" 404 'a second delete is 404'
call -X POST "$api" -d '{"name":"first"}'
is "$code" 200 'the name can be used again'

call "$base/_control/audit"
like "$(grep -o "{[^{]*\"id\":\"$first\"[^}]*}[^}]*}" <<<"$body")" '"alive":false,"creates":3' \
	'audit: dead, and three creates for its name'
like "$body" '"name":"image","labels":{}' 'audit: has the others'
unlike "$body" 'key-one' 'audit: does not show keys'

# Requests as they came
call "$base/_control/requests?since=0"
like "$body" '"path":"/daytona/api/sandbox/f%69rst"' 'requests: path as sent'
like "$body" '"authorization":"Bearer ***"' 'requests: credentials are masked'
unlike "$body" 'key-one' 'requests: no key anywhere'
like "$body" '"body":"{\"name\":\"first\"}"' 'requests: the body'
last=$(sed 's/.*"last":\([0-9]*\)}/\1/' <<<"$body")
call "$api/twice"
call "$base/_control/requests?since=$last"
like "$body" "{\"requests\":[{\"seq\":$((last + 1))," 'requests: only those since'
curl -sS -o /dev/null -o /dev/null -H 'Authorization: Bearer k' "$api/one" "$api/two"
call "$base/_control/requests?since=$((last + 1))"
like "$body" '"connectionRequest":2' 'requests: second on its connection'

printf '{"name":"zipped"}' | gzip -c >"$work/zip"
call -X POST "$api" -H 'Content-Encoding: gzip' --data-binary "@$work/zip"
like "$body" '"name":"zipped"' 'gzip body'
call -X POST "$api" -H 'Content-Encoding: gzip' --data-binary 'not zipped'
is "$code" 400 'a gzip body that is none'
call -X POST "$api" -H 'Transfer-Encoding: chunked' -d '{"name":"chunked"}'
like "$body" '"name":"chunked"' 'chunked body'

# Quota
control quota '{"provider":"daytona","cpu":2}'
key=quota create '{}'
key=quota create '{}'
is "$code" 200 'within the quota'
key=quota create '{}'
is "$code" 400 'above the quota'
like "$body" 'Total CPU limit exceeded. Maximum allowed: 2.' 'the text of the quota'
control quota '{"provider":"daytona","memory":0}'
key=quota-two create '{}'
like "$body" 'Total memory limit exceeded.' 'memory quota'
control quota '{"provider":"daytona","disk":1}'
key=quota-two create '{}'
like "$body" 'Total disk limit exceeded.' 'disk quota'
control quota '{"provider":"daytona","gpus":1}'
is "$code" 400 'an unknown quota is refused'
control quota '{"provider":"daytona"}'
key=quota create '{}'
is "$code" 200 'the quota can be lifted'

# Delays
control config '{"provider":"daytona","delayMs":600000}'
hold -X POST "$api" -d '{"name":"held"}'
eventually answers 200 "$api/held"
like "$body" '"state":"creating"' 'held create: the row is there first'
call -X DELETE "$api/held"
is "$code" 409 'held create: delete is a conflict'
like "$body" 'Sandbox state change in progress' 'held create: the text of it'
still_held
is $? 0 'held create: not answered yet'
let_go
control config '{"provider":"daytona","delayMs":700}'
begin=$(milliseconds)
create '{"name":"held-two"}'
like "$body" '"state":"creating"' 'held create: answers the state of before'
[ $(($(milliseconds) - begin)) -ge 700 ]
is $? 0 'held create: is held'
eventually shows '"state":"started"' "$api/held-two"
like "$body" '"state":"started"' 'held create: started afterwards'
call -X DELETE "$api/held-two"
is "$code" 200 'held create: delete works afterwards'
hold -X POST "$api" -d '{"name":"held-three"}'
eventually answers 200 "$api/held-three"
let_go
eventually shows '"state":"started"' "$api/held-three"
like "$body" '"state":"started"' 'held create: started even if nobody waits'
control config '{"provider":"daytona","delayMs":600000}'
create '{"name":"held-image","buildInfo":{"dockerfileContent":"FROM debian:12\n"}}'
is "$code" 200 'held create: not of an image, which is answered at once'
like "$body" '"state":"pending_build"' 'held create: while its build is pending'
control config '{"provider":"daytona","delayMs":0,"startDelayMs":600000}'
create '{"name":"later"}'
like "$body" '"state":"creating"' 'start delay: answered at once'
execute '{"command":"true"}'
is "$code" 400 'start delay: no toolbox yet'
control config '{"provider":"daytona","startDelayMs":300}'
create '{"name":"later-two"}'
like "$body" '"state":"creating"' 'start delay: a short one, too, is answered at once'
eventually shows '"state":"started"' "$api/later-two"
like "$body" '"state":"started"' 'start delay: started later'
execute '{"command":"true"}'
is "$code" 200 'start delay: and then there is a toolbox'
control config '{"provider":"daytona","startDelayMs":0,"deleteConflictMs":600000}'
create '{"name":"early"}'
call -X DELETE "$api/early"
is "$code" 409 'early delete is a conflict'
control config '{"provider":"daytona","deleteConflictMs":300}'
create '{"name":"early-two"}'
eventually answers 200 -X DELETE "$api/early-two"
is "$code" 200 'a later one is not'
control config '{"provider":"daytona","deleteConflictMs":0,"slowDestroyMs":600000}'
create '{"name":"slow"}'
hold -X DELETE "$api/slow"
eventually answers 404 "$api/$id"
call "$base/_control/audit"
like "$(grep -o "{[^{]*\"id\":\"$id\"[^}]*}[^}]*}" <<<"$body")" '"alive":false' \
	'slow destroy: dead the moment it is accepted'
still_held
is $? 0 'slow destroy: not answered yet'
let_go
control config '{"provider":"daytona","slowDestroyMs":400}'
create '{"name":"slow-two"}'
begin=$(milliseconds)
call -X DELETE "$api/slow-two"
is "$code/$(($(milliseconds) - begin >= 400))" 200/1 'slow destroy: answered later'
control config '{"provider":"daytona","slowDestroyMs":0,"listLagMs":600000}'
key=lag create '{"name":"lagging"}'
key=lag call "$api"
is "$body" '{"items":[],"nextCursor":null}' 'list lag: a new one is missing'
control config '{"provider":"daytona","listLagMs":400}'
key=lag eventually shows '"name":"lagging"' "$api"
like "$body" '"name":"lagging"' 'list lag: it comes'
key=lag call -X DELETE "$api/old"
control config "{\"provider\":\"daytona\",\"listLagMs\":$(($(milliseconds) - born))}"
key=lag call "$api"
like "$body" '"name":"old"' 'list lag: a deleted one is still there'
key=lag call "$api/old"
is "$code" 404 'list lag: but cannot be got'
control config '{"provider":"daytona","listLagMs":400}'
key=lag eventually hides '"name":"old"' "$api"
is "$code" 200 'list lag: lists go on'
unlike "$body" '"name":"old"' 'list lag: it goes'
control config '{"provider":"daytona","listLagMs":0,"minuteMs":200}'
create '{"name":"idle","autoStopInterval":1}'
create '{"name":"busy","autoStopInterval":0}'
create '{"name":"short","ttlMinutes":1}'
create '{"name":"lasting","ttlMinutes":0}'
eventually answers 404 "$api/short"
is "$code" 404 'a lifetime ends'
call "$api/lasting"
is "$code" 200 'one of 0 does not'
eventually shows '"state":"stopped"' "$api/idle"
like "$body" '"state":"stopped"' 'auto-stop stops an idle one'
call "$api/busy"
like "$body" '"state":"started"' 'auto-stop 0 does not'
for name in used unused; do
	create "{\"name\":\"$name\",\"autoStopInterval\":0}"
	call -X POST "$box/process/session" -d '{"sessionId":"s"}'
	call -X POST "$box/process/session/s/exec" -d '{"command":"sleep 600","runAsync":true}'
	[ $name = used ] || continue
	hold "$box/process/execute" -d '{"command":"touch ~/open; sleep 600"}'
	eventually answers 200 "$box/files/download?path=open"
done
call -X POST "$api/used/autostop/1"
call -X POST "$api/unused/autostop/1"
eventually shows '"state":"stopped"' "$api/unused"
like "$body" '"state":"stopped"' 'auto-stop does not care for processes'
call "$api/used"
like "$body" '"state":"started"' 'but for a request that is open'
let_go
eventually shows '"state":"stopped"' "$api/used"
like "$body" '"state":"stopped"' 'and no longer'
control config '{"provider":"daytona","startError":"image pull failed"}'
create '{"name":"broken"}'
is "$code" 400 'start error: 400'
like "$body" 'Sandbox failed to start: image pull failed' 'start error: the text'
call "$api/broken"
like "$body" '"state":"error"' 'start error: but the row exists'
control config '{"provider":"daytona","nonsense":1}'
is "$code" 400 'an unknown setting is refused'
control config '{"provider":"nobody","delayMs":1}'
is "$code" 400 'an unknown provider is refused'

control reset ''
is "$code" 200 'reset'
call "$base/_control/audit"
is "$body" '{"sandboxes":[]}' 'after a reset nothing is left'
call "$api"
is "$body" '{"items":[],"nextCursor":null}' 'not in a list either'
call "$base/_control/nonsense"
is "$code" 404 'unknown control path'
