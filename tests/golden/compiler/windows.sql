-- case: TUMBLE
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT count(*) FROM c GROUP BY TUMBLE(at, INTERVAL '1' MINUTE)

-- case: TUMBLE_START and TUMBLE_END
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT TUMBLE_START(at, INTERVAL '1' HOUR) AS s, tumble_end(at, INTERVAL '1' HOUR) FROM c GROUP BY TUMBLE(at, INTERVAL '1' HOUR)

-- case: TUMBLE_ROWTIME
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT TUMBLE_ROWTIME(at, INTERVAL '1' DAY) FROM c GROUP BY TUMBLE(at, INTERVAL '1' DAY)

-- case: HOP
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT HOP_START(at, INTERVAL '5' MINUTE, INTERVAL '1' HOUR) FROM c GROUP BY HOP(at, INTERVAL '5' MINUTE, INTERVAL '1' HOUR)

-- case: SESSION
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT SESSION_END(at, INTERVAL '30' SECONDS) FROM c GROUP BY SESSION(at, INTERVAL '30' SECONDS)

-- case: a number without quotes
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT count(*) FROM c GROUP BY TUMBLE(at, INTERVAL 90 SECOND)

-- case: a fraction
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT count(*) FROM c GROUP BY TUMBLE(at, INTERVAL '0.5' SECOND)

-- case: an expression as the column
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT count(*) FROM c GROUP BY TUMBLE(coalesce(at, now()), INTERVAL '1' MINUTE)

-- case: a window in a view
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
CREATE VIEW v AS SELECT TUMBLE_START(at, INTERVAL '1' MINUTE) AS m FROM c GROUP BY TUMBLE(at, INTERVAL '1' MINUTE);
SELECT * FROM v

-- case: a comment in a window
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT count(*) FROM c GROUP BY TUMBLE( /* x */ at , INTERVAL /* y */ '1' MINUTE)

-- case: PROCTIME
SELECT PROCTIME() AS now

-- case: PROCTIME with arguments
SELECT PROCTIME(1)

-- case: the time of processing
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT TUMBLE_PROCTIME(at, INTERVAL '1' MINUTE) FROM c

-- case: one argument
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT 1 FROM c GROUP BY TUMBLE(at)

-- case: two arguments of HOP
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT 1 FROM c GROUP BY HOP(at, INTERVAL '1' MINUTE)

-- case: an offset
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT 1 FROM c GROUP BY TUMBLE(at, INTERVAL '1' HOUR, INTERVAL '5' MINUTE)

-- case: a month
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT 1 FROM c GROUP BY TUMBLE(at, INTERVAL '1' MONTH)

-- case: two units
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT 1 FROM c GROUP BY TUMBLE(at, INTERVAL '1:30' HOUR TO MINUTE)

-- case: a string as the length
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT 1 FROM c GROUP BY TUMBLE(at, '1 minute')

-- case: a table function
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT * FROM TABLE(TUMBLE(TABLE c, DESCRIPTOR(at), INTERVAL '1' MINUTE))

-- case: a parenthesis that is not closed
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT 1 FROM c GROUP BY TUMBLE(at, INTERVAL '1' MINUTE

-- case: a column of that name
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT u AS tumble, c.hop FROM c

-- case: a table of that name
WITH session(a) AS (SELECT 1) SELECT * FROM session

-- case: a function of Spark stays
CREATE TABLE c (at TIMESTAMP, u INT) USING json OPTIONS (path 'c');
SELECT window(at, '1 minute').start FROM c GROUP BY window(at, '1 minute')

-- case: a window in a string stays
SELECT 'TUMBLE(at, 1)'
