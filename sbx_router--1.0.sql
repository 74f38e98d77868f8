/* sbx_router--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION sbx_router" to load this file. \quit

--
-- Types
--

CREATE DOMAIN sbx_id AS text
	CONSTRAINT sbx_id_check CHECK (VALUE OPERATOR(pg_catalog.~) '^sbx_[0-9a-f]{32}$');
COMMENT ON DOMAIN sbx_id IS 'durable id of a sandbox: sbx_ and 32 hex digits';

CREATE TYPE sbx_secret;

CREATE FUNCTION sbx_secret_in(cstring) RETURNS sbx_secret
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sbx_secret_in(cstring) IS 'I/O';

CREATE FUNCTION sbx_secret_out(sbx_secret) RETURNS cstring
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sbx_secret_out(sbx_secret) IS 'I/O: always ********';

CREATE FUNCTION sbx_secret_recv(internal) RETURNS sbx_secret
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sbx_secret_recv(internal) IS 'I/O';

CREATE TYPE sbx_secret (
	INPUT = sbx_secret_in,
	OUTPUT = sbx_secret_out,
	RECEIVE = sbx_secret_recv,
	INTERNALLENGTH = VARIABLE,
	STORAGE = EXTENDED
);
COMMENT ON TYPE sbx_secret IS 'a credential; its output is always ********';

--
-- Tables
--

CREATE TABLE sbx_installation (
	only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
	installation_id text NOT NULL CHECK (installation_id OPERATOR(pg_catalog.~) '^[0-9a-f]{16}$'),
	database_oid oid NOT NULL,
	system_identifier text NOT NULL
);
COMMENT ON TABLE sbx_installation IS 'which installation this is: part of the label that every sandbox of this database carries';
COMMENT ON COLUMN sbx_installation.only_row IS 'there is one installation';
COMMENT ON COLUMN sbx_installation.installation_id IS 'random, made by CREATE EXTENSION; not dumped';
COMMENT ON COLUMN sbx_installation.database_oid IS 'database at that time; another one now means that this is a copy';
COMMENT ON COLUMN sbx_installation.system_identifier IS 'cluster at that time; another one now means that this is a copy';

INSERT INTO sbx_installation (installation_id, database_oid, system_identifier)
SELECT pg_catalog.encode(pg_catalog.substr(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 1, 4), 'hex')
	   OPERATOR(pg_catalog.||)
	   pg_catalog.encode(pg_catalog.substr(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 1, 4), 'hex'),
	   d.oid,
	   c.system_identifier::pg_catalog.text
FROM pg_catalog.pg_database d, pg_catalog.pg_control_system() c
WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database();

CREATE TABLE sbx_provider (
	id text COLLATE "C" PRIMARY KEY,
	kind text NOT NULL,
	enabled boolean NOT NULL DEFAULT true,
	settings jsonb NOT NULL DEFAULT '{}',
	capabilities jsonb,
	signals jsonb,
	capacity jsonb,
	registered_by regrole NOT NULL DEFAULT pg_catalog.quote_ident(CURRENT_USER)::pg_catalog.regrole
);
COMMENT ON TABLE sbx_provider IS 'registered provider pools; no credentials here';
COMMENT ON COLUMN sbx_provider.id IS 'name of the pool, chosen by who registers it';
COMMENT ON COLUMN sbx_provider.kind IS 'which adapter speaks to it, see sbx_provider_kinds()';
COMMENT ON COLUMN sbx_provider.enabled IS 'false takes the pool out of routing; its sandboxes stay usable';
COMMENT ON COLUMN sbx_provider.settings IS 'settings of the kind, see sbx_provider_kinds()';
COMMENT ON COLUMN sbx_provider.capabilities IS 'declared capability profile; NULL = synchronous execution and file transfer only';
COMMENT ON COLUMN sbx_provider.signals IS 'declared cost, latency and reliability; NULL = equal placeholders';
COMMENT ON COLUMN sbx_provider.capacity IS 'limits of the account, demand of one sandbox, and the function that reads its use where the kind does not';
COMMENT ON COLUMN sbx_provider.registered_by IS 'role that wrote the row; endpoint overrides need it to be superuser';

CREATE TABLE sbx_policy (
	name text COLLATE "C" PRIMARY KEY,
	provider_order text[],
	capacity_timeout interval,
	request_defaults jsonb,
	classifier text,
	signals_resolver text,
	readiness text,
	observer text,
	registered_by regrole NOT NULL DEFAULT pg_catalog.quote_ident(CURRENT_USER)::pg_catalog.regrole
);
COMMENT ON TABLE sbx_policy IS 'policies: defaults of requests, and the functions that routing calls';
COMMENT ON COLUMN sbx_policy.name IS 'what calls and the setting sbx_router.policy name';
COMMENT ON COLUMN sbx_policy.provider_order IS 'ids of the pools in the order in which they are tried, as far as they have room; NULL = requests'' strategies decide';
COMMENT ON COLUMN sbx_policy.capacity_timeout IS 'time that each account may take to be read; NULL = 5 s';
COMMENT ON COLUMN sbx_policy.request_defaults IS 'request that fills in what a call''s own request leaves out';
COMMENT ON COLUMN sbx_policy.classifier IS 'function schema.name(failure jsonb) returns jsonb: {"code","retryable"} of a failed launch; NULL = nothing is retried';
COMMENT ON COLUMN sbx_policy.signals_resolver IS 'function that gives signals; not supported yet';
COMMENT ON COLUMN sbx_policy.readiness IS 'function that says whether a pool may be used now; not supported yet';
COMMENT ON COLUMN sbx_policy.observer IS 'function that gets events; not supported yet';
COMMENT ON COLUMN sbx_policy.registered_by IS 'role that wrote the row; its functions are called as this role';

CREATE TABLE sbx_mapping (
	id sbx_id PRIMARY KEY,
	provider_id text COLLATE "C" NOT NULL REFERENCES sbx_provider (id),
	provider_sandbox_id text NOT NULL CHECK (provider_sandbox_id OPERATOR(pg_catalog.<>) ''),
	name text,
	labels jsonb NOT NULL DEFAULT '{}',
	state text NOT NULL
		CHECK (state OPERATOR(pg_catalog.=) ANY (ARRAY['starting', 'started', 'stopping', 'stopped', 'failed', 'gone'])),
	idempotency_key text,
	request jsonb NOT NULL,
	env_hash bytea,
	launch_token text CHECK (launch_token OPERATOR(pg_catalog.~) '^[0-9a-f]{16}$'),
	owner regrole NOT NULL,
	created_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	UNIQUE (provider_id, provider_sandbox_id)
);
CREATE UNIQUE INDEX sbx_mapping_idempotency_key
	ON sbx_mapping (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;
COMMENT ON TABLE sbx_mapping IS 'live sandboxes: our id, the provider''s id, labels and owner';
COMMENT ON COLUMN sbx_mapping.id IS 'durable id';
COMMENT ON COLUMN sbx_mapping.provider_id IS 'pool that runs it';
COMMENT ON COLUMN sbx_mapping.provider_sandbox_id IS 'the provider''s own id';
COMMENT ON COLUMN sbx_mapping.name IS 'launch.name of the request';
COMMENT ON COLUMN sbx_mapping.labels IS 'launch.labels of the request';
COMMENT ON COLUMN sbx_mapping.state IS 'state that the last launch, wait, start or stop left';
COMMENT ON COLUMN sbx_mapping.idempotency_key IS 'idempotencyKey of the request';
COMMENT ON COLUMN sbx_mapping.request IS 'the request without launch.env';
COMMENT ON COLUMN sbx_mapping.env_hash IS 'SHA-256 of launch.env; NULL when the request had none';
COMMENT ON COLUMN sbx_mapping.launch_token IS 'tells the sandbox from others of the same id; NULL when the id was made for it';
COMMENT ON COLUMN sbx_mapping.owner IS 'role that provisioned it; members may use it too';
COMMENT ON COLUMN sbx_mapping.created_at IS 'when the sandbox was recorded';

ALTER TABLE sbx_mapping ENABLE ROW LEVEL SECURITY;
ALTER TABLE sbx_mapping FORCE ROW LEVEL SECURITY;
CREATE POLICY sbx_mapping_member ON sbx_mapping
	USING (pg_catalog.pg_has_role(owner, 'USAGE'))
	WITH CHECK (pg_catalog.pg_has_role(owner, 'USAGE'));
COMMENT ON POLICY sbx_mapping_member ON sbx_mapping IS 'a sandbox belongs to the role that provisioned it and to its members';

-- Registrations, policies and mappings are the user's data; which installation this is,
-- is not.
SELECT pg_catalog.pg_extension_config_dump('sbx_provider', '');
SELECT pg_catalog.pg_extension_config_dump('sbx_policy', '');
SELECT pg_catalog.pg_extension_config_dump('sbx_mapping', '');

CREATE VIEW sbx_sandboxes WITH (security_invoker = true) AS
	SELECT id, provider_id, provider_sandbox_id, name, labels, state, created_at
	FROM sbx_mapping;
COMMENT ON VIEW sbx_sandboxes IS 'the caller''s own sandboxes';

--
-- Registration
--

CREATE FUNCTION sbx_provider_check() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_provider_check() IS 'validates a registration however it is written';

CREATE TRIGGER sbx_provider_check BEFORE INSERT OR UPDATE ON sbx_provider
	FOR EACH ROW EXECUTE FUNCTION sbx_provider_check();

CREATE FUNCTION sbx_provider_changed() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_provider_changed() IS 'makes every session read the registrations again';

CREATE TRIGGER sbx_provider_changed AFTER INSERT OR UPDATE OR DELETE ON sbx_provider
	FOR EACH ROW EXECUTE FUNCTION sbx_provider_changed();
ALTER TABLE sbx_provider ENABLE ALWAYS TRIGGER sbx_provider_changed;

CREATE FUNCTION sbx_provider_kinds(
	OUT kind text, OUT operations text[], OUT settings jsonb, OUT credential jsonb
) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'sbx_provider_kinds_sql' LANGUAGE C STABLE PARALLEL SAFE ROWS 10;
COMMENT ON FUNCTION sbx_provider_kinds() IS 'the provider kinds, what they can do and what they need';

CREATE FUNCTION sbx_register_provider(
	id text, kind text, settings jsonb DEFAULT '{}',
	capabilities jsonb DEFAULT NULL, signals jsonb DEFAULT NULL, capacity jsonb DEFAULT NULL
) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_register_provider(text, text, jsonb, jsonb, jsonb, jsonb) IS 'register a provider pool';

CREATE FUNCTION sbx_update_provider(
	id text, enabled boolean DEFAULT NULL, settings jsonb DEFAULT NULL,
	capabilities jsonb DEFAULT NULL, signals jsonb DEFAULT NULL, capacity jsonb DEFAULT NULL
) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_update_provider(text, boolean, jsonb, jsonb, jsonb, jsonb) IS 'change a registration; NULL leaves a part as it is';

CREATE FUNCTION sbx_unregister_provider(id text) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE STRICT;
COMMENT ON FUNCTION sbx_unregister_provider(text) IS 'remove a registration that has no sandboxes';

--
-- Policies
--

CREATE FUNCTION sbx_policy_check() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_policy_check() IS 'validates a policy however it is written';

CREATE TRIGGER sbx_policy_check BEFORE INSERT OR UPDATE ON sbx_policy
	FOR EACH ROW EXECUTE FUNCTION sbx_policy_check();

CREATE FUNCTION sbx_set_policy(
	name text, provider_order text[] DEFAULT NULL, capacity_timeout interval DEFAULT NULL,
	request_defaults jsonb DEFAULT NULL, classifier text DEFAULT NULL,
	signals_resolver text DEFAULT NULL, readiness text DEFAULT NULL, observer text DEFAULT NULL
) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_set_policy(text, text[], interval, jsonb, text, text, text, text) IS 'make a policy, or replace the whole of it';

CREATE FUNCTION sbx_drop_policy(name text) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE STRICT;
COMMENT ON FUNCTION sbx_drop_policy(text) IS 'remove a policy';

CREATE FUNCTION sbx_classify_proven(failure jsonb) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'sbx_classify_proven_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sbx_classify_proven(jsonb) IS 'classifier: retryable are proven refusals for capacity, and requests that never left';

--
-- Credentials: in the session's memory, nowhere else
--

CREATE FUNCTION sbx_set_credential(provider text, credential sbx_secret) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_set_credential(text, sbx_secret) IS 'remember a credential for this session';

CREATE FUNCTION sbx_set_local_credential(provider text, credential sbx_secret) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_set_local_credential(text, sbx_secret) IS 'remember a credential for this transaction';

CREATE FUNCTION sbx_clear_credentials(provider text DEFAULT NULL) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_clear_credentials(text) IS 'forget the credential of one provider, or all of them';

CREATE FUNCTION sbx_credential_list(OUT provider text, OUT scope text) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION sbx_credential_list() IS 'which credentials this session can use now';

CREATE VIEW sbx_credentials AS SELECT provider, scope FROM sbx_credential_list();
COMMENT ON VIEW sbx_credentials IS 'which credentials this session can use now; never their values';

CREATE FUNCTION sbx_credential_input_begin() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_credential_input_begin() IS 'keeps the lines of a COPY out of the server log';

CREATE FUNCTION sbx_credential_input_row() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_credential_input_row() IS 'takes one credential document';

CREATE VIEW sbx_credential_input AS
	SELECT NULL::sbx_secret AS document WHERE false;
COMMENT ON VIEW sbx_credential_input IS 'write-only: one JSON document {"provider","credential","scope"} a row';

CREATE TRIGGER sbx_credential_input_begin BEFORE INSERT ON sbx_credential_input
	FOR EACH STATEMENT EXECUTE FUNCTION sbx_credential_input_begin();
CREATE TRIGGER sbx_credential_input_row INSTEAD OF INSERT ON sbx_credential_input
	FOR EACH ROW EXECUTE FUNCTION sbx_credential_input_row();

--
-- Routing
--

CREATE FUNCTION sbx_route(request jsonb DEFAULT '{}', policy text DEFAULT NULL) RETURNS SETOF text
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 10;
COMMENT ON FUNCTION sbx_route(jsonb, text) IS 'the eligible pools, best first';

CREATE FUNCTION sbx_route_explain(
	request jsonb DEFAULT '{}', policy text DEFAULT NULL,
	detached boolean DEFAULT false, read_capacity boolean DEFAULT false,
	OUT "position" integer, OUT provider_id text, OUT eligible boolean, OUT rejections text[],
	OUT score double precision, OUT cost_part double precision, OUT latency_part double precision,
	OUT reliability_part double precision, OUT signals jsonb, OUT capacity text, OUT reason text
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 10;
COMMENT ON FUNCTION sbx_route_explain(jsonb, text, boolean, boolean) IS 'one row per registered pool: where sbx_provision would go, and why not elsewhere';

CREATE FUNCTION sbx_route_explain_text(request jsonb DEFAULT '{}', policy text DEFAULT NULL) RETURNS SETOF text
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 20;
COMMENT ON FUNCTION sbx_route_explain_text(jsonb, text) IS 'the same as a plan to read: winner first, the others with their reasons';

CREATE FUNCTION sbx_route_providers(
	request jsonb, providers jsonb,
	OUT "position" integer, OUT provider_id text, OUT eligible boolean, OUT rejections text[],
	OUT score double precision, OUT cost_part double precision, OUT latency_part double precision,
	OUT reliability_part double precision, OUT signals jsonb, OUT capacity text, OUT reason text
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 10;
COMMENT ON FUNCTION sbx_route_providers(jsonb, jsonb) IS 'the decision for pools given as JSON: pure, for testing policies';

CREATE FUNCTION sbx_check_request(request jsonb) RETURNS jsonb
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_check_request(jsonb) IS 'the request with every default filled in, or the error that it would raise';

CREATE FUNCTION sbx_request(
	cpu numeric DEFAULT NULL, memory_mb bigint DEFAULT NULL, disk_mb bigint DEFAULT NULL, gpu bigint DEFAULT NULL,
	required_capabilities text[] DEFAULT NULL, forbidden_capabilities text[] DEFAULT NULL,
	image_identity text DEFAULT NULL, required_binaries text[] DEFAULT NULL,
	isolation text DEFAULT NULL, egress text DEFAULT NULL, state_durability text DEFAULT NULL,
	restrictions text[] DEFAULT NULL, network jsonb DEFAULT NULL,
	timeout_semantics text[] DEFAULT NULL, timeout_granularity interval DEFAULT NULL,
	max_ready_latency interval DEFAULT NULL, required_sandbox_lifetime interval DEFAULT NULL,
	completion_budget interval DEFAULT NULL,
	preferred_regions text[] DEFAULT NULL, region_required boolean DEFAULT NULL,
	strategy text DEFAULT NULL, latency_objective text DEFAULT NULL,
	acquisition_fallback text DEFAULT NULL, max_acquisition_attempts integer DEFAULT NULL,
	provider_id text DEFAULT NULL, name text DEFAULT NULL, env jsonb DEFAULT NULL, labels jsonb DEFAULT NULL,
	create_timeout interval DEFAULT NULL, idempotency_key text DEFAULT NULL
) RETURNS jsonb
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION sbx_request(numeric, bigint, bigint, bigint, text[], text[], text, text[], text, text, text, text[], jsonb, text[], interval, interval, interval, interval, text[], boolean, text, text, text, integer, text, text, jsonb, jsonb, interval, text) IS 'build a request from named arguments; NULL leaves a key out';

--
-- Sandboxes
--

CREATE FUNCTION sbx_new_id() RETURNS sbx_id
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION sbx_new_id() IS 'a fresh sandbox id, to be given to sbx_provision';

CREATE FUNCTION sbx_provision(request jsonb DEFAULT '{}', policy text DEFAULT NULL, id text DEFAULT NULL) RETURNS sbx_id
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000;
COMMENT ON FUNCTION sbx_provision(jsonb, text, text) IS 'launch a sandbox on the best eligible pool and wait until it is ready';

CREATE FUNCTION sbx_provision_detached(request jsonb DEFAULT '{}', policy text DEFAULT NULL, id text DEFAULT NULL) RETURNS sbx_id
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000;
COMMENT ON FUNCTION sbx_provision_detached(jsonb, text, text) IS 'launch a sandbox on the best eligible pool without waiting until it is ready';

CREATE FUNCTION sbx_provision_many(request jsonb, count integer, policy text DEFAULT NULL) RETURNS SETOF sbx_id
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000 ROWS 10;
COMMENT ON FUNCTION sbx_provision_many(jsonb, integer, text) IS 'launch so many sandboxes at once, all of them or none';

CREATE FUNCTION sbx_wait_ready(id text, timeout interval DEFAULT '2 min') RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000;
COMMENT ON FUNCTION sbx_wait_ready(text, interval) IS 'wait until a sandbox accepts commands: true = it does, false = not yet';

CREATE FUNCTION sbx_get(
	INOUT id text, OUT provider_id text, OUT provider_sandbox_id text, OUT name text,
	OUT labels jsonb, OUT state text, OUT created_at timestamptz
) RETURNS record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE STRICT COST 100000;
COMMENT ON FUNCTION sbx_get(text) IS 'what is known about a sandbox, with its state at the provider now';

CREATE FUNCTION sbx_find(
	provider text, labels jsonb,
	OUT sbx_id text, OUT provider_sandbox_id text, OUT name text,
	OUT labels jsonb, OUT state text, OUT created_at timestamptz
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000 ROWS 100;
COMMENT ON FUNCTION sbx_find(text, jsonb) IS 'the sandboxes of the account at a provider that have all these labels';

CREATE FUNCTION sbx_start(id text) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE STRICT COST 100000;
COMMENT ON FUNCTION sbx_start(text) IS 'start a stopped sandbox and wait until it accepts commands';

CREATE FUNCTION sbx_stop(id text) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE STRICT COST 100000;
COMMENT ON FUNCTION sbx_stop(text) IS 'stop a sandbox; sbx_start() starts it again';

CREATE FUNCTION sbx_run_script(
	id text, command text, env jsonb DEFAULT '{}', cwd text DEFAULT NULL,
	timeout interval DEFAULT NULL, session text DEFAULT NULL,
	OUT output text, OUT stdout text, OUT stderr text, OUT exit_code integer, OUT truncated boolean
) RETURNS record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000;
COMMENT ON FUNCTION sbx_run_script(text, text, jsonb, text, interval, text) IS 'run a script in a sandbox and wait for its end';

CREATE FUNCTION sbx_run_script_many(
	ids text[], command text, env jsonb DEFAULT '{}', cwd text DEFAULT NULL,
	timeout interval DEFAULT NULL, session text DEFAULT NULL,
	OUT id text, OUT output text, OUT stdout text, OUT stderr text, OUT exit_code integer, OUT truncated boolean,
	OUT error_code text, OUT error_message text
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000 ROWS 100;
COMMENT ON FUNCTION sbx_run_script_many(text[], text, jsonb, text, interval, text) IS 'run a script in many sandboxes at once: a row for each, with its own error';

CREATE FUNCTION sbx_start_script(
	id text, command text, env jsonb DEFAULT '{}', cwd text DEFAULT NULL,
	timeout interval DEFAULT NULL, session text DEFAULT NULL,
	OUT session_id text, OUT command_id text, OUT reconciled boolean
) RETURNS record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000;
COMMENT ON FUNCTION sbx_start_script(text, text, jsonb, text, interval, text) IS 'start a script in a sandbox and do not wait for its end';

CREATE FUNCTION sbx_script_status(id text, session_id text, command_id text) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000;
COMMENT ON FUNCTION sbx_script_status(text, text, text) IS 'exit code of a script that was started; NULL = still running';

CREATE FUNCTION sbx_script_logs(
	id text, session_id text, command_id text,
	OUT output text, OUT stdout text, OUT stderr text, OUT truncated boolean
) RETURNS record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE STRICT COST 100000;
COMMENT ON FUNCTION sbx_script_logs(text, text, text) IS 'what a script that was started has written so far';

CREATE FUNCTION sbx_upload(id text, path text, content bytea) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE STRICT COST 100000;
COMMENT ON FUNCTION sbx_upload(text, text, bytea) IS 'write a file in a sandbox';

CREATE FUNCTION sbx_download(id text, path text) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE STRICT COST 100000;
COMMENT ON FUNCTION sbx_download(text, text) IS 'read a file of a sandbox';

CREATE FUNCTION sbx_destroy(id text) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE STRICT COST 100000;
COMMENT ON FUNCTION sbx_destroy(text) IS 'destroy a sandbox: true = destroyed now, false = it was gone already';

CREATE FUNCTION sbx_destroy_many(
	ids text[],
	OUT id text, OUT destroyed boolean, OUT error_code text, OUT error_message text
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000 ROWS 100;
COMMENT ON FUNCTION sbx_destroy_many(text[]) IS 'destroy many sandboxes at once: a row for each, with its own error';

--
-- Capacity
--

CREATE FUNCTION sbx_capacity(
	providers text[] DEFAULT NULL, timeout interval DEFAULT NULL,
	OUT provider_id text, OUT status text, OUT reason text, OUT resource text,
	OUT used double precision, OUT "limit" double precision, OUT unit text,
	OUT headroom double precision, OUT required double precision
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20;
COMMENT ON FUNCTION sbx_capacity(text[], interval) IS 'what accounts use against their limits, read now: one row per resource, or one that says why nothing is known';

CREATE VIEW sbx_capacity_now AS
	SELECT provider_id, status, reason, resource, used, "limit", unit, headroom, required
	FROM sbx_capacity();
COMMENT ON VIEW sbx_capacity_now IS 'the capacity of every registered provider, read now: one row per provider and resource';
COMMENT ON COLUMN sbx_capacity_now.provider_id IS 'registered pool';
COMMENT ON COLUMN sbx_capacity_now.status IS 'known or unknown';
COMMENT ON COLUMN sbx_capacity_now.reason IS 'why it is unknown';
COMMENT ON COLUMN sbx_capacity_now.resource IS 'cpu, memory, disk or sandboxes; NULL when the account is unknown';
COMMENT ON COLUMN sbx_capacity_now.used IS 'what the account uses';
COMMENT ON COLUMN sbx_capacity_now."limit" IS 'limit that the registration states';
COMMENT ON COLUMN sbx_capacity_now.unit IS 'vCPU, MiB or sandboxes';
COMMENT ON COLUMN sbx_capacity_now.headroom IS 'limit less used; negative when more is used';
COMMENT ON COLUMN sbx_capacity_now.required IS 'what one more sandbox needs';

CREATE FUNCTION sbx_capacity_level(
	used double precision, "limit" double precision, required double precision,
	OUT percent_used double precision, OUT launches bigint, OUT level text
) RETURNS record
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION sbx_capacity_level(double precision, double precision, double precision) IS 'percent of a limit that is used, launches that fit, and ok, warning, critical or unknown';

CREATE VIEW sbx_headroom AS
	SELECT DISTINCT ON (c.provider_id COLLATE "C")
		   c.provider_id, c.status, c.reason, c.resource AS tightest_resource, l.percent_used, l.level,
		   pg_catalog.min(l.launches) OVER (PARTITION BY c.provider_id COLLATE "C") AS launches
	FROM sbx_capacity() c, LATERAL sbx_capacity_level(c.used, c."limit", c.required) l
	ORDER BY c.provider_id COLLATE "C",
			 (l.launches OPERATOR(pg_catalog.=) 0) IS TRUE DESC, l.percent_used DESC, l.launches, c.resource COLLATE "C";
COMMENT ON VIEW sbx_headroom IS 'the room of every registered provider, read now: one row per provider';
COMMENT ON COLUMN sbx_headroom.provider_id IS 'registered pool';
COMMENT ON COLUMN sbx_headroom.status IS 'known or unknown';
COMMENT ON COLUMN sbx_headroom.reason IS 'why it is unknown';
COMMENT ON COLUMN sbx_headroom.tightest_resource IS 'resource in which nothing fits any more, else the one of which most is used';
COMMENT ON COLUMN sbx_headroom.percent_used IS 'used part of that resource''s limit, in percent';
COMMENT ON COLUMN sbx_headroom.level IS 'critical from 95 percent or when nothing fits, warning from 80 percent, ok, or unknown';
COMMENT ON COLUMN sbx_headroom.launches IS 'launches that fit in every resource; NULL when a launch needs nothing of any, or the account is unknown';

CREATE FUNCTION sbx_parse_daytona_capacity_limits(limits text) RETURNS jsonb
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION sbx_parse_daytona_capacity_limits(text) IS 'the limits that an operator sets for a Daytona account, with what is wrong with them: for display';

CREATE FUNCTION sbx_summarize_daytona_capacity(
	inventory jsonb, limits jsonb, workspace text, "now" timestamptz
) RETURNS jsonb
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION sbx_summarize_daytona_capacity(jsonb, jsonb, text, timestamptz) IS 'how full a Daytona account is, for display: says nothing about whether a create would succeed';

CREATE FUNCTION sbx_daytona_capacity(provider text, workspace text DEFAULT NULL, timeout interval DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 100000;
COMMENT ON FUNCTION sbx_daytona_capacity(text, text, interval) IS 'that summary of a registered Daytona account, read now';

--
-- Observability
--

CREATE FUNCTION sbx_recent_events(
	OUT at timestamptz, OUT event text, OUT sbx_id text, OUT provider_id text,
	OUT attempt integer, OUT detail jsonb
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION sbx_recent_events() IS 'the latest events of this session, oldest first';

CREATE FUNCTION sbx_router_version(
	OUT extension text, OUT library text, OUT postgresql text, OUT libcurl text,
	OUT tls text, OUT resolver text, OUT ca_file text
) RETURNS record
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION sbx_router_version() IS 'versions of extension, library, server and libcurl, and how it resolves and verifies';

--
-- Nobody but the owner has any of this until it is granted; only the pure functions
-- over JSON are everybody's
--

REVOKE ALL ON TABLE sbx_installation, sbx_provider, sbx_policy, sbx_mapping, sbx_sandboxes,
	sbx_credentials, sbx_credential_input, sbx_capacity_now, sbx_headroom FROM PUBLIC;
REVOKE ALL ON FUNCTION
	sbx_secret_in(cstring), sbx_secret_out(sbx_secret), sbx_secret_recv(internal),
	sbx_provider_check(), sbx_provider_changed(), sbx_provider_kinds(),
	sbx_register_provider(text, text, jsonb, jsonb, jsonb, jsonb),
	sbx_update_provider(text, boolean, jsonb, jsonb, jsonb, jsonb),
	sbx_unregister_provider(text),
	sbx_policy_check(), sbx_drop_policy(text),
	sbx_set_policy(text, text[], interval, jsonb, text, text, text, text),
	sbx_set_credential(text, sbx_secret), sbx_set_local_credential(text, sbx_secret),
	sbx_clear_credentials(text), sbx_credential_list(),
	sbx_credential_input_begin(), sbx_credential_input_row(),
	sbx_route(jsonb, text), sbx_route_explain(jsonb, text, boolean, boolean),
	sbx_route_explain_text(jsonb, text), sbx_check_request(jsonb),
	sbx_new_id(), sbx_provision(jsonb, text, text), sbx_provision_detached(jsonb, text, text),
	sbx_provision_many(jsonb, integer, text),
	sbx_wait_ready(text, interval), sbx_get(text), sbx_find(text, jsonb),
	sbx_start(text), sbx_stop(text), sbx_destroy(text), sbx_destroy_many(text[]),
	sbx_run_script(text, text, jsonb, text, interval, text),
	sbx_run_script_many(text[], text, jsonb, text, interval, text),
	sbx_start_script(text, text, jsonb, text, interval, text),
	sbx_script_status(text, text, text), sbx_script_logs(text, text, text),
	sbx_upload(text, text, bytea), sbx_download(text, text),
	sbx_capacity(text[], interval), sbx_daytona_capacity(text, text, interval),
	sbx_recent_events(), sbx_router_version()
FROM PUBLIC;
REVOKE ALL ON TYPE sbx_secret, sbx_id FROM PUBLIC;
