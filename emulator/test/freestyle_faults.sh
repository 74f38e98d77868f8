# Fault rules for Freestyle: each shows in the operation it is for, and in no other.

freestyle_fault() { control faults "{\"provider\":\"freestyle\",$1}"; }
freestyle_alive()
{
	curl -sS "$base/_control/audit" | grep -o "\"name\":\"$1\"[^}]*}[^}]*\"alive\":[a-z]*" | sed 's/.*://'
}

freestyle_create
kept=$vm
vm_hits()
{
	local op=$1
	freestyle_fault "\"op\":\"$op\",\"action\":\"status\",\"status\":418"
	"${@:2}"
	is "$code" 418 "freestyle op $op: ${*:2:4}"
	call -X DELETE "$base/_control/faults"
	"${@:2}"
	[ "$code" != 418 ]
	is $? 0 "freestyle op $op: and no more without the rule"
}

vm_hits create freestyle -X POST "$vms" -d '{}'
vm_hits list freestyle "$vms"
vm_hits get freestyle "$vm"
vm_hits stop freestyle -X POST "$vm/pause" -d '{}'
vm_hits start freestyle -X POST "$vm/start" -d '{}'
vm_hits run freestyle -X POST "$vm/exec-await" -d '{"command":"true"}'
vm_hits status freestyle "$base/freestyle/v5/background-requests/ri-1"
vm_hits upload freestyle -X PUT "$vm/fs/write?path=/tmp/u" -d x
vm_hits upload freestyle -X POST "$vm/fs/uploads" -d '{"path":"/tmp/u","size":1}'
vm_hits download freestyle "$vm/fs/read?path=/tmp/u"
vm_hits delete freestyle -X DELETE "$vms/vm-0"
freestyle_fault '"op":"get","action":"status"'
freestyle "$vm/fs/stat?path=/tmp/u"
is "$code" 200 'freestyle op get: is not a look at a file'
freestyle -X PATCH "$vm" -d '{}'
is "$code" 200 'freestyle op get: is not an update'
call -X DELETE "$base/_control/faults"

# Formats
for status in 400:BAD_REQUEST 401:INVALID_API_KEY 403:FORBIDDEN 404:NOT_FOUND 409:CONFLICT 429:RATE_LIMITED 500:INTERNAL_ERROR 503:UNAVAILABLE; do
	freestyle_fault "\"op\":\"create\",\"action\":\"status\",\"status\":${status%:*}"
	freestyle_create '"slug":"f-1"'
	is "$code/$body" "${status%:*}/{\"code\":\"${status#*:}\",\"message\":\"injected by a fault rule\"}" "freestyle status: ${status%:*}"
	is "$(freestyle_alive f-1)" '' 'freestyle status: nothing was done'
done
freestyle_fault '"op":"create","action":"status","status":502,"body":"<html>bad gateway</html>","headers":{"Content-Type":"text/html"}'
freestyle_create '"slug":"f-1"'
is "$code/$body/$(vm_header content-type)" '502/<html>bad gateway</html>/text/html' 'freestyle status: a gateway'

# Work that is done and not heard of
freestyle_fault '"op":"create","action":"reset-after-work"'
freestyle_create '"slug":"f-2","metadata":{"sbx-router-id":"f_2"}'
is "$curl/$(freestyle_alive f_2)" 56/true 'freestyle reset-after-work: it was done'
freestyle "$vms/f-2"
is "$code" 200 'freestyle reset-after-work: and is found by its slug'
freestyle_fault '"op":"create","action":"reset-before-read"'
freestyle_create '"slug":"f-3"'
is "$curl/$(freestyle_alive f-3)" 56/ 'freestyle reset-before-read: nothing was done'
freestyle_create '"slug":"f-2","metadata":{"sbx-router-id":"f_2"}'
vm_refused 409 CONFLICT 'freestyle create: again'
like "$(curl -sS "$base/_control/audit" | grep -o '"name":"f_2"[^}]*}[^}]*}')" '"creates":2' 'freestyle audit: a create that is refused counts'
vm=$kept
freestyle_fault '"op":"run","action":"status","status":503'
execute_vm 'touch /tmp/f1'
freestyle "$vm/fs/exists?path=/tmp/f1"
is "$body" '{"exists":false}' 'freestyle status: of a command, which did not run'
freestyle_fault '"op":"run","action":"reset-after-work"'
execute_vm 'touch /tmp/f1'
freestyle "$vm/fs/exists?path=/tmp/f1"
is "$body" '{"exists":true}' 'freestyle reset-after-work: of a command, which did'
freestyle_fault '"op":"run","action":"wrong-type"'
execute_vm 'echo text'
is "$body" '{"stdout":7,"stderr":7,"statusCode":"7"}' 'freestyle wrong-type: of each member'
freestyle_fault '"op":"get","action":"redirect"'
freestyle "$vm"
is "$code" 307 'freestyle redirect: status'
freestyle_fault '"op":"delete","action":"status","status":404,"work":true'
freestyle -X DELETE "$vm"
is "$code" 404 'freestyle status: of a delete'
freestyle "$vm"
is "$code" 404 'freestyle status: whose work was done, as told'
freestyle -X DELETE "$vms/f-2"

# A 202 is spoiled as any answer, the call behind it is not
vm_settings '"backgroundAfterMs":0'
freestyle_fault '"op":"create","action":"truncate","bytes":10'
freestyle_create '"slug":"f-4"'
is "$curl/$body" '18/{"requestI' 'freestyle truncate: of a 202'
vm_settings '"backgroundAfterMs":-1'
freestyle -X DELETE "$vms/f-4"
is "$code" 204 'freestyle truncate: the VM is there'
