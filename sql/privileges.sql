--
-- PRIVILEGES
-- Nothing without a grant; with the documented ones, one's own and nothing else.
--
\set VERBOSITY terse
-- left behind by a run that did not get to its end
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_sbx_nobody, regress_sbx_team, regress_sbx_member, regress_sbx_aloof,
	regress_sbx_stranger, regress_sbx_leaver;
RESET client_min_messages;

CREATE FUNCTION regress_try(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE ROLE regress_sbx_nobody;
CREATE ROLE regress_sbx_team NOLOGIN;
CREATE ROLE regress_sbx_member IN ROLE regress_sbx_team;
CREATE ROLE regress_sbx_aloof NOINHERIT IN ROLE regress_sbx_team;
CREATE ROLE regress_sbx_stranger;
CREATE ROLE regress_sbx_leaver;
SELECT sbx_register_provider('p', 'daytona', '{"apiUrl":"http://127.0.0.1:1"}');
INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, name, state, request, owner)
SELECT 'sbx_' || repeat(n::text, 32), 'p', 'p' || n, name, 'started', '{}', owner::regrole
FROM (VALUES (1, 'of the superuser', quote_ident(current_user)), (2, 'of the team', 'regress_sbx_team'),
	  (3, 'of a member', 'regress_sbx_member'), (4, 'of the leaver', 'regress_sbx_leaver')) v(n, name, owner);
\pset format unaligned
\pset tuples_only on

--
-- Without any grant
--
SET ROLE regress_sbx_nobody;
-- must fire: everything
SELECT statement, regress_try(statement) FROM (VALUES
	('SELECT sbx_provider_kinds()'),
	($$SELECT sbx_register_provider('x', 'daytona')$$), ($$SELECT sbx_update_provider('p', false)$$), ($$SELECT sbx_unregister_provider('p')$$),
	($$SELECT sbx_set_credential('p', 'k')$$), ($$SELECT sbx_set_local_credential('p', 'k')$$), ('SELECT sbx_clear_credentials()'), ('SELECT sbx_credential_list()'),
	('SELECT sbx_route()'), ('SELECT sbx_route_explain()'), ('SELECT sbx_route_explain_text()'), ($$SELECT sbx_check_request('{}')$$),
	($$SELECT sbx_set_policy('x')$$), ($$SELECT sbx_drop_policy('x')$$), ('SELECT sbx_new_id()'), ('SELECT sbx_provision()'),
	($$SELECT sbx_get('sbx_11111111111111111111111111111111')$$), ($$SELECT sbx_run_script('sbx_11111111111111111111111111111111', 'true')$$),
	($$SELECT sbx_destroy('sbx_11111111111111111111111111111111')$$), ('SELECT sbx_recent_events()'),
	($$SELECT sbx_run_script_many('{}', 'true')$$), ($$SELECT sbx_destroy_many('{}')$$),
	('SELECT sbx_provision_detached()'), ($$SELECT sbx_wait_ready('sbx_11111111111111111111111111111111')$$), ($$SELECT sbx_find('p', '{}')$$),
	($$SELECT sbx_start('sbx_11111111111111111111111111111111')$$), ($$SELECT sbx_stop('sbx_11111111111111111111111111111111')$$),
	($$SELECT sbx_start_script('sbx_11111111111111111111111111111111', 'true')$$), ($$SELECT sbx_script_status('sbx_11111111111111111111111111111111', 's', 'c')$$),
	($$SELECT sbx_script_logs('sbx_11111111111111111111111111111111', 's', 'c')$$),
	($$SELECT sbx_upload('sbx_11111111111111111111111111111111', 'p', '')$$), ($$SELECT sbx_download('sbx_11111111111111111111111111111111', 'p')$$),
	('SELECT sbx_provider_check()'), ('SELECT sbx_provider_changed()'), ('SELECT sbx_policy_check()'), ('SELECT sbx_credential_input_begin()'), ('SELECT sbx_credential_input_row()'),
	('SELECT * FROM sbx_installation'), ('SELECT * FROM sbx_provider'), ('SELECT * FROM sbx_policy'), ('SELECT * FROM sbx_mapping'),
	('SELECT * FROM sbx_sandboxes'), ('SELECT * FROM sbx_credentials'), ('SELECT * FROM sbx_credential_input'),
	($$INSERT INTO sbx_installation VALUES (true, 'x', 1, '1')$$), ('DELETE FROM sbx_installation'), ('TRUNCATE sbx_installation'),
	($$INSERT INTO sbx_provider (id, kind) VALUES ('x', 'daytona')$$), ('UPDATE sbx_provider SET enabled = false'), ('DELETE FROM sbx_provider'), ('TRUNCATE sbx_provider'),
	($$INSERT INTO sbx_policy (name) VALUES ('x')$$), ('UPDATE sbx_policy SET classifier = NULL'), ('DELETE FROM sbx_policy'), ('TRUNCATE sbx_policy'),
	('UPDATE sbx_mapping SET state = state'), ('DELETE FROM sbx_mapping'), ('TRUNCATE sbx_mapping'),
	($$INSERT INTO sbx_credential_input VALUES ('{}')$$),
	('SELECT * FROM sbx_provider FOR UPDATE'), ('LOCK TABLE sbx_mapping IN ACCESS SHARE MODE'),
	('CREATE TEMP TABLE t (id sbx_id)'), ('CREATE TEMP TABLE t (key sbx_secret)'),
	('CREATE FUNCTION pg_temp.f(sbx_secret) RETURNS int LANGUAGE sql AS $f$ SELECT 1 $f$'),
	('DROP EXTENSION sbx_router'), ('ALTER TABLE sbx_mapping DISABLE ROW LEVEL SECURITY'), ('DROP POLICY sbx_mapping_member ON sbx_mapping'),
	('ALTER TABLE sbx_provider DISABLE TRIGGER ALL'), ('ALTER TABLE sbx_policy DISABLE TRIGGER ALL')) v(statement);
-- must not fire: the pure functions over JSON are everybody's
SELECT statement, regress_try(statement) FROM (VALUES
	('SELECT sbx_request(cpu => 1)'), ($$SELECT sbx_route_providers('{}', '[{"id":"a"}]')$$), ($$SELECT sbx_classify_proven('{}')$$),
	($$SELECT sbx_parse_daytona_capacity_limits('{}')$$), ($$SELECT sbx_summarize_daytona_capacity('[]', '{}', NULL, now())$$)) v(statement);
-- COPY asks the same.
COPY sbx_mapping TO stdout;
COPY sbx_provider TO stdout;
\copy sbx_credential_input FROM '/dev/null'
RESET ROLE;
-- Rule: the trigger functions are no way in on a table of one's own, nor is a
-- foreign key.
GRANT CREATE ON SCHEMA public TO regress_sbx_nobody;
SET ROLE regress_sbx_nobody;
CREATE TABLE regress_own (id text);
SELECT regress_try('CREATE TRIGGER t BEFORE INSERT ON regress_own FOR EACH ROW EXECUTE FUNCTION sbx_credential_input_row()');
SELECT regress_try('CREATE TABLE regress_ref (p text COLLATE "C" REFERENCES sbx_provider (id))');
DROP TABLE regress_own;
RESET ROLE;
REVOKE CREATE ON SCHEMA public FROM regress_sbx_nobody;

--
-- With the minimal grants
--
GRANT EXECUTE ON FUNCTION sbx_route(jsonb, text), sbx_route_explain(jsonb, text, boolean, boolean),
	sbx_route_explain_text(jsonb, text), sbx_check_request(jsonb), sbx_set_credential(text, sbx_secret), sbx_set_local_credential(text, sbx_secret), sbx_clear_credentials(text),
	sbx_new_id(), sbx_provision(jsonb, text, text), sbx_get(text),
	sbx_run_script(text, text, jsonb, text, interval, text), sbx_destroy(text), sbx_recent_events(),
	sbx_provision_detached(jsonb, text, text), sbx_wait_ready(text, interval), sbx_find(text, jsonb),
	sbx_start(text), sbx_stop(text), sbx_start_script(text, text, jsonb, text, interval, text),
	sbx_script_status(text, text, text), sbx_script_logs(text, text, text),
	sbx_upload(text, text, bytea), sbx_download(text, text)
	TO regress_sbx_team, regress_sbx_aloof, regress_sbx_stranger;
GRANT SELECT ON sbx_sandboxes, sbx_mapping TO regress_sbx_team, regress_sbx_aloof, regress_sbx_stranger;
-- Rule: calling needs no privilege on the tables behind.  must not fire
SELECT sbx_set_policy('shared', request_defaults => '{"routing":{"strategy":"cost"}}');
SET ROLE regress_sbx_stranger;
SELECT statement, regress_try(statement) FROM (VALUES
	('SELECT sbx_route()'), ($$SELECT sbx_set_credential('p', 'k')$$), ('SELECT sbx_route_explain()'),
	('SELECT sbx_route_explain_text()'), ($$SELECT sbx_check_request('{}')$$), ($$SELECT sbx_route('{}', 'shared')$$), ('SELECT sbx_new_id()'),
	('SELECT * FROM sbx_sandboxes'), ('SELECT sbx_recent_events()'), ('SELECT sbx_clear_credentials()'), ('SELECT sbx_provision()')) v(statement);
SELECT sbx_set_credential('p', 'k');
SELECT sbx_route();
SELECT provider_id, eligible FROM sbx_route_explain();
-- Rule: the caller need not be superuser to use a superuser's endpoint: it gets as
-- far as the network.
SELECT regress_try('SELECT sbx_provision()');
SELECT regress_try($$SELECT sbx_find('p', '{}')$$);
-- Rule: each of the others gets as far as the look-up.
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_wait_ready('x')$$), ($$SELECT sbx_start('x')$$), ($$SELECT sbx_stop('x')$$),
	($$SELECT sbx_start_script('x', 'true')$$), ($$SELECT sbx_script_status('x', 's', 'c')$$), ($$SELECT sbx_script_logs('x', 's', 'c')$$),
	($$SELECT sbx_upload('x', 'p', '')$$), ($$SELECT sbx_download('x', 'p')$$), ('SELECT sbx_provision_detached(id => ''x'')')) v(statement);
-- must fire: what was not granted
SELECT statement, regress_try(statement) FROM (VALUES
	('SELECT * FROM sbx_provider'), ('SELECT * FROM sbx_policy'), ($$SELECT sbx_register_provider('x', 'daytona')$$), ($$SELECT sbx_set_policy('shared')$$), ($$SELECT sbx_drop_policy('shared')$$), ('SELECT * FROM sbx_credentials'),
	('SET sbx_router.allow_private_addresses = on'), ('SET sbx_router.max_file_size = ''1kB''')) v(statement);
RESET ROLE;
-- Rule: the view sbx_credentials needs the function behind it, too.  must fire
GRANT SELECT ON sbx_credentials TO regress_sbx_stranger;
SET ROLE regress_sbx_stranger;
SELECT regress_try('SELECT * FROM sbx_credentials');
RESET ROLE;
-- must not fire
GRANT EXECUTE ON FUNCTION sbx_credential_list() TO regress_sbx_stranger;
SET ROLE regress_sbx_stranger;
SELECT * FROM sbx_credentials;
RESET ROLE;

--
-- Whose sandboxes
--
-- Rule: the owner and who has the privileges of the owner see a sandbox and can use
-- it; for others it does not exist.  "used" means: got as far as the credential.
CREATE FUNCTION regress_use(id text) RETURNS text LANGUAGE sql AS
	$$ SELECT CASE regress_try(format('SELECT sbx_get(%L)', id))
		WHEN 'SB011 no credential for provider "p" in this session' THEN 'used'
		WHEN format('SB010 sandbox "%s" does not exist', id) THEN 'unknown'
		ELSE regress_try(format('SELECT sbx_get(%L)', id)) END $$;
CREATE TABLE regress_ids AS SELECT id::text, name FROM sbx_mapping;
GRANT SELECT ON regress_ids TO PUBLIC;
SELECT name, regress_use(id) FROM regress_ids ORDER BY id;
SELECT name FROM sbx_sandboxes ORDER BY id;
SET ROLE regress_sbx_team;
SELECT name, regress_use(id) FROM regress_ids ORDER BY id;
SELECT name FROM sbx_sandboxes ORDER BY id;
SET ROLE regress_sbx_member;
SELECT name, regress_use(id) FROM regress_ids ORDER BY id;
SELECT name FROM sbx_sandboxes ORDER BY id;
-- member, but without the privileges until it says SET ROLE
SET ROLE regress_sbx_aloof;
SELECT name, regress_use(id) FROM regress_ids ORDER BY id;
SELECT name FROM sbx_sandboxes ORDER BY id;
SET ROLE regress_sbx_stranger;
SELECT sbx_clear_credentials();
SELECT name, regress_use(id) FROM regress_ids ORDER BY id;
SELECT name FROM sbx_sandboxes ORDER BY id;
SELECT name FROM sbx_mapping ORDER BY id;
SELECT regress_try('COPY sbx_mapping TO PROGRAM ''true''') LIKE '42501%';
COPY (SELECT name FROM sbx_mapping) TO stdout;
-- Rule: the view runs as its reader, and a leaky function sees no row of others.
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS
	$$ BEGIN RAISE NOTICE 'leaked: %', $1; RETURN true; END $$;
SELECT count(*) FROM sbx_sandboxes WHERE pg_temp.leak(name);
SET ROLE regress_sbx_member;
SELECT count(*) FROM sbx_sandboxes WHERE pg_temp.leak(name);
-- Rule: row security cannot be switched off.
SET row_security = off;
SELECT count(*) FROM sbx_mapping;
RESET row_security;
-- Rule: nobody writes mappings by hand, not even for his own.  must fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner)
	   VALUES ('sbx_55555555555555555555555555555555', 'p', 'stolen', 'started', '{}', 'regress_sbx_member')$$),
	('UPDATE sbx_mapping SET provider_sandbox_id = ''stolen'''), ('DELETE FROM sbx_mapping'),
	($$INSERT INTO sbx_sandboxes (id) VALUES ('sbx_55555555555555555555555555555555')$$),
	('UPDATE sbx_sandboxes SET name = ''x'''), ('DELETE FROM sbx_sandboxes')) v(statement);
RESET ROLE;
-- Rule: and with the table privilege, only one's own, and not for others.
GRANT INSERT, UPDATE, DELETE ON sbx_mapping TO regress_sbx_stranger;
SET ROLE regress_sbx_stranger;
SELECT statement, regress_try(statement) FROM (VALUES
	($$INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner)
	   VALUES ('sbx_55555555555555555555555555555555', 'p', 'p5', 'started', '{}', 'regress_sbx_team')$$),
	($$INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner)
	   VALUES ('sbx_55555555555555555555555555555555', 'p', 'p5', 'started', '{}', 'regress_sbx_stranger')$$),
	($$UPDATE sbx_mapping SET owner = 'regress_sbx_team'$$),
	('UPDATE sbx_mapping SET name = ''touched'''), ('DELETE FROM sbx_mapping')) v(statement);
RESET ROLE;
SELECT name FROM sbx_mapping ORDER BY id;
REVOKE INSERT, UPDATE, DELETE ON sbx_mapping FROM regress_sbx_stranger;

-- Rule: what a table holds is well formed whoever writes it.  must fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$UPDATE sbx_mapping SET id = 'x' WHERE name = 'of the team'$$), ($$UPDATE sbx_mapping SET state = 'running'$$),
	($$UPDATE sbx_mapping SET provider_sandbox_id = ''$$), ($$UPDATE sbx_mapping SET provider_id = 'nobody'$$),
	($$UPDATE sbx_mapping SET provider_sandbox_id = 'same'$$), ($$UPDATE sbx_mapping SET owner = NULL$$), ($$UPDATE sbx_mapping SET request = NULL$$),
	($$UPDATE sbx_mapping SET idempotency_key = 'k', owner = 'regress_sbx_team'$$), ($$UPDATE sbx_mapping SET launch_token = 'x'$$)) v(statement);
-- must not fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$UPDATE sbx_mapping SET idempotency_key = 'k'$$), ($$UPDATE sbx_mapping SET state = 'gone'$$), ($$UPDATE sbx_mapping SET launch_token = '0123456789abcdef'$$)) v(statement);

-- Rule: SECURITY DEFINER: the sandbox belongs to the definer.
CREATE FUNCTION regress_team_get(id text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS
	$$ BEGIN RETURN regress_use(id); END $$;
ALTER FUNCTION regress_team_get(text) OWNER TO regress_sbx_team;
SET ROLE regress_sbx_stranger;
SELECT name, regress_team_get(id) FROM regress_ids ORDER BY id;
RESET ROLE;

-- Rule: membership counts now: given and taken back.
GRANT regress_sbx_team TO regress_sbx_stranger;
SET ROLE regress_sbx_stranger;
SELECT name, regress_use(id) FROM regress_ids WHERE name = 'of the team';
RESET ROLE;
REVOKE regress_sbx_team FROM regress_sbx_stranger;
SET ROLE regress_sbx_stranger;
SELECT name, regress_use(id) FROM regress_ids WHERE name = 'of the team';
RESET ROLE;

-- Rule: the sandboxes of a role that was dropped are the superuser's to clear up.
DROP ROLE regress_sbx_leaver;
SELECT name, owner::text ~ '^\d+$' AS dangling FROM sbx_mapping WHERE name = 'of the leaver';
SELECT name, regress_use(id) FROM regress_ids WHERE name = 'of the leaver';
SET ROLE regress_sbx_stranger;
SELECT name, regress_use(id) FROM regress_ids WHERE name = 'of the leaver';
SELECT name FROM sbx_sandboxes ORDER BY id;
RESET ROLE;
-- must not fire
SELECT regress_try($$UPDATE sbx_mapping SET owner = 'regress_sbx_stranger' WHERE name = 'of the leaver'$$);
SET ROLE regress_sbx_stranger;
SELECT name FROM sbx_sandboxes ORDER BY id;
RESET ROLE;

SELECT sbx_clear_credentials();
DELETE FROM sbx_mapping;
DELETE FROM sbx_provider;
DELETE FROM sbx_policy;
DROP TABLE regress_ids;
DROP FUNCTION regress_team_get(text), regress_use(text), regress_try(text);
DROP OWNED BY regress_sbx_nobody, regress_sbx_team, regress_sbx_member, regress_sbx_aloof, regress_sbx_stranger;
DROP ROLE regress_sbx_nobody, regress_sbx_member, regress_sbx_aloof, regress_sbx_stranger, regress_sbx_team;
