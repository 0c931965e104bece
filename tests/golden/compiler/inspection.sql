-- case: ASSERT
ASSERT 1 = 1

-- case: ASSERT with a message
ASSERT (SELECT count(*) FROM VALUES (1)) = 1, 'it''s one'

-- case: ASSERT with a comma in parentheses
ASSERT coalesce(1, 2) = 1

-- case: ASSERT with a comma and no message
ASSERT 1 = 1, 2

-- case: ASSERT without condition
ASSERT

-- case: ASSERT with only a message
ASSERT , 'x'

-- case: ASSERT with a message of two strings
ASSERT true, 'a' 'b'

-- case: ASSERT reads a table
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
ASSERT (SELECT count(*) FROM k) > 0

-- case: ASSERT of a string that holds a comma
ASSERT 'a,b' = 'a,b', 'x'

-- case: EXPLAIN
EXPLAIN SELECT 1

-- case: EXPLAIN EXTENDED
EXPLAIN EXTENDED SELECT 1

-- case: EXPLAIN FORMATTED
explain formatted VALUES (1)

-- case: EXPLAIN COST
EXPLAIN COST TABLE x

-- case: EXPLAIN CODEGEN
EXPLAIN CODEGEN (SELECT 1)

-- case: EXPLAIN of an INSERT
CREATE TABLE t (a INT, b STRING) USING parquet OPTIONS (path 't');
EXPLAIN INSERT OVERWRITE t SELECT 1, 'x'

-- case: EXPLAIN of an INSERT into an unknown table
EXPLAIN INSERT INTO t SELECT 1

-- case: EXPLAIN of a statement set
EXPLAIN STATEMENT SET BEGIN INSERT INTO t SELECT 1; END

-- case: EXPLAIN of nothing
EXPLAIN

-- case: EXPLAIN of another statement
EXPLAIN CREATE VIEW v AS SELECT 1

-- case: EXPLAIN PLAN FOR
EXPLAIN PLAN FOR SELECT 1

-- case: CACHE TABLE
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
CACHE TABLE k;
SELECT * FROM k

-- case: CACHE LAZY TABLE
CREATE VIEW v AS SELECT 1;
CACHE LAZY TABLE V;
SELECT * FROM v

-- case: UNCACHE TABLE
CREATE TABLE k (a INT) USING csv OPTIONS (path 'k');
CACHE TABLE k; SELECT * FROM k; UNCACHE TABLE k

-- case: UNCACHE of an unknown table
UNCACHE TABLE k; SELECT 1

-- case: UNCACHE of an unknown table with IF EXISTS
UNCACHE TABLE IF EXISTS k; SELECT 1

-- case: CACHE of a name that is nearly right
CREATE VIEW orders AS SELECT 1;
CACHE TABLE oders; SELECT * FROM orders

-- case: CACHE with a query
CACHE TABLE v AS SELECT 1

-- case: CACHE without TABLE
CACHE k

-- case: CACHE of a table to print
CREATE TABLE p USING print;
CACHE TABLE p

-- case: CACHE of a name of two parts
CACHE TABLE c.t
