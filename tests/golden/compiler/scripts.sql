-- case: nothing


-- case: only comments
-- nothing
/* here */

-- case: only declarations
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');


-- case: only settings
SET spark.a = 1;

-- case: errors of several statements
DROP TABLE x;
CREATE TABLE t USING cvs;
INSERT INTO u SELECT 1;
SELECT ${n}

-- case: a declaration with an error is no second error
CREATE TABLE t USING cvs;
INSERT INTO t SELECT * FROM t;
SELECT * FROM t

-- case: a view with an error is no second error
CREATE VIEW v AS DELETE FROM t;
SELECT * FROM v; CACHE TABLE v

-- case: an error before an open quote
DROP TABLE x;
SELECT 'a

-- case: an open comment
SELECT 1;
/* a

-- case: at most 20 errors
DROP TABLE t0;
DROP TABLE t1;
DROP TABLE t2;
DROP TABLE t3;
DROP TABLE t4;
DROP TABLE t5;
DROP TABLE t6;
DROP TABLE t7;
DROP TABLE t8;
DROP TABLE t9;
DROP TABLE t10;
DROP TABLE t11;
DROP TABLE t12;
DROP TABLE t13;
DROP TABLE t14;
DROP TABLE t15;
DROP TABLE t16;
DROP TABLE t17;
DROP TABLE t18;
DROP TABLE t19;
DROP TABLE t20;
DROP TABLE t21;
DROP TABLE t22;
DROP TABLE t23;
DROP TABLE t24;

-- case: unused tables and views
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
CREATE VIEW v AS SELECT * FROM k;
SELECT 1

-- case: lines of Windows
SELECT 1;<U+000D>
  DROP TABLE x;<U+000D>


-- case: a byte order mark
<U+FEFF>DROP TABLE x

-- case: a tab before an error
<U+0009>DROP TABLE x

-- case: wide letters before an error
SELECT '日本😀'; DROP TABLE x

-- case: an unknown word
SELCT 1

-- case: a misspelt word behind CREATE
CREATE TABEL t (a INT) USING print

-- case: a misspelt INSERT
INSRT INTO t SELECT 1

-- case: a word of a later statement behind CREATE
CREATE INDEX i

-- case: a statement of a later version
CREATE FUNCTION f AS 'a.b'; MERGE INTO t USING s ON true; USE CATALOG c; SELECT 1

-- case: a word with a control character
DR<U+0007>OP x

-- case: a string first
'a'

-- case: an escape character in a table
INSERT INTO `a<U+001B>[31mb` SELECT 1

-- case: 200 parentheses
SELECT ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))

-- case: 201 parentheses
SELECT (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))

-- case: parentheses of different kinds
SELECT array(1, 2]

-- case: a parenthesis in a setting
SET spark.a = (;
SELECT 1

-- case: parentheses in strings and comments
SELECT '(', `)`, /* ( */ "[" -- )

-- case: the innermost open parenthesis
ASSERT (1 + (2 = 3

-- case: a parenthesis is not closed
SELECT (1

-- case: a parenthesis is not opened
SELECT 1)
