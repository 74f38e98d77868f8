# Emulators for scripts and benchmarks.  Sourced after lib.sh, never executed; who does has a
# work_dir with the emulator's programs, and calls finish at its end.

declare -A url
emulators=()

sql() { PGOPTIONS='-c client_min_messages=warning' psql -XqAt -v ON_ERROR_STOP=1 "$@"; }

finish() {
	local emulator
	for emulator in "${emulators[@]}"; do
		kill "$emulator" 2>/dev/null || true
		wait "$emulator" 2>/dev/null || true
	done
	rm -rf "$work_dir"
}

# emulate NAME OPTION...: an emulator that runs nothing, and answers at once unless an
# option says otherwise; its address is then url[NAME].
emulate() {
	local name=$1 scheme=http waited=0 port=$work_dir/$1/port
	shift
	[[ " $* " != *' --tls '* ]] || scheme=https
	mkdir "${port%/*}"
	chown "$(server_user)" "${port%/*}"
	exec_as_server env TMPDIR="${port%/*}" "$work_dir/sbx_emulator" --no-exec \
		--listen 127.0.0.1:0 --port-file "$port" "$@" >"$work_dir/$name.log" 2>&1 &
	emulators+=($!)
	until [ -s "$port" ]; do
		kill -0 "$!" 2>/dev/null && [ $((waited += 1)) -le 200 ] ||
			{ cat "$work_dir/$name.log" >&2; die "the emulator did not start"; }
		sleep 0.05
	done
	url[$name]=$scheme://127.0.0.1:$(cat "$port")
}

# control NAME METHOD PATH [BODY]: of an emulator; one that speaks TLS has its certificate there.
control() {
	local certificate=()
	[ "${url[$1]%%:*}" = http ] || certificate=(--cacert "$work_dir/ca.pem")
	curl -sSf "${certificate[@]}" -X "$2" "${url[$1]}/_control/$3" ${4:+-d "$4"}
}
