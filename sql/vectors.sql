-- The routing vectors: 200 requests with their pools and the rows or the error that
-- they must give.  Each line of the file is {"request","providers","expect"}.
\getenv abs_srcdir PG_ABS_SRCDIR
\set vectors :abs_srcdir '/test/data/routing-vectors.jsonl'
CREATE TEMP TABLE vector (n int GENERATED ALWAYS AS IDENTITY, doc jsonb);
\copy vector (doc) FROM PROGRAM 'cat' WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
