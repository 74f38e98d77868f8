# Files of Microsandbox sandboxes, through the socket to their agent.

msb_create files
fs() { agent begin core.fs.request "{\"op\":{\"$1\":$2}}" last; }
answered() { printf '1 core.fs.response {"data":%s,"error":null,"ok":true}' "$1"; }
refused_file() { fs "$1" "$2"; is "$body" "1 core.fs.response {\"data\":null,\"error\":\"$3\",\"ok\":false}" "$4"; }
write_options='{"read":false,"write":true,"append":false,"create":true,"truncate":true,"create_new":false,"mode":null}'
read_options='{"read":true,"write":false,"append":false,"create":false,"truncate":false,"create_new":false,"mode":null}'
open_file() { printf '{"op":{"OpenFile":{"path":"%s","options":%s}}}' "$1" "$2"; }

fs Mkdir '{"path":"/tmp/a/b","mode":null}'
is "$body" "$(answered null)" 'Mkdir: with its parents'
fs Mkdir '{"path":"/tmp/a/b","mode":null}'
is "$body" "$(answered null)" 'Mkdir: one that is there'
fs Mkdir '{"path":"/tmp/mode","mode":448}'
refused_file Mkdir '{"path":"/usr/x","mode":null}' 'Permission denied' 'Mkdir: not everywhere'

# A file up and down
agent begin core.fs.request "$(open_file /tmp/a/b/c "$write_options")" last \
	begin core.fs.request '{"op":{"Write":{"handle":1,"offset":0,"len":11}}}' \
	more core.fs.data '{"data":{"bytes":"hello "}}' more core.fs.data '{"data":{"bytes":"world"}}' more core.fs.data '{"data":{"bytes":""}}' last \
	begin core.fs.request '{"op":{"CloseHandle":{"handle":1}}}' last
is "$body" "$(answered '{"Handle":1}')"$'\n'"$(answered null)"$'\n'"$(answered null)" 'Write: through a handle'
agent begin core.fs.request "$(open_file /tmp/a/b/c "$read_options")" last \
	begin core.fs.request '{"op":{"Read":{"handle":1,"offset":0,"len":null}}}' last \
	begin core.fs.request '{"op":{"Read":{"handle":1,"offset":6,"len":3}}}' last
is "$(grep -a data.*bytes -c <<<"$body")$(grep -a fs.data <<<"$body")" '00 core.fs.data {"data":"hello world"}'$'\n''0 core.fs.data {"data":"wor"}' 'Read: all of it, and a part'
agent begin core.fs.request "$(open_file /tmp/a/b/c "${write_options/\"truncate\":true/\"truncate\":false}")" last \
	begin core.fs.request '{"op":{"Write":{"handle":1,"offset":6,"len":null}}}' \
	more core.fs.data '{"data":{"bytes":"W"}}' more core.fs.data '{"data":{"bytes":""}}' last
msb_run 'cat /tmp/a/b/c'
is "$output" 'hello World' 'Write: at an offset'
agent begin core.fs.request "$(open_file /tmp/a/b/c '{"append":true}')" last \
	begin core.fs.request '{"op":{"Write":{"handle":1,"offset":0,"len":null}}}' \
	more core.fs.data '{"data":{"bytes":"!"}}' more core.fs.data '{"data":{"bytes":""}}' last
msb_run 'cat /tmp/a/b/c'
is "$output" 'hello World!' 'Write: at the end'
agent begin core.fs.request "$(open_file /tmp/empty "$write_options")" last \
	begin core.fs.request '{"op":{"Write":{"handle":1,"offset":0,"len":5}}}' more core.fs.data '{"data":{"bytes":""}}' last
like "$body" '"error":"the data was not as long as announced","ok":false}' 'Write: not of another length'
msb_run 'stat -c "%s %a" /tmp/empty; stat -c %a /tmp/mode'
is "$output" '0 644\n700\n' 'OpenFile: makes a file'
agent begin core.fs.request "$(open_file /tmp/lost "$write_options")" last \
	begin core.fs.request '{"op":{"Write":{"handle":1,"offset":0,"len":null}}}' more core.fs.data '{"data":{"bytes":"part"}}'
agent begin core.fs.request '{"op":{"CloseHandle":{"handle":1}}}' last
like "$body" '"error":"there is no such handle"' 'CloseHandle: a handle is none on another socket'
fs Read '{"handle":1,"offset":0,"len":null}'
like "$body" '"error":"there is no such handle"' 'Read: nor without one'

# What cannot be opened
opens() { agent begin core.fs.request "$(open_file "$1" "$2")" last; like "$body" "$3" "$4"; }
opens /tmp/none "$read_options" '"error":"No such file or directory","ok":false}' 'OpenFile: one that is not there'
opens /tmp "$read_options" '"error":"Is a directory"' 'OpenFile: a directory'
opens /tmp/none "${write_options/\"create\":true/\"create\":false}" '"error":"No such file or directory"' 'OpenFile: none that is not to be made'
opens /tmp/none/x "$write_options" '"error":"No such file or directory"' 'OpenFile: none in a directory that is not there'
opens /usr/x "$write_options" '"error":"Permission denied"' 'OpenFile: none where it may not be'
opens /tmp/empty "${write_options/\"create_new\":false/\"create_new\":true}" '"error":"File exists"' 'OpenFile: none anew that is there'
opens /tmp/new "${write_options/\"create_new\":false/\"create_new\":true}" '{"Handle":1}' 'OpenFile: but one that is not'

# Looking
msb_run 'ln -s c /tmp/a/b/link; touch /tmp/a/b/.hidden'
fs Stat '{"path":"/tmp/a/b/link","follow_symlink":true}'
like "$body" '"kind":"file"' 'Stat: what a link points to'
like "$body" '"mode":420' 'Stat: its mode'
like "$body" '"size":12' 'Stat: its size'
fs Stat '{"path":"/tmp/a/b/link","follow_symlink":false}'
like "$body" '"kind":"symlink"' 'Stat: the link itself'
fs Stat '{"path":"/tmp/a","follow_symlink":true}'
like "$body" '"kind":"dir"' 'Stat: a directory'
refused_file Stat '{"path":"/tmp/none","follow_symlink":true}' 'No such file or directory' 'Stat: nothing'
fs List '{"path":"/tmp/a/b"}'
is "$(grep -o '"path":"[^"]*"' <<<"$body" | sort | tr '\n' ' ')" '"path":"/tmp/a/b/.hidden" "path":"/tmp/a/b/c" "path":"/tmp/a/b/link" ' 'List: all that is there'
fs List '{"path":"/tmp/mode"}'
is "$body" "$(answered '{"List":[]}')" 'List: nothing'
refused_file List '{"path":"/tmp/none"}' 'No such file or directory' 'List: not of nothing'
refused_file List '{"path":"/tmp/empty"}' 'Not a directory' 'List: nor of a file'
fs RealPath '{"path":"/tmp/a/../a/b/link"}'
is "$body" "$(answered '{"Path":"/tmp/a/b/c"}')" 'RealPath: where it is'

# Changing
fs Copy '{"src":"/tmp/a/b/c","dst":"/tmp/copy"}'
fs Rename '{"src":"/tmp/copy","dst":"/tmp/moved"}'
is "$body" "$(answered null)" 'Copy, Rename: done'
fs Remove '{"path":"/tmp/moved"}'
is "$body" "$(answered null)" 'Remove: it was there'
refused_file Remove '{"path":"/tmp/moved"}' 'No such file or directory' 'Remove: and then not'
refused_file Remove '{"path":"/tmp/a"}' 'Is a directory' 'Remove: no directory'
refused_file RemoveDir '{"path":"/tmp/a","recursive":false}' 'Directory not empty' 'RemoveDir: none with something in it'
fs RemoveDir '{"path":"/tmp/a","recursive":true}'
is "$body" "$(answered null)" 'RemoveDir: but if all is to go'
refused_file Symlink '{"target":"a","link_path":"b"}' 'this operation is not emulated' 'files: what is not emulated'
for wrong in '{}' '{"op":{}}' '{"op":"Stat"}' '{"op":{"Stat":{"follow_symlink":true}}}' '[]'; do
	agent begin core.fs.request "$wrong" last
	like "$body" '1 core.error {"kind":"invalid_payload"' "files: no operation: $wrong"
done
msb -X DELETE "$box"
