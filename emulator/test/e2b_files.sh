# Files of an E2B sandbox: the REST part of envd, and filesystem.Filesystem.

e2b_create '{"templateID":"base"}'
head -c 9437184 /dev/urandom >"$work/large"
printf 'small\r\n--x\r\n' >"$work/small"
: >"$work/empty"
perl -e 'print map chr, 0..255' >"$work/all"
files=$e2b_envd/files

envd -F "file=@$work/small;filename=/ignored" "$files?path=%2Ftmp%2Fnew%2Fa%20b.txt"
is "$code/$body" '200/[{"path":"/tmp/new/a b.txt","name":"a b.txt","type":"file"}]' 'upload: a part, parents made'
run_in 'wc -c <"/tmp/new/a b.txt"; ls /ignored 2>&1'
like "$(written_to stdout)" 12 'upload: is in the sandbox'
like "$(written_to stdout)" 'No such file' 'upload: and not under the name of the part'
envd --data-binary "@$work/all" -H 'Content-Type: application/octet-stream' "$files?path=bin/all"
is "$code/$body" '200/[{"path":"/home/user/bin/all","name":"all","type":"file"}]' 'upload: raw, relative to the home'
envd -F "file=@$work/small;filename=/tmp/one" -F "other=@$work/all;filename=/tmp/other" -F "file=@$work/empty;filename=two" "$files"
is "$code/$body" '200/[{"path":"/tmp/one","name":"one","type":"file"},{"path":"/home/user/two","name":"two","type":"file"}]' \
	'upload: the names of the parts without a path; other parts do not count'
envd --data-binary "@$work/large" -H 'Content-Type: application/octet-stream' -H 'Transfer-Encoding: chunked' "$files?path=/tmp/large"
is "$code" 200 'upload: nine MiB without a length'
gzip -c "$work/all" >"$work/packed"
envd --data-binary "@$work/packed" -H 'Content-Type: application/octet-stream' -H 'Content-Encoding: gzip' "$files?path=/tmp/unpacked"
is "$code" 200 'upload: packed'
envd -F "file=@$work/small" "$files?path=/tmp/one"
envd "$files?path=/tmp/one"
cmp -s "$work/body" "$work/small"
is "$code/$?" 200/0 'upload: again, in place of the old'

for one_file in /tmp/large:large bin/all:all /home/user/two:empty %7E/bin/all:all /tmp/unpacked:all; do
	envd "$files?path=${one_file%:*}"
	cmp -s "$work/body" "$work/${one_file#*:}"
	is "$code/$?" 200/0 "download: ${one_file#*:} as it was"
done
envd "$files?path=/tmp/one"
is "$(header content-type)/$(header content-length)/$(header content-disposition)" \
	'text/plain; charset=utf-8/12/inline; filename="one"' 'download: headers of a text'
envd "$files?path=bin/all"
is "$(header content-type)/$(header content-length)" 'application/octet-stream/256' 'download: headers of bytes'
envd "$files?path=bin/all" -H 'Range: bytes=10-19'
is "$code/$(header content-range)/$(xxd -p "$work/body")" '206/bytes 10-19/256/0a0b0c0d0e0f10111213' 'download: a range'
envd "$files?path=bin/all" -H 'Range: bytes=250-'
is "$code/$(xxd -p "$work/body")" '206/fafbfcfdfeff' 'download: a range to the end'
envd "$files?path=bin/all" -H 'Range: bytes=-2'
is "$code/$(xxd -p "$work/body")" '206/feff' 'download: the last bytes'
envd "$files?path=bin/all" -H 'Range: bytes=256-'
is "$code" 416 'download: a range beyond the end'
envd "$files?path=bin/all" -H 'Range: bytes=10-19' -H 'Accept-Encoding: gzip'
gzip -dc "$work/body" | cmp -s - "$work/all"
is "$code/$(header content-encoding)/$?" 200/gzip/0 'download: packed, and then without a range'
envd "$files?path=/tmp/missing"
is "$code/$body" "404/{\"code\":404,\"message\":\"path '/tmp/missing' does not exist\"}" 'download: 404'
envd "$files?path=/tmp"
is "$code" 400 'download: 400 for a directory'
envd "$files"
is "$code" 400 'download: 400 without a path, the home being a directory'

envd -F "file=@$work/small" "$files?path=/tmp"
is "$code" 400 'upload: 400 for a directory'
envd -F "file=@$work/small" "$files?path=/usr/forbidden"
is "$code" 500 'upload: where it may not'
envd -F "file=@$work/small" -F "file=@$work/small" "$files?path=/tmp/x"
is "$code" 400 'upload: two files for one path'
envd --data-binary x -H 'Content-Type: application/octet-stream' "$files"
is "$code" 400 'upload: raw without a path'
envd --data-binary x -H 'Content-Type: text/plain' "$files?path=/tmp/x"
is "$code" 400 'upload: another content type'
envd --data-binary x -H 'Content-Type: application/octet-stream' "$files?path=/tmp/x&username=nobody"
is "$code" 401 'upload: a user that is not there'
envd --data-binary x -H 'Content-Type: application/octet-stream' "$files?path=/tmp/x&username=user"
is "$code" 200 'upload: one that is'
token=wrong envd "$files?path=/tmp/one"
is "$code" 401 'download: a wrong token'
envd -X DELETE "$files?path=/tmp/one"
is "$code" 405 'files: another method'

# filesystem.Filesystem
fs=filesystem.Filesystem
run_in 'cd /tmp; mkdir -p d/e; echo 12345 >d/f; ln -s d/f link; ln -s nowhere broken; chmod 640 d/f; touch d/e/.hidden'
rpc $fs/Stat '{"path":"/tmp/d/f"}'
like "$body" '{"entry":{"name":"f","type":"FILE_TYPE_FILE","path":"/tmp/d/f","size":"6","mode":416,"permissions":"-rw-r-----","owner":"user","group":"users","modifiedTime":"20' \
	'stat: a file'
rpc $fs/Stat '{"path":"/tmp/d"}'
like "$body" '"type":"FILE_TYPE_DIRECTORY"' 'stat: a directory'
rpc $fs/Stat '{"path":"/tmp/link"}'
like "$body" '"type":"FILE_TYPE_FILE"' 'stat: a link'
like "$body" '"symlinkTarget":"/tmp/d/f"' 'stat: and where it points'
rpc $fs/Stat '{"path":"/tmp/broken"}'
like "$body" '"type":"FILE_TYPE_SYMLINK"' 'stat: a link to nothing'
rpc $fs/Stat '{"path":"/tmp/missing"}'
is "$code/$body" '404/{"code":"not_found","message":"file not found"}' 'stat: 404'
rpc $fs/ListDir '{"path":"/tmp/d"}'
is "$(grep -o '"path":"[^"]*"' <<<"$body" | tr '\n' ' ')" '"path":"/tmp/d/e" "path":"/tmp/d/f" ' 'list: a directory'
rpc $fs/ListDir '{"path":"/tmp/d","depth":2}'
like "$body" '"path":"/tmp/d/e/.hidden"' 'list: deeper, with what is hidden'
rpc $fs/ListDir '{"path":"/tmp/d/f"}'
is "$code" 400 'list: 400 for a file'
rpc $fs/ListDir '{"path":"/tmp/missing"}'
is "$code" 404 'list: 404'
rpc $fs/MakeDir '{"path":"/tmp/m/n"}'
like "$code/$body" '200/{"entry":{"name":"n","type":"FILE_TYPE_DIRECTORY","path":"/tmp/m/n"' 'make: with parents'
rpc $fs/ListDir '{"path":"/tmp/m/n"}'
is "$body" '{}' 'list: an empty one'
rpc $fs/MakeDir '{"path":"/tmp/m/n"}'
is "$code" 409 'make: 409 if it is there'
rpc $fs/Move '{"source":"/tmp/d/f","destination":"/tmp/m/g"}'
like "$code/$body" '200/{"entry":{"name":"g"' 'move: 200'
rpc $fs/Stat '{"path":"/tmp/d/f"}'
is "$code" 404 'move: it is no longer where it was'
rpc $fs/Move '{"source":"/tmp/d/f","destination":"/tmp/m/g"}'
is "$code" 404 'move: 404'
rpc $fs/Remove '{"path":"/tmp/m"}'
is "$code/$body" '200/{}' 'remove: with all that is in it'
rpc $fs/Stat '{"path":"/tmp/m/g"}'
is "$code" 404 'remove: it is gone'
rpc $fs/WatchDir '{"path":"/tmp"}'
is "$code" 501 'watch: not emulated'
e2b -X DELETE "$e2b_api/sandboxes/$id"
