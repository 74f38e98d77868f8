# Files of Freestyle's VMs.

freestyle_create
fs=$vm/fs
perl -e 'print map chr, 0..255' >"$work/all"
head -c 9437184 /dev/urandom >"$work/large"
put_file() { freestyle -X PUT "$fs/write?path=$2${3:-}" -H 'Content-Type: application/octet-stream' --data-binary "@$work/$1"; }
put_file all '/tmp/up%20load/%C3%BC%2B.bin' '&mode=493'
is "$code/$body" 204/ 'freestyle write: parents are made'
freestyle "$fs/read?path=/tmp/up+load/%C3%BC%2B.bin"
cmp -s "$work/all" "$work/body"
is "$code/$?" 200/0 'freestyle read: every byte'
is "$(vm_header content-type)" application/octet-stream 'freestyle read: as bytes'
freestyle "$fs/stat?path=/tmp/up+load/%C3%BC%2B.bin"
like "$body" '{"size":256,"isFile":true,"isDirectory":false,"isSymlink":false,"permissions":"0755","owner":"ubuntu","group":"' 'freestyle stat: a file'
put_file curl '/tmp/up+load/%C3%BC%2B.bin'
freestyle "$fs/stat?path=/tmp/up+load/%C3%BC%2B.bin"
like "$body" '{"size":0,"isFile":true,"isDirectory":false,"isSymlink":false,"permissions":"0755"' 'freestyle write: the mode of the file there is'
put_file all /tmp/new
freestyle "$fs/stat?path=/tmp/new"
like "$body" '"permissions":"0600"' 'freestyle write: of a new one it is 0600'
sum=$(sha256sum <"$work/all" | cut -c1-64)
put_file all /tmp/sum "&sha256=$sum"
is "$code" 204 'freestyle write: the right sum'
put_file curl /tmp/sum "&sha256=$sum"
vm_refused 400 BAD_REQUEST 'freestyle write: the wrong sum'
freestyle "$fs/stat?path=/tmp/sum"
like "$body" '{"size":256,' 'freestyle write: leaves the old file as it was'
execute_vm 'ls -A /tmp | sort'
is "$code/$body" "$(gave 0 'new\nsum\nup load\n' '')" 'freestyle write: and nothing else'
put_file all /tmp
vm_refused 400 BAD_REQUEST 'freestyle write: not onto a directory'
put_file all /usr/file
vm_refused 400 BAD_REQUEST 'freestyle write: not where the user may not'
put_file all /tmp/x '&mode=rwx'
vm_refused 400 BAD_REQUEST 'freestyle write: a mode is decimal'
for wrong in '' relative / /tmp/../x /tmp/..; do
	put_file all "$wrong"
	vm_refused 400 BAD_REQUEST "freestyle path: not \"$wrong\""
done
put_file all /tmp/..x
is "$code" 204 'freestyle path: two dots in a name'
put_file all "/tmp/$(printf 'x%.0s' {1..4096})"
vm_refused 400 BAD_REQUEST 'freestyle path: too long'

# Parts of a file
part() { freestyle -H "Range: $1" "$fs/read?path=/tmp/sum"; }
part bytes=65-67
is "$code/$body/$(vm_header content-range)" '206/ABC/bytes 65-67/256' 'freestyle range: in the middle'
part bytes=254-
is "$code/$(wc -c <"$work/body")/$(vm_header content-range)" '206/2/bytes 254-255/256' 'freestyle range: to the end'
part bytes=250-999
is "$code/$(wc -c <"$work/body")/$(vm_header content-range)" '206/6/bytes 250-255/256' 'freestyle range: beyond the end'
part bytes=256-
vm_refused 416 RANGE_NOT_SATISFIABLE 'freestyle range: after the end'
part bytes=x
is "$code/$(wc -c <"$work/body")" 200/256 'freestyle range: none'

# Directories
freestyle -X POST "$fs/mkdir" -d '{"path":"/tmp/dir/in"}'
is "$code/$body" 204/ 'freestyle mkdir: several levels'
freestyle -X POST "$fs/mkdir" -d '{"path":"/tmp/dir/in"}'
is "$code" 204 'freestyle mkdir: again'
freestyle -X POST "$fs/mkdir" -d '{"path":"/tmp/sum"}'
vm_refused 400 BAD_REQUEST 'freestyle mkdir: not where a file is'
freestyle -X POST "$fs/mkdir" -d '{}'
vm_refused 400 BAD_REQUEST 'freestyle mkdir: nowhere'
execute_vm 'ln -s /nowhere /tmp/dir/link; touch /tmp/dir/.file'
freestyle "$fs/dir?path=/tmp/dir"
is "$code/$body" '200/{"entries":[{"name":".file","kind":"file"},{"name":"in","kind":"directory"},{"name":"link","kind":"symlink"}]}' 'freestyle dir: kinds'
freestyle "$fs/dir?path=/tmp/dir/in"
is "$body" '{"entries":[]}' 'freestyle dir: nothing'
freestyle "$fs/dir?path=/tmp/sum"
vm_refused 400 BAD_REQUEST 'freestyle dir: not of a file'
freestyle "$fs/stat?path=/tmp/dir/link"
like "$body" '"isFile":false,"isDirectory":false,"isSymlink":true' 'freestyle stat: a link'
freestyle "$fs/exists?path=/tmp/dir/link"
is "$code/$body" '200/{"exists":true}' 'freestyle exists: a link to nothing'
freestyle "$fs/exists?path=/tmp/none"
is "$code/$body" '200/{"exists":false}' 'freestyle exists: not what is not there'
freestyle -X DELETE "$fs/remove?path=/tmp/dir"
is "$code/$body" 204/ 'freestyle remove: all of it'
freestyle "$fs/exists?path=/tmp/dir"
is "$body" '{"exists":false}' 'freestyle remove: is gone'
for what in 'read -X GET' 'stat -X GET' 'dir -X GET' 'remove -X DELETE'; do
	freestyle ${what#* } "$fs/${what%% *}?path=/tmp/none"
	vm_refused 404 NOT_FOUND "freestyle ${what%% *}: what is not there"
done
vm_settings '"strictParents":true'
put_file all /tmp/not/there
vm_refused 404 NOT_FOUND 'freestyle write: parents, if they are not made'
freestyle -X POST "$fs/mkdir" -d '{"path":"/tmp/not/there"}'
vm_refused 404 NOT_FOUND 'freestyle mkdir: neither'
freestyle -X POST "$fs/mkdir" -d '{"path":"/tmp/not"}'
put_file all /tmp/not/there
is "$code" 204 'freestyle write: but where they are'
vm_settings '"strictParents":false'

# Uploads
begin_upload() { freestyle -X POST "$fs/uploads" -d "{\"path\":\"$1\",\"size\":$2${3:+,$3}}"; upload=$fs/uploads/$(sed 's/.*"uploadId":"\([^"]*\)".*/\1/' <<<"$body"); }
chunk() { freestyle -X PUT "$upload?offset=$1" -H 'Content-Type: application/octet-stream' --data-binary "@$work/$2"; }
status_of() { sed 's/.*\("path".*\)}/\1/' <<<"$body"; }
split -b 4194304 "$work/large" "$work/part-"
sum=$(sha256sum <"$work/large" | cut -c1-64)
begin_upload /tmp/large 9437184 "\"mode\":416,\"sha256\":\"$sum\""
is "$code/$(status_of)" '200/"path":"/tmp/large","size":9437184,"receivedBytes":0' 'freestyle upload: begun'
chunk 0 part-aa
is "$code/$(status_of)" '200/"path":"/tmp/large","size":9437184,"receivedBytes":4194304' 'freestyle upload: a chunk'
chunk 0 part-aa
vm_refused 400 BAD_REQUEST 'freestyle upload: not twice'
chunk 8388608 part-ac
vm_refused 400 BAD_REQUEST 'freestyle upload: not out of order'
chunk 4194304 part-ab
freestyle "$upload"
is "$code/$(status_of)" '200/"path":"/tmp/large","size":9437184,"receivedBytes":8388608' 'freestyle upload: how far it is'
freestyle -X POST "$upload/commit" -d '{}'
vm_refused 409 CONFLICT 'freestyle upload: not complete'
freestyle "$fs/exists?path=/tmp/large"
is "$body" '{"exists":false}' 'freestyle upload: no file before the commit'
chunk 8388608 part-ab
vm_refused 400 BAD_REQUEST 'freestyle upload: more than was announced'
chunk 8388608 part-ac
freestyle -X POST "$upload/commit" -d '{}'
is "$code/$body" 204/ 'freestyle upload: committed'
freestyle "$fs/read?path=/tmp/large"
cmp -s "$work/large" "$work/body"
is $? 0 'freestyle upload: the file is there'
freestyle "$fs/stat?path=/tmp/large"
like "$body" '"permissions":"0640"' 'freestyle upload: with its mode'
freestyle -X POST "$upload/commit" -d '{}'
vm_refused 404 NOT_FOUND 'freestyle upload: and done with'
begin_upload /tmp/other 256 "\"sha256\":\"$sum\""
chunk 0 all
freestyle -X POST "$upload/commit" -d '{}'
vm_refused 400 BAD_REQUEST 'freestyle upload: the wrong sum'
begin_upload /tmp/other 256
chunk 0 all
freestyle -X DELETE "$upload"
is "$code/$body" 204/ 'freestyle upload: given up'
freestyle "$upload"
vm_refused 404 NOT_FOUND 'freestyle upload: is gone'
freestyle "$fs/exists?path=/tmp/other"
is "$body" '{"exists":false}' 'freestyle upload: without a file'
for wrong in '"x"' '-1' 'null' '999999999999'; do
	begin_upload /tmp/other "$wrong"
	vm_refused 400 BAD_REQUEST "freestyle upload: not of size $wrong"
done
freestyle -X POST "$fs/nonsense" -d '{}'
vm_refused 404 ROUTE_NOT_FOUND 'freestyle files: an unknown operation'
freestyle -X DELETE "$vm"
freestyle "$fs/exists?path=/tmp"
vm_refused 404 NOT_FOUND 'freestyle files: of a VM that is gone'
