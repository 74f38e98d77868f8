#!/usr/bin/env bash
# provision.sh: what sbx_provision, sbx_run_script and calls for many sandboxes cost.
#
# Builds, starts a private cluster (scripts/with-cluster) and two emulators that run
# nothing, one with TLS, and prints figures beside what bounds them: the same HTTP
# requests sent by libcurl alone to the same emulator (bench/exchange.c), plain INSERTs
# and SELECT 1, in alternation, and calls for many beside a call for one.  Asserts
# nothing.  Takes about three minutes.
set -euo pipefail
self=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/provision.sh
. "${self%/*}/../scripts/lib.sh"
. "${self%/*}/../scripts/emulator.sh"

if [ "${1:-}" != --measure ]; then
	find_postgres
	exec "$root/scripts/with-cluster" "$self" --measure
fi

export LC_ALL=C
kinds="daytona e2b"
ways="http https"
rounds=10 # of all blocks, so that what else the machine does hits all of them
times=200 # calls in a block
many="1 10 100"
many_rounds=5
latency_ms=200
key='key-of-the-benchmark'

# --- emulators and registrations ----------------------------------------------------

# An elliptic curve: the server's part of a handshake, which is on this machine here and
# would not be elsewhere, is then small.
make_certificate() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 \
		-addext subjectAltName=IP:127.0.0.1 \
		-keyout "$work_dir/key.pem" -out "$work_dir/ca.pem" 2>"$work_dir/openssl.log" ||
		{ cat "$work_dir/openssl.log" >&2; die "no certificate could be made"; }
	chown "$(server_user)" "$work_dir/key.pem"
	chmod 644 "$work_dir/ca.pem"
}

# One pool of each kind at each emulator, named KIND-WAY.
register() {
	local way=$1
	sql >/dev/null <<-SQL
		SELECT sbx_register_provider('daytona-$way', 'daytona',
			'{"apiUrl":"${url[$way]}/daytona/api"}',
			'{"resources":{"cpu":2,"memoryMb":4096}}', '{"estimatedCost":0.05}');
		SELECT sbx_register_provider('e2b-$way', 'e2b',
			'{"apiUrl":"${url[$way]}/e2b","sandboxUrl":"${url[$way]}/e2b-envd"}',
			'{"resources":{"cpu":2,"memoryMb":4096}}', '{"estimatedCost":0.05}');
	SQL
}

credentials="SELECT count(sbx_set_credential(id, '$key')) FROM sbx_provider;"

request() {
	echo '{"resources":{"cpu":2,"memoryMb":2048},"providerId":"'"$1"'","launch":{"labels":{"order":"4711"}}}'
}

# Nothing is left of an earlier block, here or there, that could make this one slower.
start_anew() {
	control "$1" POST reset >/dev/null
	sql -c 'TRUNCATE sbx_mapping, bench_columns, bench_keys'
}

# --- the same requests -----------------------------------------------------------------

# logged WAY SINCE FILTER: what who calls himself sbx_router has sent since; ids that differ
# from call to call are marks.
logged() {
	control "$1" GET "requests?since=$2" |
		jq -c '.requests[] | select(.headers["user-agent"] == "sbx_router/1.0") | '"$3" |
		sed -E -e 's/sbx_[0-9a-f]{32}/@ID@/g' -e 's/sbx-run-[0-9a-f]{16}/@RUN@/g'
}

# Ready to be sent again, but for the marks.  The log hides keys, and cannot show the
# binary start of a Connect message, which exchange puts back.
requests() {
	logged "$1" "$2" '{method, path, headers, body}
			| if .headers["content-type"] == "application/connect+json"
				then .body |= sub("^[^{]*"; "") else . end' |
		sed -e "s/$box/@BOX@/g" -e 's/"Bearer \*\*\*"/"Bearer '"$key"'"/' \
			-e 's/"x-api-key":"\*\*\*"/"x-api-key":"'"$key"'"/' \
			-e 's/"x-access-token":"\*\*\*"/"x-access-token":"@TOKEN@"/'
}

# What must not differ.
comparable() {
	logged "$1" "$2" '{method, path, headers: (.headers | to_entries | sort_by(.key)), bodyBytes, body}' |
		sed -E 's,/(sandbox|sandboxes|toolbox)/[^/"]+,/\1/@BOX@,'
}

last_request() { control "$1" GET 'requests?since=999999999' | jq .last; }

# make_sandbox POOL WAY: sets $id, $box (the provider's id) and, where it has one, $token.
make_sandbox() {
	local pool=$1 way=$2
	start_anew "$way"
	IFS='|' read -r id box < <(sql -v request="$(request "$pool")" <<-SQL | tail -1
		$credentials
		SELECT sbx_provision(:'request');
		SELECT id, provider_sandbox_id FROM sbx_mapping;
	SQL
	)
	token=$(curl -sS --cacert "$work_dir/ca.pem" -H "X-API-KEY: $key" \
		"${url[$way]}/e2b/sandboxes/$box" | jq -r '.envdAccessToken // ""')
}

# exchange CALL POOL WAY TIMES: microseconds of each time, one a line.
exchange() {
	sed -e "s/@TOKEN@/${token:-}/" "$work_dir/$1.$2" |
		if [ "$1" = run ]; then sed -e "s/@BOX@/$box/g"; else cat; fi |
		"$work_dir/exchange" "${url[$3]}" "$4" "$work_dir/ca.pem"
}

# Learn from one call of each what it sends, and prove that exchange sends the same.
learn() {
	local pool=$1 way=$2 call start
	make_sandbox "$pool" "$way"
	requests "$way" 0 >"$work_dir/provision.$pool"
	start=$(last_request "$way")
	sql -c "$credentials" -c "SELECT exit_code FROM sbx_run_script('$id', 'true')" >/dev/null
	requests "$way" "$start" >"$work_dir/run.$pool"
	comparable "$way" 0 >"$work_dir/expected"
	start=$(last_request "$way")
	for call in provision run; do
		exchange "$call" "$pool" "$way" 1 >/dev/null
	done
	comparable "$way" "$start" >"$work_dir/got"
	diff "$work_dir/expected" "$work_dir/got" >&2 ||
		die "the bare exchange is not the same as the calls'"
}

# --- one session, a kept connection -------------------------------------------------------

# call NAME STATEMENT [OPTION...]: a block of it in one session that has all credentials.
call() {
	local name=$1 statement=$2
	shift 2
	printf '%s\n' '\if :ready = 0' "$credentials" '\set ready 1' '\endif' "$statement" \
		>"$work_dir/statement"
	rm -f "$work_dir"/log.*
	pgbench -n -M prepared -t "$times" -D ready=0 -l --log-prefix="$work_dir/log" "$@" \
		-f "$work_dir/statement" >"$work_dir/out" 2>&1 ||
		{ cat "$work_dir/out" >&2; die "pgbench failed"; }
	awk '{ print $3 }' "$work_dir"/log.* >>"$work_dir/us.$name"
}

# The lower quartile of all that was measured under a name: an average would show what
# else the machine does.
us() {
	sort -n "$work_dir/us.$1" | awk '{ all[NR] = $1 } END { printf "%.1f", all[int((NR + 3) / 4)] }'
}

# Rows as the mapping's: of an ordinary table of the same columns, and of one that also
# has its keys, checks and foreign key.
make_tables() {
	sql <<-'SQL'
		CREATE TABLE bench_columns (LIKE sbx_mapping INCLUDING DEFAULTS);
		CREATE TABLE bench_keys (LIKE sbx_mapping INCLUDING ALL,
			FOREIGN KEY (provider_id) REFERENCES sbx_provider (id));
	SQL
}

insert_into() {
	cat <<-SQL
		INSERT INTO $1 (id, provider_id, provider_sandbox_id, labels, state, request, owner)
		VALUES (sbx_new_id(), 'daytona-http', gen_random_uuid(), '{"order":"4711"}', 'started',
			:request, 'sbx_admin'::regrole);
	SQL
}

measure_statements() {
	start_anew http
	call one 'SELECT 1;'
	call columns "$(insert_into bench_columns)" -D request="$(request daytona-http)"
	call one 'SELECT 1;'
	call keys "$(insert_into bench_keys)" -D request="$(request daytona-http)"
	call route 'SELECT sbx_route(:request);' -D request="$(request daytona-http)"
}

measure_calls() {
	local pool=$1 way=$2
	start_anew "$way"
	call "provision.$pool" 'SELECT sbx_provision(:request);' -D request="$(request "$pool")"
	start_anew "$way"
	exchange provision "$pool" "$way" "$times" >>"$work_dir/us.exchange.provision.$pool"
	make_sandbox "$pool" "$way"
	call "run.$pool" "SELECT * FROM sbx_run_script(:id, 'true');" -D id="$id"
	exchange run "$pool" "$way" "$times" >>"$work_dir/us.exchange.run.$pool"
}

print_statements() {
	local name
	echo "Statements that send nothing, us each"
	while read -r name what; do
		awk -v a="$(us one)" -v b="$(us "$name")" -v what="$what" \
			'BEGIN { printf "%8.0f  x %5.2f of SELECT 1  %s\n", b, b / a, what }'
	done <<-END
		one SELECT 1
		route sbx_route(request): reads the request, decides
		columns INSERT into a table of sbx_mapping's columns, committed
		keys INSERT into one that has its keys, checks and foreign key, too
	END
}

print_calls() {
	local way kind pool call name
	echo "Calls in one session over one kept connection, beside the same requests by libcurl"
	echo "alone, us each; added = call - SELECT 1 - exchange"
	echo "call              to              requests  exchange    call   added  x of exchange  x of INSERT"
	for call in provision run; do
		for way in $ways; do
			for kind in $kinds; do
				pool=$kind-$way
				name=$([ "$call" = run ] && echo sbx_run_script || echo sbx_provision)
				awk -v name="$name" -v pool="$pool" -v n="$(wc -l <"$work_dir/$call.$pool")" \
					-v x="$(us "exchange.$call.$pool")" -v c="$(us "$call.$pool")" \
					-v one="$(us one)" -v i="$(us columns)" 'BEGIN {
						printf "%-16s  %-14s  %8d  %8.0f  %6.0f  %6.0f  %13.2f  %11.1f\n",
							name, pool, n, x, c, c - one - x, c / x, c / i }'
			done
		done
	done
}

# --- many at once -------------------------------------------------------------------------

# timed WHAT N SET: psql's commands for one timing of a function that returns a row for
# each of N; the time counts only if none of them has an error.
timed() {
	cat <<-SQL
		\\timing on
		SELECT 'good $1 $2' FROM $3 WHERE error_code IS NULL HAVING count(*) = $2;
		\\timing off
	SQL
}

# What is timed for N at once; the first call makes the sandboxes of the others.
many_timings() {
	local n=$1
	cat <<-SQL
		\\! . "\$BENCH_SLOW" || echo bad
		\\echo good provision $n
		\\timing on
		SELECT array_agg(id)::text AS ids FROM sbx_provision_many(:'request', $n) id \\gset
		\\timing off
	SQL
	timed run "$n" "sbx_run_script_many(:'ids', 'true')"
	timed destroy "$n" "sbx_destroy_many(:'ids')"
	cat <<-SQL
		\\! . "\$BENCH_QUICK" || echo bad
	SQL
}

# Two scripts that make the emulator slow and quick; psql has no other way.
write_switches() {
	local way=$1 kind=$2 curl="curl -sSf --cacert '$work_dir/ca.pem' -o /dev/null"
	echo "$curl ${url[$way]}/_control/faults -d '{\"provider\":\"$kind\",\"action\":\"delay\",\"ms\":$latency_ms,\"times\":1000000000}'" \
		>"$work_dir/slow"
	echo "$curl -X DELETE ${url[$way]}/_control/faults" >"$work_dir/quick"
	export BENCH_SLOW=$work_dir/slow BENCH_QUICK=$work_dir/quick
}

measure_many() {
	local kind=$1 way=$2 round n
	start_anew "$way"
	write_switches "$way" "$kind"
	{
		echo "$credentials"
		for ((round = 0; round < many_rounds; round++)); do
			for n in $many; do many_timings "$n"; done
		done
	} >"$work_dir/many"
	sql -v request="$(request "$kind-$way")" -f "$work_dir/many" |
		awk -v prefix="$work_dir/us.many.$kind-$way" '
			/^bad/ { exit 1 }
			/^good/ { name = prefix "." $2 "." $3 }
			/^Time:/ { if (name == "") exit 1; print $2 * 1000 >>name; name = "" }' ||
		die "a call for many failed"
}

print_many() {
	local what=$1 function=$2 way kind n
	for way in $ways; do
		for kind in $kinds; do
			printf '%-20s  %-14s' "$function" "$kind-$way"
			for n in $many; do us "many.$kind-$way.$what.$n"; echo; done |
				awk '{ ms[NR] = $1 / 1000 } END {
					for (i = 1; i <= NR; i++) printf "  %7.0f", ms[i]
					for (i = 2; i <= NR; i++) printf "  %8.3f", ms[i] / ms[1]
					print "" }'
		done
	done
}

# --- the main line --------------------------------------------------------------------------

work_dir=$(mktemp -d)
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# The servers' user has to get at what is here.
chmod 711 "$work_dir"
find_postgres
install -m 755 "$root/build/sbx_emulator" "$work_dir/"
cc -O2 -Wall -Wextra -Werror -o "$work_dir/exchange" "$root/bench/exchange.c" -lcurl -ljansson
make_certificate
emulate http
emulate https --tls "$work_dir/ca.pem" "$work_dir/key.pem"
sql -c "ALTER DATABASE $PGDATABASE SET sbx_router.ca_file = '$work_dir/ca.pem'"
make_tables
for way in $ways; do register "$way"; done
for way in $ways; do
	for kind in $kinds; do learn "$kind-$way" "$way"; done
done

for ((round = 0; round < rounds; round++)); do
	measure_statements
	for way in $ways; do
		for kind in $kinds; do measure_calls "$kind-$way" "$way"; done
	done
done
print_statements
echo
print_calls

echo
echo "Many at once, each answer $latency_ms ms late: ms, and x of a call for one"
printf '%-20s  %-14s' function to
for n in $many; do printf '  %7s' "n = $n"; done
for n in ${many#* }; do printf '  %8s' "x, $n"; done
echo
for way in $ways; do
	for kind in $kinds; do measure_many "$kind" "$way"; done
done
print_many provision sbx_provision_many
print_many run sbx_run_script_many
print_many destroy sbx_destroy_many

echo
echo "Each figure is the lower quartile of $((rounds * times)) calls ($many_rounds for many at once).  Settings: $(
	sql -c "SELECT string_agg(name || ' = ' || setting, ', ' ORDER BY name) FROM pg_settings
		WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'jit')")"
print_machine
