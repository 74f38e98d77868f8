# What an Agent37 instance serves at its URL.

agent37_create '{}'
files=$plane/v1/files/content
printf 'hello' >"$work/small"
: >"$work/empty"
perl -e 'print map chr, 0..255' >"$work/all"
head -c 9437184 /dev/urandom >"$work/large"
put() { inside -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$work/$1" "$files?path=$2" "${@:3}"; }

# The edge
inside "$plane/v1/health"
is "$code/$body" '200/{"ok":true,"template":"agent37-hermes"}' 'edge: the gateway is up'
is "$(curl -sS -w '%{http_code}' "$plane/health")" '{"status":"ok"}200' 'edge: its own health needs no key'
is "$(curl -sS -w '%{http_code}' "$base/agent37-instance/abcdefghij/health")" '{"error":"not_found"}404' 'edge: that of nothing'
is "$(curl -sS -w '%{http_code}' "$plane/v1/health")" '{"error":"invalid_api_key"}401' 'edge: no key'
is "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer key-one' "$plane/v1/health")" 200 'edge: the old header works'
is "$(curl -sS -w '%{http_code}' -H 'Authorization: Bearer key-one' -H 'X-Agent37-Key: bad-key' "$plane/v1/health")" \
	'{"error":"invalid_api_key"}401' 'edge: but not beside the new one'
is "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer bad-key' -H 'X-Agent37-Key: key-one' "$plane/v1/health")" 200 \
	'edge: which is the one that counts'
key=denied-key inside "$plane/v1/health"
is "$code/$body" '403/{"error":"ip_not_allowed"}' 'edge: a key for other places'
key=limited-key inside "$plane/v1/health"
like "$code/$(header retry-after)/$body" '429/1/{"error":{"code":"rate_limited"' 'edge: a rate limit'
key=key-two inside "$plane/v1/health"
is "$code/$body" '404/{"error":"not_found"}' 'edge: another account sees nothing'
inside "$plane/v1/nonsense"
like "$code/$body" '404/{"error":{"code":"not_found","message":"no such path","param":null,"hint":null,"response_id":null}}' 'gateway: an unknown path'
inside "$plane/v1/files/archive?path=/tmp"
is "$code" 501 'gateway: archives are not emulated'

# Uploads and downloads
before=$(milliseconds)
put small '%2Ftmp%2Fa+dir%2F%C3%BC%20b.txt'
modified=$(sed 's/.*"modified":\([0-9]*\),.*/\1/' <<<"$body")
is "$code/$body" '200/{"name":"ü b.txt","path":"/tmp/a dir/ü b.txt","type":"file","size":5,"modified":'"$modified"',"hidden":false}' 'upload: parents are made'
is $((modified >= before - 1000 && modified <= $(milliseconds) + 1000)) 1 'upload: when, in milliseconds'
execute37 'cat "/tmp/a dir/ü b.txt"'
is "$body" "$(ran 0 hello '')" 'upload: it is in the instance'
put all '~/.hidden'
like "$code/$body" '200/{"name":".hidden","path":"/home/node/.hidden","type":"file","size":256,' 'upload: below the home'
like "$body" '"hidden":true}' 'upload: hidden'
put large /tmp/large
like "$code/$body" '"size":9437184,' 'upload: nine MiB'
put empty /tmp/empty
like "$code/$body" '"size":0,' 'upload: nothing'
inside -X PUT --data-binary "@$work/small" -H 'Transfer-Encoding: chunked' -H 'Content-Type: application/octet-stream' "$files?path=/tmp/chunked"
like "$code/$body" '200/{"name":"chunked","path":"/tmp/chunked","type":"file","size":0,' 'upload: what comes in chunks is lost, with a success'
inside "$files?path=/tmp/chunked"
is "$code/$body" 200/ 'upload: and leaves an empty file'
put small /tmp/chunked
like "$code/$body" '"size":5,' 'upload: with a length it is there'
for one_file in /tmp/large:large %7E/.hidden:all /tmp/empty:empty; do
	inside "$files?path=${one_file%:*}&disposition=attachment"
	cmp -s "$work/body" "$work/${one_file#*:}"
	is "$code/$?" 200/0 "download: ${one_file#*:} as it was"
done
inside "$files?path=/tmp/a+dir/%C3%BC+b.txt&disposition=attachment"
is "$(header content-type)/$(header content-length)/$(header content-disposition)" 'text/plain; charset=utf-8/5/attachment; filename="ü b.txt"' 'download: headers of a text'
inside "$files?path=~/.hidden"
is "$(header content-type)/$(header content-disposition)" 'application/octet-stream/inline; filename=".hidden"' 'download: headers of bytes'

gateway_says() { like "$code/$body" "$1/$(error37 "$2")" "$3"; }
inside "$files?path=/tmp/missing"
gateway_says 404 file_not_found 'download: 404'
like "$body" ',"param":null,"hint":null,"response_id":null}}' 'download: the error format of the gateway'
inside "$files?path=/tmp"
gateway_says 400 validation_error 'download: of a directory'
for wrong in '' '?path=' '?path=tmp/x' '?path=~node/x'; do
	inside "$files$wrong"
	gateway_says 400 validation_error "download: 400 for $wrong"
	inside -X PUT --data-binary x "$files$wrong"
	gateway_says 400 validation_error "upload: 400 for $wrong"
done
put small /tmp
gateway_says 400 validation_error 'upload: over a directory'
put small /usr/forbidden
gateway_says 500 io_error 'upload: where it may not'
put small '/tmp/once&overwrite=false'
is "$code" 200 'upload: where nothing is'
put all '/tmp/once&overwrite=false'
gateway_says 409 file_exists 'upload: not over what is there'
put small '/tmp/once&overwrite=true'
is "$code" 200 'upload: but if it may'
modified=$(sed 's/.*"modified":\([0-9]*\),.*/\1/' <<<"$body")
put all /tmp/once -H "X-Expected-Mtime: $((modified - 1))"
gateway_says 412 modified 'upload: not over what has been changed since'
put all /tmp/never -H "X-Expected-Mtime: $modified"
gateway_says 412 modified 'upload: nor where nothing is any more'
put all /tmp/once -H 'X-Expected-Mtime: yesterday'
gateway_says 400 validation_error 'upload: a time that is none'
inside "$files?path=/tmp/once"
is "$body" hello 'upload: what was refused has changed nothing'
put all /tmp/once -H "X-Expected-Mtime: $modified"
is "$code" 200 'upload: over what has not been changed'

# Directories
names() { grep -o '"path":"[^"]*","type":"[^"]*"' <<<"$body" | tr '\n' ' '; }
execute37 'mkdir -p /tmp/d/e; echo 12345 >/tmp/d/f; touch /tmp/d/.g; ln -s nowhere /tmp/d/h'
inside "$plane/v1/files?path=/tmp/d"
is "$code/$(names)" '200/"path":"/tmp/d/.g","type":"file" "path":"/tmp/d/e","type":"directory" "path":"/tmp/d/f","type":"file" "path":"/tmp/d/h","type":"other" ' 'list: with what is hidden'
like "$body" '{"path":"/tmp/d","entries":[{"name":".g",' 'list: its form'
like "$body" '"truncated":false}' 'list: all of it'
inside "$plane/v1/files?path=/tmp/d/e"
like "$body" '"entries":[],' 'list: an empty one'
inside "$plane/v1/files?path=/tmp/d/f"
gateway_says 400 not_a_directory 'list: of a file'
inside "$plane/v1/files?path=/tmp/missing"
gateway_says 404 file_not_found 'list: 404'
execute37 'mkdir /tmp/many; cd /tmp/many; touch $(seq 1000)'
inside "$plane/v1/files?path=/tmp/many"
like "$(grep -o '"name"' <<<"$body" | wc -l)/$body" '"truncated":false}' 'list: a thousand'
execute37 'touch /tmp/many/more'
inside "$plane/v1/files?path=/tmp/many"
like "$(grep -o '"name"' <<<"$body" | wc -l)${body: -18}" '1000,"truncated":true}' 'list: and no more'
inside -X POST "$plane/v1/files/dir?path=/tmp/m/n"
like "$code/$body" '200/{"name":"n","path":"/tmp/m/n","type":"directory"' 'make: with parents'
inside -X POST "$plane/v1/files/dir?path=/tmp/d/f"
gateway_says 409 file_exists 'make: not over a file'
inside -X DELETE "$plane/v1/files?path=/tmp/d"
is "$code/$body" '200/{"path":"/tmp/d","deleted":true}' 'delete: with all that is in it'
inside -X DELETE "$plane/v1/files?path=/tmp/d"
gateway_says 404 file_not_found 'delete: it is gone'

# Where there is no gateway
agent37 -X POST "$one/stop"
inside "$plane/v1/files?path=/tmp"
is "$code/$body" '502/{"error":"container_unavailable"}' 'edge: a stopped one'
agent37 -X DELETE "$one"
inside "$plane/v1/health"
is "$code/$body" '404/{"error":"not_found"}' 'edge: a deleted one'
agent37_create '{"template":"custom-thing"}'
files=$plane/v1/files/content
put small /tmp/x
is "$code/$body" '404/404 page not found' 'a program of the customer: knows no files'
execute37 'mkdir -p /tmp/d; printf %s aGVsbG8= | base64 -d >/tmp/d/x; cat /tmp/d/x; [ -e /tmp/x ] || echo none'
is "$body" "$(ran 0 'hellonone\n' '')" 'a program of the customer: commands do'
agent37 -X DELETE "$one"
agent37_create '{"template":"headless-thing"}'
plane=$base/agent37-instance/$id
inside "$plane/v1/health"
is "$code/$body" '404/{"error":"not_found"}' 'without a URL there is none'
execute37 'echo runs'
is "$body" "$(ran 0 'runs\n' '')" 'without a URL: commands are run'
agent37 -X DELETE "$one"
