-- case: SELECT
SELECT 1

-- case: VALUES
VALUES (1, 'a'), (2, 'b')

-- case: TABLE
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
TABLE k

-- case: FROM
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
FROM k SELECT a WHERE a > 1

-- case: WITH
WITH c AS (SELECT 1 AS a), d AS (SELECT * FROM c) SELECT * FROM d

-- case: parentheses
((SELECT 1) UNION ALL (SELECT 2))

-- case: UNION
SELECT 1 UNION SELECT 2 ORDER BY 1 LIMIT 3

-- case: a table in a subquery
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM (SELECT * FROM k) x WHERE EXISTS (SELECT 1 FROM k)

-- case: joins and commas
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
SELECT * FROM k, t JOIN k AS l ON k.a = l.a

-- case: a name before a dot is no table
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT k.a FROM (VALUES (1)) AS k(a)

-- case: IS DISTINCT FROM is no table
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT a IS DISTINCT FROM k FROM (VALUES (1, 2)) AS x(a, k)

-- case: a hint
SELECT /*+ BROADCAST(x) */ * FROM VALUES (1) AS x(a)

-- case: comments stay in the text
SELECT 1 -- one
, /* two */ 2

-- case: a lambda and a cast
SELECT transform(array(1), x -> x::STRING)

-- case: a string with escapes
SELECT 'a\n\'b\\', r'\n', 'it''s'

-- case: files by a relative path
SELECT * FROM csv.`orders.csv`

-- case: files by an absolute path
SELECT * FROM parquet.`/data/orders`

-- case: files of two formats
SELECT * FROM parquet.`/a` UNION SELECT * FROM json.`/b`

-- case: an unknown table is left to Spark
SELECT * FROM nowhere

-- case: a table of a catalog is left to Spark
SELECT * FROM c.d.t

-- case: only a parenthesis
(

-- case: a subquery of another statement
SELECT * FROM (INSERT INTO t SELECT 1)

-- case: a view
CREATE VIEW v AS SELECT 1 AS a;
SELECT * FROM v

-- case: a view of a view
CREATE VIEW v AS SELECT 1 AS a;
CREATE TEMPORARY VIEW w AS TABLE v;
TABLE w

-- case: a view that replaces another
CREATE VIEW v AS SELECT 1 AS a;
CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM v;
TABLE v

-- case: a view of a name that is taken
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
CREATE VIEW k AS SELECT 1

-- case: a view without AS
CREATE VIEW v SELECT 1

-- case: a view without query
CREATE VIEW v AS

-- case: a view of a statement
CREATE VIEW v AS INSERT INTO t SELECT 1

-- case: a view with columns
CREATE VIEW v (a) AS SELECT 1

-- case: a view that no statement uses
CREATE VIEW v AS SELECT 1;
SELECT 2

-- case: options for one use
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM k WITH ('header' = 'false') WHERE a > 1

-- case: options with an alias
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM k WITH (header false) AS x JOIN k y ON x.a = y.a

-- case: options of a streaming engine for one use
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM k /*+ OPTIONS('csv.field-delimiter' = ';') */

-- case: options behind TABLE
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
TABLE k WITH (header false)

-- case: options twice
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM k WITH (header false) UNION SELECT * FROM k WITH (header true)

-- case: options of a view
CREATE VIEW v AS SELECT 1;
SELECT * FROM v WITH (header false)

-- case: options of an unknown table
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM kk WITH (header false)

-- case: options behind no name
SELECT * FROM (SELECT 1) WITH (header false)

-- case: options of a write for a read
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM k WITH (compression 'gzip')

-- case: the path for one use
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM k WITH (path 'x')

-- case: an option that is nearly right for one use
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM k WITH (hedaer false)

-- case: options of a table of a catalog
SELECT * FROM c.d.t WITH ('a' = 'b')

-- case: options before TABLESAMPLE
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM k WITH (header false) TABLESAMPLE (1 ROWS)

-- case: an option with a value that is wrong for one use
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
SELECT * FROM k WITH (header 'perhaps')
