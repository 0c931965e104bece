CREATE TABLE orders (id INT, name STRING, customer INT, price DECIMAL(8, 2), day DATE, at TIMESTAMP, tags ARRAY<STRING>, place STRUCT<street: STRING>) USING json OPTIONS (path 'orders');
CREATE TABLE customers (id INT, city STRING) USING csv OPTIONS (path 'customers');
CREATE TABLE pairs (a INT, b INT) USING csv OPTIONS (path 'pairs');
CREATE TABLE files USING json OPTIONS (path 'files');
CREATE TABLE shown USING print;
----
SELECT nmae FROM orders
--> 1:8 unknown column 'nmae'; did you mean 'name'?
----
SELECT o.nmae FROM orders o
--> 1:10 'o' has no column 'nmae'; did you mean 'name'?
----
SELECT orders.name FROM orders o
--> 1:8 unknown table or alias 'orders'; known are o
----
SELECT id FROM orders JOIN customers ON orders.customer = customers.id
--> 1:8 column 'id' is ambiguous; write orders.id or customers.id
----
SELECT c.id, o.town FROM orders o JOIN customers c ON o.customer = c.id
--> 1:16 'o' has no column 'town'; known are id, name, customer, price, day, at, tags, place
----
SELECT o.id FROM orders o JOIN customers c ON o.customer = c.idd
--> 1:62 'c' has no column 'idd'; did you mean 'id'?
----
SELECT * FROM orders JOIN customers USING (id) WHERE twn = 'x'
--> 1:54 unknown column 'twn'; known are id, name, customer, price, day, at, tags, place, city
----
SELECT name FROM orders WHERE prise > 1 AND dya IS NULL
--> 1:31 unknown column 'prise'; did you mean 'price'?
--> 1:45 unknown column 'dya'; did you mean 'day'?
----
SELECT price * 2 AS twice FROM orders WHERE twice > 1
--> 1:45 unknown column 'twice'; did you mean 'price'?
----
SELECT day, sum(price) AS total FROM orders GROUP BY dya
--> 1:54 unknown column 'dya'; did you mean 'day'?
----
SELECT day, sum(price) AS total FROM orders GROUP BY day HAVING totl > 1
--> 1:65 unknown column 'totl'; did you mean 'total'?
----
SELECT day AS d FROM orders ORDER BY dd
--> 1:38 unknown column 'dd'; did you mean 'd'?
----
SELECT row_number() OVER (PARTITION BY custmer ORDER BY day) AS n FROM orders
--> 1:40 unknown column 'custmer'; did you mean 'customer'?
----
SELECT sum(price) OVER w FROM orders WINDOW w AS (PARTITION BY dday)
--> 1:64 unknown column 'dday'; did you mean 'day'?
----
SELECT CASE WHEN prce > 1 THEN 'a' ELSE 'b' END AS size FROM orders
--> 1:18 unknown column 'prce'; did you mean 'price'?
----
SELECT price FROM orders WHERE id IN (SELECT ident FROM customers)
--> 1:46 unknown column 'ident'; known are id, city
----
SELECT price FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.cust)
--> 1:83 'o' has no column 'cust'; did you mean 'customer'?
----
SELECT (SELECT max(city) FROM customers c WHERE c.id = o.customer AND c.zip = 1) FROM orders o
--> 1:73 'c' has no column 'zip'; known are id, city
----
SELECT total FROM (SELECT customer, sum(price) AS sum FROM orders GROUP BY customer) t
--> 1:8 unknown column 'total'; known are customer, sum
----
SELECT t.total FROM (SELECT customer, sum(price) AS sum FROM orders GROUP BY customer) t
--> 1:10 't' has no column 'total'; known are customer, sum
----
WITH big AS (SELECT id, price FROM orders WHERE price > 5) SELECT id, day FROM big
--> 1:71 unknown column 'day'; known are id, price
----
WITH big AS (SELECT id, prize FROM orders), small AS (SELECT id FROM big) SELECT id FROM small
--> 1:25 unknown column 'prize'; did you mean 'price'?
----
WITH big(a, b) AS (SELECT id, price FROM orders) SELECT a, price FROM big
--> 1:60 unknown column 'price'; known are a, b
----
CREATE VIEW v AS SELECT id, price AS amount FROM orders;
INSERT INTO shown SELECT id, price FROM v
--> 2:30 unknown column 'price'; known are id, amount
----
CREATE VIEW v AS SELECT * FROM orders;
CREATE VIEW w AS SELECT id, prce FROM v;
INSERT INTO shown SELECT * FROM w
--> 2:29 unknown column 'prce'; did you mean 'price'?
----
CREATE VIEW v AS SELECT o.id, c.id FROM orders o, customers c;
SELECT id FROM v
--> 2:8 column 'id' is ambiguous: 'v' has 2 columns of this name
----
CREATE VIEW v AS SELECT * EXCEPT (price) FROM orders;
SELECT id, price FROM v
--> 2:12 unknown column 'price'; did you mean 'place'?
----
SELECT id FROM orders UNION ALL SELECT id, city FROM customers
--> 1:40 UNION needs queries with the same number of columns, these have 1 and 2
----
SELECT id, price FROM orders EXCEPT SELECT id FROM customers
--> 1:44 EXCEPT needs queries with the same number of columns, these have 2 and 1
----
SELECT id FROM orders UNION SELECT idd FROM customers ORDER BY id
--> 1:36 unknown column 'idd'; did you mean 'id'?
----
INSERT INTO pairs SELECT id FROM orders
--> 1:19 the query has 1 column (id), table 'pairs' declares 2 (a, b)
----
INSERT INTO pairs SELECT id, price, day FROM orders
--> 1:19 the query has 3 columns (id, price, day), table 'pairs' declares 2 (a, b)
----
INSERT INTO pairs SELECT * FROM orders
--> 1:19 the query has 8 columns (id, name, customer, price, day, at, tags, place), table 'pairs' declares 2 (a, b)
----
INSERT INTO pairs VALUES (1, 2, 3)
--> 1:19 the query has 3 columns (col1, col2, col3), table 'pairs' declares 2 (a, b)
----
INSERT INTO pairs TABLE customers; INSERT INTO pairs TABLE orders
--> 1:54 the query has 8 columns (id, name, customer, price, day, at, tags, place), table 'pairs' declares 2 (a, b)
----
CREATE VIEW v AS SELECT 1 AS a, 2 AS b, 3 AS c;
INSERT INTO pairs SELECT * FROM v
--> 2:19 the query has 3 columns (a, b, c), table 'pairs' declares 2 (a, b)
----
INSERT INTO pairs BY NAME SELECT 1 AS a, 2 AS bb
--> 1:27 table 'pairs' declares no column 'bb'; did you mean 'b'?
--> 1:27 the query has no column 'b' for table 'pairs'; did you mean 'bb'?
----
INSERT INTO pairs BY NAME SELECT 1 AS a
--> 1:27 the query has no column 'b' for table 'pairs'
----
INSERT INTO pairs BY NAME SELECT 1 AS a, 2 AS b, 3 AS c
--> 1:27 table 'pairs' declares no column 'c'
----
INSERT INTO pairs BY NAME SELECT 1 AS a, 2 AS b, 3 AS A
--> 1:27 the query gives column 'a' more than once
----
INSERT INTO pairs (a, b) SELECT 1, 2
--> 1:19 expected a query (SELECT, WITH, VALUES, FROM or TABLE); a list of columns is not supported here, use BY NAME, found '('
----
INSERT INTO pairs (a) VALUES (1)
--> 1:19 expected a query (SELECT, WITH, VALUES, FROM or TABLE); a list of columns is not supported here, use BY NAME, found '('
----
INSERT INTO files SELECT o.id, c.id FROM orders o JOIN customers c ON o.customer = c.id
--> 1:19 the query gives column 'id' more than once; give one of them another name with AS
----
INSERT OVERWRITE files SELECT *, price AS day FROM orders
--> 1:24 the query gives column 'day' more than once; give one of them another name with AS
----
INSERT INTO shown SELECT id FROM orders INSERT INTO shown SELECT idd FROM orders
--> 1:40 missing ';' before INSERT
--> 1:66 unknown column 'idd'; did you mean 'id'?
----
SET spark.sql.shufle.partitions = 4;
SELECT id FROM orders
--> 1:5 Spark has no setting 'spark.sql.shufle.partitions'; did you mean 'spark.sql.shuffle.partitions'?
----
EXECUTE STATEMENT SET BEGIN
INSERT INTO shown SELECT idd FROM orders;
INSERT INTO pairs SELECT 1;
END
--> 2:26 unknown column 'idd'; did you mean 'id'?
--> 3:19 the query has 1 column (...), table 'pairs' declares 2 (a, b)
----
EXECUTE STATEMENT SET BEGIN
INSERT INTO cat.db.t SELECT idd FROM orders;
INSERT INTO cat.db.u SELECT nme FROM orders;
END
--> 2:29 unknown column 'idd'; did you mean 'id'?
--> 3:29 unknown column 'nme'; did you mean 'name'?
----
EXPLAIN SELECT nme FROM orders
--> 1:16 unknown column 'nme'; did you mean 'name'?
----
EXPLAIN INSERT INTO pairs SELECT id FROM orders
--> 1:27 the query has 1 column (id), table 'pairs' declares 2 (a, b)
----
ASSERT (SELECT count(*) FROM orders WHERE prise > 1) = 0, 'message'
--> 1:43 unknown column 'prise'; did you mean 'price'?
----
ASSERT total > 1
--> 1:8 unknown column 'total': the query reads no table
----
SELECT TUMBLE_START(att, INTERVAL '1' DAY) AS d FROM orders GROUP BY TUMBLE(at, INTERVAL '1' DAY)
--> 1:21 unknown column 'att'; did you mean 'at'?
----
SELECT transform(tags, x -> concat(x, nmae)) FROM orders
--> 1:39 unknown column 'nmae'; did you mean 'name'?
----
SELECT filter(tags, t -> t = tagg) FROM orders
--> 1:30 unknown column 'tagg'; did you mean 'tags'?
----
SELECT place.street, placee.street FROM orders
--> 1:22 unknown table or alias 'placee'; did you mean 'place'?
----
FROM orders SELECT idd
--> 1:20 unknown column 'idd'; did you mean 'id'?
----
SELECT x FROM (VALUES (1, 2)) AS t(a, b)
--> 1:8 unknown column 'x'; known are a, b
----
SELECT a, c FROM VALUES (1, 2) AS t(a, b)
--> 1:11 unknown column 'c'; known are a, b
----
CREATE TABLE t (a INT, b AS aa + 1) USING csv OPTIONS (path 't');
SELECT * FROM t
--> 1:29 unknown column 'aa'; did you mean 'a'?
----
CREATE TABLE t (a INT, b AS c + 1, c AS a + 1) USING csv OPTIONS (path 't');
SELECT * FROM t
--> 1:29 'c' is computed later; declare it before the columns that use it
----
CREATE TABLE t (a INT, CONSTRAINT ok EXPECT (aa > 0) ON VIOLATION FAIL) USING csv OPTIONS (path 't');
SELECT * FROM t
--> 1:46 unknown column 'aa'; did you mean 'a'?
----
CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (z * 2)) USING csv OPTIONS (path 't');
SELECT a, d FROM t
--> 1:51 unknown column 'z'; known are a
--> 2:11 unknown column 'd'; known are a, b
----
SELECT `na me`, `price` FROM orders
--> 1:8 unknown column 'na me'; did you mean 'name'?
----
SELECT o.* , z.id FROM orders o
--> 1:14 unknown table or alias 'z'; known are o
----
SELECT '${day:-x}' AS d, ${column:-idd} FROM orders
--> 1:26 unknown column 'idd'; did you mean 'id'?
----
SELECT idd,
       -- a comment
       price, /* another */ dayy
FROM orders
--> 1:8 unknown column 'idd'; did you mean 'id'?
--> 3:29 unknown column 'dayy'; did you mean 'day'?
----
SELECT HOP_START(at, INTERVAL '1' DAY, INTERVAL '1' HOUR) FROM orders GROUP BY HOP(at, INTERVAL '1' DAY, INTERVAL '1' HOUR)
--> 1:8 the slide of HOP is longer than its size, so rows would be in no window; write HOP(column, slide, size)
----
SELECT count(*) FROM orders GROUP BY TUMBLE(at, INTERVAL '0' SECOND)
--> 1:49 the length of a window must be more than 0
----
SELECT count(*) FROM orders GROUP BY SESSION(at, INTERVAL '0.0' SECOND)
--> 1:50 the length of a window must be more than 0
----
CREATE TABLE t USING csv OPTIONS (path 't', mode '${secret}');
SELECT * FROM t
--> 1:50 option 'mode' of connector 'csv' cannot be '${secret}': Input should be 'append' or 'error'
----
SET job.mode = 'x${secret}'
--> 1:16 job.mode cannot be 'x${secret}'; this version has batch, available-now, streaming
----
CREATE TABLE t USING csv OPTIONS (pth 't');
SELECT id, nmae FROM t; SELECT idd FROM orders
--> 1:35 unknown option 'pth' of connector 'csv'; did you mean 'path'?
--> 2:32 unknown column 'idd'; did you mean 'id'?
----
CREATE OR REPLACE TABLE orders (a INT) USING csv OPTIONS (path 'a');
SELECT price FROM orders
--> 2:8 unknown column 'price'; known are a
----
INSERT INTO shwn SELECT idd FROM orders
--> 1:13 unknown table 'shwn'; did you mean 'shown'?
--> 1:25 unknown column 'idd'; did you mean 'id'?
----
SELECT date_add(dat, 1), upper(nam) FROM orders JOIN customers ON true
--> 1:17 unknown column 'dat'; did you mean 'at'?
--> 1:32 unknown column 'nam'; did you mean 'name'?
----
SELECT nam FROM customers LEFT SEMI JOIN orders ON orders.customer = customers.idd
--> 1:8 unknown column 'nam'; did you mean 'name'?
--> 1:80 'customers' has no column 'idd'; did you mean 'id'?
----
SELECT count(DISTINCT cusomer) FILTER (WHERE price > lmit) FROM orders
--> 1:23 unknown column 'cusomer'; did you mean 'customer'?
--> 1:54 unknown column 'lmit'; known are id, name, customer, price, day, at, tags, place
----
SELECT max_by(day, prize) AS d, map('a', idd)['a'], array(iddd)[0] FROM orders
--> 1:20 unknown column 'prize'; did you mean 'price'?
--> 1:42 unknown column 'idd'; did you mean 'id'?
--> 1:59 unknown column 'iddd'; did you mean 'id'?
----
SELECT s.n FROM (SELECT id AS m FROM orders) AS s
--> 1:10 's' has no column 'n'; known are m
----
INSERT INTO cat.db.t SELECT nmae FROM orders
--> 1:29 unknown column 'nmae'; did you mean 'name'?
----
MERGE INTO cat.db.t USING order o ON o.id = t.id WHEN MATCHED THEN DELETE
--> 1:27 unknown table or view 'order'; did you mean 'orders'?
----
INSERT INTO cat.db.t SELECT * FROM cat.db.t
--> 1:13 refused: this INSERT reads 'cat.db.t', and writes to 'cat.db.t'
----
INSERT INTO cat.db.copy SELECT * FROM cat.db.t; INSERT OVERWRITE cat.db.t SELECT id FROM orders
--> 1:66 refused: this INSERT replaces the rows of 'cat.db.t', and an earlier statement writes rows that it reads from 'cat.db.t': a further attempt would not find the same rows; use two jobs
----
CREATE TABLE ticks (value BIGINT) USING rate OPTIONS (rows_per_second 10);
SELECT * FROM ticks
--> 2:15 table 'ticks' of connector 'rate' has no end, and mode 'batch' reads all rows; an INSERT in mode 'available-now' or 'streaming' can read it
----
CREATE TABLE ticks (value BIGINT) USING rate OPTIONS (rows_per_sec 10);
INSERT INTO shown SELECT value FROM ticks
--> 1:55 unknown option 'rows_per_sec' of connector 'rate'; did you mean 'rows_per_second'?
----
CREATE TABLE ticks (value BIGINT) USING rate;
INSERT INTO shown SELECT valu FROM ticks
--> 2:26 unknown column 'valu'; did you mean 'value'?
----
SET job.trigger = '10 secs';
SELECT * FROM pairs
--> 1:5 'job.trigger' needs job.mode 'streaming', and this script has mode 'batch'
----
SET job.trigger = '10'
--> 1:19 'job.trigger' cannot be '10'; it is a number and a unit, such as '10 seconds'
----
CREATE TEMPORARY FUNCTION slug AS 'shop.slug' LANGUAGE PYTHON; SELECT slug(nmae) FROM orders
--> 1:76 unknown column 'nmae'; did you mean 'name'?
----
CREATE FUNCTION slug AS 'shop.slug'; SELECT slug(name) FROM orders
--> 1:8 write CREATE TEMPORARY FUNCTION: a function ends with the script
----
CREATE TEMPORARY FUNCTION slug AS 'os.system'; SELECT slug(name) FROM orders
--> 1:35 'os' is a module of Python itself; a function is in a Python file of the job (`spark.py_files` of the definition)
----
CREATE TEMPORARY FUNCTION trim AS 'shop.trim'; SELECT trim(name) FROM orders
--> 1:27 Spark has a function 'trim', and would call that one; choose another name
----
SET job.quarantine = bad;
CREATE TABLE ticks (value BIGINT) USING rate;
CREATE TABLE bad (record STRING) USING json OPTIONS (path 'bad', streaming 'false');
INSERT INTO shown SELECT value FROM ticks JOIN bad ON record = 'x'
--> 1:1 table 'bad' takes the rows that do not fit, and in mode 'available-now' no INSERT of the same script can read it; use two jobs
----
CREATE TABLE ticks (value BIGINT) USING rate;
EXECUTE STATEMENT SET BEGIN INSERT INTO shown SELECT value FROM ticks; INSERT INTO shown SELECT valu FROM ticks LIMIT 5; END
--> 2:97 unknown column 'valu'; did you mean 'value'?
--> 2:113 LIMIT 5 needs rows of earlier micro-batches, which no INSERT of a statement set has in mode 'available-now'; write this INSERT outside of the set
----
CREATE TABLE s (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' MINUTS) USING json OPTIONS (path 's'); SELECT at FROM s
--> 1:69 unknown unit 'MINUTS'; did you mean 'MINUTE'?
----
CREATE TABLE s (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '-5' MINUTE) USING json OPTIONS (path 's'); SELECT at FROM s
--> 1:56 the interval of a watermark is negative; it says how late rows may be
----
CREATE TABLE s (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL -1 DAY) USING json OPTIONS (path 's'); SELECT at FROM s
--> 1:56 the interval of a watermark is negative; it says how late rows may be
----
CREATE TABLE s (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 minuts') USING json OPTIONS (path 's'); SELECT at FROM s
--> 1:65 '5 minuts' is no interval; did you mean 'MINUTE'?
----
CREATE TABLE s (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5') USING json OPTIONS (path 's'); SELECT at FROM s
--> 1:65 '5' is no interval; write it like INTERVAL '5' MINUTE, or '5 minutes'
----
CREATE TABLE s (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1.5' MINUTE) USING json OPTIONS (path 's'); SELECT at FROM s
--> 1:71 only SECOND has a decimal point in an interval; write it like INTERVAL '5' MINUTE, or '5 minutes'
----
CREATE TABLE s (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 YEAR 2 DAYS) USING json OPTIONS (path 's'); SELECT at FROM s
--> 1:72 an interval has years and months, or shorter units; write it like INTERVAL '5' MINUTE, or '5 minutes'
----
CREATE TABLE s (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1' SECOND TO DAY) USING json OPTIONS (path 's'); SELECT at FROM s
--> 1:69 INTERVAL has no SECOND TO DAY; write it like INTERVAL '5' MINUTE, or '5 minutes'
----
CREATE TABLE s (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' MINUTE * 2) USING json OPTIONS (path 's'); SELECT at FROM s
--> 1:76 * is no interval; write it like INTERVAL '5' MINUTE, or '5 minutes'
----
CREATE TABLE s (a INT, b STRNG) USING json OPTIONS (path 's'); SELECT a FROM s
--> 1:26 unknown type 'STRNG'; did you mean 'STRING'?
----
CREATE TABLE s (a INT, b ARRAY<STRUCT<x: INTT>>) USING json OPTIONS (path 's'); SELECT a FROM s
--> 1:42 unknown type 'INTT'; did you mean 'INT'?
----
CREATE TABLE s (a INT, b DATETIME) USING json OPTIONS (path 's'); SELECT a FROM s
--> 1:26 unknown type 'DATETIME'; write TIMESTAMP
----
CREATE TABLE s (a INT, b VARCHAR) USING json OPTIONS (path 's'); SELECT a FROM s
--> 1:26 type VARCHAR needs a length, as in VARCHAR(10); STRING has no limit
----
CREATE TABLE s (a INT(5)) USING json OPTIONS (path 's'); SELECT a FROM s
--> 1:22 type INT has no parameter; write INT
----
CREATE TABLE s (a DECIMAL(5, 6)) USING json OPTIONS (path 's'); SELECT a FROM s
--> 1:30 a DECIMAL cannot have more digits behind the point than it has digits
----
CREATE TABLE s (a INT, b ARRAY) USING json OPTIONS (path 's'); SELECT a FROM s
--> 1:26 ARRAY needs the types of its elements, as in ARRAY<INT>
----
CREATE TABLE s (a INT, b MAP<INT>) USING json OPTIONS (path 's'); SELECT a FROM s
--> 1:33 MAP has the types of its keys and values
----
CREATE TABLE s (a INT, f STRNG METADATA FROM 'file_name') USING json OPTIONS (path 's'); SELECT a FROM s
--> 1:26 unknown type 'STRNG'; did you mean 'STRING'?
----
CREATE TEMPORARY FUNCTION slug AS 'shop.slug' RETURNS STRNG; SELECT slug(name) FROM orders
--> 1:55 unknown type 'STRNG'; did you mean 'STRING'?
----
SELECT slug(name) FROM orders;
CREATE TEMPORARY FUNCTION slug AS 'shop.slug'
--> 2:27 function 'slug' is called before its declaration, in line 6; move the declaration up, or write CREATE OR REPLACE if the platform offers a function of this name, too
----
SELECT count(*) FROM orders GROUP BY HOP(at, INTERVAL '10' MINUTE, INTERVAL '5' MINUTE)
--> 1:38 the slide of HOP is longer than its size, so rows would be in no window; write HOP(column, slide, size)
----
SELECT count(*) FROM orders GROUP BY TUMBLE(at, INTERVAL '0' MINUTE)
--> 1:49 the length of a window must be more than 0
----
SELECT count(*) FROM orders GROUP BY window(at, '5 minuts')
--> 1:49 '5 minuts' is no interval; did you mean 'MINUTE'?
----
SELECT count(*) FROM orders GROUP BY window(at, '0 minutes')
--> 1:49 the length of a window must be more than 0
----
SELECT count(*) FROM orders GROUP BY window(at, '5 minutes', '10 minutes')
--> 1:62 the slide of a window is longer than its size; write window(column, size, slide)
----
SELECT count(*) FROM orders GROUP BY window(at, '5 minutes', '5 minutes', '5 minutes')
--> 1:75 the start of a window must be less than its slide
----
SELECT count(*) FROM orders GROUP BY window(at, '1 month')
--> 1:49 a window has a fixed length; months and years have none
----
SELECT count(*) FROM orders GROUP BY session_window(at, '-1 hour')
--> 1:57 the length of a window must be more than 0
----
CREATE TABLE s (a INT, x AS y + 1, y AS a + 1) USING json OPTIONS (path 's'); SELECT x FROM s
--> 1:29 'y' is computed later; declare it before the columns that use it
----
SET s3.access-key = 'x'; SELECT id FROM orders
--> 1:5 unknown setting 's3.access-key'; settings of Spark start with 'spark.'
----
SET foo.bar = 1; SELECT id FROM orders
--> 1:5 unknown setting 'foo.bar'; settings of Spark start with 'spark.'
----
SET jobs.mode = batch; SELECT id FROM orders
--> 1:5 unknown setting 'jobs.mode'; did you mean 'job.mode'?
----
SET spark.executor.memory = '4g'; SELECT id FROM orders
--> 1:5 'spark.executor.memory' cannot change while Spark runs; write it in `conf` of the definition
----
SET spark.hadoop.my.own = '1'; SELECT id FROM orders
--> 1:5 'spark.hadoop.my.own' has no effect while Spark runs, which removes 'spark.hadoop.' at its start alone; write 'spark.hadoop.my.own' in `conf` of the definition
----
CREATE TABLE s (a INT) USING csv OPTIONS (path 's', header '${secret}'); SELECT a FROM s
--> 1:60 option 'header' of connector 'csv' cannot be '${secret}': Input should be a valid boolean, unable to interpret input
----
SELECT name FROM orders WITH ('max_files_per_trigger' = '${secret}')
--> 1:57 option 'max_files_per_trigger' of connector 'json' cannot be '${secret}': Input should be a valid integer, unable to parse string as an integer
----
SELECT id FROM ordrs JOIN nosuch USING (id)
--> 1:16 unknown table or view 'ordrs'; did you mean 'orders'?
--> 1:27 unknown table or view 'nosuch'; declare it before
----
CREATE VIEW v AS SELECT * FROM later; ASSERT (SELECT count(*) FROM gone) = 1; EXPLAIN SELECT * FROM `no way`; TABLE nowhere; SELECT 1 WHERE EXISTS (SELECT * FROM gone2 TABLESAMPLE (10 PERCENT)); SELECT * FROM v
--> 1:32 unknown table or view 'later'; declare it before
--> 1:68 unknown table or view 'gone'; declare it before
--> 1:101 unknown table or view 'no way'; declare it before
--> 1:117 unknown table or view 'nowhere'; declare it before
--> 1:163 unknown table or view 'gone2'; declare it before
----
CREATE VIEW v AS WITH inner_one AS (SELECT 1 AS n) SELECT n FROM inner_one; SELECT * FROM inner_one, v
--> 1:91 unknown table or view 'inner_one'; declare it before
----
CREATE TABLE broken n INT USING csv; SELECT * FROM broken JOIN brokn
--> 1:21 expected USING connector OPTIONS (...) or WITH ('connector' = '...', ...), found 'n'
--> 1:64 unknown table or view 'brokn'; did you mean 'broken'?
----
SELECT id FROM ordrs
--> 1:16 unknown table or view 'ordrs'; did you mean 'orders'?
----
TABLE nosuch
--> 1:7 unknown table or view 'nosuch'; declare it before
----
SELECT o.id FROM orders o JOIN custmers c ON o.customer = c.id WHERE EXISTS (SELECT 1 FROM pars WHERE a = o.id)
--> 1:32 unknown table or view 'custmers'; did you mean 'customers'?
--> 1:92 unknown table or view 'pars'; did you mean 'pairs'?
----
WITH some AS (SELECT id FROM nosuch), more AS (SELECT id FROM some) SELECT id FROM mre
--> 1:30 unknown table or view 'nosuch'; declare it before
--> 1:84 unknown table or view 'mre'; did you mean 'more'?
----
SELECT id FROM later; CREATE VIEW later AS SELECT id FROM orders; INSERT INTO shown SELECT id FROM later
--> 1:16 unknown table or view 'later'; declare it before
----
SELECT q.id FROM (SELECT id FROM `a.b`) AS q
--> 1:34 unknown table or view 'a.b'; declare it before
