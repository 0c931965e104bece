-- case: CREATE TEMPORARY FUNCTION
CREATE TEMPORARY FUNCTION slug AS 'shop.slug' LANGUAGE PYTHON;
SELECT slug('a')

-- case: a function with a type
CREATE OR REPLACE TEMPORARY FUNCTION gross AS 'shop.prices.gross' RETURNS DECIMAL(10, 2);
SELECT gross(1)

-- case: a type before the language
create temp function pairs as "shop.pairs" returns MAP<STRING, ARRAY<INT>> language python;
SELECT pairs('a')

-- case: a target with a variable
-- set: module=shop
CREATE TEMPORARY FUNCTION slug AS '${module}.slug';
SELECT slug('a')

-- case: a function of SQL
CREATE TEMPORARY FUNCTION twice(x INT) RETURNS INT RETURN x * 2;
SELECT twice(1)

-- case: a function of Java
CREATE TEMPORARY FUNCTION slug AS 'com.acme.Slug' USING JAR '/opt/acme.jar';
SELECT slug('a')

-- case: a function of Java by its language
CREATE TEMPORARY FUNCTION slug AS 'com.acme.Slug' LANGUAGE SCALA;
SELECT slug('a')

-- case: a function that is not temporary
CREATE OR REPLACE FUNCTION slug AS 'shop.slug';
SELECT slug('a')

-- case: a function without a module
CREATE TEMPORARY FUNCTION slug AS 'slug';
SELECT slug('a')

-- case: a function of Python itself
CREATE TEMPORARY FUNCTION run AS 'os.system';
SELECT run('a')

-- case: a function of the platform
CREATE TEMPORARY FUNCTION run AS 'pyspark.sql.functions.expr';
SELECT run('a')

-- case: a function with the name of one of Spark
CREATE TEMPORARY FUNCTION lower AS 'shop.lower';
SELECT lower('a')

-- case: a function twice
CREATE TEMPORARY FUNCTION slug AS 'shop.slug';
CREATE TEMPORARY FUNCTION Slug AS 'shop.slug2';
SELECT slug('a')

-- case: several errors of functions
CREATE TEMPORARY FUNCTION a AS 'x';
CREATE TEMPORARY FUNCTION b AS 'y.z' LANGUAGE SQL;
CREATE TEMPORARY FUNCTION `c d` AS 'y.z';
SELECT a(1), b(2)

-- case: a function in a statement set
EXECUTE STATEMENT SET BEGIN
CREATE TEMPORARY FUNCTION a AS 'x.y';
END

-- case: a function in a stream
SET job.mode = 'available-now';
CREATE TEMPORARY FUNCTION slug AS 'shop.slug';
CREATE TABLE s (a STRING) USING json OPTIONS (path 's');
CREATE TABLE k (a STRING) USING json OPTIONS (path 'k');
INSERT INTO k SELECT slug(a) FROM s

-- case: calls of functions that Spark does not have
CREATE TABLE s (a STRING, b AS clean(a), CONSTRAINT c EXPECT (Valid(a)) ON VIOLATION FAIL) USING json OPTIONS (path 's');
CREATE VIEW v AS SELECT `slug`(upper(a)) AS x FROM s;
SELECT x, count(*), slug(x) FROM v GROUP BY x HAVING score(x) IN (1, 2)
