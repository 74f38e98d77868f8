--
-- INSTALL
-- What CREATE EXTENSION makes, who may use it, and where it may live.
--
\set VERBOSITY terse
-- left behind by a run that did not get to its end
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_sbx_owner, regress_sbx_creator;
RESET client_min_messages;

CREATE VIEW regress_members AS
SELECT d.classid, d.objid, i.type, i.identity
FROM pg_depend d, pg_extension e,
	 LATERAL pg_identify_object(d.classid, d.objid, 0) i
WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
  AND e.extname = 'sbx_router' AND d.deptype = 'e';

-- Rule: the extension consists of these objects and no others.
\pset format unaligned
SELECT type, replace(replace(identity, 'public.', ''), 'pg_catalog.', '') AS identity
FROM regress_members ORDER BY type COLLATE "C", identity COLLATE "C";
\pset format aligned

-- Rule: columns are part of the interface.
SELECT c.relname, a.attnum AS n, a.attname, format_type(a.atttypid, NULL) AS type,
	   a.attnotnull AS not_null, pg_get_expr(d.adbin, d.adrelid) AS default_value
FROM regress_members m
JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
ORDER BY c.relname COLLATE "C", a.attnum;

-- Rule: PUBLIC has nothing but the pure functions over JSON.  must fire: the owner's
-- entry is found for every object that has an ACL ...
SELECT m.type, count(*) AS objects,
	   count(*) FILTER (WHERE a.owner_has) AS owner_has
FROM regress_members m,
	 LATERAL (
		SELECT proacl AS acl, 'f'::"char" AS kind, proowner AS owner FROM pg_proc
		WHERE m.classid = 'pg_proc'::regclass AND oid = m.objid
		UNION ALL
		SELECT relacl, 'r', relowner FROM pg_class
		WHERE m.classid = 'pg_class'::regclass AND oid = m.objid
		UNION ALL
		SELECT typacl, 'T', typowner FROM pg_type
		WHERE m.classid = 'pg_type'::regclass AND oid = m.objid) o,
	 LATERAL (SELECT bool_or(grantee = o.owner) AS owner_has
			  FROM aclexplode(COALESCE(o.acl, acldefault(o.kind, o.owner)))) a
GROUP BY m.type ORDER BY m.type COLLATE "C";

-- ... must not fire: nobody else's entry is, but for those.
SELECT m.type, split_part(m.identity, '(', 1) AS identity, x.privilege_type, x.grantee::regrole
FROM regress_members m,
	 LATERAL (
		SELECT proacl AS acl, 'f'::"char" AS kind, proowner AS owner FROM pg_proc
		WHERE m.classid = 'pg_proc'::regclass AND oid = m.objid
		UNION ALL
		SELECT relacl, 'r', relowner FROM pg_class
		WHERE m.classid = 'pg_class'::regclass AND oid = m.objid
		UNION ALL
		SELECT typacl, 'T', typowner FROM pg_type
		WHERE m.classid = 'pg_type'::regclass AND oid = m.objid) o,
	 LATERAL aclexplode(COALESCE(o.acl, acldefault(o.kind, o.owner))) x
WHERE x.grantee <> o.owner
ORDER BY m.identity COLLATE "C";
\pset format aligned

-- Rule: functions carry the right labels.
SELECT p.proname, p.pronargs AS args, p.pronargdefaults AS defaults,
	   p.provolatile AS volatility, p.proparallel AS parallel, p.proisstrict AS strict,
	   p.prosecdef AS security_definer, p.proretset AS set_returning
FROM regress_members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
ORDER BY p.proname COLLATE "C";

-- Rule: these are called by whatever writes a registration or a policy; replication
-- does not skip the one that keeps the caches of all sessions right.
SELECT tgrelid::regclass, tgname, tgenabled, pg_get_triggerdef(oid) FROM pg_trigger
WHERE NOT tgisinternal AND tgrelid IN (SELECT objid FROM regress_members WHERE classid = 'pg_class'::regclass)
ORDER BY tgrelid::regclass::text COLLATE "C", tgname COLLATE "C";

-- Rule: every object has a comment.  must not fire: none is without.
SELECT m.type, m.identity FROM regress_members m
WHERE obj_description(m.objid, m.classid::regclass::name) IS NULL;
SELECT c.relname, a.attname
FROM regress_members m
JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid AND c.relkind = 'r'
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE col_description(c.oid, a.attnum) IS NULL ORDER BY c.relname COLLATE "C", a.attnum;
SELECT count(*) AS policies_without FROM pg_policy
WHERE polrelid = 'sbx_mapping'::regclass AND obj_description(oid, 'pg_policy') IS NULL;
SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'sbx_router';

-- Rule: user data is dumped, the identity of the installation is not.
SELECT t.relation::regclass, c.condition = '' AS whole
FROM pg_extension e, unnest(e.extconfig) WITH ORDINALITY t(relation, n)
JOIN pg_extension x ON x.extname = 'sbx_router'
JOIN unnest(x.extcondition) WITH ORDINALITY c(condition, n) USING (n)
WHERE e.extname = 'sbx_router' ORDER BY n;

-- Rule: settings of the module: who may change them, and their limits.  The
-- internal one, which ties credentials to the session, is not listed.
SELECT sbx_new_id() IS NOT NULL AS loaded;
SELECT name, vartype, unit, context, min_val, max_val, boot_val
FROM pg_settings WHERE name LIKE 'sbx\_router.%' ORDER BY name COLLATE "C";
-- Rule: the prefix is reserved.  must fire / must not fire
SET sbx_router.abort_cleanup_timeot = 1;
SET sbx_router.abort_cleanup_timeout = '1s';
SHOW sbx_router.abort_cleanup_timeout;
SET sbx_router.abort_cleanup_timeout = 60001;
SET sbx_router.max_script_output = '65537kB';
SET sbx_router.max_script_output = '64MB';
SET sbx_router.max_file_size = '131073kB';
SET sbx_router.max_file_size = '128MB';
SET sbx_router.max_file_size = '0';
SET sbx_router.max_file_size = '1kB';
SET sbx_router.max_response = '15kB';
SET sbx_router.max_response = '16kB';
RESET ALL;

--
-- sbx_router_version()
--
-- Rule: what support needs to know, in the versions' own words.
SELECT v.extension = e.extversion AS extension, v.library ~ ('^' || e.extversion || '\.\d+$') AS library,
	   v.postgresql = current_setting('server_version') AS postgresql, v.libcurl ~ '^\d+\.\d+\.\d+' AS libcurl,
	   v.tls <> '' AS tls, v.resolver IN ('threaded', 'c-ares') AS resolver
FROM sbx_router_version() v, pg_extension e WHERE e.extname = 'sbx_router';
-- Rule: the CA file in force is the setting's, or else libcurl's own, which need not
-- have one.
SELECT ca_file = '/etc/other.pem' AS set FROM sbx_router_version();
SET sbx_router.ca_file = '/etc/other.pem';
SELECT ca_file = '/etc/other.pem' AS set FROM sbx_router_version();
RESET sbx_router.ca_file;
-- Rule: it works in a parallel worker.
SET force_parallel_mode = on;
SELECT library IS NOT NULL AS known FROM sbx_router_version();
RESET force_parallel_mode;

--
-- domain sbx_id
--
-- Rule: sbx_ and 32 lower-case hex digits, nothing before, after or else.
-- must not fire
SELECT 'sbx_0123456789abcdef0123456789abcdef'::sbx_id;
SELECT NULL::sbx_id IS NULL AS null_accepted;
-- must fire
SELECT 'sbx_0123456789abcdef0123456789abcde'::sbx_id;
SELECT 'sbx_0123456789abcdef0123456789abcdef0'::sbx_id;
SELECT 'sbx_0123456789ABCDEF0123456789abcdef'::sbx_id;
SELECT 'sbx_0123456789abcdef0123456789abcdeg'::sbx_id;
SELECT 'SBX_0123456789abcdef0123456789abcdef'::sbx_id;
SELECT ' sbx_0123456789abcdef0123456789abcdef'::sbx_id;
SELECT E'sbx_0123456789abcdef0123456789abcdef\n'::sbx_id;
SELECT E'\nsbx_0123456789abcdef0123456789abcdef'::sbx_id;
SELECT ''::sbx_id;

-- Rule: sbx_new_id() makes ids of that form, all different.
SELECT count(*), count(DISTINCT id), bool_and(id ~ '^sbx_[0-9a-f]{32}$') AS well_formed,
	   bool_and(id::sbx_id IS NOT NULL) AS of_the_domain
FROM (SELECT sbx_new_id() AS id FROM generate_series(1, 1000)) s;
-- Rule: VOLATILE: evaluated for each row, not once.
SELECT sbx_new_id() <> sbx_new_id() AS distinct_in_one_row;
SELECT pg_typeof(sbx_new_id());

--
-- sbx_installation
--
-- Rule: one row; this database, this cluster; 16 hex digits.
SELECT only_row, installation_id ~ '^[0-9a-f]{16}$' AS well_formed,
	   database_oid = (SELECT oid FROM pg_database WHERE datname = current_database()) AS this_database,
	   system_identifier = (SELECT system_identifier::text FROM pg_control_system()) AS this_cluster
FROM sbx_installation;
-- must fire
INSERT INTO sbx_installation VALUES (true, '0123456789abcdef', 1, '1');
INSERT INTO sbx_installation VALUES (false, '0123456789abcdef', 1, '1');
UPDATE sbx_installation SET installation_id = 'x';
-- Rule: a new installation is another one.
CREATE TEMP TABLE before AS SELECT installation_id FROM sbx_installation;

--
-- Another schema, not on the search_path, with decoys on it
--
-- Rule: whatever the caller's search_path holds, only the extension's own objects
-- are used, and it goes on working after DROP and CREATE in the same session.
SELECT sbx_register_provider('old', 'daytona');
SELECT sbx_set_credential('old', 'key');
SELECT * FROM sbx_route();
DROP EXTENSION sbx_router CASCADE;
CREATE SCHEMA "Regress sbx's %s ""home""";
CREATE SCHEMA regress_decoy;
CREATE TABLE regress_decoy.log (what text);
CREATE FUNCTION regress_decoy.trap() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'decoy table used'; END $$;
CREATE TABLE regress_decoy.sbx_provider (id text, kind text, enabled boolean,
	settings jsonb, capabilities jsonb, signals jsonb, capacity jsonb, registered_by regrole);
CREATE TRIGGER trap BEFORE INSERT OR UPDATE OR DELETE ON regress_decoy.sbx_provider
	FOR EACH STATEMENT EXECUTE FUNCTION regress_decoy.trap();
INSERT INTO regress_decoy.log VALUES ('-');
CREATE TABLE regress_decoy.sbx_policy (name text, provider_order text[], capacity_timeout interval, request_defaults jsonb,
	classifier text, signals_resolver text, readiness text, observer text, registered_by regrole);
CREATE TRIGGER trap BEFORE INSERT OR UPDATE OR DELETE ON regress_decoy.sbx_policy
	FOR EACH STATEMENT EXECUTE FUNCTION regress_decoy.trap();
CREATE TABLE regress_decoy.sbx_mapping (LIKE regress_decoy.sbx_provider);
CREATE TABLE regress_decoy.sbx_installation (only_row boolean, installation_id text);
CREATE FUNCTION regress_decoy.sbx_credential_list(OUT provider text, OUT scope text)
	RETURNS SETOF record LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'decoy function used'; END $$;
CREATE FUNCTION regress_decoy.boolean_trap(text, text) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'decoy operator used'; END $$;
CREATE OPERATOR regress_decoy.= (LEFTARG = text, RIGHTARG = text, FUNCTION = regress_decoy.boolean_trap);
CREATE OPERATOR regress_decoy.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = regress_decoy.boolean_trap);
CREATE OPERATOR regress_decoy.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = regress_decoy.boolean_trap);
CREATE FUNCTION regress_decoy.text_trap(text, text) RETURNS text LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'decoy operator used'; END $$;
CREATE OPERATOR regress_decoy.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = regress_decoy.text_trap);
CREATE FUNCTION regress_decoy.pg_has_role(regrole, text) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'decoy function used'; END $$;
CREATE FUNCTION regress_decoy.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'decoy function used'; END $$;
CREATE FUNCTION regress_decoy.quote_ident(name) RETURNS text LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'decoy function used'; END $$;
CREATE DOMAIN regress_decoy.sbx_id AS text CHECK (false);
CREATE TYPE regress_decoy.sbx_secret AS (x int);
-- the decoys do shadow: must fire
SET search_path = regress_decoy, pg_catalog;
SELECT 'a'::text = 'b'::text;
CREATE EXTENSION sbx_router SCHEMA "Regress sbx's %s ""home""";
SELECT "Regress sbx's %s ""home""".sbx_register_provider('new', 'daytona');
SELECT "Regress sbx's %s ""home""".sbx_update_provider('new', enabled => false);
SELECT "Regress sbx's %s ""home""".sbx_update_provider('new', enabled => true);
-- Rule: a credential is bound to the id it was given for: the one for "old" is none
-- of "new".
SELECT * FROM "Regress sbx's %s ""home""".sbx_route('{"providerId":"new"}');
\set VERBOSITY default
SELECT "Regress sbx's %s ""home""".sbx_set_credential('new', 'key');
SELECT * FROM "Regress sbx's %s ""home""".sbx_route();
SELECT position, provider_id, eligible FROM "Regress sbx's %s ""home""".sbx_route_explain();
SELECT "Regress sbx's %s ""home""".sbx_set_policy('mine', request_defaults => '{"providerId":"new"}');
SELECT * FROM "Regress sbx's %s ""home""".sbx_route('{}', 'mine');
SELECT count(*) FROM "Regress sbx's %s ""home""".sbx_route_explain_text('{"resources":{"cpu":1}}', 'mine');
SELECT "Regress sbx's %s ""home""".sbx_check_request('{"resources":{"cpu":1}}') OPERATOR(pg_catalog.->) 'resources';
SELECT provider_id FROM "Regress sbx's %s ""home""".sbx_route_providers('{}', '[{"id":"json"}]');
SELECT "Regress sbx's %s ""home""".sbx_request(cpu => 1, completion_budget => '1 s');
SELECT "Regress sbx's %s ""home""".sbx_drop_policy('mine');
SELECT * FROM "Regress sbx's %s ""home""".sbx_credentials WHERE provider OPERATOR(pg_catalog.=) 'new';
INSERT INTO "Regress sbx's %s ""home""".sbx_credential_input VALUES ('{"provider":"new","credential":"k2"}');
INSERT INTO "Regress sbx's %s ""home""".sbx_provider (id, kind) VALUES ('by-hand', 'daytona');
INSERT INTO "Regress sbx's %s ""home""".sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner)
	VALUES ('sbx_00000000000000000000000000000001', 'by-hand', 'p1', 'started', '{}', 'pg_monitor');
SELECT id, provider_id FROM "Regress sbx's %s ""home""".sbx_sandboxes;
SELECT "Regress sbx's %s ""home""".sbx_get('sbx_00000000000000000000000000000001');
SELECT "Regress sbx's %s ""home""".sbx_get('sbx_00000000000000000000000000000002');
SELECT "Regress sbx's %s ""home""".sbx_unregister_provider('by-hand');
DELETE FROM "Regress sbx's %s ""home""".sbx_mapping;
SELECT "Regress sbx's %s ""home""".sbx_unregister_provider('by-hand');
SELECT pg_typeof("Regress sbx's %s ""home""".sbx_new_id());
RESET search_path;

-- Rule: renaming the schema changes nothing for a session that used it before.
ALTER SCHEMA "Regress sbx's %s ""home""" RENAME TO regress_home;
SELECT * FROM regress_home.sbx_route();
SELECT regress_home.sbx_register_provider('after-rename', 'daytona');
-- Rule: the extension's schema is fixed otherwise.
ALTER EXTENSION sbx_router SET SCHEMA public;

-- Rule: the session survives a rolled back DROP, and a rolled back CREATE.
BEGIN;
DROP EXTENSION sbx_router;
CREATE EXTENSION sbx_router SCHEMA public;
SELECT count(*) AS providers FROM public.sbx_route_explain();
ROLLBACK;
SELECT * FROM regress_home.sbx_route();

-- Rule: without the extension nothing is left, in the catalogs or on the path.
DROP EXTENSION sbx_router;
SELECT count(*) FROM pg_class WHERE relnamespace = 'regress_home'::regnamespace;
SELECT count(*) FROM pg_proc WHERE pronamespace = 'regress_home'::regnamespace;
SELECT count(*) FROM pg_type WHERE typnamespace = 'regress_home'::regnamespace;
\set VERBOSITY terse
DROP SCHEMA regress_decoy CASCADE;
DROP SCHEMA regress_home;

-- Rule: a change of the owner, and the old owner's end, change nothing for a session
-- that used it before.
CREATE SCHEMA regress_home;
CREATE ROLE regress_sbx_owner SUPERUSER;
SET ROLE regress_sbx_owner;
CREATE EXTENSION sbx_router SCHEMA regress_home;
SELECT regress_home.sbx_register_provider('p', 'daytona');
RESET ROLE;
SELECT provider_id FROM regress_home.sbx_route_explain();
REASSIGN OWNED BY regress_sbx_owner TO CURRENT_USER;
SELECT regress_home.sbx_update_provider('p', enabled => false);
DROP OWNED BY regress_sbx_owner;
DROP ROLE regress_sbx_owner;
SELECT provider_id FROM regress_home.sbx_route_explain();
SELECT regress_home.sbx_register_provider('q', 'daytona');
SELECT regress_home.sbx_unregister_provider('p');
SELECT id FROM regress_home.sbx_provider;
DROP EXTENSION sbx_router;
DROP SCHEMA regress_home;

-- Rule: only a superuser installs it.  must fire
CREATE ROLE regress_sbx_creator;
GRANT CREATE ON DATABASE :"DBNAME" TO regress_sbx_creator;
SET ROLE regress_sbx_creator;
CREATE EXTENSION sbx_router;
RESET ROLE;
REVOKE CREATE ON DATABASE :"DBNAME" FROM regress_sbx_creator;
DROP ROLE regress_sbx_creator;

-- And back to where the other tests expect it.
CREATE EXTENSION sbx_router;
SELECT b.installation_id <> i.installation_id AS another_installation
FROM before b, sbx_installation i;
SELECT count(*) AS providers FROM sbx_provider;
-- Rule: one installation in a database.
CREATE EXTENSION sbx_router;
CREATE EXTENSION IF NOT EXISTS sbx_router;
DROP VIEW regress_members;
