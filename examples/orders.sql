-- Keeps a table of PostgreSQL equal to the latest state of each order in a topic of Kafka.
--
--   orchestrator run examples/orders.sql --set kafka=broker:9092 --set database=jdbc:postgresql://db.example:5432/shop
--
-- docs/kafka-to-postgresql.md runs it step by step.

SET job.mode = '${mode:-available-now}';
SET job.error.limit.percent = 5;

-- Each change of an order is a record. A value that is not like these columns goes to the quarantine.
CREATE TABLE changes (
  id BIGINT,
  customer STRING,
  amount DECIMAL(10, 2),
  status STRING,
  changed TIMESTAMP
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = '${kafka:-127.0.0.1:9092}',
  'format' = 'json'
);

-- The table in the database: one row for each order, and none for a cancelled one.
CREATE TABLE orders (
  id BIGINT,
  customer STRING,
  amount DECIMAL(10, 2),
  status STRING,
  changed TIMESTAMP,
  cancelled BOOLEAN,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'jdbc',
  'url' = '${database:-jdbc:postgresql://127.0.0.1:5432/shop}',
  'table' = 'orders',
  'username' = 'loader',
  'password' = '${secret:shop/password}',
  'create' = 'true',
  'delete_column' = 'cancelled'
);

INSERT INTO orders
SELECT id, customer, amount, status, changed, status = 'cancelled' AS cancelled
FROM changes;
