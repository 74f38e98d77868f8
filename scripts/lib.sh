# Shared by the scripts: where things are, who runs servers, what is stale.
# Sourced, never executed.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# The PostgreSQL to build for and run: PG_CONFIG wins, else the newest installed.
find_postgres() {
	if [ -z "${PG_CONFIG:-}" ]; then
		PG_CONFIG=$(ls -d /usr/lib/postgresql/*/bin/pg_config 2>/dev/null | sort -V | tail -1)
		[ -n "$PG_CONFIG" ] || PG_CONFIG=$(command -v pg_config) || die "no pg_config found"
	fi
	export PG_CONFIG
	pg_bin=$("$PG_CONFIG" --bindir)
	export PATH="$pg_bin:$PATH"
}

# Servers refuse to run as root: then they run as an unprivileged user.
server_user() {
	if [ "$(id -u)" -ne 0 ]; then
		id -un
	elif getent passwd postgres >/dev/null; then
		echo postgres
	else
		echo nobody
	fi
}

# Replace this shell by a command run as the user that servers run as.
exec_as_server() {
	local user
	user=$(server_user)
	cd /
	if [ "$user" = "$(id -un)" ]; then
		exec "$@"
	fi
	exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups \
		env HOME=/nonexistent "$@"
}

as_server() {
	(exec_as_server "$@")
}

# Run a command as root, for `make install` into the server's own folders.
as_root() {
	if [ "$(id -u)" -eq 0 ] || [ -w "$("$PG_CONFIG" --pkglibdir)" ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "cannot install into $("$PG_CONFIG" --pkglibdir): run as root or install sudo"
	fi
}

# What a benchmark's figures were measured on.
print_machine() {
	sed -n 's/^model name[^:]*: /CPU: /p' /proc/cpuinfo | sort -u
	echo "CPUs: $(nproc)   load: $(cut -d' ' -f1-3 /proc/loadavg)   PostgreSQL: $("$PG_CONFIG" --version)   libcurl: $(curl-config --version)"
}

# A Node.js that is new enough for the providers' clients: the machine's, or the
# one that install-deps puts under build/.  Fails if there is none.
node_wanted=22
find_node() {
	local candidate version
	for candidate in "$(command -v node || true)" "$root"/build/node/node_modules/node-linux-*/bin/node; do
		[ -x "$candidate" ] || continue
		version=$("$candidate" -p 'process.versions.node.split(".")[0]' 2>/dev/null) || continue
		if [ "$version" -ge "$node_wanted" ]; then
			node=$candidate
			return 0
		fi
	done
	return 1
}

# Build with warnings as errors and install what is stale.  Quiet unless it fails.
# One at a time: two runs on one checkout must not overwrite each other's objects.
build_all() {
	local log
	mkdir -p "$root/build"
	log=$root/build/build.log
	exec 9>"$root/build/lock"
	flock 9
	if ! {
		make -C "$root" -j"$(nproc)" with_llvm=no SBX_CFLAGS=-Werror PG_CONFIG="$PG_CONFIG" &&
			make -C "$root/emulator" -j"$(nproc)" BUILD="$root/build"
	} >"$log" 2>&1; then
		cat "$log" >&2
		die "the build failed"
	fi
	if ! is_installed; then
		as_root make -C "$root" with_llvm=no SBX_CFLAGS=-Werror PG_CONFIG="$PG_CONFIG" install \
			>"$log" 2>&1 || { cat "$log" >&2; die "the installation failed"; }
	fi
	flock -u 9
	exec 9>&-
}

# The module with functions for tests and benchmarks; after build_all.
build_test_module() {
	local log=$root/build/test-module.log
	exec 9>"$root/build/lock"
	flock 9
	if ! {
		make -C "$root/test/module" with_llvm=no SBX_CFLAGS=-Werror PG_CONFIG="$PG_CONFIG" &&
			as_root make -C "$root/test/module" with_llvm=no SBX_CFLAGS=-Werror \
				PG_CONFIG="$PG_CONFIG" install
	} >"$log" 2>&1; then
		cat "$log" >&2
		die "the test module could not be installed"
	fi
	flock -u 9
	exec 9>&-
}

is_installed() {
	local share
	share=$("$PG_CONFIG" --sharedir)/extension
	cmp -s "$root/sbx_router.so" "$("$PG_CONFIG" --pkglibdir)/sbx_router.so" &&
		cmp -s "$root/sbx_router.control" "$share/sbx_router.control" &&
		cmp -s "$root/sbx_router--1.0.sql" "$share/sbx_router--1.0.sql"
}

# The emulator alone, which needs no PostgreSQL.
build_emulator() {
	local log=$root/build/emulator.log
	mkdir -p "$root/build"
	exec 9>"$root/build/lock"
	flock 9
	make -C "$root/emulator" -j"$(nproc)" BUILD="$root/build" >"$log" 2>&1 ||
		{ cat "$log" >&2; die "the build of the emulator failed"; }
	flock -u 9
	exec 9>&-
}

make_work() {
	# Short: a socket's path must fit into 107 bytes.
	work=$(mktemp -d /tmp/sbx.XXXXXX)
	chmod 755 "$work"
	mkdir "$work/pg" "$work/emulator" "$work/bin"
	chown "$(server_user)" "$work/pg" "$work/emulator"
}

# A private cluster and an emulator under $work; sets PG* and SBX_EMULATOR_URL.
# Every server gets stopped by stop_servers, which is safe to call at any time.
start_servers() {
	make_work
	start_cluster
	start_emulator
}

start_cluster() {
	export PGHOST=$work/pg PGPORT=5432 PGUSER=sbx_admin PGDATABASE=sbx
	unset PGPASSWORD PGSERVICE PGOPTIONS PGSSLMODE PGPASSFILE
	as_server "$pg_bin/initdb" -D "$work/pg/data" -U "$PGUSER" -A trust -E UTF8 \
		--locale=C.UTF-8 --no-sync >"$work/initdb.log" 2>&1 ||
		{ cat "$work/initdb.log" >&2; die "initdb failed"; }
	as_server tee -a "$work/pg/data/postgresql.conf" >/dev/null <<-CONF
		listen_addresses = ''
		port = $PGPORT
		unix_socket_directories = '$work/pg'
		unix_socket_permissions = 0777
		fsync = off
		max_connections = 100
		max_prepared_transactions = 10
		log_min_messages = warning
		sbx_router.allow_private_addresses = on
	CONF
	cluster_running=1
	as_server "$pg_bin/pg_ctl" -D "$work/pg/data" -l "$work/pg/log" -w start >/dev/null ||
		{ cat "$work/pg/log" >&2; die "the cluster did not start"; }
	psql -Xq -d postgres -c "CREATE DATABASE $PGDATABASE" &&
		psql -Xq -c 'CREATE EXTENSION sbx_router SCHEMA public' ||
		die "the extension could not be created"
}

start_emulator() {
	local waited=0
	# A copy: the user that servers run as may not be able to read the checkout.
	cp "$root"/build/sbx_emulator* "$work/bin/"
	exec_as_server env TMPDIR="$work/emulator" "$work/bin/sbx_emulator" \
		--listen 127.0.0.1:0 --port-file "$work/emulator/port" \
		>"$work/emulator/log" 2>&1 &
	emulator_job=$!
	until [ -s "$work/emulator/port" ]; do
		kill -0 "$emulator_job" 2>/dev/null && [ $((waited += 1)) -le 200 ] ||
			{ cat "$work/emulator/log" >&2; die "the emulator did not start"; }
		sleep 0.05
	done
	export SBX_EMULATOR_URL=http://127.0.0.1:$(cat "$work/emulator/port")
}

stop_servers() {
	[ -n "${work:-}" ] || return 0
	if [ -n "${emulator_job:-}" ]; then
		kill "$emulator_job" 2>/dev/null || true
		wait "$emulator_job" 2>/dev/null || true
		emulator_job=
	fi
	if [ -n "${cluster_running:-}" ]; then
		as_server "$pg_bin/pg_ctl" -D "$work/pg/data" -m immediate -w stop >/dev/null 2>&1 || true
		cluster_running=
	fi
	rm -rf "$work"
	work=
}
