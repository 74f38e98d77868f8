# Shared by the scripts that run tests: counting, pg_regress, TAP.
# Sourced after lib.sh, never executed.

passed=0
failed=0

# section TITLE: a heading between the parts, and how long it took to get there.
section() { printf '\n=== %s (after %d s)\n' "$*" "$SECONDS"; }

# one NAME CMD...: a test that is one command; its output shows when it fails.
one() {
	local name=$1 log=$work/one.log
	shift
	if "$@" >"$log" 2>&1; then
		passed=$((passed + 1))
		printf 'ok - %s\n' "$name"
	else
		failed=$((failed + 1))
		cat "$log"
		printf 'not ok - %s\n' "$name"
	fi
}

# tap NAME CMD...: a command that prints TAP; counts each line, a skipped one
# as neither.  One that ends badly without saying what failed counts as a failure of its
# own.
tap() {
	local name=$1 log=$work/tap.log good bad skipped status=0
	shift
	"$@" >"$log" 2>&1 || status=$?
	skipped=$(grep -ci '^[[:space:]]*ok [0-9].*# skip' "$log" || true)
	good=$(($(grep -c '^[[:space:]]*ok [0-9]' "$log" || true) - skipped))
	bad=$(grep -c '^[[:space:]]*not ok [0-9]' "$log" || true)
	if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1
	fi
	if [ "$good" -eq 0 ] && [ "$bad" -eq 0 ]; then
		echo "no test ran" >>"$log"
		bad=1
	fi
	[ "$bad" -eq 0 ] || cat "$log"
	printf '%s - %s: %s passed, %s failed%s\n' \
		"$([ "$bad" -eq 0 ] && echo ok || echo 'not ok')" "$name" "$good" "$bad" \
		"$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
	passed=$((passed + good))
	failed=$((failed + bad))
}

# finish: the last line, and the status that goes with it.
finish() {
	printf '\n%d passed, %d failed\n' "$passed" "$failed"
	[ "$failed" -eq 0 ]
}

# run_regress NAME DIRECTORY: the suites of one Makefile.
run_regress() {
	local name=$1 source=$2 out=$work/regress-$1 status
	mkdir -p "$out/isolation"
	PGOPTIONS="-c sbx_test.emulator=${SBX_EMULATOR_URL:-}" \
		make -C "$source" PG_CONFIG="$PG_CONFIG" with_llvm=no installcheck \
		REGRESS_OPTS="--inputdir=$source --outputdir=$out ${*:3}" \
		ISOLATION_OPTS="--inputdir=$source --outputdir=$out/isolation --load-extension=sbx_router" \
		>"$out/log" 2>&1 && status=0 || status=$?
	# pg_regress of this version prints "test NAME ... ok"; as TAP:
	sed -n -E 's/^test ([^ ]+) +\.\.\. ok.*/ok 1 - \1/p; s/^test ([^ ]+) +\.\.\. FAILED.*/not ok 1 - \1/p' "$out/log"
	[ "$status" -eq 0 ] || cat "$out"/regression.diffs "$out"/isolation/regression.diffs "$out/log" 2>/dev/null
	return "$status"
}

# The server's Perl modules for tests: its own, or else those of Debian's, since a server
# that was built from source has them only where it was asked for them.
test_perl() {
	local place
	for place in "$1" $(ls -d /usr/lib/postgresql/*/lib/pgxs/src 2>/dev/null | sort -Vr); do
		[ ! -e "$place/test/perl/PostgreSQL/Test/Cluster.pm" ] || { echo "$place/test/perl"; return; }
	done
	die "the server's Perl modules for tests are missing"
}

# run_prove [FILE...]: the TAP files, or some of them.  prove needs an unprivileged user, who
# may not be able to read the checkout.  Three at once, because they mostly wait, and the
# last first, among which are the longest.
run_prove() {
	local copy=$work/t pgxs_root
	pgxs_root=$(dirname "$(dirname "$("$PG_CONFIG" --pgxs)")")
	[ $# -gt 0 ] || set -- $(cd "$root" && ls -r t/*.pl)
	mkdir -p "$copy/data" "$copy/test"
	cp -r "$root/t" "$root/build/sbx_emulator" "$root/build/sbx_emulator_agent" "$copy/"
	cp "$root"/test/scenario.* "$copy/test/"
	chown -R "$(server_user)" "$copy"
	as_server env -u PGHOST -u PGPORT -u PGUSER -u PGDATABASE \
		PATH="$PATH" PERL5LIB="$(test_perl "$pgxs_root"):$copy/t" \
		PG_REGRESS="$pgxs_root/test/regress/pg_regress" SBX_EMULATOR="$copy/sbx_emulator" \
		TESTDIR="$copy/data" TMPDIR="$copy/data" \
		bash -c "cd '$copy' && exec prove -v -j3 $*"
}
