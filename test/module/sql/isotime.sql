--
-- ISOTIME
-- Times as providers write them: one form, read strictly, never an error.
--
CREATE EXTENSION IF NOT EXISTS sbx_router_test;
SET timezone = 'UTC';
SET datestyle = 'ISO';
\pset format unaligned
\pset tuples_only on
-- must not fire: read, and the same as the server's own reader says
SELECT t, sbx_test_isotime(t), sbx_test_isotime(t) = t::timestamptz AS same FROM (VALUES
	('2026-12-02T04:05:06Z'), ('2026-12-02T04:05:06.7Z'), ('2026-12-02T04:05:06.789012Z'), ('2026-12-02T04:05:06+00:00'), ('2026-12-02T04:05:06-00:00'),
	('2026-12-02T04:05:06.25+05:30'), ('2026-12-02T04:05:06-11:00'), ('2026-12-31T23:30:00-01:00'), ('2027-01-01T00:30:00+01:00'),
	('2024-02-29T00:00:00Z'), ('2000-02-29T23:59:59Z'), ('1970-01-01T00:00:00Z'), ('1582-10-15T00:00:00Z'), ('0001-01-01T00:00:00Z'), ('9999-12-31T23:59:59.999999Z'),
	('2026-12-02T04:05:06.0000004Z'), ('2026-12-02T04:05:06.0000006Z'), ('2026-12-02T04:05:59.9999996Z'), ('2026-12-31T23:59:59.9999999Z'),
	('2026-12-02T04:05:06.12345678901234567890Z')) v(t);
-- must not fire: longer than the server's reader takes
SELECT sbx_test_isotime('2026-12-02T04:05:06.' || repeat('1', 1000) || 'Z');
-- must not fire: farther from Greenwich than the server's reader goes
SELECT t, sbx_test_isotime(t) FROM (VALUES ('2026-12-02T00:00:00+23:59'), ('2026-12-02T00:00:00-23:59'), ('0001-01-01T00:00:00+23:59'), ('9999-12-31T23:59:59-23:59')) v(t);
-- must fire
SELECT t, sbx_test_isotime(t) IS NULL AS refused FROM (VALUES
	(''), ('Z'), ('now'), ('infinity'), ('epoch'), ('2026'), ('2026-12-02'), ('2026-12-02T04:05:06'), ('2026-12-02 04:05:06Z'), ('2026-12-02t04:05:06Z'), ('2026-12-02T04:05:06z'),
	(' 2026-12-02T04:05:06Z'), ('2026-12-02T04:05:06Z '), (E'2026-12-02T04:05:06Z\n'), ('2026-12-02T04:05Z'), ('2026-12-02T04Z'), ('20261202T040506Z'),
	('2026-13-02T04:05:06Z'), ('2026-00-02T04:05:06Z'), ('2026-12-00T04:05:06Z'), ('2026-12-32T04:05:06Z'), ('2026-11-31T04:05:06Z'), ('2026-02-29T04:05:06Z'), ('1900-02-29T04:05:06Z'), ('0000-01-01T00:00:00Z'),
	('2026-12-02T24:00:00Z'), ('2026-12-02T04:60:06Z'), ('2026-12-02T04:05:60Z'), ('2026-12-02T4:05:06Z'), ('2026-12-02T04:5:06Z'), ('2026-12-02T04:05:6Z'), ('26-12-02T04:05:06Z'), ('12026-12-02T04:05:06Z'),
	('+2026-12-02T04:05:06Z'), ('-026-12-02T04:05:06Z'), ('2026/12/02T04:05:06Z'), ('2026-12-02T04.05.06Z'),
	('2026-12-02T04:05:06.Z'), ('2026-12-02T04:05:06,5Z'), ('2026-12-02T04:05:06.5.5Z'), ('2026-12-02T04:05:06.-5Z'), ('2026-12-02T04:05:06.5e1Z'), ('2026-12-02T04:05:06.1'),
	('2026-12-02T04:05:06+0000'), ('2026-12-02T04:05:06+00'), ('2026-12-02T04:05:06+24:00'), ('2026-12-02T04:05:06+00:60'), ('2026-12-02T04:05:06+1:00'), ('2026-12-02T04:05:06+01:0'), ('2026-12-02T04:05:06+01:00Z'), ('2026-12-02T04:05:06Z+01:00'),
	('2026-12-02T04:05:06 UTC'), ('2026-12-02T04:05:06Europe/Berlin'), ('2026-12-02T04:05:06−01:00'), ('２０２６-12-02T04:05:06Z'), ('2026-12-02T04:05:06Z BC')) v(t);
-- Rule: whatever is cut off or changed, there is an answer and no error.
SELECT count(*) AS tried, count(sbx_test_isotime(t)) AS were_read FROM (
	SELECT overlay('2026-12-02T04:05:06.789+05:30' PLACING chr(b) FROM at FOR 1) AS t FROM generate_series(1, 29) at, generate_series(1, 127) b
	UNION ALL SELECT left('2026-12-02T04:05:06.789+05:30', n) FROM generate_series(0, 29) n) s;
-- Rule: every day is the server's own.
SELECT count(*) AS days, count(*) FILTER (WHERE sbx_test_isotime(to_char(day, 'YYYY-MM-DD"T12:34:56Z"')) IS DISTINCT FROM (to_char(day, 'YYYY-MM-DD') || ' 12:34:56 UTC')::timestamptz) AS different
FROM generate_series('0001-01-01'::date, '4000-01-01', '3 days') day;
