-- case: a value as SQL
-- set: n=41
SELECT ${n} + 1

-- case: a value in a string
-- set: n=it's \
SELECT '${n}'

-- case: a value in double quotes
-- set: n=a"b
SELECT "${n}"

-- case: a value in back-ticks
-- set: n=a`b
SELECT 1 AS `${n}`

-- case: a value in a raw string
-- set: n=a\b
SELECT r'${n}'

-- case: a quote in a raw string
-- set: n=a'b
SELECT r'${n}'

-- case: a default
SELECT ${n:-1}

-- case: a default that is not used
-- set: n=2
SELECT ${n:-1}

-- case: an empty default
SELECT '${n:-}'

-- case: a default with spaces
SELECT '${n:-a b}'

-- case: an unknown variable
SELECT
  ${n}

-- case: a variable that is nearly right
-- set: day=1
SELECT ${dya}

-- case: a built-in variable that is nearly right
SELECT '${run_di}'

-- case: no name
SELECT ${}

-- case: a name with a space
SELECT ${a b}

-- case: an escaped variable
SELECT '\${n}'

-- case: a semicolon in a value
-- set: n=1; DROP TABLE x
SELECT ${n}

-- case: a comment in a value
-- set: n=1 -- x
SELECT ${n}

-- case: an open quote in a value
-- set: n='
SELECT ${n}

-- case: a value that begins a comment
-- set: n=-1
SELECT 1 -${n}

-- case: the name of a table
-- set: n=out
CREATE TABLE ${n} USING print; INSERT INTO ${n} SELECT 1

-- case: several words
-- set: n=1 AS a, 2 AS b
SELECT ${n}

-- case: a path
-- set: n=a b
CREATE TABLE t USING csv OPTIONS (path 'in/${n}'); SELECT * FROM t

-- case: an error behind a long value
-- set: n=a<U+000A>long value
SELECT '${n}'; CREATE TABLE t USING csv OPTIONS (path '${n}', nope 1)

-- case: a line break in a value in a string
-- set: n=a<U+000A>b
-- set: m=1
SELECT '${n}' AS a, ${m}

-- case: the value of a setting
-- set: n=b
SET spark.a = ${n}; SELECT 1

-- case: a variable in a comment
SELECT 1 -- ${n}

-- case: a value twice
-- set: n=x
SELECT '${n}', '${n}'

-- case: a variable in a value is not replaced
-- set: n=${m}
SELECT '${n}'

-- case: an empty value as SQL
-- set: n=
SELECT 1${n}

-- case: ${ds} in a path
CREATE TABLE t USING csv OPTIONS (path 'x/${ds}');
SELECT * FROM t

-- case: ${ds} in a query
SELECT DATE '${ds}'

-- case: ${ds} without quotes
SELECT ${ds}

-- case: ${ts} and ${fire_time}
SELECT '${ts}', '${fire_time}'

-- case: ${run_id} in a path
CREATE TABLE t USING csv OPTIONS (path 'x/${run_id}');
INSERT INTO t SELECT 1

-- case: ${attempt} as a number
SELECT ${attempt}, '${attempt}'

-- case: ${ds} of the definition
-- set: ds=2026-01-31
SELECT '${ds}'

-- case: ${ds} with a default
SELECT '${ds:-x}'

-- case: ${ds} in the name of a table
CREATE TABLE `t_${ds}` USING print

-- case: ${ds} in a number option
CREATE TABLE t USING print OPTIONS (limit '${ds}')

-- case: ${attempt} in a number option
CREATE TABLE t USING print OPTIONS (limit ${attempt})

-- case: ${ds} in a setting
SET spark.a = '${ds}'; SELECT 1

-- case: ${ds} in ASSERT
ASSERT '${ds}' > '2026', 'too early: ${ds}'

-- case: reads and writes of ${ds}
CREATE TABLE t USING csv OPTIONS (path 'x/${ds}');
INSERT OVERWRITE t SELECT * FROM t

-- case: a secret
CREATE TABLE t USING csv OPTIONS (path 'x', null_value '${secret:a/b}'); SELECT * FROM t

-- case: an environment variable
CREATE TABLE t USING csv OPTIONS (path 'x', null_value 'a${env:A}b'); SELECT * FROM t

-- case: a secret in a query
SELECT '${secret:a/b}'

-- case: a secret without quotes
SELECT ${secret:a/b}

-- case: a secret in a path
CREATE TABLE t USING csv OPTIONS (path '${secret:a/b}')

-- case: a secret in a setting
SET spark.a = '${secret:a/b}'

-- case: a secret without a scope
CREATE TABLE t USING csv OPTIONS (path 'x', null_value '${secret:a}')

-- case: a secret in a value is text
-- set: n=${secret:a/b}
SELECT '${n}'

-- case: a connection
CREATE TABLE t WITH ('connection' = 'crm', 'path' = 'x');
SELECT * FROM t

-- case: a private character in a string
SELECT '<U+E002>ds<U+E003>'

-- case: private characters in an option
CREATE TABLE t USING csv OPTIONS (path 'x', null_value '<U+E002>foo<U+E003>'); SELECT * FROM t
