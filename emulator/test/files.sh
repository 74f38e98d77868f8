# Uploads and downloads.

create '{"name":"files"}'
head -c 9437184 /dev/urandom >"$work/large"
printf 'small\r\n--x\r\n' >"$work/small"
: >"$work/empty"
upload()
{
	code=$(curl -sS -m 120 -o "$work/body" -w '%{http_code}' -H 'Authorization: Bearer key-one' \
		"$@" "$box/files/bulk-upload")
	body=$(cat "$work/body")
}

upload -F 'files[0].path=/tmp/new/dir/small' -F "files[0].file=@$work/small" \
	-F 'files[1].path=empty' -F "files[1].file=@$work/empty"
is "$code/$body" '200/{"files":[{"path":"/tmp/new/dir/small","bytes":12},{"path":"empty","bytes":0}]}' \
	'two files, parents made, one of them empty'
execute '{"command":"wc -c </tmp/new/dir/small; test -e ~/empty && echo there"}'
is "$body" '{"exitCode":0,"result":"12\nthere\n"}' 'they are in the sandbox'
upload -H 'Transfer-Encoding: chunked' -F 'files[0].path=/tmp/large' -F "files[0].file=@$work/large"
is "$code" 200 'nine MiB without a length'
curl -sS -H 'Authorization: Bearer key-one' -o "$work/back" "$box/files/download?path=/tmp/large"
cmp "$work/large" "$work/back"
is $? 0 'come back as they were'
upload -F 'files[0].path=/usr/forbidden' -F "files[0].file=@$work/small" \
	-F 'files[1].path=/tmp/allowed' -F "files[1].file=@$work/small"
is "$code" 400 'a file that cannot be written'
like "$body" '"files":[{"path":"/tmp/allowed","bytes":12}]' 'does not stop the others'
upload -F "files[0].file=@$work/small" -F 'files[0].path=/tmp/late'
is "$code" 400 'a file before its path'
call -X POST "$box/files/bulk-upload" -d 'nothing'
is "$code" 400 'no multipart body'

call "$box/files/download?path=/tmp/missing"
is "$code" 404 'download of a missing file'
like "$body" '"code":"FILE_NOT_FOUND"' 'the code of that'
call "$box/files/download?path=/tmp"
is "$code" 400 'download of a directory'
execute '{"command":"echo secret >/tmp/denied; chmod 0 /tmp/denied"}'
call "$box/files/download?path=/tmp/denied"
is "$code" 403 'download of a file that must not be read'
like "$body" '"code":"FILE_ACCESS_DENIED"' 'the code of that'
call "$box/files/download"
is "$code" 400 'download of nothing'
call -X POST "$box/files/bulk-download" -d '{"paths":["/tmp/new/dir/small","/tmp/missing"]}'
is "$code" 200 'bulk download is 200'
like "$body" 'name="file"; filename="/tmp/new/dir/small"' 'with a part for a file'
like "$body" '"message":"file not found: /tmp/missing"' 'and a part for an error'
like "$body" '--DAYTONA-FILE-BOUNDARY--' 'and a closing boundary'
call -X POST "$box/files/bulk-download" -d '{"paths":["/ü\""]}'
like "$body" "name=\"error\"; filename*=utf-8''%2F%C3%BC%22" 'a path that is not plain is escaped'
call -X POST "$box/files/permissions?path=/tmp/large&mode=0600"
execute '{"command":"stat -c %a /tmp/large"}'
is "$body" '{"exitCode":0,"result":"600\n"}' 'permissions are set'
call -X DELETE "$api/files"
