-- Counts the clicks on each page of a shop in windows of ten minutes, and pushes the counts into lists of Redis.
--
--   orchestrator run examples/clicks.sql --set kafka=broker:9092 --set redis=redis.example.org
--
-- It runs until it is asked to end. `make demo-streaming` runs it with a Kafka and a Redis of its own.

SET 'execution.runtime-mode' = 'streaming';
SET 'parallelism.default' = '2';
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '1 s';
SET 'table.exec.mini-batch.size' = '5000';
SET 'table.optimizer.agg-phase-strategy' = 'TWO_PHASE';
SET 'table.optimizer.distinct-agg.split.enabled' = 'true';

-- The keys of both generations: engines of either read this table.
CREATE TABLE clicks (
  page STRING,
  visitor STRING,
  referrer STRING,
  proctime AS PROCTIME()
) WITH (
  'connector' = 'kafka',
  'connector.type' = 'kafka',
  'connector.version' = 'universal',
  'topic' = '${topic:-clicks}',
  'connector.topic' = '${topic:-clicks}',
  'properties.bootstrap.servers' = '${kafka:-127.0.0.1:9092}',
  'connector.properties.bootstrap.servers' = '${kafka:-127.0.0.1:9092}',
  'properties.group.id' = 'clicks-per-page',
  'connector.properties.group.id' = 'clicks-per-page',
  'scan.startup.mode' = 'latest-offset',
  'connector.startup-mode' = 'latest-offset',
  'format' = 'json',
  'format.type' = 'json',
  'format.derive-schema' = 'true',
  'json.ignore-parse-errors' = 'true',
  'format.ignore-parse-errors' = 'true',
  'update-mode' = 'append'
);

CREATE VIEW clicks_per_page AS
SELECT
  page,
  TUMBLE_START(proctime, INTERVAL ${window:-'10' MINUTE}) AS window_start,
  TUMBLE_END(proctime, INTERVAL ${window:-'10' MINUTE}) AS window_end,
  COUNT(*) AS clicks,
  COUNT(DISTINCT visitor) AS visitors,
  COUNT(DISTINCT referrer) AS referrers
FROM clicks
WHERE page IS NOT NULL
GROUP BY page, TUMBLE(proctime, INTERVAL ${window:-'10' MINUTE});

CREATE TABLE page_counts (
  page STRING,
  window_start TIMESTAMP,
  window_end TIMESTAMP,
  clicks BIGINT,
  visitors BIGINT,
  referrers BIGINT
) WITH (
  'connector' = 'redis',
  'redis-mode' = 'single',  -- or sentinel, with sentinel.nodes and sentinel.master; or cluster, with cluster-nodes
  'host' = '${redis:-127.0.0.1}',
  'port' = '${redis_port:-6379}',
  'database' = '0',
  'command' = 'LPUSH',
  'key-template' = 'clicks:{page}',
  'value-template' = '{window_start} {window_end} clicks={clicks} visitors={visitors} referrers={referrers}',
  'key.ttl' = '86400',
  'connection.timeout' = '5',
  'socket.timeout' = '30',
  'max-total' = '8',
  'max-idle' = '8',
  'min-idle' = '1'
);

INSERT INTO page_counts
SELECT page, window_start, window_end, clicks, visitors, referrers FROM clicks_per_page;
