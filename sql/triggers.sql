--
-- TRIGGERS
-- The trigger functions on tables that are not ours: refused (39P01), whatever the
-- table looks like.
--
\set VERBOSITY terse
CREATE FUNCTION regress_try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state text; message text; detail text; hint text;
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN state || ' ' || message || COALESCE(E'\n    ' || NULLIF(detail, ''), '')
		|| COALESCE(E'\n    HINT: ' || NULLIF(hint, ''), '');
END $$;
\pset format unaligned
\pset tuples_only on
-- Rule: the check is a trigger, of that table and nothing else.  must fire (39P01)
SELECT sbx_provider_check();
CREATE TABLE regress_other (id text);
CREATE TRIGGER t BEFORE INSERT ON regress_other FOR EACH ROW EXECUTE FUNCTION sbx_provider_check();
SELECT left(regress_try($$INSERT INTO regress_other VALUES ('x')$$), 5);
DROP TABLE regress_other;
CREATE TABLE regress_other (id int, kind int, enabled int, settings int, capabilities int, signals int, capacity int, registered_by int);
CREATE TRIGGER t BEFORE INSERT ON regress_other FOR EACH ROW EXECUTE FUNCTION sbx_provider_check();
SELECT left(regress_try($$INSERT INTO regress_other VALUES (1, 2, 3, 4, 5, 6, 7, 8)$$), 5);
DROP TRIGGER t ON regress_other;
CREATE TRIGGER t BEFORE INSERT ON regress_other FOR EACH STATEMENT EXECUTE FUNCTION sbx_provider_check();
SELECT left(regress_try($$INSERT INTO regress_other VALUES (1)$$), 5);
DROP TABLE regress_other;
-- must not fire: a second trigger on the table itself
CREATE TRIGGER t BEFORE INSERT ON sbx_provider FOR EACH ROW EXECUTE FUNCTION sbx_provider_check();
SELECT regress_try($$INSERT INTO sbx_provider (id, kind) VALUES ('twice', 'daytona')$$);
DROP TRIGGER t ON sbx_provider;
-- Rule: the triggers are triggers, of that view and nothing else.  must fire (39P01)
SELECT sbx_credential_input_begin();
SELECT sbx_credential_input_row();
CREATE TABLE regress_other (id int);
CREATE TRIGGER t BEFORE INSERT ON regress_other FOR EACH ROW EXECUTE FUNCTION sbx_credential_input_row();
SELECT left(regress_try('INSERT INTO regress_other VALUES (5)'), 5);
DROP TRIGGER t ON regress_other;
CREATE TRIGGER t BEFORE INSERT ON regress_other FOR EACH STATEMENT EXECUTE FUNCTION sbx_credential_input_row();
SELECT left(regress_try('INSERT INTO regress_other VALUES (5)'), 5);
DROP TRIGGER t ON regress_other;
CREATE TRIGGER t BEFORE INSERT ON regress_other FOR EACH ROW EXECUTE FUNCTION sbx_credential_input_begin();
SELECT left(regress_try('INSERT INTO regress_other VALUES (5)'), 5);
DROP TRIGGER t ON regress_other;
CREATE TRIGGER t AFTER UPDATE ON regress_other FOR EACH STATEMENT EXECUTE FUNCTION sbx_credential_input_begin();
SELECT left(regress_try('UPDATE regress_other SET id = 5'), 5);
DROP TABLE regress_other;
DELETE FROM sbx_provider;
DROP FUNCTION regress_try(text);
