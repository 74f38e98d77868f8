# What a sandbox can see and use.

create '{"name":"one"}'
one=$box
create '{"name":"two"}'
two=$box

box=$one execute '{"command":"echo secret >~/secret; echo secret >/tmp/secret; sleep 600 >/dev/null 2>&1 &"}'
box=$two execute '{"command":"ls -A ~ /tmp; for p in /proc/[0-9]*; do tr \"\\0\" \" \" <$p/cmdline; done"}'
unlike "$body" 'secret' 'no files of another sandbox'
unlike "$body" 'sleep 600' 'no processes of another sandbox'
box=$one execute '{"command":"cat ~/secret /tmp/secret; for p in /proc/[0-9]*; do tr \"\\0\" \" \" <$p/cmdline; done"}'
like "$body" 'secret\nsecret\n' 'its own files it does see'
like "$body" 'sleep 600' 'its own processes too'

box=$one execute '{"command":"cat /etc/passwd; ls /home; ls -d /root /var /opt /srv /work /boot /mnt 2>/dev/null"}'
is "$body" '{"exitCode":2,"result":"daytona:x:1000:1000:daytona:/home/daytona:/bin/bash\ndaytona\n"}' \
	'nothing of the host outside /usr'
echo host >"$work/visible"
box=$one execute "{\"command\":\"cat $work/visible\"}"
like "$body" 'No such file' 'no file of the host by its path'
for place in / /usr /usr/bin /etc; do
	box=$one execute "{\"command\":\"touch $place/x\"}"
	unlike "$body" '"exitCode":0' "$place cannot be written"
done
box=$one execute '{"command":"touch /tmp/x ~/x && echo done"}'
like "$body" 'done' 'home and /tmp can'
box=$one execute '{"command":"ls /proc/self/fd | tr \"\\n\" \" \""}'
is "$body" '{"exitCode":0,"result":"0 1 2 3 "}' 'no inherited descriptors (3 is the listing)'
SECRET_OF_HOST=x
export SECRET_OF_HOST
box=$one execute '{"command":"env | cut -d= -f1 | sort | tr \"\\n\" \" \""}'
is "$body" '{"exitCode":0,"result":"HOME LANG LOGNAME PATH PWD SHELL SHLVL USER _ "}' 'a clean environment'
box=$one execute '{"command":"cat /proc/net/dev | grep -vc lo:; (exec 3<>/dev/tcp/127.0.0.1/'"${base##*:}"') 2>&1"}'
unlike "$body" '"exitCode":0' 'no network'
box=$one execute '{"command":"grep -i cap /proc/self/status | grep -v 0000000000000000 | grep -vi bnd; id -u; unshare -U true 2>&1 || echo refused"}'
unlike "$body" 'CapEff' 'no capabilities'
box=$one execute '{"command":"ulimit -u; ulimit -v; ulimit -f; ulimit -t"}'
is "$body" '{"exitCode":0,"result":"1024\n4194304\n1048576\n600\n"}' 'limits are set'

# Nothing can be started any more then, so the shell waits with what it has.
box=$one execute '{"command":"mkfifo /tmp/pause; exec 9<>/tmp/pause; : >/tmp/refused; (for i in $(seq 1200); do sleep 600 & done) 2>/tmp/refused & while kill -0 $! 2>/dev/null && ! read -r line </tmp/refused; do read -t 0.05 -u 9; done; echo \"$line\"; kill -KILL -1"}'
like "$body" 'Resource temporarily unavailable' 'the number of processes is limited'
box=$two execute '{"command":"echo works"}'
like "$body" 'works' 'per sandbox'
box=$one execute '{"command":"for tool in sh bash ls sed cat head tail tr sort env sleep; do command -v $tool >/dev/null || echo $tool; done"}'
is "$body" '{"exitCode":0,"result":""}' 'the tools are there'

inside=$(processes_of "$pid" | wc -l)
[ "$inside" -gt 3 ]
is $? 0 'two sandboxes have processes on the host'
call -X DELETE "$api/one"
call -X DELETE "$api/two"
only_one_process() { [ "$(processes_of "$pid" | wc -l)" -eq 1 ]; }
eventually only_one_process
is "$(processes_of "$pid" | wc -l)" 1 'after their deletion there is only the launcher'
