#!/usr/bin/env bash
# capacity.sh: what reading capacity costs: several accounts at once beside the slowest of
# them, and one account with thousands of sandboxes, its pages and its memory.
#
# Builds, starts a private cluster (scripts/with-cluster) and two emulators that run nothing,
# one of which answers late.  Asserts nothing.  Takes about a minute.
set -euo pipefail
self=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/capacity.sh
. "${self%/*}/../scripts/lib.sh"
. "${self%/*}/../scripts/emulator.sh"

if [ "${1:-}" != --measure ]; then
	find_postgres
	exec "$root/scripts/with-cluster" "$self" --measure
fi

export LC_ALL=C
accounts=6
latency_ms=200
rounds=20
sandboxes=5000

# Half of them Daytona, half E2B; each key is an account.
register() {
	local name=$1 i
	for ((i = 1; i <= accounts; i++)); do
		if ((i % 2)); then
			echo "SELECT sbx_register_provider('$name-$i', 'daytona', '{\"apiUrl\":\"${url[$name]}/daytona/api\"}',
				capacity => '{\"limits\":{\"cpu\":100000,\"memory\":1e9,\"disk\":1e9,\"sandboxes\":100000},\"demand\":{\"cpu\":1,\"memory\":1,\"disk\":1}}');"
		else
			echo "SELECT sbx_register_provider('$name-$i', 'e2b',
				'{\"apiUrl\":\"${url[$name]}/e2b\",\"sandboxUrl\":\"${url[$name]}/e2b-envd\"}', capacity => '{\"limits\":{\"sandboxes\":100000}}');"
		fi
	done | sql >/dev/null
}

credentials="SELECT count(sbx_set_credential(id, ('key-of-' || id)::sbx_secret)) FROM sbx_provider;"

# Milliseconds of each of so many readings, after one that connects.
make_functions() {
	sql <<-'SQL'
		CREATE FUNCTION bench_read(providers text[], rounds integer) RETURNS SETOF float8 LANGUAGE plpgsql AS $$
		DECLARE
			started timestamptz;
			unknown bigint;
		BEGIN
			FOR i IN 0 .. rounds LOOP
				started := clock_timestamp();
				SELECT count(*) FILTER (WHERE status <> 'known') INTO unknown FROM sbx_capacity(providers, '30 s');
				ASSERT unknown = 0;
				CONTINUE WHEN i = 0;
				RETURN NEXT 1000 * extract(epoch FROM clock_timestamp() - started);
			END LOOP;
		END $$;
	SQL
}

median() { sort -n | awk '{ all[NR] = $1 } END { printf "%.1f", all[int((NR + 1) / 2)] }'; }

# Alternately: what else the machine does hits both.
measure_accounts() {
	local i all one
	all=$(seq -f 'late-%.0f' -s , 1 "$accounts")
	one=$work_dir/one
	{
		echo "$credentials"
		for ((i = 1; i <= accounts; i++)); do
			echo "SELECT 'one-$i', bench_read('{late-$i}', 3);"
			echo "SELECT 'all', bench_read('{$all}', 3);"
		done
	} | sql -F ' ' >"$one"
	for ((i = 1; i <= accounts; i++)); do
		awk -v name="one-$i" '$1 == name { print $2 }' "$one" | median
		echo
	done | sort -n | tail -1 >"$work_dir/slowest"
	awk '$1 == "all" { print $2 }' "$one" | median >"$work_dir/all"
	printf '%-46s  %9s ms\n' "the slowest of $accounts accounts alone" "$(cat "$work_dir/slowest")"
	printf '%-46s  %9s ms  %5s x\n' "all $accounts at once" "$(cat "$work_dir/all")" \
		"$(awk -v all="$(cat "$work_dir/all")" -v one="$(cat "$work_dir/slowest")" 'BEGIN { printf "%.2f", all / one }')"
}

# measure_memory PROVIDER: ms of a reading, and the largest resident size of its session.
measure_memory() {
	{
		echo "$credentials"
		echo "SELECT 'ms', bench_read('{$1}', $rounds);"
		echo 'SELECT pg_backend_pid() AS pid \gset'
		echo '\setenv pid :pid'
		echo '\! awk '"'"'/^VmHWM/ { print "kB", $2 }'"'"' /proc/$pid/status'
	} | sql -F ' ' >"$work_dir/memory"
	printf '%s %s' "$(awk '$1 == "ms" { print $2 }' "$work_dir/memory" | median)" \
		"$(awk '$1 == "kB" { print $2 }' "$work_dir/memory")"
}

measure_large_account() {
	local kind=$1 provider=$2 empty full pages
	read -r -a empty <<<"$(measure_memory "$provider")"
	sql -c "$credentials" -c 'SET sbx_router.max_launches_per_statement = 10000' \
		-c "SELECT count(*) FROM sbx_provision_many('{\"providerId\":\"$provider\"}', $sandboxes)" >/dev/null
	read -r -a full <<<"$(measure_memory "$provider")"
	pages=$((sandboxes / $([ "$kind" = daytona ] && echo 200 || echo 100)))
	printf '%-46s  %9s ms  %8d kB\n' "$kind, no sandboxes" "${empty[0]}" "${empty[1]}"
	printf '%-46s  %9s ms  %8d kB  %d pages, %s ms each, %d kB more\n' "$kind, $sandboxes sandboxes" "${full[0]}" "${full[1]}" \
		"$pages" "$(awk -v ms="${full[0]}" -v pages="$pages" 'BEGIN { printf "%.2f", ms / pages }')" "$((full[1] - empty[1]))"
}

work_dir=$(mktemp -d)
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# The servers' user has to get at what is here.
chmod 711 "$work_dir"
find_postgres
install -m 755 "$root/build/sbx_emulator" "$work_dir/"
emulate late --latency-ms "$latency_ms"
emulate prompt
register late
register prompt
make_functions
echo "Reading $accounts accounts, each answer $latency_ms ms late"
measure_accounts
echo
echo "Reading one account: time, and the largest resident size of the session"
measure_large_account daytona prompt-1
measure_large_account e2b prompt-2
echo
echo "Medians."
print_machine
