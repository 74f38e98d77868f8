#!/usr/bin/env bash
# routing.sh: how long a routing decision takes, by number of pools.
#
# Builds, starts a private cluster (scripts/with-cluster) and prints figures beside
# what bounds them: ratios to SELECT 1 in the same run, and to the cost per pool of
# the smallest case.  Asserts nothing.  Takes about two minutes.
set -euo pipefail
self=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/routing.sh
. "${self%/*}/../scripts/lib.sh"

if [ "${1:-}" != --measure ]; then
	find_postgres
	exec "$root/scripts/with-cluster" "$self" --measure
fi

sizes="6 10 100 1000 10000"
shares="100 50 1"
largest=10000

sql() { PGOPTIONS='-c client_min_messages=warning' psql -XqAt -v ON_ERROR_STOP=1 "$@"; }

# register COUNT SHARE: exactly these pools.
register() {
	sql <<-SQL
		DELETE FROM sbx_provider;
		INSERT INTO sbx_provider (id, kind, enabled, capabilities, signals)
			SELECT id, 'daytona', enabled, capabilities, signals FROM bench_pools($1, $2);
		ANALYZE sbx_provider;
	SQL
}

# latencies TIMES: reads statements, one a line, and prints the microseconds that each
# takes: the lower quartile of as many calls, in random order in one session that has
# all credentials.  An average would show what else the machine does.
latencies() {
	local times=$1 count=0 files=() statement
	while read -r statement; do
		printf '%s\n' '\if :ready = 0' \
			"SELECT count(sbx_set_credential(id, 'k')) FROM sbx_provider;" \
			'\set ready 1' '\endif' "$statement" >"$work_dir/statement.$count"
		files+=(-f "$work_dir/statement.$count")
		count=$((count + 1))
	done
	rm -f "$work_dir"/log.*
	pgbench -n -M prepared -t $((times * count)) -D ready=0 -D request="$request" \
		-l --log-prefix="$work_dir/log" "${files[@]}" >"$work_dir/out" 2>&1 ||
		{ cat "$work_dir/out" >&2; die "pgbench failed"; }
	for ((statement = 0; statement < count; statement++)); do
		awk -v script="$statement" '$4 == script { print $3 }' "$work_dir"/log.* | sort -n |
			awk '{ all[NR] = $1 } END { printf "%d ", all[int((NR + 3) / 4)] }'
	done
	echo
}

work_dir=$(mktemp -d)
trap 'rm -rf "$work_dir"' EXIT
find_postgres
build_test_module
sql -c 'CREATE EXTENSION sbx_router_test' -f "$root/bench/pools.sql"
request=$(sql -c 'SELECT bench_request()')

echo "Reading a request, ns each"
parse() { printf '%8.0f  %s\n' "$(sql -c "SELECT sbx_bench_parse_request('$1', 200000)")" "$2"; }
parse "$request" "the manual's example, some 30 values"
for short in '{"resources":{"cpu":4,"memoryMb":8192}}' '{}'; do parse "$short" "$short"; done

echo
echo "One decision alone, inside the backend: filter all pools, select the best 3"
echo "   pools  eligible      ns each  ns per pool   x of 6 pools, per pool"
for share in $shares; do
	for count in $sizes; do
		sql -c "DROP TABLE IF EXISTS bench_json" \
			-c "CREATE UNLOGGED TABLE bench_json AS SELECT bench_pools_json($count, $share) AS pools"
		ns=$(sql -c "SELECT sbx_bench_route(bench_request(), pools, greatest(150, 3000000 / $count), 3) FROM bench_json")
		per_pool=$(awk -v ns="$ns" -v n="$count" 'BEGIN { print ns / n }')
		[ "$count" != 6 ] || base=$per_pool
		awk -v n="$count" -v s="$share" -v ns="$ns" -v p="$per_pool" -v b="$base" \
			'BEGIN { printf "%8d  %7d%%  %11.0f  %11.1f   %.2f\n", n, s, ns, p, p / b }'
	done
done

echo
echo "SELECT sbx_route(request): prepared, warm, us each,"
echo "beside SELECT 1 and SELECT request::jsonb IS NULL, which only reads its text"
echo "   pools  eligible   SELECT 1  +jsonb  sbx_route  difference   x of SELECT 1"
for share in $shares; do
	for count in $sizes; do
		register "$count" "$share"
		times=$((count < 10000 ? 2000 : 100))
		read -r one text route < <(latencies "$times" <<-'SQL'
			SELECT 1;
			SELECT :request::jsonb IS NULL;
			SELECT sbx_route(:request);
		SQL
		)
		awk -v n="$count" -v s="$share" -v a="$one" -v t="$text" -v b="$route" \
			'BEGIN { printf "%8d  %7d%%  %9d  %6d  %9d  %10d   %.2f\n", n, s, a, t - a, b, b - a, b / a }'
	done
done

echo
echo "All of $largest pools explained, ms each (warm)"
echo "  eligible   SELECT 1   sbx_route_explain   sbx_route_providers"
for share in $shares; do
	register "$largest" "$share"
	sql -c "DROP TABLE IF EXISTS bench_json" \
		-c "CREATE UNLOGGED TABLE bench_json AS SELECT bench_pools_json($largest, $share) AS pools"
	latencies 8 <<-'SQL' | awk -v s="$share" '{ printf "  %7d%%  %9.3f  %18.1f  %20.1f\n", s, $1 / 1e3, $2 / 1e3, $3 / 1e3 }'
		SELECT 1;
		SELECT count(*) FROM sbx_route_explain(:request);
		SELECT count(*) FROM bench_json, sbx_route_providers(:request, pools);
	SQL
done

echo
echo "Around $largest registrations, ms"
sql -c "SELECT json_build_object('provider', id, 'credential', 'k')::text FROM sbx_provider" \
	>"$work_dir/credentials"
cat >"$work_dir/around" <<SQL
\\timing on
\\echo SELECT 1
SELECT 1;
\\echo first sbx_check_request: reads and parses all registrations
SELECT count(sbx_check_request(bench_request()));
\\echo COPY of a credential for each
\\copy sbx_credential_input FROM '$work_dir/credentials' WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')
\\echo first sbx_route_explain
SELECT count(*) FROM sbx_route_explain(bench_request());
\\echo second sbx_route_explain
SELECT count(*) FROM sbx_route_explain(bench_request());
\\echo sbx_register_provider of one more
SELECT sbx_register_provider('one-more', 'daytona');
\\echo next sbx_route: reads and parses all again
SELECT count(*) FROM sbx_route(bench_request());
\\echo sbx_route after that
SELECT count(*) FROM sbx_route(bench_request());
\\echo the same COPY again: replaces each
\\copy sbx_credential_input FROM '$work_dir/credentials' WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')
\\echo sbx_clear_credentials
SELECT sbx_clear_credentials();
SQL
psql -XqAt -v ON_ERROR_STOP=1 -f "$work_dir/around" |
	awk '/^Time:/ { printf "%10.1f  %s\n", $2, what } !/^Time:/ { if ($0 !~ /^[0-9]*$/) what = $0 }'

echo
print_machine
