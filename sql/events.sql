--
-- EVENTS
-- Whose events a session shows: one's own and those of roles that one is a member of,
-- whoever the session was before.
--
\set VERBOSITY terse
-- left behind by a run that did not get to its end
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_sbx_first, regress_sbx_second, regress_sbx_group;
RESET client_min_messages;

CREATE ROLE regress_sbx_group NOLOGIN;
CREATE ROLE regress_sbx_first IN ROLE regress_sbx_group;
CREATE ROLE regress_sbx_second;
GRANT EXECUTE ON FUNCTION sbx_provision(jsonb, text, text), sbx_recent_events()
	TO regress_sbx_group, regress_sbx_second;
-- A session of its own, without events of other suites.
\c
\set VERBOSITY terse
\pset format unaligned
\pset tuples_only on
-- Without a provider every request is refused, which is an event.
SELECT sbx_provision();
SET ROLE regress_sbx_first;
SELECT sbx_provision();
SET ROLE regress_sbx_group;
SELECT sbx_provision();
SELECT sbx_provision();

-- Rule: nobody sees the events of a role whose rights it does not have.
-- must fire (none): another role in the same session
SET ROLE regress_sbx_second;
SELECT count(*) FROM sbx_recent_events();
-- must fire (two, its own): a group is not its members
SET ROLE regress_sbx_group;
SELECT event, count(*) FROM sbx_recent_events() GROUP BY event;
-- must not fire: one's own, and those of a group that one is in
SET ROLE regress_sbx_first;
SELECT event, count(*) FROM sbx_recent_events() GROUP BY event;
-- must not fire: a superuser sees them all
RESET ROLE;
SELECT event, count(*) FROM sbx_recent_events() GROUP BY event;
-- must not fire: one's own come along
SET ROLE regress_sbx_second;
SELECT sbx_provision();
SELECT event, count(*) FROM sbx_recent_events() GROUP BY event;

-- Rule: what acts with another role's rights shows what that one may see.
RESET ROLE;
CREATE FUNCTION regress_count() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM sbx_recent_events()';
-- must not fire: a function of a superuser, SECURITY DEFINER
SET ROLE regress_sbx_group;
SELECT regress_count();
-- must fire (two, its own): the same as it is
RESET ROLE;
ALTER FUNCTION regress_count() SECURITY INVOKER;
SET ROLE regress_sbx_group;
SELECT regress_count();


-- Rule: a session that is used again by somebody else, as a pooler does.
-- must fire (one, its own)
SET ROLE regress_sbx_first;
DISCARD ALL;
SET ROLE regress_sbx_second;
SELECT count(*) FROM sbx_recent_events();
RESET ROLE;
DROP FUNCTION regress_count();
REVOKE ALL ON FUNCTION sbx_provision(jsonb, text, text), sbx_recent_events() FROM regress_sbx_group, regress_sbx_second;
DROP ROLE regress_sbx_first, regress_sbx_second, regress_sbx_group;
