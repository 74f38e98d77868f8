# E2B's control plane.

sandboxes=$e2b_api/v2/sandboxes
one=$e2b_api/sandboxes

e2b_create '{"templateID":"base","metadata":{"app name":"a b&c=d/é","k":"100%"},"envVars":{"A":"1"}}'
first=$id
is "$code" 201 'e2b create: 201'
like "$body" '"templateID":"rki5dems9wqfm4r03t7g","sandboxID":"i' 'e2b create: template and id'
[[ $id =~ ^i[a-z0-9]{20}$ ]]
is $? 0 'e2b create: the form of an id'
like "$body" '"domain":null,"trafficAccessToken":null,"alias":"base"}' 'e2b create: no domain, no traffic token'
[ ${#token} -eq 64 ]
is $? 0 'e2b create: a token'
unlike "$body" '"state"' 'e2b create: no state'
e2b "$one/$first"
is "$code" 200 'e2b get: 200'
like "$body" "\"envdAccessToken\":\"$token\",\"domain\":null" 'e2b get: the same token, no domain'
like "$body" '"cpuCount":2,"memoryMB":512,"diskSizeMB":1024' 'e2b get: sizes'
like "$body" '"metadata":{"app name":"a b&c=d/é","k":"100%"},"state":"running"' 'e2b get: metadata and state'
like "$body" '"lifecycle":{"autoResume":false,"onTimeout":"kill"}' 'e2b get: lifecycle'
unlike "$body" '"trafficAccessToken"' 'e2b get: no traffic token'
unlike "$body" '"allowInternetAccess"' 'e2b get: nothing of what was not given'
e2b "$one/$first-6532622b"
is "$code" 200 'e2b get: an id with a client id'
e2b "$one/inothing"
is "$code" 404 'e2b get: 404'
like "$body" '{"code":404,"message":"Sandbox \"inothing\"' 'e2b get: the error format'
key=key-two e2b "$one/$first"
is "$code" 404 'e2b get: another account sees nothing'

# How long a sandbox has still to live: at most that many seconds, and not much
# less, even if it was some time ago that it was told so.
lasts()
{
	e2b "$one/$2"
	perl -MTime::Local -ne '/"endAt":"(....)-(..)-(..)T(..):(..):(..)/ or exit 1;
		$left = timegm($6, $5, $4, $3, $2 - 1, $1) - time;
		exit !($left <= '"$1"' + 1 && $left > '"$1"' - 40)' <<<"$body"
}

lasts 300 "$first"
is $? 0 'e2b create: 300 s if v2 names no timeout'
e2b -X POST "$one" -d '{"templateID":"base"}'
is "$code" 201 'e2b create v1: 201'
lasts 15 "$(sed 's/.*"sandboxID":"\([^"]*\)".*/\1/' <<<"$body")"
is $? 0 'e2b create v1: 15 s if it names none'
e2b -X POST "$one" -d '{"templateID":"base","timeout":300,"secure":true,"allow_internet_access":true,"autoPause":false,"autoResume":{"enabled":false}}'
is "$code" 201 'e2b create v1: as the older client does it'
like "$body" '"envdAccessToken":"' 'e2b create v1: has a token'
e2b_create '{"templateID":" My-Team/Tpl:v2.1 ","timeout":1801,"allow_internet_access":false,"network":{"allowOut":["1.1.1.1"],"allowPublicTraffic":false,"egressProxy":{"address":"a:1","password":"secret"}},"autoPause":true,"autoResume":{"enabled":true}}'
is "$code" 201 'e2b create: with everything'
like "$body" '"alias":"tpl"' 'e2b create: a template reference is taken apart'
unlike "$body" '"trafficAccessToken":null' 'e2b create: private traffic has a token'
lasts 1800 "$id"
is $? 0 'e2b create: the timeout'
e2b "$one/$id"
like "$body" '"allowInternetAccess":false,"lifecycle":{"autoResume":true,"onTimeout":"pause"}' 'e2b get: what was given'
like "$body" '"network":{"allowOut":["1.1.1.1"],"allowPublicTraffic":false,"egressProxy":{"address":"a:1"}}' \
	'e2b get: the network, without a password'
for wrong in '{}' '[]' 'no json' '{"templateID":7}' '{"templateID":"a b"}' '{"templateID":"base","timeout":0}' \
	'{"templateID":"base","timeout":"1"}' '{"templateID":"base","timeout":86401}' '{"templateID":"base","metadata":{"a":1}}' \
	'{"templateID":"base","metadata":[]}' '{"templateID":"base","envVars":{"a":null}}' '{"templateID":"base","autoPause":1}' \
	'{"templateID":"base","autoPauseMemory":false}' \
	'{"templateID":"base","autoPause":true,"autoPauseMemory":false,"autoResume":{"enabled":true}}' \
	'{"templateID":"base","network":{"allowOut":["example.com"]}}'; do
	e2b -X POST "$sandboxes" -d "$wrong"
	is "$code" 400 "e2b create: 400 for $wrong"
done
e2b -X POST "$sandboxes" -d '{"templateID":"base","network":{"allowOut":["example.com"],"denyOut":["0.0.0.0/0"]}}'
is "$code" 201 'e2b create: a domain is let through where nothing else is'
for unknown in no-such-thing team/no-such-thing:v1; do
	e2b -X POST "$sandboxes" -d "{\"templateID\":\"$unknown\"}"
	is "$code" 404 "e2b create: 404 for the template $unknown"
done
e2b -X POST "$sandboxes" -H 'Transfer-Encoding: chunked' -d '{"templateID":"base"}'
is "$code" 201 'e2b create: a body in chunks'
e2b_create '{"templateID":"desktop"}'
e2b "$one/$id"
like "$body" '"cpuCount":8,"memoryMB":8192,"diskSizeMB":10240' 'e2b create: another template, other sizes'

for refused in bad:401 denied:403 limited:429; do
	for where in "-X POST $sandboxes" "-X POST $one" "$sandboxes" "$one/$first" "-X DELETE $one/$first" "$e2b_api/nonsense"; do
		key=${refused%:*}-key e2b $where
		is "$code" "${refused#*:}" "e2b: a ${refused%:*}- key gets ${refused#*:} from ${where//$base/}"
	done
	like "$body" "{\"code\":${refused#*:},\"message\":\"" "e2b: in its own format"
done
key=limited-key e2b -X POST "$sandboxes" -d 'no json'
is "$code/$(header retry-after)/$(header ratelimit-limit)" 429/1/5 'e2b: a rate limit says when to retry'
key=bad-key e2b -X POST "$sandboxes" -d 'no json'
is "$code/$(header retry-after)" 401/ 'e2b: other refusals do not'
is "$(curl -sS -o /dev/null -w '%{http_code}' "$sandboxes")" 401 'e2b: no key is 401'
e2b "$one/$first"
is "$code" 200 'e2b: what was refused did nothing'
e2b "$e2b_api/nonsense"
is "$code" 404 'e2b: an unknown path'

# Lists
for n in 1 2 3; do
	key=lister e2b_create "{\"templateID\":\"base\",\"metadata\":{\"n\":\"l$n\",\"odd\":\"a b&c=d/é 100%+\"}}"
	[ $n = 2 ] && second=$id
done
key=lister e2b "$sandboxes?limit=2"
like "$body" '"n":"l3"' 'e2b list: newest first'
unlike "$body" '"n":"l1"' 'e2b list: no more than the limit'
is "$(header x-total-running)" 3 'e2b list: how many run, before the pages'
unlike "$body" 'envdAccessToken' 'e2b list: no tokens'
next=$(header x-next-token | sed 's/=/%3D/g; s/+/%2B/g')
[ -n "$next" ]
is $? 0 'e2b list: there is a next page'
key=lister e2b "$sandboxes?limit=2&nextToken=$next"
like "$body" '"n":"l1"' 'e2b list: the next page has the rest'
unlike "$body" '"n":"l2"' 'e2b list: and nothing twice'
is "$(header x-total-running)" '' 'e2b list: how many run is told once'
is "$(header x-next-token)" '' 'e2b list: and is the last'
key=lister e2b "$sandboxes?limit=2&order=asc&nextToken=$next"
is "$code" 400 'e2b list: no next page in another order'
key=lister e2b "$sandboxes?limit=1&order=asc"
like "$body" '"n":"l1"' 'e2b list: oldest first'
key=lister e2b "$sandboxes?limit=1&order=asc&nextToken=$(header x-next-token | sed 's/=/%3D/g; s/+/%2B/g')"
like "$body" '"n":"l2"' 'e2b list: the next of those'
key=lister e2b "$sandboxes?metadata=n%3Dl2"
like "$body" '"n":"l2"' 'e2b list: by metadata'
unlike "$body" '"n":"l1"' 'e2b list: and no others'
odd=odd%3Da%252520b%252526c%25253Dd%25252F%2525C3%2525A9%252520100%252525%25252B
key=lister e2b "$sandboxes?metadata=$odd%26n%3Dl2&state=running,paused&limit=100"
like "$body" '"n":"l2"' 'e2b list: by metadata that is escaped three times'
unlike "$body" '"n":"l1"' 'e2b list: of all pairs'
key=lister e2b "$sandboxes?metadata=$(sed 's/%25252B/%252520/' <<<"$odd")"
is "$body" '[]' 'e2b list: and exactly'
e2b "$sandboxes?metadata=app%252520name%3Da%252520b%252526c%25253Dd%25252F%2525C3%2525A9%26k%3D100%252525&state=running,paused&limit=2"
like "$body" "\"sandboxID\":\"$first\"" 'e2b list: as the official client asks'
for wrong in metadata= metadata=n metadata=n%3D100%25 limit=0 limit=101 limit=x state= state=killed state=running,x nextToken=x \
	nextToken=%3D%3D%3D%3D order=up startedAfter=now; do
	key=lister e2b "$sandboxes?$wrong"
	is "$code" 400 "e2b list: $wrong is 400"
done
key=lister e2b "$sandboxes?startedAfter=2999-01-01T00:00:00Z"
is "$body" '[]' 'e2b list: none started later'
key=lister e2b "$sandboxes?startedAfter=2001-01-01T00:00:00.5Z&template=base"
like "$body" '"n":"l3"' 'e2b list: all started since, of that template'
key=lister e2b "$sandboxes?template=other"
is "$body" '[]' 'e2b list: none of another template'
key=lister e2b -X POST "$one/$second/pause" -d '{}'
key=lister e2b "$sandboxes?state=running"
unlike "$body" '"n":"l2"' 'e2b list: running only'
is "$(header x-total-running)" 2 'e2b list: of which two run'
key=lister e2b "$sandboxes?state=paused"
like "$body" '"n":"l2"' 'e2b list: paused only'
is "$(header x-total-running)" '' 'e2b list: does not say how many run then'
key=lister e2b "$sandboxes"
like "$body" '"n":"l2"' 'e2b list: both without a state'
key=lister e2b "$one?metadata=odd%3Dx"
is "$body" '[]' 'e2b list v1: by metadata'
key=lister e2b "$one?limit=1"
unlike "$body" '"n":"l2"' 'e2b list v1: not what is paused'
like "$body" '"n":"l1"' 'e2b list v1: no pages'

# Timeout, pause, connect, kill
e2b -X POST "$one/$first/timeout" -d '{"timeout":600}'
is "$code/$body" 204/ 'e2b timeout: 204'
lasts 600 "$first"
is $? 0 'e2b timeout: longer'
e2b -X POST "$one/$first/timeout" -d '{"timeout":100}'
lasts 100 "$first"
is $? 0 'e2b timeout: shorter'
e2b -X POST "$one/$first/timeout" -d '{"timeout":100000}'
lasts 86400 "$first"
is $? 0 'e2b timeout: silently cut to the maximum'
e2b -X POST "$one/$first/timeout" -d '{}'
is "$code" 400 'e2b timeout: must be there'
e2b -X POST "$one/inothing/timeout" -d '{"timeout":1}'
is "$code" 404 'e2b timeout: of nothing'
e2b -X POST "$sandboxes/$first/connect" -d '{"timeout":60}'
is "$code" 200 'e2b connect: 200 if it runs'
lasts 86400 "$first"
is $? 0 'e2b connect: takes no time away'
e2b -X POST "$one/$first/timeout" -d '{"timeout":30}'
e2b -X POST "$sandboxes/$first/connect"
lasts 300 "$first"
is $? 0 'e2b connect: 300 s if v2 names no timeout'
e2b -X POST "$one/$first/connect" -d '{}'
is "$code" 400 'e2b connect v1: needs a timeout'
e2b -X POST "$one/$first/connect" -d '{"timeout":900}'
is "$code" 200 'e2b connect v1: with one'
lasts 900 "$first"
is $? 0 'e2b connect v1: which lengthens'
e2b -X POST "$one/$first/resume" -d '{}'
is "$code" 409 'e2b resume: 409 if it runs'
e2b -X POST "$one/$first/pause" -d '{}'
is "$code/$body" 204/ 'e2b pause: 204'
e2b "$one/$first"
like "$body" '"state":"paused"' 'e2b pause: paused'
e2b -X POST "$one/$first/pause" -d '{"memory":true}'
is "$code" 409 'e2b pause: once'
e2b -X POST "$one/$first/timeout" -d '{"timeout":600}'
is "$code" 404 'e2b timeout: 404 if it is paused'
e2b -X POST "$sandboxes/$first/connect" -d '{"timeout":700}'
is "$code" 201 'e2b connect: 201 if it was paused'
like "$body" "\"sandboxID\":\"$first\"" 'e2b connect: which sandbox'
e2b "$one/$first"
like "$body" '"state":"running"' 'e2b connect: runs again'
like "$body" '"metadata":{"app name"' 'e2b connect: with its metadata'
e2b -X POST "$one/$first/pause" -d '{"memory":1}'
is "$code" 400 'e2b pause: a wrong type'
e2b -X POST "$one/$first/pause" -d '{"memory":false}'
e2b -X POST "$one/$first/resume" -d '{}'
is "$code" 201 'e2b resume: 201'
e2b -X DELETE "$one/$first"
is "$code/$body" 204/ 'e2b kill: 204'
e2b -X DELETE "$one/$first"
is "$code" 404 'e2b kill: gone'
e2b -X POST "$sandboxes/$first/connect" -d '{}'
is "$code" 404 'e2b connect: gone'
key=lister e2b -X DELETE "$one/$second"
is "$code" 204 'e2b kill: a paused one'

# Lifetimes that end
e2b_create '{"templateID":"base","timeout":2}'
short=$id
e2b_create '{"templateID":"base","timeout":2,"autoPause":true}'
pausing=$id
e2b "$one/$short"
is "$code" 200 'e2b lifetime: of two seconds, at first'
eventually e2b_answers 404 "$one/$short"
is "$code" 404 'e2b lifetime: then it is gone'
eventually e2b_shows '"state":"paused"' "$one/$pausing"
like "$body" '"state":"paused"' 'e2b lifetime: or paused'
e2b_create '{"templateID":"base"}'
e2b -X POST "$one/$id/timeout" -d '{"timeout":-5}'
eventually e2b_answers 404 "$one/$id"
is "$code" 404 'e2b lifetime: a negative one ends it'

# Quota: what runs counts, what is paused does not
control quota '{"provider":"e2b","sandboxes":2}'
key=quota e2b_create '{"templateID":"base"}'
quota_one=$id
key=quota e2b_create '{"templateID":"base"}'
is "$code" 201 'e2b quota: within it'
key=quota e2b_create '{"templateID":"base"}'
is "$code" 429 'e2b quota: above it'
like "$body" '(2)' 'e2b quota: its number is in the text'
is "$(header retry-after)" '' 'e2b quota: nothing says when to retry'
key=quota e2b -X POST "$sandboxes" -d '{"templateID":"no-such-thing"}'
is "$code" 404 'e2b quota: what is wrong with the request comes first'
key=quota e2b -X POST "$one/$quota_one/pause" -d '{}'
key=quota e2b_create '{"templateID":"base"}'
is "$code" 201 'e2b quota: a paused one does not count'
key=quota e2b -X POST "$sandboxes/$quota_one/connect" -d '{}'
is "$code" 429 'e2b quota: a resume does'
key=quota e2b -X DELETE "$one/$id"
key=quota e2b -X POST "$sandboxes/$quota_one/connect" -d '{}'
is "$code" 201 'e2b quota: a kill frees a place'
key=quota-two e2b_create '{"templateID":"base"}'
is "$code" 201 'e2b quota: of each account'
control quota '{"provider":"e2b"}'

# Settings
control config '{"provider":"e2b","delayMs":600000}'
hold -H 'X-API-KEY: held' -X POST "$sandboxes" -d '{"templateID":"base","metadata":{"name":"held"}}'
eventually shows '"name":"held"' "$base/_control/audit"
still_held
is $? 0 'e2b delay: a create is held'
held_id=$(grep -o '"id":"[^"]*","name":"held"' <<<"$body" | cut -d'"' -f4)
[ -n "$held_id" ]
is $? 0 'e2b delay: but it is there'
key=held e2b "$one/$held_id"
is "$code" 404 'e2b delay: though not to be got'
key=held e2b "$sandboxes"
is "$body" '[]' 'e2b delay: nor listed'
let_go
control config '{"provider":"e2b","delayMs":300}'
begin=$(milliseconds)
key=held e2b_create '{"templateID":"base"}'
is "$code/$(($(milliseconds) - begin >= 300))" 201/1 'e2b delay: answered later'
key=held e2b "$one/$id"
like "$body" '"state":"running"' 'e2b delay: and running then'
control config '{"provider":"e2b","delayMs":0,"resumeDelayMs":600000}'
key=held e2b -X POST "$one/$id/pause" -d '{}'
note_requests
hold -H 'X-API-KEY: held' -X POST "$sandboxes/$id/connect" -d '{}'
eventually requested "$id/connect"
key=held e2b -X DELETE "$one/$id"
is "$code" 409 'e2b resume delay: no kill meanwhile'
key=held e2b "$one/$id"
like "$body" '"state":"paused"' 'e2b resume delay: it is paused meanwhile'
key=held e2b -X POST "$one/$id/timeout" -d '{"timeout":5}'
is "$code" 409 'e2b resume delay: no other change either'
let_go
control config '{"provider":"e2b","resumeDelayMs":0,"slowDestroyMs":300}'
key=held e2b_create '{"templateID":"base"}'
begin=$(milliseconds)
key=held e2b -X DELETE "$one/$id"
is "$code/$(($(milliseconds) - begin >= 300))" 204/1 'e2b slow destroy: answered later'
control config '{"provider":"e2b","slowDestroyMs":0,"listLagMs":600000}'
key=lagging e2b_create '{"templateID":"base"}'
key=lagging e2b "$sandboxes"
is "$body" '[]' 'e2b list lag: a new one is missing'
key=lagging e2b "$one/$id"
is "$code" 200 'e2b list lag: but can be got'
control config '{"provider":"e2b","listLagMs":0,"domain":"sbx.example.test","maximumAgeMs":60000}'
key=lagging e2b "$sandboxes"
like "$body" "$id" 'e2b list lag: it comes'
key=lagging e2b "$one/$id"
like "$body" '"domain":"sbx.example.test"' 'e2b domain: in a get'
e2b -X POST "$sandboxes" -d '{"templateID":"base","timeout":60}'
like "$body" '"domain":"sbx.example.test"' 'e2b domain: in a create'
e2b -X POST "$sandboxes" -d '{"templateID":"base","timeout":61}'
is "$code" 400 'e2b maximum age: can be set'
control config '{"provider":"e2b","domain":null,"maximumAgeMs":86400000}'
like "$body" '"domain":null}' 'e2b config: shows all settings'

# A key makes a create repeatable, but only where that is switched on
once() { e2b -X POST "$sandboxes" -H "Idempotency-Key: $1" -d "{\"templateID\":\"$2\"}"; }
once repeated base
id=$(sed 's/.*"sandboxID":"\([^"]*\)".*/\1/' <<<"$body")
once repeated base
unlike "$body" "$id" 'e2b idempotency: off, a key means nothing'
control config '{"provider":"e2b","idempotency":true}'
once repeated base
id=$(sed 's/.*"sandboxID":"\([^"]*\)".*/\1/' <<<"$body")
once repeated base
like "$code/$body" "201/{\"templateID\":\"rki5dems9wqfm4r03t7g\",\"sandboxID\":\"$id\"" 'e2b idempotency: on, the same answer again'
once other base
unlike "$body" "$id" 'e2b idempotency: another key, another sandbox'
key=key-two once repeated base
unlike "$body" "$id" 'e2b idempotency: as for another account'
once repeated desktop
is "$code" 409 'e2b idempotency: the same key for another request'
like "$body" '"error_code":"idempotency_request_mismatch"' 'e2b idempotency: and why'
once failing no-such-thing
once failing no-such-thing
is "$code" 404 'e2b idempotency: errors are repeated too'
once 'sbx_1' base
is "$code" 400 'e2b idempotency: a key of another form'
e2b -X POST "$one" -H 'Idempotency-Key: repeated' -d '{"templateID":"base"}'
unlike "$body" "$id" 'e2b idempotency: not in v1'
control config '{"provider":"e2b","delayMs":600000}'
hold -H 'X-API-KEY: key-one' -H 'Idempotency-Key: slow' -X POST "$sandboxes" -d '{"templateID":"base"}'
in_progress()
{
	limit=2 once slow base
	[[ $code/$body == 409/*'"error_code":"idempotency_in_progress"'* ]]
}
eventually in_progress
is $? 0 'e2b idempotency: while the first is held'
let_go
control config '{"provider":"e2b","delayMs":0,"idempotency":false}'
for wrong in '"nonsense":1' '"delayMs":-1' '"delayMs":true' '"idempotency":1' '"domain":7'; do
	control config "{\"provider\":\"e2b\",$wrong}"
	is "$code" 400 "e2b config: $wrong is refused"
done

# The audit: named by a label that is meant to be unique
note_requests
e2b_create '{"templateID":"base","metadata":{"sbx-router-id":"sbx_1","name":"n"}}'
e2b -X POST "$sandboxes" -d '{"templateID":"no-such-thing","metadata":{"sbx-router-id":"sbx_1"}}'
call "$base/_control/audit"
like "$(grep -o "{[^{]*\"id\":\"$id\"[^}]*}[^}]*}" <<<"$body")" '"provider":"e2b"' 'e2b audit: the provider'
like "$(grep -o "{[^{]*\"id\":\"$id\"[^}]*}[^}]*}" <<<"$body")" '"name":"sbx_1"' 'e2b audit: the name'
like "$(grep -o "{[^{]*\"id\":\"$id\"[^}]*}[^}]*}" <<<"$body")" '"alive":true,"creates":2' 'e2b audit: both creates'
e2b -X DELETE "$one/$id"
call "$base/_control/audit"
like "$(grep -o "{[^{]*\"id\":\"$id\"[^}]*}[^}]*}" <<<"$body")" '"alive":false' 'e2b audit: dead'
unlike "$body" "$token" 'e2b audit: no token'

# The log of requests
key='key with spaces' e2b "$one/$id"
e2b "$one/$id" -H 'Idempotency-Key: abc'
envd "$e2b_envd/files?path=/x&signature=v1_abcdef"
e2b -X POST "$one/$id/timeout" -d '{"timeout":1,"envdAccessToken": "topsecret"}'
call "$base/_control/requests?since=$last"
like "$body" '"op":"create"' 'e2b requests: a create'
like "$body" '"x-api-key":"***"' 'e2b requests: the key is masked'
like "$body" '"x-access-token":"***"' 'e2b requests: the token is masked'
like "$body" '"idempotency-key":"abc"' 'e2b requests: what is no secret is not'
unlike "$body" 'key-one' 'e2b requests: no key anywhere'
unlike "$body" 'key with' 'e2b requests: no part of one'
unlike "$body" "$token" 'e2b requests: no token anywhere'
unlike "$body" 'v1_abcdef' 'e2b requests: no signature'
unlike "$body" 'topsecret' 'e2b requests: no token in a body'
like "$body" '\"metadata\":{\"sbx-router-id\":\"sbx_1\"' 'e2b requests: the rest of it'
