-- case: parquet
CREATE TABLE t USING parquet OPTIONS (path 'x'); INSERT INTO t SELECT 1 AS a

-- case: an option without quotes
CREATE TABLE t USING csv OPTIONS (path 'x', header false, delimiter ';', null_value '-', compression gzip); SELECT * FROM t

-- case: csv with all its options in quotes
CREATE TABLE t USING csv OPTIONS (path 'x', header 'false', delimiter ';', null_value '-', compression 'gzip', mode 'error', partition_by 'a, b'); SELECT * FROM t

-- case: json
CREATE TABLE t USING JSON OPTIONS (path = 'x'); SELECT * FROM t

-- case: print with a limit
CREATE TABLE t USING print OPTIONS (limit 3); INSERT INTO t SELECT 1

-- case: inline
CREATE TABLE t (a INT, b STRING) USING inline OPTIONS (rows '[[1, "x"], [2, null]]'); SELECT * FROM t

-- case: an absolute path
CREATE TABLE t USING csv OPTIONS (path '/data/x'); SELECT * FROM t

-- case: an address
CREATE TABLE t USING csv OPTIONS (path 's3a://bucket/x'); SELECT * FROM t

-- case: a path with parts of its own
CREATE TABLE t USING csv OPTIONS (path './a/../b/'); SELECT * FROM t

-- case: a path with a pattern
CREATE TABLE t USING csv OPTIONS (path 'in/*.csv'); SELECT * FROM t

-- case: a path with a space and a quote
CREATE TABLE t USING csv OPTIONS (path 'it''s a'); SELECT * FROM t

-- case: a temporary table that replaces another
CREATE TEMPORARY TABLE t USING csv OPTIONS (path 'x'); CREATE OR REPLACE TEMPORARY TABLE t USING csv OPTIONS (path 'y'); SELECT * FROM t

-- case: a quoted name
CREATE TABLE `my table` USING csv OPTIONS (path 'x'); SELECT * FROM `my table`

-- case: a quoted name with a back-tick
CREATE TABLE `a``b` USING csv OPTIONS (path 'x'); SELECT * FROM `a``b`

-- case: names ignore case
CREATE TABLE Orders USING csv OPTIONS (path 'x'); SELECT * FROM ORDERS

-- case: a name that is a word of SQL
CREATE TABLE table USING csv OPTIONS (path 'x'); SELECT * FROM table

-- case: names of other letters ignore case
CREATE TABLE größe USING csv OPTIONS (path 'x'); SELECT * FROM GRÖßE

-- case: a sharp s is not two letters
CREATE TABLE größe USING csv OPTIONS (path 'x'); SELECT * FROM GRÖSSE

-- case: the name is a word of the statement
CREATE TABLE using USING print; INSERT INTO using SELECT 1

-- case: no connector
CREATE TABLE t

-- case: no connector but columns
CREATE TABLE t (a INT);

-- case: no name
CREATE TABLE

-- case: no name but columns
CREATE TABLE (a INT) USING csv

-- case: a string as the name
CREATE TABLE 't' USING csv

-- case: a name of two parts
CREATE TABLE db.t USING print

-- case: a table without options
CREATE TABLE t USING csv; SELECT * FROM t

-- case: words behind the options
CREATE TABLE t USING csv OPTIONS (path 'x') PARTITIONED BY (a)

-- case: words behind the connector
CREATE TABLE t USING csv LOCATION 'x'

-- case: a query behind the table
CREATE TABLE t USING csv OPTIONS (path 'x') AS SELECT 1

-- case: IF NOT EXISTS
CREATE TABLE IF NOT EXISTS t USING print

-- case: EXTERNAL
CREATE EXTERNAL TABLE t USING print

-- case: CREATE of something else
CREATE FUNCTION f AS 'x'

-- case: CREATE alone
CREATE

-- case: the columns are not closed
CREATE TABLE t (a INT USING csv OPTIONS (path 'x')

-- case: the options are not closed
CREATE TABLE t USING csv OPTIONS (path 'x'

-- case: no options in the parentheses
CREATE TABLE t USING csv OPTIONS ()

-- case: a comma too many
CREATE TABLE t USING csv OPTIONS (path 'x',)

-- case: a comma too few
CREATE TABLE t USING csv OPTIONS (path 'x' header true)

-- case: an option without value
CREATE TABLE t USING csv OPTIONS (path)

-- case: a word as a value
CREATE TABLE t USING csv OPTIONS (path x)

-- case: an option given twice
CREATE TABLE t USING csv OPTIONS (path 'x',
  PATH 'y')

-- case: an unknown connector
CREATE TABLE t USING parqet OPTIONS (path 'x')

-- case: a connector that is far from all
CREATE TABLE t USING mysql OPTIONS (path 'x')

-- case: an unknown option
CREATE TABLE t USING csv OPTIONS (path 'x', hedaer false)

-- case: an option that is far from all
CREATE TABLE t USING csv OPTIONS (path 'x', zzz 1)

-- case: an option of another connector
CREATE TABLE t USING parquet OPTIONS (path 'x', header true)

-- case: two unknown options and a wrong value
CREATE TABLE t USING csv OPTIONS (pth 'x', hedaer false, mode 'no')

-- case: a value that is no boolean
CREATE TABLE t USING csv OPTIONS (path 'x', header 'maybe')

-- case: a value that is none of the choices
CREATE TABLE t USING csv OPTIONS (path 'x', compression 'zip')

-- case: a delimiter of two characters
CREATE TABLE t USING csv OPTIONS (path 'x', delimiter '||')

-- case: a delimiter that is a tab
CREATE TABLE t USING csv OPTIONS (path 'x', delimiter '\t'); SELECT * FROM t

-- case: an empty path
CREATE TABLE t USING csv OPTIONS (path '')

-- case: the mode overwrite
CREATE TABLE t USING csv OPTIONS (path 'x', mode 'overwrite')

-- case: a limit that is no number
CREATE TABLE t USING print OPTIONS (limit 'few')

-- case: a limit below one
CREATE TABLE t USING print OPTIONS (limit 0)

-- case: a negative limit
CREATE TABLE t USING print OPTIONS (limit -1)

-- case: a limit above the highest
CREATE TABLE t USING print OPTIONS (limit 10001)

-- case: an option key with dots
CREATE TABLE t USING csv OPTIONS (path 'x', a.b.c 1)

-- case: an option key in back-ticks
CREATE TABLE t USING csv OPTIONS (`path` 'x'); SELECT * FROM t

-- case: keys ignore case, dashes and underscores
CREATE TABLE t USING csv OPTIONS (Path 'x', nullValue '-', `null-value` '+'); SELECT * FROM t

-- case: rows that are no JSON
CREATE TABLE t (a INT) USING inline OPTIONS (rows '[[1')

-- case: rows that are no lists
CREATE TABLE t (a INT) USING inline OPTIONS (rows '[1, 2]')

-- case: a row of another length
CREATE TABLE t (a INT, b INT) USING inline OPTIONS (rows '[[1, 2], [3]]')

-- case: rows without columns
CREATE TABLE t USING inline OPTIONS (rows '[[1]]')

-- case: no rows
CREATE TABLE t (a INT) USING inline

-- case: partitions by an unknown column
CREATE TABLE t (day STRING, n INT) USING parquet OPTIONS (path 'x', partition_by 'dya')

-- case: partitions by a column
CREATE TABLE t (day STRING, n INT) USING parquet OPTIONS (path 'x', partition_by 'day'); INSERT INTO t SELECT 'a', 1

-- case: a name declared twice
CREATE TABLE t USING csv OPTIONS (path 'x');
CREATE TABLE T USING csv OPTIONS (path 'y');

-- case: a control character in a name
CREATE TABLE `a<U+001B>b` USING csv OPTIONS (pth 'x')

-- case: a control character in an unknown option
CREATE TABLE t USING csv OPTIONS (path 'x', 'a<U+0007>b' 1)

-- case: a null character in a path
CREATE TABLE t USING csv OPTIONS (path 'a<U+0000>b'); SELECT * FROM t

-- case: a table whose rows clients fetch
CREATE TABLE t (a INT) WITH ('connector' = 'poll', 'token' = '${secret:shop/token}', 'order_by' = 'a');
INSERT INTO t SELECT 1

-- case: a table whose rows clients of other hosts fetch without TLS
CREATE TABLE t (a INT) WITH ('connector' = 'poll', 'token' = '${secret:shop/token}', 'host' = '0.0.0.0');
INSERT INTO t SELECT 1

-- case: a table whose rows clients fetch, overwritten
CREATE TABLE t (a INT) WITH ('connector' = 'poll', 'token' = '${secret:shop/token}');
INSERT OVERWRITE t SELECT 1

-- case: a query of a table whose rows clients fetch
CREATE TABLE t (a INT) WITH ('connector' = 'poll', 'token' = '${secret:shop/token}');
SELECT * FROM t

-- case: a primary key of a table whose rows clients fetch
CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'poll', 'token' = '${secret:shop/token}');
INSERT INTO t SELECT 1
