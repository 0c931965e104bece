-- case: INTO
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t SELECT 1, 'x'

-- case: INTO TABLE
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO TABLE t VALUES (1, 'x')

-- case: OVERWRITE
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT OVERWRITE t SELECT 1, 'x'

-- case: OVERWRITE TABLE
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT OVERWRITE TABLE t SELECT 1, 'x'

-- case: BY NAME
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t BY NAME SELECT 'x' AS b, 1 AS a

-- case: options for one use
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t WITH ('compression' = 'gzip') SELECT 1, 'x'

-- case: options of a streaming engine for one use
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t /*+ OPTIONS('mode' = 'error') */ SELECT 1, 'x'

-- case: options and BY NAME
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t WITH (compression 'gzip') BY NAME SELECT 1 AS a

-- case: the path for one use
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t WITH ('path' = 'u') SELECT 1, 'x'

-- case: an unknown option for one use
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t WITH ('compresion' = 'gzip') SELECT 1, 'x'

-- case: WITH of a query
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t WITH c AS (SELECT 1, 'x') SELECT * FROM c

-- case: a query in parentheses
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t (SELECT 1, 'x')

-- case: TABLE as the query
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
INSERT INTO t TABLE k

-- case: FROM first
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
INSERT INTO t FROM k SELECT a, 'x'

-- case: a list of columns
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t (a, b) SELECT 1, 'x'

-- case: no query
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t

-- case: no INTO
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT t SELECT 1

-- case: no target
INSERT INTO

-- case: an unknown table
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO u SELECT 1

-- case: a table that is nearly right
CREATE TABLE orders (a INT) USING csv OPTIONS (path 'x');
INSERT INTO ordres SELECT 1

-- case: a view
CREATE VIEW v AS SELECT 1;
INSERT INTO v SELECT 1

-- case: a table of rows
CREATE TABLE r (a INT) USING inline OPTIONS (rows '[]');
INSERT INTO r SELECT 1

-- case: a table of a catalog
INSERT INTO c.d.t SELECT 1

-- case: a partition
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t PARTITION (a = 1) SELECT 'x'

-- case: what it reads
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t SELECT * FROM t

-- case: what it reads in the other dialect
CREATE TABLE a USING csv OPTIONS (path 'x');
CREATE TABLE b WITH ('connector' = 'csv', 'path' = '/base/x/');
INSERT INTO b SELECT * FROM a

-- case: what a view reads
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
CREATE VIEW v AS SELECT * FROM t;
CREATE VIEW w AS SELECT * FROM v;
INSERT OVERWRITE t SELECT * FROM w

-- case: a folder in which it reads
CREATE TABLE a USING csv OPTIONS (path 'x/y');
CREATE TABLE b USING csv OPTIONS (path 'x');
INSERT OVERWRITE b SELECT * FROM a

-- case: another folder with the same beginning
CREATE TABLE a USING csv OPTIONS (path 'x');
CREATE TABLE b USING csv OPTIONS (path 'xy');
INSERT OVERWRITE b SELECT * FROM a

-- case: the name is also one of the query
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
INSERT INTO t WITH t AS (SELECT 1, 'x') SELECT * FROM t

-- case: a table is read and later written
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
CREATE TABLE p USING print;
INSERT INTO p SELECT * FROM t;
INSERT INTO t SELECT 1, 'x'

-- case: BY NAME without columns
CREATE TABLE u USING csv OPTIONS (path 'x');
INSERT INTO u BY NAME SELECT 1 AS a

-- case: a table to print is read
CREATE TABLE p USING print;
SELECT * FROM p

-- case: the table `table`
CREATE TABLE `table` USING print;
INSERT INTO table SELECT 1

-- case: an INSERT in a query
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
FROM t INSERT INTO t SELECT 1

-- case: a WITH before INSERT
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c

-- case: a DELETE behind WITH
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
WITH c AS (SELECT 1) DELETE FROM t
