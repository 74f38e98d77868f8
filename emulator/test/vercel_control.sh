# Vercel Sandbox: creates, names, lists, sessions, lifetimes, settings.

# Create and get
v_create '"name":"first","tags":{"sbx-router-id":"tagged","k":"é:=&"},"ports":[3000,3001],"timeout":600000,"persistent":false,"resources":{"vcpus":4,"memory":8192},"env":{"A":"secret"}'
is "$code/$(header content-type)" '200/application/json; charset=utf-8' 'vercel create: 200'
like "$body" '{"sandbox":{"name":"first","persistent":false,"region":"iad1","vcpus":4,"memory":8192,"timeout":600000,' \
	'vercel create: what it was told'
like "$body" '"tags":{"sbx-router-id":"tagged","k":"é:=&"}' 'vercel create: tags'
like "$body" "\"currentSessionId\":\"$sid\"" 'vercel create: names its session'
[[ $sid =~ ^sbx_[A-Za-z0-9]{28}$ ]]
is $? 0 'vercel create: the form of the id of a session'
is "$(v_status)/$(v_session_status)" running/running 'vercel create: runs'
like "$body" '"sourceSandboxName":"first","projectId":"prj_1","vcpus":4,"memory":8192' 'vercel create: the session too'
like "$body" '.vercel.run","subdomain":"sb-' 'vercel create: routes'
unlike "$body" secret 'vercel create: no environment'
unlike "$body" '"resumed"' 'vercel create: nothing was resumed'
first_session=$sid
v_get first
is "$code/$(v_session_of)" "200/$sid" 'vercel get: the same session'
like "$body" '"resumed":false}' 'vercel get: resumes nothing'
vercel 'v2/sandboxes/first?+&resume=true'
is "$code/$(v_session_of)" "200/$sid" 'vercel get with resume: one that runs is left alone'
like "$body" '"resumed":false}' 'vercel get with resume: and that is told'
v_session ''
like "$body" "{\"session\":{\"id\":\"$sid\"" 'vercel session: by its id'
like "$body" '"routes":[{"url":"https://sb-' 'vercel session: with routes'
v_get nothing
is "$code/$body" '404/{"error":{"code":"not_found","message":"Sandbox not found"}}' 'vercel get: 404'
vercel "v2/sandboxes/sessions/first/cmd?teamId=$team" -d '{"command":"true"}'
is "$code" 404 'vercel session: a name is not an id'
like "$(v_audit first)" '"name":"tagged"' 'vercel audit: named by the tag of the router'

v_create
[[ $name =~ ^[a-zA-Z0-9_-]+$ ]]
is $? 0 'vercel create: a name if none is given'
like "$body" '"persistent":true,"region":"iad1","vcpus":2,"memory":4096,"timeout":300000,"image":"vercel/sandbox/universal@sha256:' \
	'vercel create: the defaults'
like "$body" '"routes":[]' 'vercel create: no routes'
like "$(v_audit "$name")" "\"name\":\"$name\"" 'vercel audit: else named by its name'
vercel "v2/sandboxes?teamId=$team" -d '{"projectId":"prj_1","ports":[],"runtime":"node24"}'
like "$code/$body" '"runtime":"node24"' 'vercel create v2: with a runtime'
unlike "$body" '"image"' 'vercel create v2: and no image'
vercel "v3/sandboxes?teamId=$team" -H 'Transfer-Encoding: chunked' -d '{"projectId":"prj_1"}'
is "$code" 200 'vercel create: a body in chunks'
v_create '"networkPolicy":{"mode":"deny-all"},"failoverRegions":["sfo1"],"source":{"type":"snapshot","snapshotId":"snap_1"}'
like "$body" '"networkPolicy":{"mode":"deny-all"},"failoverRegions":["sfo1"]' 'vercel create: what is shown again'
like "$body" '"sourceSnapshotId":"snap_1"' 'vercel create: from a snapshot'

for wrong in '"name":"a b"' '"name":""' "\"name\":\"$(printf 'x%.0s' $(seq 129))\"" '"ports":[80]' '"ports":"3000"' \
	'"timeout":999' '"timeout":86400001' '"timeout":"1000"' '"resources":{"vcpus":3}' '"resources":{"vcpus":0}' \
	'"resources":{"vcpus":2,"memory":2048}' '"persistent":"no"' '"runtime":"node24"' '"image":""' '"env":{"A":1}' \
	'"env":{"A=B":"1"}' '"tags":{"a":1}' '"tags":{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1"}' \
	"\"tags\":{\"a\":\"$(printf 'x%.0s' $(seq 257))\"}" '"networkPolicy":"deny-all"' '"source":{"type":"disk"}' \
	'"failoverRegions":["iad1"]' '"keepLastSnapshots":{"count":11}' '"label":{}'; do
	v_create "$wrong"
	is "$code/$(cut -c1-31 <<<"$body")" '400/{"error":{"code":"bad_request",' "vercel create: 400 for ${wrong:0:60}"
done
v_create '"tags":{"a":"1","b":"1","c":"1","d":"1","e":"1"}'
is "$code" 200 'vercel create: five tags are not too many'
vercel "v2/sandboxes?teamId=$team" -d '{"projectId":"prj_1","runtime":"node24","image":"x"}'
is "$code" 400 'vercel create v2: not a runtime and an image'
vercel "v2/sandboxes?teamId=$team" -d '{"projectId":"prj_1","runtime":"cobol"}'
is "$code" 400 'vercel create v2: not any runtime'
vercel "v3/sandboxes?teamId=$team" -d 'no json'
is "$code" 400 'vercel create: a body that is no JSON'
v_create '"image":"no-such-image"'
is "$code" 404 'vercel create: an unknown image'
v_create '"source":{"type":"snapshot","snapshotId":"snap_no-such-1"}'
like "$code/$body" '410/{"error":{"code":"snapshot_not_found"' 'vercel create: an unknown snapshot'

# Names
v_create '"name":"first"'
is "$code/$body" "400/{\"error\":{\"code\":\"bad_request\",\"message\":\"A sandbox with the name 'first' already exists for this project.\"}}" \
	'vercel name: taken'
like "$(v_audit first)" '"creates":1' 'vercel audit: counts creates of another name apart'
v_create '"name":"first","tags":{"sbx-router-id":"tagged"}'
like "$(v_audit first)" '"creates":2' 'vercel audit: counts creates that are refused'
for other in 'team=team_2' 'project=prj_2' 'key=key-two'; do
	(eval "$other"; v_get first; echo "$code"; v_create '"name":"first"'; echo "$code"; v_delete first; echo "$code") >"$work/other"
	is "$(tr '\n' ' ' <"$work/other")" '404 200 200 ' "vercel name: free where $other"
done
vercel "v2/sandboxes/sessions/$first_session?teamId=$team"
is "$code" 200 'vercel session: is still there'
key=key-two vercel "v2/sandboxes/sessions/$first_session?teamId=$team"
is "$code" 404 'vercel session: not for another token'
vercel "v2/sandboxes/sessions/$first_session?teamId=team_2"
is "$code" 404 'vercel session: nor for another team'

# Access
for refused in bad:401:unauthorized denied:403:forbidden limited:429:rate_limited; do
	IFS=: read -r kind wanted word <<<"$refused"
	for where in "v3/sandboxes?teamId=$team -d {}" "v2/sandboxes?teamId=$team&project=$project" 'v2/sandboxes/first?+' \
		'v2/sandboxes/first?+ -X DELETE' "v2/sandboxes/sessions/$first_session/cmd?teamId=$team -d {}" 'v2/nonsense'; do
		key=$kind-key vercel $where
		like "$code/$body" "$wanted/{\"error\":{\"code\":\"$word\"" "vercel: a $kind- key gets $wanted from ${where%% *}"
	done
done
is "$(header retry-after)" 1 'vercel: a rate limit says when to retry'
is "$(curl -sS -o /dev/null -w '%{http_code}' "$v_api/v2/sandboxes?teamId=$team&project=$project")" 401 'vercel: no key is 401'
for wrong in 'v2/sandboxes/first?projectId=prj_1 403' "v2/sandboxes/first?teamId=$team 400" "v2/sandboxes?teamId=$team 400" \
	"v2/sandboxes?teamId=$team&projectId=$project 400" "v2/sandboxes/first?teamId=$team&project=$project 400" \
	'v2/sandboxes/first?teamId=no-such-team&projectId=prj_1 403' "v2/sandboxes/first?teamId=$team&projectId=no-such-project 404" \
	'v2/nonsense?+ 404' 'v4/sandboxes?+ 404' 'v2/sandboxes/snapshots?+ 501' 'v2/sandboxes/drives/d?+ 501'; do
	vercel "${wrong% *}"
	is "$code" "${wrong##* }" "vercel: ${wrong/ / is }"
done
vercel "v2/sandboxes/sessions/$first_session/snapshot?teamId=$team" -X POST
is "$code" 501 'vercel: snapshots are not emulated'
vercel "v3/sandboxes?teamId=$team" -d '{}'
is "$code" 400 'vercel create: needs a project'
vercel "v3/sandboxes?teamId=$team" -d '{"projectId":"no-such-project"}'
is "$code" 404 'vercel create: an unknown project'

# Update
vercel 'v2/sandboxes/first?+' -X PATCH -d '{"tags":{"new":"1"},"timeout":700000,"resources":{"vcpus":2,"memory":4096}}'
like "$body" '"vcpus":2,"memory":4096,"timeout":700000' 'vercel update: sizes and timeout'
like "$body" '"tags":{"new":"1"}' 'vercel update: tags'
v_get first
like "$body" '"session":{"id":"'"$first_session"'","sourceSandboxName":"first","projectId":"prj_1","vcpus":4' \
	'vercel update: a session that runs is left alone'
vercel 'v2/sandboxes/first?+' -X PATCH -d '{"name":"other"}'
is "$code" 400 'vercel update: not the name'
sid=$first_session
v_session /network-policy -d '{"allow":{"*.example.com":[]},"subnets":{"allow":["10.0.0.0/8"]}}'
like "$body" '"networkPolicy":{"mode":"custom","allowedDomains":["*.example.com"],"allowedCIDRs":["10.0.0.0/8"]}' \
	'vercel network policy: in the form of answers'
v_session /network-policy -d '{}'
is "$code" 400 'vercel network policy: there must be one'
v_session /extend-timeout -d '{"duration":1000}'
like "$body" '{"session":{"id":"'"$sid" 'vercel extend: 200'
like "$body" '"timeout":601000' 'vercel extend: adds'
v_session /extend-timeout -d '{"duration":999}'
is "$code" 400 'vercel extend: at least a second'
v_session /extend-timeout -d '{"duration":86400000}'
like "$code/$body" '400/{"error":{"code":"sandbox_timeout_invalid"' 'vercel extend: not past the maximum'

# Stop, resume, delete
v_session /stop -X POST
is "$code/$(v_session_status)" 200/stopping 'vercel stop: tells of the beginning'
like "$body" '"sandbox":{"name":"first"' 'vercel stop: with the sandbox'
v_session ''
is "$(v_session_status)" stopped 'vercel stop: and it is over'
like "$body" '"stoppedAt":1' 'vercel stop: since when'
v_get first
is "$(v_status)/$(v_session_of)" "stopped/$sid" 'vercel stop: the sandbox keeps its name and session'
unlike "$body" '"expiresAt"' 'vercel stop: nothing expires'
unlike "$body" '"currentSnapshotId"' 'vercel stop: no snapshot of what does not persist'
like "$(v_audit first)" '"alive":true' 'vercel stop: it is still there'
v_create '"name":"first"'
is "$code" 400 'vercel stop: the name stays taken'
sid=$first_session
v_session /stop -X POST
is "$code/$(v_session_status)" 200/stopped 'vercel stop: once more changes nothing'
for where in '/cmd -d {"command":"true"}' /cmd /cmd/cmd_1 /cmd/cmd_1/logs '/fs/read -d {"path":"a"}' '/extend-timeout -d {"duration":1000}'; do
	v_session $where
	is "$code/$body" '410/{"error":{"code":"sandbox_stopped","message":"Sandbox has stopped execution and is no longer available."}}' \
		"vercel stop: ${where%% *} is 410"
done
v_get first
is "$(v_status)" stopped 'vercel get: resumes nothing'
vercel 'v2/sandboxes/first?+&resume=true'
like "$body" '"resumed":true}' 'vercel resume: told'
is "$(v_status)" running 'vercel resume: runs'
sid=$(v_session_of)
[ "$sid" != "$first_session" ]
is $? 0 'vercel resume: in another session'
like "$body" '"session":{"id":"'"$sid"'","sourceSandboxName":"first","projectId":"prj_1","vcpus":2' 'vercel resume: of the new size'
vercel "v2/sandboxes/sessions?teamId=$team&project=$project&name=first"
is "$(grep -o '"status":"[a-z]*"' <<<"$body" | tr '\n' ' ')" '"status":"running" "status":"stopped" ' 'vercel sessions: the newest first'
vercel "v2/sandboxes/sessions?teamId=$team&project=$project&name=first&limit=1&sortOrder=asc"
like "$body" "$first_session" 'vercel sessions: the oldest first'
unlike "$body" "\"$sid\"" 'vercel sessions: no more than the limit'
like "$body" '"pagination":{"count":1,"next":"' 'vercel sessions: and there are more'
v_delete first
is "$code/$(v_status)" 200/stopping 'vercel delete: tells of the beginning'
v_delete first
is "$code" 404 'vercel delete: gone'
v_get first
is "$code" 404 'vercel delete: nothing to get'
v_session ''
is "$code" 404 'vercel delete: its sessions are gone too'
v_session /cmd -d '{"command":"true"}'
is "$code" 404 'vercel delete: and nothing runs in them'
like "$(v_audit first)" '"alive":false' 'vercel audit: it is gone'
v_create '"name":"first"'
is "$code" 200 'vercel delete: the name is free'
v_delete 'first'

# Lists
project=lists
for n in 1 2 3; do v_create "\"name\":\"l$n\",\"tags\":{\"n\":\"$n\",\"odd\":\"a b&c=d/é:%+\"}"; done
v_create '"name":"m1"'
names() { grep -o '"name":"[^"]*"' <<<"$body" | sed 's/"name":"\(.*\)"/\1/' | tr '\n' ' '; }
cursor() { sed -n 's/.*"next":"\([^"]*\)"}}$/\1/p' <<<"$body" | sed 's/=/%3D/g; s/+/%2B/g; s,/,%2F,g'; }
v_list
is "$code/$(names)" '200/m1 l3 l2 l1 ' 'vercel list: newest first'
like "$body" '"pagination":{"count":4,"next":null}}' 'vercel list: the only page'
v_list limit=3
is "$(names)" 'm1 l3 l2 ' 'vercel list: no more than the limit'
next=$(cursor)
v_list "limit=3&cursor=$next"
is "$(names)" 'l1 ' 'vercel list: the next page has the rest'
like "$body" '"pagination":{"count":1,"next":null}}' 'vercel list: and is the last'
v_list 'sortOrder=asc&limit=2'
is "$(names)" 'l1 l2 ' 'vercel list: oldest first'
v_list 'sortBy=name&sortOrder=asc&namePrefix=l&limit=2'
is "$(names)" 'l1 l2 ' 'vercel list: by name, with a prefix'
v_list "sortBy=name&sortOrder=asc&namePrefix=l&limit=2&cursor=$(cursor)"
is "$(names)" 'l3 ' 'vercel list: the next of those'
v_list 'tags=n%3A2'
is "$(names)" 'l2 ' 'vercel list: by a tag'
v_list 'tags=odd%3Aa+b%26c%3Dd%2F%C3%A9%3A%25%2B&limit=50'
is "$(names)" 'l3 l2 l1 ' 'vercel list: by a tag with odd characters'
v_list 'tags=n%3A4'
is "$(names)" '' 'vercel list: by a tag that nobody has'
vercel 'v2/sandboxes/l2?+'
sid=$(v_session_of)
v_session /stop -X POST
v_list 'status=stopped'
is "$(names)" 'l2 ' 'vercel list: only what has stopped'
v_list 'status=running&sortBy=createdAt'
is "$(names)" 'm1 l3 l1 ' 'vercel list: only what runs'
v_list 'sortBy=statusUpdatedAt&limit=1'
is "$(names)" 'l2 ' 'vercel list: by the last change'
v_list 'sortBy=currentSnapshotId&limit=1'
is "$(names)" 'l2 ' 'vercel list: by snapshot'
for wrong in limit=0 limit=51 limit=x namePrefix=l 'sortBy=createdAt&namePrefix=l' 'sortBy=name&status=running' status=pending \
	sortBy=age sortOrder=up cursor=x cursor=%3D%3D%3D%3D 'tags=n%3A1&tags=n%3A2' tags=n tags=%3A1; do
	v_list "$wrong"
	is "$code" 400 "vercel list: $wrong is 400"
done
v_list 'nonsense=1'
is "$code" 200 'vercel list: parameters it does not know do not matter'
control config '{"provider":"vercel","hideSizes":true}'
v_list
unlike "$body" vcpus 'vercel hideSizes: rows without sizes'
v_session ''
like "$body" '"vcpus":2,"memory":4096' 'vercel hideSizes: sessions have them'
control config '{"provider":"vercel","hideSizes":false}'
for one in l1 l2 l3 m1; do v_delete "$one"; done
project=prj_1

# Quota
project=quota
control quota '{"provider":"vercel","sandboxes":1}'
v_create '"name":"q1"'
v_create '"name":"q2"'
is "$code/$body/$(header retry-after)" '429/{"error":{"code":"rate_limited","message":"The concurrency limit has been exceeded."}}/' \
	'vercel quota: of sandboxes'
v_create '"name":"q2","timeout":1'
is "$code" 400 'vercel quota: what is wrong comes first'
v_get q1
sid=$(v_session_of)
v_session /stop -X POST
v_create '"name":"q2"'
is "$code" 200 'vercel quota: what has stopped does not count'
vercel 'v2/sandboxes/q1?+&resume=true'
is "$code" 429 'vercel quota: of a resume'
v_get q1
is "$(v_status)" stopped 'vercel quota: which stays stopped'
v_delete q2
for limit_of in '"cpu":4' '"memory":8192'; do
	control quota "{\"provider\":\"vercel\",$limit_of}"
	v_create '"name":"q3","resources":{"vcpus":4}'
	is "$code" 200 "vercel quota: $limit_of is enough for 4 vCPUs"
	v_create '"resources":{"vcpus":1}'
	is "$code" 429 "vercel quota: $limit_of, and no more"
	v_delete q3
done
control quota '{"provider":"vercel"}'
v_delete q1
project=prj_1

# Lifetimes
v_create '"name":"short","timeout":2000,"persistent":false'
v_create '"name":"kept","timeout":2000'
v_create '"name":"longer","timeout":2000'
v_session /extend-timeout -d '{"duration":600000}'
longer=$sid
v_get short
is "$(v_status)" running 'vercel lifetime: of two seconds, at first'
eventually v_shows '"status":"stopped"' 'v2/sandboxes/short?+'
is "$(v_status)" stopped 'vercel lifetime: then it has stopped'
like "$(v_audit short)" '"alive":false' 'vercel audit: nothing is left of what does not persist'
eventually v_shows '"status":"stopped"' 'v2/sandboxes/kept?+'
like "$body" '"currentSnapshotId":"snap_' 'vercel lifetime: a snapshot of what persists'
like "$(v_audit kept)" '"alive":true' 'vercel audit: which is still there'
sid=$longer v_session ''
is "$(v_session_status)" running 'vercel lifetime: not of what was given more'
vercel 'v2/sandboxes/short?+&resume=true'
like "$(v_audit short)" '"destroyedAtMs":null,"alive":true' 'vercel audit: a resume makes something of it again'
for one in short kept longer; do v_delete "$one"; done

# Settings
control config '{"provider":"vercel","delayMs":600000}'
v_hold 'v3/sandboxes?teamId=team_1' -d '{"projectId":"prj_1","name":"slow"}'
eventually v_answers 200 'v2/sandboxes/slow?+'
is "$(v_status)/$(v_session_status)" running/pending 'vercel delayMs: meanwhile the session is pending'
still_held
is $? 0 'vercel delayMs: create is held'
let_go
v_get slow
is "$code" 200 'vercel delayMs: it is there without its client'
sid=$(v_session_of)
v_session /cmd -d '{"command":"true"}'
like "$code/$body" '422/{"error":{"code":"sandbox_pending"' 'vercel delayMs: nothing runs in it yet'
v_delete slow
control config '{"provider":"vercel","delayMs":300}'
begin=$(milliseconds)
v_create '"name":"slow"'
is "$(v_session_status)/$(($(milliseconds) - begin >= 300))" running/1 'vercel delayMs: the answer tells of what runs'
v_delete slow
control config '{"provider":"vercel","delayMs":0,"startDelayMs":300}'
v_create '"name":"slow"'
is "$(v_session_status)" pending 'vercel startDelayMs: answered at once'
unlike "$body" '"startedAt"' 'vercel startDelayMs: not started'
eventually v_shows '"status":"running","requestedAt"' "v2/sandboxes/sessions/$sid?teamId=$team"
is "$(v_session_status)" running 'vercel startDelayMs: runs later'
control config '{"provider":"vercel","startDelayMs":0,"stopDelayMs":600000}'
v_session /stop -X POST
v_get slow
is "$(v_status)/$(v_session_status)" stopping/stopping 'vercel stopDelayMs: stops for a while'
v_session /cmd -d '{"command":"true"}'
like "$code/$body" '422/{"error":{"code":"sandbox_stopping"' 'vercel stopDelayMs: nothing runs in it any more'
v_list 'status=stopping'
like "$body" '"name":"slow"' 'vercel list: only what is stopping'
vercel 'v2/sandboxes/slow?+&resume=true'
is "$(v_status)" running 'vercel stopDelayMs: a resume does not wait for it'
sid=$(v_session_of)
control config '{"provider":"vercel","stopDelayMs":100}'
v_session /stop -X POST
eventually v_shows '"status":"stopped"' 'v2/sandboxes/slow?+'
is "$(v_status)" stopped 'vercel stopDelayMs: until it has stopped'
v_delete slow
control config '{"provider":"vercel","stopDelayMs":0,"deleteDelayMs":600000}'
v_create '"name":"slow"'
v_delete slow
is "$code/$(v_status)" 200/stopping 'vercel deleteDelayMs: accepted'
like "$(v_audit slow)" '"alive":false' 'vercel deleteDelayMs: nothing is left of it'
v_get slow
is "$code/$(v_status)" 200/stopping 'vercel deleteDelayMs: but its entry'
v_list 'status=stopping'
like "$body" '"name":"slow"' 'vercel deleteDelayMs: also in lists'
v_delete slow
is "$code" 200 'vercel deleteDelayMs: once more changes nothing'
v_create '"name":"slow"'
is "$code" 400 'vercel deleteDelayMs: the name is still taken'
vercel 'v2/sandboxes/slow?+&resume=true'
is "$code" 422 'vercel deleteDelayMs: nothing to resume'
control config '{"provider":"vercel","deleteDelayMs":100}'
v_create '"name":"quick"'
v_delete quick
eventually v_answers 404 'v2/sandboxes/quick?+'
is "$code" 404 'vercel deleteDelayMs: until it is gone'
control config '{"provider":"vercel","deleteDelayMs":0,"slowDestroyMs":600000}'
v_create '"name":"held"'
v_hold 'v2/sandboxes/held?+' -X DELETE
eventually v_answers 404 'v2/sandboxes/held?+'
still_held
is $? 0 'vercel slowDestroyMs: the answer is held, the sandbox is gone'
let_go
control config '{"provider":"vercel","slowDestroyMs":0}'
v_create '"name":"known"'
control config '{"provider":"vercel","listLagMs":600000}'
v_create '"name":"unseen"'
v_list limit=50
unlike "$body" '"name":"unseen"' 'vercel listLagMs: lists miss what is new'
v_get unseen
is "$code" 200 'vercel listLagMs: a get does not'
control config '{"provider":"vercel","listLagMs":1000}'
eventually v_shows '"name":"known"' "v2/sandboxes?teamId=$team&project=$project&limit=50"
v_delete known
v_list limit=50
like "$body" '"name":"known","persistent":true' 'vercel listLagMs: lists show what is gone'
not_listed() { v_list limit=50; [[ $code == 200 && $body != *'"name":"known"'* ]]; }
eventually not_listed
is $? 0 'vercel listLagMs: for a while'
v_get known
is "$code" 404 'vercel listLagMs: a get does not show it'
control config '{"provider":"vercel","listLagMs":0}'
v_delete unseen
control config '{"provider":"vercel","startFails":true}'
v_create '"name":"broken"'
is "$(v_status)/$(v_session_status)" stopped/failed 'vercel startFails: the session has failed'
v_session /cmd -d '{"command":"true"}'
is "$code" 410 'vercel startFails: nothing runs in it'
v_delete broken
is "$code" 200 'vercel startFails: it can be deleted'
control config '{"provider":"vercel","startFails":false,"maximumTimeoutMs":60000}'
v_create '"timeout":60001'
is "$code" 400 'vercel maximumTimeoutMs: no longer than that'
v_create '"name":"longest","timeout":60000'
is "$code" 200 'vercel maximumTimeoutMs: but as long'
v_delete longest
for wrong in '"delayMs":-1' '"delayMs":"1"' '"startFails":1' '"domain":"x"'; do
	control config "{\"provider\":\"vercel\",$wrong}"
	is "$code" 400 "vercel config: 400 for $wrong"
done
control reset ''
control config '{"provider":"vercel"}'
is "$body" '{"provider":"vercel","delayMs":0,"startDelayMs":0,"stopDelayMs":0,"deleteDelayMs":0,"slowDestroyMs":0,"listLagMs":0,"maximumTimeoutMs":86400000,"startFails":false,"hideSizes":false}' \
	'vercel config: a reset restores the defaults'
v_list
is "$(names)" '' 'vercel: and forgets the sandboxes'
