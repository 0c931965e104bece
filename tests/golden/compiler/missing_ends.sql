-- case: CREATE TABLE behind a table
CREATE TABLE t (id INT) USING csv OPTIONS (path 't')
CREATE TABLE o USING print;
INSERT INTO o SELECT id FROM t;
-- case: CREATE TABLE behind a table of the other dialect, and comments between
CREATE TABLE t (id INT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = 't') -- the input

/* what is shown */
CREATE TABLE o WITH ('connector' = 'print');
INSERT INTO o SELECT id FROM t;
-- case: each CREATE
CREATE VIEW a AS SELECT 1 AS x
CREATE OR REPLACE TEMPORARY VIEW b AS SELECT x FROM a
CREATE TEMP VIEW c AS SELECT x FROM b
CREATE TEMPORARY FUNCTION f AS 'm.f'
SELECT x FROM c;
-- case: two statements on a line
CREATE TABLE o USING print; INSERT INTO o SELECT 1 AS a INSERT INTO o VALUES (2) SELECT 3;
-- case: queries
SELECT 1 AS a
SELECT 2 AS b
WITH c AS (SELECT 3 AS d) SELECT d FROM c;
-- case: settings
SET spark.sql.shuffle.partitions = 4
SET 'job.mode' = 'batch'
SET `spark.sql.ansi.enabled` = true
RESET spark.sql.ansi.enabled
SELECT 1;
-- case: a setting behind a query, on the same line
SELECT 1 AS a SET spark.sql.ansi.enabled = true;
-- case: a setting with a variable
-- set: parts=4
SET spark.sql.shuffle.partitions = ${parts}
SELECT ${parts};
-- case: sets
CREATE TABLE o USING print
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT 1
INSERT INTO o SELECT 2
END;
-- case: a set behind a set
CREATE TABLE o USING print;
BEGIN STATEMENT SET
INSERT INTO o SELECT 1;
END
STATEMENT SET BEGIN
INSERT INTO o SELECT 2;
END
SELECT 3;
-- case: CASE ends an INSERT, and END the set
CREATE TABLE o USING print;
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT CASE WHEN true THEN 1 END
END;
SELECT 1;
-- case: other statements
CREATE VIEW v AS SELECT 1 AS a
CACHE TABLE v
ASSERT (SELECT count(*) FROM v) > 0
EXPLAIN SELECT a FROM v
UNCACHE TABLE v
SHOW TABLES
USE c.d
DESCRIBE c.d.e
SELECT a FROM v;
-- case: an INSERT behind an ASSERT with a message
CREATE TABLE o USING print;
ASSERT 1 > 0, 'never'
INSERT INTO o SELECT 1;
-- case: words that are names
CREATE VIEW v AS SELECT 1 AS `select`, 2 AS show, 3 AS create, 4 AS set, 5 AS assert;
SELECT show, create, set, assert FROM v use WHERE use.show = 1 AND set = 4 ORDER BY show DESC;
SELECT v.show
FROM v
assert
WHERE assert.show > 0;
-- case: queries of several parts
SELECT 1 AS a
UNION ALL
SELECT 2
EXCEPT
SELECT 3
INTERSECT
(SELECT 4);
WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a)
SELECT x FROM b;
FROM (SELECT 1 AS x) SELECT x;
-- case: statements with a SET, a SELECT or a CREATE of their own
CREATE OR REPLACE TABLE c.d.t USING iceberg AS
SELECT 1 AS id;
CREATE OR REPLACE TABLE c.d.u USING iceberg
SELECT 1 AS id;
MERGE INTO c.d.t USING c.d.u ON t.id = u.id WHEN MATCHED THEN UPDATE SET id = u.id WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id);
INSERT INTO c.d.t
SELECT 2;
-- case: a command within a query
CREATE TABLE o USING print;
WITH a AS (SELECT 1 AS x) INSERT INTO o SELECT x FROM a;
