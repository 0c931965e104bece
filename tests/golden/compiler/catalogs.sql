-- case: INSERT INTO a table of a catalog
INSERT INTO cat.db.t SELECT 1

-- case: INSERT OVERWRITE TABLE by name
INSERT OVERWRITE TABLE cat.db.t BY NAME SELECT 1 AS a

-- case: INSERT with a query that defines names
INSERT INTO db.t WITH x AS (SELECT 1) SELECT * FROM x

-- case: INSERT with options
INSERT INTO db.t WITH ('a' = 'b') SELECT 1

-- case: INSERT into a partition
INSERT OVERWRITE db.t PARTITION (day = '2026-01-01') SELECT 1

-- case: INSERT with columns
INSERT INTO db.t (a, b) SELECT 1, 2

-- case: INSERT reads its target
INSERT INTO cat.db.t SELECT * FROM cat.DB.t

-- case: INSERT may read its target
INSERT OVERWRITE cat.db.t SELECT * FROM db.t

-- case: INSERT reads its target through a view
CREATE VIEW v AS SELECT * FROM cat.db.t;
CREATE VIEW w AS SELECT * FROM v;
INSERT INTO cat.db.t SELECT * FROM w

-- case: INSERT reads a table of another catalog
INSERT INTO a.db.t SELECT * FROM b.db.t

-- case: INSERT with quoted parts
INSERT INTO `a-b`.`c``d`.t SELECT 1

-- case: INSERT with too many parts
INSERT INTO a.b.c.d.e.f.g.h.i SELECT 1

-- case: INSERT with a variable as catalog
-- set: cat=prod
INSERT INTO ${cat}.db.t SELECT 1

-- case: INSERT with a built-in variable in the name
INSERT INTO db.`t_${ds}` SELECT 1

-- case: INSERT with a group window
CREATE TABLE c (at TIMESTAMP) USING csv OPTIONS (path 'c');
INSERT INTO db.t SELECT TUMBLE_START(at, INTERVAL '1' MINUTE), count(*) FROM c GROUP BY TUMBLE(at, INTERVAL '1' MINUTE)

-- case: INSERT reads with options of its own
CREATE TABLE c (a INT) USING csv OPTIONS (path 'c');
INSERT INTO db.t SELECT * FROM c WITH (header 'false')

-- case: INSERT in a statement set
BEGIN STATEMENT SET;
INSERT INTO db.t SELECT 1;
END;

-- case: INSERT as the first of a statement set
EXECUTE STATEMENT SET BEGIN
INSERT INTO db.t SELECT 1;
END;

-- case: a statement set with tables of catalogs and of the script, and a view that they share
CREATE TABLE c (a INT) USING csv OPTIONS (path 'c');
CREATE VIEW v AS SELECT a FROM c JOIN cat.db.names USING (a);
CREATE TABLE o USING parquet OPTIONS (path 'o');
EXECUTE STATEMENT SET BEGIN
  INSERT OVERWRITE cat.db.t BY NAME SELECT a FROM v;
  INSERT INTO o SELECT a FROM v;
  INSERT INTO TABLE cat.db.t SELECT -a AS a FROM v;
END;

-- case: a statement set whose INSERT reads a table of a catalog that another one writes
EXECUTE STATEMENT SET BEGIN
  INSERT INTO cat.db.t SELECT 1 AS a;
  INSERT INTO cat.db.u SELECT a FROM cat.db.t;
END;

-- case: a statement set whose INSERT into a table of the script reads it, by a name that may be the same
CREATE TABLE o USING parquet OPTIONS (path 'o');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO cat.db.t SELECT 1 AS a;
  INSERT INTO o SELECT a FROM db.t;
END;

-- case: a statement set whose INSERT writes a table of a catalog that another one reads through a view
CREATE VIEW v AS SELECT a FROM cat.db.t;
CREATE TABLE o USING parquet OPTIONS (path 'o');
BEGIN STATEMENT SET;
INSERT INTO o SELECT a FROM v;
INSERT OVERWRITE cat.db.t SELECT 1 AS a;
END;

-- case: a statement set whose INSERT reads a table of the script that one into a catalog reads, and writes it
CREATE TABLE o (a INT) USING parquet OPTIONS (path 'o');
BEGIN STATEMENT SET;
INSERT INTO cat.db.t SELECT a FROM o;
INSERT INTO o SELECT 1;
END;

-- case: a statement set that replaces the rows of a table of a catalog behind an INSERT into it
BEGIN STATEMENT SET;
INSERT INTO cat.db.t SELECT 1 AS a;
INSERT OVERWRITE db.t SELECT 2 AS a;
END;

-- case: a statement set that replaces a table of a catalog behind a read of it
CREATE TABLE o USING parquet OPTIONS (path 'o');
INSERT INTO o SELECT a FROM cat.db.t;
BEGIN STATEMENT SET;
INSERT OVERWRITE cat.db.t SELECT 1 AS a;
END;

-- case: a statement set whose INSERT reads its own target
BEGIN STATEMENT SET;
INSERT INTO cat.db.t SELECT a FROM cat.db.t;
END;

-- case: MERGE in a statement set
BEGIN STATEMENT SET;
INSERT INTO cat.db.t SELECT 1 AS a;
MERGE INTO cat.db.u USING (SELECT 1 AS a) s ON u.a = s.a WHEN MATCHED THEN DELETE;
DELETE FROM cat.db.u WHERE a = 1;
END;

-- case: MERGE as the first of a statement set
EXECUTE STATEMENT SET BEGIN
MERGE INTO cat.db.u USING (SELECT 1 AS a) s ON u.a = s.a WHEN MATCHED THEN DELETE;
END;

-- case: a statement set whose first INSERT into a catalog calls a function
EXECUTE STATEMENT SET BEGIN
INSERT INTO cat.db.t SELECT slug(1) AS a;
END;

-- case: a statement set whose INSERT into a catalog has an error
BEGIN STATEMENT SET;
INSERT INTO cat.db.t (a) SELECT 1 AS a;
INSERT INTO cat.db.t PARTITION (a = 1) SELECT 1 AS a;
END;

-- case: EXPLAIN of an INSERT into a catalog
EXPLAIN INSERT INTO db.t SELECT 1

-- case: INSERT in mode available-now
SET job.mode = 'available-now';
INSERT INTO db.t SELECT 1

-- case: a stream joins a table of a catalog
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path 's');
CREATE TABLE o USING parquet OPTIONS (path 'o');
INSERT INTO o SELECT * FROM s JOIN cat.db.t USING (a)

-- case: MERGE
CREATE VIEW src AS SELECT 1 AS a;
MERGE INTO cat.db.t t USING src s ON t.a = s.a WHEN MATCHED THEN UPDATE SET a = s.a, t.b = 2 WHEN NOT MATCHED THEN INSERT *

-- case: MERGE with a query as source
MERGE INTO cat.db.t AS t USING (SELECT * FROM cat.db.u) AS s ON t.a = s.a WHEN MATCHED THEN DELETE

-- case: MERGE with a table of a catalog as source
MERGE INTO cat.db.t USING cat.db.u ON t.a = u.a WHEN MATCHED THEN DELETE

-- case: MERGE with an unknown source
CREATE TABLE source (a INT) USING csv OPTIONS (path 's');
MERGE INTO cat.db.t USING sourze s ON t.a = s.a WHEN MATCHED THEN DELETE

-- case: MERGE with a source that has an error
CREATE TABLE s (a INT) USING csv OPTIONS (pth 's');
MERGE INTO cat.db.t USING s ON t.a = s.a WHEN MATCHED THEN DELETE

-- case: MERGE with a table that can only be written
CREATE TABLE s USING print;
MERGE INTO cat.db.t USING s ON t.a = s.a WHEN MATCHED THEN DELETE

-- case: MERGE into a table of the script
CREATE TABLE s (a INT) USING csv OPTIONS (path 's');
MERGE INTO s USING s AS o ON s.a = o.a WHEN MATCHED THEN DELETE

-- case: MERGE without ON
MERGE INTO db.t USING (SELECT 1 AS a)

-- case: MERGE without WHEN
MERGE INTO db.t USING (SELECT 1 AS a) s ON t.a = s.a

-- case: MERGE that changes columns
MERGE WITH SCHEMA EVOLUTION INTO db.t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED THEN DELETE

-- case: MERGE without a source
MERGE INTO db.t USING

-- case: DELETE
DELETE FROM cat.db.t WHERE day < DATE '2026-01-01'

-- case: DELETE with an alias
DELETE FROM cat.db.t AS x WHERE x.a IN (SELECT a FROM cat.db.u)

-- case: DELETE without a condition
DELETE FROM cat.db.t

-- case: DELETE of a table of the script
DELETE FROM t WHERE true

-- case: DELETE of what the script has read
SELECT * FROM cat.db.t;
DELETE FROM cat.db.t WHERE a = 1

-- case: INSERT OVERWRITE of what an INSERT has read
CREATE TABLE o USING parquet OPTIONS (path 'o');
CREATE VIEW v AS SELECT * FROM cat.db.t;
INSERT INTO o SELECT * FROM v;
INSERT OVERWRITE cat.db.t SELECT 1

-- case: INSERT OVERWRITE of what a MERGE has read
MERGE INTO cat.db.u USING db.t ON u.a = t.a WHEN NOT MATCHED THEN INSERT *;
INSERT OVERWRITE cat.db.t SELECT 1

-- case: INSERT OVERWRITE of a table that each attempt makes again
CREATE TABLE o USING parquet OPTIONS (path 'o');
INSERT OVERWRITE cat.db.t SELECT 1 AS a;
INSERT INTO o SELECT * FROM cat.db.t;
INSERT OVERWRITE cat.db.t SELECT 2 AS a;
INSERT INTO o SELECT * FROM cat.db.t

-- case: INSERT OVERWRITE of what was only looked at
CREATE VIEW v AS SELECT * FROM cat.db.t;
SELECT * FROM v;
INSERT OVERWRITE cat.db.t SELECT 1

-- case: DELETE of what its own condition reads
DELETE FROM cat.db.t WHERE a = (SELECT max(a) FROM db.t)

-- case: DELETE before the script reads
DELETE FROM cat.db.t WHERE a = 1;
SELECT * FROM cat.db.t

-- case: UPDATE
UPDATE cat.db.t SET a = 1

-- case: DROP, TRUNCATE and ALTER
DROP TABLE cat.db.t;
TRUNCATE TABLE cat.db.t;
ALTER TABLE cat.db.t ADD COLUMN b INT

-- case: CREATE TABLE IF NOT EXISTS
CREATE TABLE IF NOT EXISTS cat.db.t (a INT, b STRING) USING parquet PARTITIONED BY (b) COMMENT 'x'

-- case: CREATE TABLE without a condition
CREATE TABLE cat.db.t (a INT)

-- case: CREATE OR REPLACE TABLE
CREATE OR REPLACE TABLE cat.db.t (a INT GENERATED ALWAYS AS (1))

-- case: CREATE OR REPLACE TABLE of what the script has read
CREATE VIEW v AS SELECT * FROM cat.db.t;
CREATE OR REPLACE TABLE cat.db.t (a INT);
SELECT * FROM v

-- case: CREATE TABLE from a query
CREATE TABLE IF NOT EXISTS cat.db.t AS SELECT 1 AS a

-- case: CREATE TABLE like another one
CREATE TABLE IF NOT EXISTS cat.db.t LIKE cat.db.u

-- case: CREATE TEMPORARY TABLE with parts
CREATE TEMPORARY TABLE db.t (a INT) USING csv OPTIONS (path 't')

-- case: CREATE NAMESPACE
CREATE NAMESPACE IF NOT EXISTS cat.db;
CREATE DATABASE IF NOT EXISTS other COMMENT 'x'

-- case: CREATE NAMESPACE without a condition
CREATE NAMESPACE cat.db

-- case: USE alone does nothing
USE cat.db

-- case: USE in all forms
USE CATALOG cat;
USE cat.db;
USE NAMESPACE db;
USE DATABASE db;
USE catalog;
SELECT * FROM db.t

-- case: USE CATALOG with two parts
USE CATALOG cat.db;
SELECT 1

-- case: USE with more
USE cat db;
SELECT 1

-- case: a setting configures a catalog
SET spark.sql.catalog.cat = com.acme.Catalog;
SELECT 1

-- case: SHOW and DESCRIBE
SHOW TABLES IN cat.db;
SHOW NAMESPACES;
SHOW CATALOGS LIKE 'x*';
DESCRIBE cat.db.t;
DESC TABLE cat.db.t

-- case: SHOW of something else
SHOW FUNCTIONS

-- case: DESCRIBE of a table of the script
CREATE TABLE t (a INT) USING csv OPTIONS (path 't');
DESCRIBE t

-- case: DESCRIBE with more
DESCRIBE EXTENDED cat.db.t;
DESCRIBE cat.db.t a

-- case: ANALYZE and REFRESH
ANALYZE TABLE cat.db.t COMPUTE STATISTICS FOR ALL COLUMNS;
REFRESH TABLE cat.db.t

-- case: REFRESH of a table of the script
REFRESH TABLE t

-- case: names with dots that are no tables
CREATE TABLE o (day DATE, name STRING) USING csv OPTIONS (path 'o');
SELECT extract(YEAR FROM o.day), trim(BOTH ' ' FROM o.name), substring(o.name FROM 2) FROM o WHERE o.name IS DISTINCT FROM o.day

-- case: a table in a query between arguments
SELECT trim(BOTH ' ' FROM (SELECT max(name) FROM cat.db.t))

-- case: tables of catalogs in joins and nested queries
CREATE VIEW v AS SELECT * FROM a.b x, (c.d) JOIN e.f ON x.y = f.y WHERE x.y IN (TABLE g.h);
SELECT * FROM v

-- case: a function of a catalog
SELECT * FROM system.builtin.range(3)

-- case: a reference in a statement on a catalog
INSERT INTO cat.db.t SELECT '${secret:a/b}'
