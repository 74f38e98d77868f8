# Fault rules.  Each: it shows, it shows as often as told, and then no more.

control reset ''
fault() { control faults "$1"; }
alive() { curl -sS "$base/_control/audit" | grep -o "\"name\":\"$1\"[^}]*}[^}]*\"alive\":[a-z]*" | sed 's/.*://'; }

fault '{"provider":"daytona","op":"create","action":"status","status":503,"body":{"a":1},"headers":{"X-Test":"yes"}}'
is "$code/$body" '200/{"ok":true}' 'a rule is taken'
call "$api"
is "$code" 200 'status: another operation is not hit'
create '{"name":"f1"}'
is "$code/$body" '503/{"a":1}' 'status: code and body'
like "$(tr -d '\r' <"$work/headers")" 'X-Test: yes' 'status: headers'
is "$(alive f1)" '' 'status: nothing was done'
create '{"name":"f1"}'
is "$code" 200 'status: once only'
fault '{"provider":"daytona","op":"get","action":"status","status":502,"body":"<html>","headers":{"Content-Type":"text/html"}}'
call "$api/f1"
is "$body/$(grep -ic '^content-type' "$work/headers")/$(grep -ic '^content-type: text/html' "$work/headers")" \
	'<html>/1/1' 'status: another content type'
fault '{"provider":"daytona","op":"create","action":"status","code":500,"work":true}'
create '{"name":"f2"}'
is "$code" 500 'status with work: code'
is "$(alive f2)" true 'status with work: it was done'
fault '{"provider":"daytona","op":"get","action":"status","status":429,"after":1,"times":2}'
codes=
for _ in 1 2 3 4; do call "$api/f1"; codes="$codes $code"; done
is "$codes" ' 200 429 429 200' 'after and times'
fault '{"provider":"daytona","path":"*/autostop/*","action":"status","status":418}'
call -X POST "$api/f1/autostop/5"
is "$code" 418 'a path pattern'
call -X POST "$api/f1/autostop/5"
is "$code" 200 'and only once'

fault '{"provider":"daytona","op":"create","action":"reset-before-read"}'
create '{"name":"f3"}'
is "$curl" 56 'reset-before-read: the connection is reset'
is "$(alive f3)" '' 'reset-before-read: nothing was done'
create '{"name":"f3"}'
is "$code" 200 'reset-before-read: once only'
fault '{"provider":"daytona","op":"create","action":"reset-after-work"}'
create '{"name":"f4"}'
is "$curl" 56 'reset-after-work: the connection is reset'
is "$(alive f4)" true 'reset-after-work: it was done'

fault '{"provider":"daytona","op":"create","action":"hang"}'
note_requests
hold -X POST "$api" -d '{"name":"f5"}'
eventually requested f5
is $? 0 'hang: the request is read'
still_held
is "$?/$(cat "$work/held.headers" "$work/held")" 0/ 'hang: no answer'
is "$(alive f5)" '' 'hang: nothing was done'
let_go
fault '{"provider":"daytona","op":"create","action":"delay","ms":1500}'
begin=$(milliseconds)
create '{"name":"f6"}'
took=$(($(milliseconds) - begin))
is "$code" 200 'delay: answered'
[ $took -ge 1500 ]
is $? 0 "delay: later ($took ms)"
fault '{"provider":"daytona","op":"create","action":"delay","ms":600000}'
note_requests
hold -X POST "$api" -d '{"name":"f7"}'
eventually requested f7
is "$(alive f7)" true 'delay: the work comes first'
still_held
is $? 0 'delay: and the answer not yet'
let_go

fault '{"provider":"daytona","op":"get","action":"hang-after-headers"}'
hold "$api/f1"
eventually grep -q '^.$' "$work/held.headers"
still_held
is "$?/$(head -1 "$work/held.headers" | cut -d' ' -f2)/$(cat "$work/held")" 0/200/ \
	'hang-after-headers: the headers come, the body does not'
let_go
fault '{"provider":"daytona","op":"get","action":"truncate","bytes":20}'
call "$api/f1"
is "$curl/${#body}" 18/20 'truncate: 20 bytes of a longer body'
fault '{"provider":"daytona","op":"get","action":"slow","bytesPerSecond":1000}'
begin=$(milliseconds)
call "$api/f1"
took=$(($(milliseconds) - begin))
like "$body" '"name":"f1"' 'slow: the whole answer'
[ $took -ge 400 ]
is $? 0 "slow: takes its time ($took ms)"
fault '{"provider":"daytona","op":"create","action":"slow-read","bytesPerSecond":100}'
begin=$(milliseconds)
create '{"name":"f8","labels":{"long":"0123456789012345678901234567890123456789"}}'
took=$(($(milliseconds) - begin))
is "$code" 200 'slow-read: answered'
[ $took -ge 500 ]
is $? 0 "slow-read: takes its time ($took ms)"
fault '{"provider":"daytona","op":"get","action":"garbage","bytes":100}'
call "$api/f1"
unlike "$body" '"name"' 'garbage: no JSON'
fault '{"provider":"daytona","op":"get","action":"wrong-type"}'
call "$api/f1"
like "$body" '{"id":7,' 'wrong-type: the id is a number'
fault '{"provider":"daytona","op":"get","action":"deep","depth":5000}'
call "$api/f1"
is "${#body}" 10007 'deep: as deep as told'
fault '{"provider":"daytona","op":"get","action":"huge","bytes":3000000}'
call "$api/f1"
is "${#body}" 3000009 'huge: as long as told'
fault '{"provider":"daytona","op":"get","action":"huge"}'
hold --limit-rate 8M "$api/f1"
longer_than() { [ "$(wc -c <"$work/held")" -gt "$1" ]; }
eventually longer_than 6000000
is $? 0 'huge: more and more without a size'
still_held
is $? 0 'huge: and no end'
let_go
fault '{"provider":"daytona","op":"get","action":"huge-header","bytes":200000}'
call "$api/f1"
[ "$(wc -c <"$work/headers")" -gt 90000 ] || [ "$curl" -ne 0 ]
is $? 0 'huge-header: too much for a client'
fault '{"provider":"daytona","op":"get","action":"bad-utf8"}'
call "$api/f1"
like "$(xxd -p <"$work/body" | head -1)" '226964223a22ffc0af' 'bad-utf8: in the id'
fault '{"provider":"daytona","op":"get","action":"nul"}'
call "$api/f1"
like "$body" '{"id":"\u0000' 'nul: in the id'
fault '{"provider":"daytona","op":"get","action":"duplicate-keys"}'
call "$api/f1"
like "$body" '{"id":"00000000-0000-4000-8000-000000000000","state":"error","exitCode":77,"id":"' \
	'duplicate-keys: two ids'
fault '{"provider":"daytona","op":"get","action":"redirect"}'
call "$api/f1"
is "$code" 307 'redirect: status'
is "$(curl -sS "$base/_control/redirects")" '{"connections":0}' 'redirect: nobody followed'
fault '{"provider":"daytona","op":"get","action":"redirect"}'
call -L "$api/f1"
is "$(curl -sS "$base/_control/redirects")" '{"connections":1}' 'redirect: who follows is seen'
fault '{"provider":"daytona","op":"get","action":"close-reused"}'
call "$api/f1"
is "$code" 200 'close-reused: the first request of a connection is answered'
curl -sS -o /dev/null -o /dev/null -H 'Authorization: Bearer key-one' "$api/f1" "$api/f2" 2>/dev/null
is "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer key-one' "$api/f1")" 200 \
	'close-reused: once only'
note_requests
fault '{"provider":"daytona","op":"delete","action":"close-reused"}'
curl -sS -o /dev/null -H 'Authorization: Bearer key-one' "$api/f2" --next \
	-sS -o /dev/null -X DELETE --retry 0 -H 'Authorization: Bearer key-one' "$api/f2" 2>/dev/null
call "$base/_control/requests?since=$last"
like "$body" '"op":"delete","connection"' 'close-reused: the request was read'

create '{"name":"f9"}'
fault '{"provider":"daytona","op":"run","action":"status","status":502,"body":""}'
execute '{"command":"touch /tmp/ran"}'
is "$code/$body" 502/ 'run: a one-shot command is hit'
execute '{"command":"ls /tmp"}'
is "$body" '{"exitCode":0,"result":""}' 'run: it was not run'
fault '{"provider":"daytona","op":"start","action":"reset-after-work"}'
call -X POST "$box/process/session" -d '{"sessionId":"s"}'
call -X POST "$box/process/session/s/exec" -d '{"command":"echo sync"}'
is "$code" 200 'start: a synchronous command is not hit'
call -X POST "$box/process/session/s/exec" -d '{"command":"echo async","runAsync":true}'
is "$curl" 56 'start: an asynchronous one is'
call "$box/process/session/s"
like "$body" '"command":"echo async"' 'start: it was started all the same'

for wrong in '{"action":"explode"}' '{"action":"hang","colour":"red"}' '{"action":"hang","op":"fly"}' \
	'{"action":"hang","times":0}' '{"provider":"daytona"}' '{"action":"delay","ms":"1"}' '[]' '{"action"'; do
	fault "$wrong"
	is "$code" 400 "refused: $wrong"
done
fault '{"provider":"daytona","op":"get","action":"hang"}'
call -X DELETE "$base/_control/faults"
call "$api/f1"
is "$code" 200 'DELETE removes all rules'
fault '{"provider":"daytona","op":"get","action":"hang"}'
note_requests
hold "$api/f1"
eventually requested /f1
still_held
is $? 0 'a client hangs'
begin=$(milliseconds)
control reset ''
wait "$held"
is "$?/$(($(milliseconds) - begin < 30000))" 52/1 'a reset lets hanging clients go'

# Connections made before are served all the same, so one of them ends it: a new
# refusal takes the place of the old one.
exec 7<>"/dev/tcp/127.0.0.1/${base##*:}"
refuse_by_old_connection()
{
	local rule="{\"action\":\"refuse\",\"ms\":$1}" line length=0
	printf 'POST /_control/faults HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s' \
		${#rule} "$rule" >&7
	while read -r -t 60 line <&7 && [ "$line" != $'\r' ]; do
		[[ ${line,,} == content-length:* ]] && length=$(tr -dc 0-9 <<<"$line")
	done
	read -r -t 60 -N "$length" line <&7
}

refuse_by_old_connection 600000
eventually fails 7 "$api"
is "$curl" 7 'refuse: no connection'
refuse_by_old_connection 300
eventually answers 200 "$api"
is "$code" 200 'refuse: for a while'
refuse_by_old_connection 600000
refuse_by_old_connection 600000
eventually fails 7 "$api"
is "$curl" 7 'refuse: twice at the same time'
refuse_by_old_connection 300
refuse_by_old_connection 300
eventually answers 200 "$api"
is "$code" 200 'refuse: twice at the same time is no more than once'
fault '{"provider":"daytona","op":"get","action":"refuse","ms":600000,"after":1}'
call "$api"
is "$code" 200 'refuse: after one get, a list does not count'
call "$api/none"
is "$code" 404 'refuse: the get itself is answered'
eventually fails 7 "$api"
is "$curl" 7 'refuse: then there is no connection'
refuse_by_old_connection 0
eventually answers 200 "$api"
is "$code" 200 'refuse: until it is over'
exec 7>&-
