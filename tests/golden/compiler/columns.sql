-- case: types with arguments
CREATE TABLE t (a DECIMAL(8, 2), b ARRAY<STRUCT<c: INT, d: MAP<STRING, INT>>>, e VARCHAR(3)) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: NOT NULL and comments
CREATE TABLE t (a INT NOT NULL, b STRING COMMENT 'it''s, (b)', c INT NOT NULL COMMENT 'c' 'd') USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: quoted names
CREATE TABLE t (`a b` INT, `c``d` INT, `e.f` INT) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: names that are words of SQL
CREATE TABLE t (metadata INT, watermark INT, primary INT, constraint INT, comment INT) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: a colon before the type
CREATE TABLE t (a: INT) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: comments between columns
CREATE TABLE t (a INT, -- first
  /* second */ b INT
) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: a computed column
CREATE TABLE t (a INT, b AS a + 1) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: a computed column with a comma in parentheses
CREATE TABLE t (a INT, b AS coalesce(a, 1), c INT) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: a generated column
CREATE TABLE t (a INT, b BIGINT GENERATED ALWAYS AS (a * 2) COMMENT 'twice') USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: the current time as a column
CREATE TABLE t (a INT, now AS PROCTIME()) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: metadata
CREATE TABLE t (a INT, f STRING METADATA FROM 'file_name', file_path STRING METADATA) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: metadata with a dot, VIRTUAL and a comment
CREATE TABLE t (a INT, f STRING METADATA FROM 'file.size' VIRTUAL COMMENT 'x') USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: an expectation
CREATE TABLE t (a INT, CONSTRAINT c EXPECT (a > 0 AND a < 9) ON VIOLATION FAIL) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: an expectation with FAIL UPDATE
CREATE TABLE t (CONSTRAINT c EXPECT (a > 0) ON VIOLATION FAIL UPDATE, a INT) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: an expectation that drops rows
CREATE TABLE t (a INT, CONSTRAINT c EXPECT (a > 0) ON VIOLATION DROP ROW) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: an expectation with quarantine
CREATE TABLE t (a INT, CONSTRAINT c EXPECT (a > 0) ON VIOLATION QUARANTINE) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: a primary key
CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b) NOT ENFORCED) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: a named primary key
CREATE TABLE t (a INT, CONSTRAINT k PRIMARY KEY (a) NOT ENFORCED) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: a primary key behind its column
CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: a table with a key is written
CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED) USING csv OPTIONS (path 'x');
INSERT INTO t SELECT 1

-- case: a watermark
CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: a watermark before its column
CREATE TABLE t (WATERMARK FOR ts AS ts, ts TIMESTAMP) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: no columns
CREATE TABLE t () USING csv OPTIONS (path 'x')

-- case: only a computed column
CREATE TABLE t (a AS 1) USING csv OPTIONS (path 'x')

-- case: a column without type
CREATE TABLE t (a, b INT) USING csv OPTIONS (path 'x')

-- case: a column declared twice
CREATE TABLE t (a INT,
  A STRING) USING csv OPTIONS (path 'x')

-- case: a computed column of a declared name
CREATE TABLE t (a INT, a AS 1) USING csv OPTIONS (path 'x')

-- case: a computed column without expression
CREATE TABLE t (a INT, b AS) USING csv OPTIONS (path 'x')

-- case: a generated column without expression
CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS ()) USING csv OPTIONS (path 'x')

-- case: a generated column without parentheses
CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS a) USING csv OPTIONS (path 'x')

-- case: unknown metadata
CREATE TABLE t (a INT, f STRING METADATA FROM 'file_nmae') USING csv OPTIONS (path 'x')

-- case: metadata of inline
CREATE TABLE t (a INT, f STRING METADATA) USING inline OPTIONS (rows '[]')

-- case: a metadata key that is a word
CREATE TABLE t (a INT, f STRING METADATA FROM file_name) USING csv OPTIONS (path 'x')

-- case: an expectation without action
CREATE TABLE t (a INT, CONSTRAINT c EXPECT (a > 0)) USING csv OPTIONS (path 'x')

-- case: an expectation with an unknown action
CREATE TABLE t (a INT, CONSTRAINT c EXPECT (a > 0) ON VIOLATION IGNORE) USING csv OPTIONS (path 'x')

-- case: an expectation without condition
CREATE TABLE t (a INT, CONSTRAINT c EXPECT () ON VIOLATION FAIL) USING csv OPTIONS (path 'x')

-- case: two expectations of one name
CREATE TABLE t (a INT, CONSTRAINT c EXPECT (a > 0) ON VIOLATION FAIL, CONSTRAINT C EXPECT (a < 9) ON VIOLATION FAIL) USING csv OPTIONS (path 'x')

-- case: a query in an expectation
CREATE TABLE t (a INT, CONSTRAINT c EXPECT (a IN (SELECT 1)) ON VIOLATION FAIL) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: CHECK
CREATE TABLE t (a INT, CHECK (a > 0)) USING csv OPTIONS (path 'x')

-- case: UNIQUE
CREATE TABLE t (a INT, UNIQUE (a)) USING csv OPTIONS (path 'x')

-- case: FOREIGN KEY
CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (a)) USING csv OPTIONS (path 'x')

-- case: a primary key that is enforced
CREATE TABLE t (a INT, PRIMARY KEY (a)) USING csv OPTIONS (path 'x')

-- case: a primary key of an unknown column
CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED) USING csv OPTIONS (path 'x')

-- case: a primary key of a computed column
CREATE TABLE t (a INT, b AS a, PRIMARY KEY (b) NOT ENFORCED) USING csv OPTIONS (path 'x')

-- case: two primary keys
CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (a) NOT ENFORCED) USING csv OPTIONS (path 'x')

-- case: a watermark of an unknown column
CREATE TABLE t (a INT, WATERMARK FOR b AS b) USING csv OPTIONS (path 'x')

-- case: two watermarks
CREATE TABLE t (a TIMESTAMP, WATERMARK FOR a AS a, WATERMARK FOR a AS a) USING csv OPTIONS (path 'x')

-- case: a watermark without expression
CREATE TABLE t (a TIMESTAMP, WATERMARK FOR a) USING csv OPTIONS (path 'x')

-- case: a comma at the end
CREATE TABLE t (a INT,) USING csv OPTIONS (path 'x')

-- case: a comma at the begin
CREATE TABLE t (, a INT) USING csv OPTIONS (path 'x')

-- case: a missing comma
CREATE TABLE t (a INT b INT) USING csv OPTIONS (path 'x'); SELECT * FROM t

-- case: types of several words
CREATE TABLE t (a TIMESTAMP_LTZ NOT NULL, b INTERVAL DAY TO SECOND, c STRING COLLATE UTF8_LCASE COMMENT 'x', d ARRAY<STRUCT<x: INT, y: STRING NOT NULL>>, e: TIMESTAMP WITHOUT TIME ZONE) USING csv OPTIONS (path 'x'); SELECT * FROM t;

-- case: a default
CREATE TABLE t (a INT DEFAULT 3) USING csv OPTIONS (path 'x'); SELECT * FROM t;

-- case: a missing comma behind parentheses
CREATE TABLE t (a DECIMAL(9, 2) b INT) USING csv OPTIONS (path 'x'); SELECT * FROM t;
