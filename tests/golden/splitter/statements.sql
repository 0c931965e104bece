-- case: SET
SET spark.sql.ansi.enabled = true; SET a.b.c=1;

-- case: SET with a string that holds a semicolon
SET spark.a = 'x;y'; SELECT 1

-- case: RESET
RESET; RESET spark.a;

-- case: CREATE TABLE of Spark
CREATE TABLE t (a INT) USING csv OPTIONS (path 'x;y');

-- case: CREATE TABLE of a streaming engine
CREATE TABLE t (a INT) WITH ('connector' = 'csv', 'csv.field-delimiter' = ';');

-- case: CREATE TEMPORARY TABLE
CREATE TEMPORARY TABLE t USING print; CREATE OR REPLACE TEMP TABLE t USING print

-- case: CREATE VIEW
CREATE VIEW v AS SELECT 1; CREATE OR REPLACE TEMPORARY VIEW v AS SELECT ';';

-- case: INSERT INTO
INSERT INTO t VALUES (1), (2); INSERT INTO TABLE t SELECT 1; INSERT INTO t BY NAME SELECT 1 AS a

-- case: INSERT OVERWRITE
INSERT OVERWRITE t SELECT 1; INSERT OVERWRITE TABLE t TABLE s

-- case: each beginning of a query
SELECT 1; WITH a AS (SELECT 1) SELECT * FROM a; VALUES (1); FROM t SELECT *; TABLE t; (SELECT 1); ((TABLE t))

-- case: ASSERT
ASSERT (SELECT count(*) FROM t) = 2, 'two; rows'; ASSERT true

-- case: EXPLAIN
EXPLAIN SELECT 1; EXPLAIN EXTENDED TABLE t; EXPLAIN INSERT INTO t SELECT 1

-- case: CACHE and UNCACHE
CACHE TABLE t; CACHE LAZY TABLE t; UNCACHE TABLE t; UNCACHE TABLE IF EXISTS t

-- case: a statement set
EXECUTE STATEMENT SET BEGIN
  INSERT INTO a SELECT 1;
  INSERT INTO b SELECT ';';
END;
SELECT 1

-- case: a statement set of the older form
BEGIN STATEMENT SET;
INSERT INTO a SELECT 1;
END;

-- case: a statement set without EXECUTE
STATEMENT SET BEGIN INSERT INTO a SELECT 1; END

-- case: an empty statement set
EXECUTE STATEMENT SET BEGIN END; EXECUTE STATEMENT SET BEGIN; END

-- case: BEGIN and END of a script of Spark
BEGIN SELECT 1; END

-- case: END within CASE
SELECT CASE WHEN a THEN 1 ELSE 2 END; SELECT 2

-- case: a column named end
SELECT end FROM t; SELECT begin FROM t

-- case: options for one use
SELECT * FROM t WITH ('header' = ';'); SELECT * FROM t /*+ OPTIONS('delimiter' = '\;') */

-- case: a lambda and a map
SELECT transform(a, x -> x + 1), map('a;', 1)['a;']; SELECT 2

-- case: a struct type
SELECT CAST(a AS STRUCT<b: ARRAY<INT>>); SELECT 2

-- case: numbers
SELECT 1.5, .5, 1., 1e5, 1E-5, 10L, 1.0BD, 5D; SELECT 2

-- case: an identifier that begins with a digit
SELECT 1a; SELECT 2

-- case: operators
SELECT a<>b, a!=b, a<=>b, a||b, a::INT, ~a, a^b, a%b, a==b; SELECT 2

-- case: variables
-- set: a=1
SELECT ${a}; SELECT '${b;c}'; SELECT ${d:-;}; SELECT 2

-- case: a variable may hold a semicolon in quotes only
-- set: a=1;2
SELECT '${a}'; SELECT ${a}

-- case: a variable that is never closed
SELECT 1; SELECT ${a; SELECT 2

-- case: a variable that is never closed in a string
SELECT '${a; b'; SELECT 2

-- case: a dollar alone
SELECT $; SELECT $a; SELECT 2

-- case: a variable across a line
SELECT ${a
}; SELECT 2

-- case: statements that a script may not have
DROP TABLE t; DELETE FROM t; MERGE INTO t USING s; USE CATALOG c; SHOW TABLES; ALTER TABLE t ADD COLUMN a INT
