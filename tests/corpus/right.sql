CREATE TABLE orders (id INT, name STRING, customer INT, price DECIMAL(8, 2), day DATE, at TIMESTAMP, tags ARRAY<STRING>, place STRUCT<street: STRING>) USING json OPTIONS (path 'orders');
CREATE TABLE customers (id INT, city STRING) USING csv OPTIONS (path 'customers');
CREATE TABLE pairs (a INT, b INT) USING csv OPTIONS (path 'pairs');
CREATE TABLE files USING json OPTIONS (path 'files');
CREATE TABLE shown USING print;
----
SELECT ID, Orders.X, O.name FROM orders o JOIN (SELECT 1 AS x) orders ON true
----
SELECT id, o.name, place.street, o.place.street FROM orders AS o
----
SELECT id, price * 2 AS twice, twice + 1 AS more FROM orders ORDER BY more
----
SELECT day AS d, count(*) AS n FROM orders GROUP BY d HAVING n > 1 ORDER BY n, d
----
SELECT upper(name) FROM orders GROUP BY name ORDER BY upper(name)
----
SELECT name FROM orders ORDER BY price
----
SELECT o.id, c.city FROM orders o JOIN customers c USING (id) WHERE id > 1 ORDER BY id
----
SELECT * FROM orders JOIN customers USING (id)
----
SELECT id, city FROM orders NATURAL JOIN customers
----
SELECT id, name FROM orders LEFT SEMI JOIN customers ON orders.id = customers.id
----
SELECT id FROM orders LEFT ANTI JOIN customers c ON orders.customer = c.id WHERE price > 1
----
SELECT o.id, t.tag FROM orders o LATERAL VIEW explode(o.tags) t AS tag WHERE tag <> 'x'
----
SELECT id, explode(tags) AS tag FROM orders
----
SELECT id, posexplode(tags) AS (place, tag) FROM orders
----
SELECT id, col FROM (SELECT id, explode(tags) FROM orders)
----
SELECT * FROM (SELECT day, customer, price FROM orders) PIVOT (sum(price) FOR customer IN (1 AS one, 2 AS two))
----
SELECT one FROM (SELECT customer, price FROM orders) PIVOT (sum(price) FOR customer IN (1 AS one, 2 AS two))
----
SELECT id, transform(tags, t -> concat(t, name)), filter(tags, (t, i) -> i > id), aggregate(tags, '', (acc, t) -> concat(acc, t)) FROM orders
----
SELECT exists(tags, t -> exists(tags, u -> u = t AND u = name)) AS e FROM orders
----
SELECT id FROM IDENTIFIER('orders') WHERE IDENTIFIER('price') > 1
----
SELECT window.start, window.end, sum(price) FROM orders GROUP BY window(at, '1 day')
----
SELECT TUMBLE_START(at, INTERVAL '1' DAY) AS d, sum(price) AS total FROM orders GROUP BY TUMBLE(at, INTERVAL '1' DAY) ORDER BY d
----
SELECT `window.start` FROM (SELECT TUMBLE_START(at, INTERVAL '1' DAY), count(*) FROM orders GROUP BY TUMBLE(at, INTERVAL '1' DAY))
----
SELECT current_date, current_timestamp, current_user, user, localtimestamp() FROM orders
----
SELECT date_diff(DAY, at, current_timestamp), timestampadd(HOUR, 1, at), dateadd(MONTH, 1, day), extract(YEAR FROM day), date_trunc('DAY', at), timestampdiff(MINUTE, at, at) FROM orders
----
SELECT INTERVAL 1 DAY, INTERVAL '1' HOUR + at, DATE '2026-01-01', TIMESTAMP'2026-01-01', TIMESTAMP_NTZ'2026-01-01', X'1F' FROM orders
----
SELECT trim(BOTH 'x' FROM name), position('a' IN name), substring(name FROM 1 FOR 2), overlay(name PLACING 'x' FROM 1), any_value(name) IGNORE NULLS FROM orders GROUP BY name
----
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price), count(*) FILTER (WHERE price > 1), first(name) FROM orders
----
SELECT day, grouping(day), grouping_id(day, customer), sum(price) FROM orders GROUP BY CUBE (day, customer)
----
SELECT day, customer, sum(price) FROM orders GROUP BY GROUPING SETS ((day), (customer), ())
----
SELECT sum(price) OVER w AS s, rank() OVER (PARTITION BY customer ORDER BY at) AS r FROM orders WINDOW w AS (PARTITION BY customer)
----
SELECT * EXCEPT (tags, place), price AS again FROM orders
----
SELECT o.*, c.city FROM orders o, customers c WHERE o.customer = c.id
----
SELECT place.* FROM orders
----
SELECT named_struct('a', 1).a, struct(id AS b).b, map('k', id)['k'], tags[0] FROM orders
----
SELECT s.b FROM (SELECT struct(id AS b) AS s FROM orders)
----
SELECT name, (SELECT max(city) FROM customers WHERE customers.id = customer) AS city FROM orders
----
SELECT name FROM orders o WHERE EXISTS (SELECT * FROM customers WHERE id = o.customer AND city = name)
----
SELECT name FROM orders WHERE (id, name) IN (SELECT id, city FROM customers)
----
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r
----
WITH a AS (SELECT id AS x FROM orders), b AS (SELECT x AS y FROM a) SELECT y FROM b JOIN a ON a.x = b.y
----
WITH orders AS (SELECT 1 AS other) SELECT other FROM orders
----
SELECT x FROM (WITH a AS (SELECT id AS x FROM orders) SELECT x FROM a)
----
SELECT a, b FROM VALUES (1, 2), (3, 4) AS t(a, b)
----
SELECT col1, col2 FROM VALUES (1, 2)
----
SELECT id FROM range(3)
----
SELECT id FROM orders UNION ALL SELECT id FROM customers ORDER BY id LIMIT 3
----
(SELECT id FROM orders) INTERSECT (SELECT id FROM customers)
----
FROM orders SELECT id, name WHERE price > 1
----
TABLE orders
----
FROM orders |> WHERE price > 1 |> EXTEND price * 2 AS twice |> SELECT twice
----
SELECT /*+ BROADCAST(c), REPARTITION(2) */ o.id FROM orders o JOIN customers c ON o.customer = c.id
----
SELECT id FROM orders TABLESAMPLE (10 PERCENT) AS o WHERE o.id > 1
----
SELECT id FROM orders DISTRIBUTE BY customer SORT BY price
----
SELECT DISTINCT customer AS c FROM orders ORDER BY c
----
SELECT c.id FROM (orders o JOIN customers c ON o.customer = c.id)
----
SELECT t.id FROM orders o, LATERAL (SELECT o.id AS id) t
----
SELECT `id`, `a b` FROM (SELECT id, name AS `a b` FROM orders)
----
SELECT `count(1)` FROM (SELECT count(*) FROM orders)
----
SELECT id FROM (SELECT CAST(id AS BIGINT) FROM orders)
----
SELECT id::string, try_cast(name AS int), CASE name WHEN 'a' THEN 1 END, nullif(id, 1), coalesce(id, price), if(id > 1, 1, 2) FROM orders
----
SELECT name RLIKE 'a', name LIKE ANY ('a', 'b'), id <=> price, id DIV 2, !true, ~id, id BETWEEN 1 AND price, name IS DISTINCT FROM 'x' FROM orders
----
SELECT sum(DISTINCT price), count(DISTINCT id, name), approx_count_distinct(name), collect_list(struct(id, name)) FROM orders
----
SELECT max(struct(price, name)).name FROM orders
----
SELECT inline(array(struct(1 AS a, 2 AS b)))
----
SELECT stack(2, 1, 2, 3, 4) AS (a, b)
----
SELECT json_tuple('{"a": 1}', 'a') AS a
----
INSERT INTO pairs SELECT stack(1, 1, 2)
----
INSERT INTO pairs SELECT explode(map(1, 2))
----
INSERT INTO pairs SELECT inline(array(struct(1 AS a, 2 AS b)))
----
INSERT INTO pairs BY NAME SELECT 1 AS B, 2 AS A
----
INSERT INTO pairs SELECT id, id FROM customers
----
INSERT INTO files SELECT o.id, c.id AS other FROM orders o JOIN customers c ON o.customer = c.id
----
INSERT INTO shown SELECT o.id, c.id FROM orders o JOIN customers c ON o.customer = c.id
----
CREATE VIEW v AS SELECT o.id, c.id FROM orders o, customers c;
SELECT 1 FROM v
----
CREATE TABLE t (a INT, f STRING METADATA FROM 'file_name', b AS a + 1, c AS b + a) USING csv OPTIONS (path 'pairs_too', header false);
SELECT f, b, c FROM t
----
SET spark.sql.caseSensitive = true;
SELECT a, A FROM (SELECT 1 AS a, 2 AS A)
----
SELECT a.id FROM orders a FULL OUTER JOIN customers b ON a.id = b.id CROSS JOIN pairs p WHERE p.a = b.id
----
SELECT count(*) FROM json.`FOLDER/orders`
----
ASSERT (SELECT count(*) FROM orders o WHERE o.price > 1) = 0 AND true
----
SELECT array_sort(tags, (l, r) -> CASE WHEN l < r THEN -1 WHEN l > r THEN 1 ELSE 0 END), map_filter(map('a', 1), (k, v) -> v > id) FROM orders
----
SELECT customer, sum(price) AS price FROM orders GROUP BY customer HAVING sum(price) > 1 ORDER BY price DESC NULLS LAST
----
SELECT id AS customer, count(*) FROM orders GROUP BY id, customer
----
SELECT id, ${attempt} AS attempt, '${ds}' AS ds FROM orders WHERE id > ${attempt}
----
SHOW CATALOGS
----
SELECT extract(YEAR FROM orders.day), trim(BOTH 'x' FROM orders.name) FROM orders
----
CREATE TABLE ticks (`timestamp` TIMESTAMP, value BIGINT, WATERMARK FOR `timestamp` AS `timestamp` - INTERVAL '5' SECOND) USING rate OPTIONS (rows_per_second 10);
CREATE VIEW seen AS SELECT value, `timestamp` AS at FROM ticks;
INSERT INTO shown SELECT value + 1 FROM seen JOIN pairs ON pairs.a = value
----
SET job.error.limit.percent = 5;
CREATE TABLE ticks (value BIGINT, CONSTRAINT even EXPECT (value % 2 = 0) ON VIOLATION QUARANTINE) USING rate OPTIONS (rows_per_second 10);
INSERT INTO shown SELECT value FROM ticks
----
CREATE TABLE ticks (value BIGINT) USING rate OPTIONS (rows_per_second 10);
CREATE VIEW seen AS SELECT value, value % 2 = 0 AS is_even FROM ticks;
EXECUTE STATEMENT SET BEGIN INSERT INTO shown SELECT value FROM seen; INSERT INTO shown SELECT value FROM seen WHERE is_even; END
