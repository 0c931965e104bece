-- case: a setting of Spark
SET spark.sql.shuffle.partitions = 8;
SELECT 1

-- case: without spaces
SET spark.a=b;
SELECT 1

-- case: a value in quotes
SET spark.a = 'b; c';
SELECT 1

-- case: a key in quotes
SET 'spark.a' = 'b';
SELECT 1

-- case: a key in back-ticks
SET `spark.a` = b;
SELECT 1

-- case: a value of several words
SET spark.a = b c  d;
SELECT 1

-- case: a value with an equals sign
SET spark.a = b=c;
SELECT 1

-- case: an empty value in quotes
SET spark.a = '';
SELECT 1

-- case: a key with dashes
SET spark.a-b.c = 1;
SELECT 1

-- case: RESET of all
SET spark.a = 1;
RESET;
SELECT 1

-- case: RESET of one
RESET spark.a;
SELECT 1

-- case: no value
SET spark.a =;
SELECT 1

-- case: no equals sign
SET spark.a;
SELECT 1

-- case: no key
SET = 1;
SELECT 1

-- case: nothing
SET;
SELECT 1

-- case: a key with a space
SET spark. a = 1;
SELECT 1

-- case: a key with a comment
SET spark./* b */a = 1;
SELECT 1

-- case: a key in two quotes
SET 'spark'.'a' = 1;
SELECT 1

-- case: RESET with a value
RESET spark.a = 1;
SELECT 1

-- case: TIME ZONE
SET TIME ZONE 'UTC';
SELECT 1

-- case: the mode batch
SET job.mode = batch;
SELECT 1

-- case: the mode in quotes and capitals
SET 'Job.Mode' = 'BATCH';
SELECT 1

-- case: the mode streaming
SET job.mode = 'streaming';
SELECT 1

-- case: a mode that is nearly right
SET job.mode = bach;
SELECT 1

-- case: a mode that is far from all
SET job.mode = quick;
SELECT 1

-- case: a setting of jobs that is nearly right
SET job.mod = batch;
SELECT 1

-- case: a setting of jobs that is far from all
SET job.zzzzzz = 1;
SELECT 1

-- case: the runtime mode of a streaming engine
SET 'execution.runtime-mode' = 'batch';
SELECT 1

-- case: the runtime mode streaming
SET execution.runtime-mode = streaming;
SELECT 1

-- case: parallelism becomes a setting of Spark
SET 'parallelism.default' = '4';
SELECT 1

-- case: a parallelism that is no number
SET parallelism.default = many;
SELECT 1

-- case: two keys for one setting of Spark
SET parallelism.default = 4;
SET table.exec.resource.default-parallelism = 5;
SELECT 1

-- case: a mapped key is reset
SET parallelism.default = 4;
RESET parallelism.default;
SELECT 1

-- case: a mapped key that was not set is reset
RESET parallelism.default;
SELECT 1

-- case: mini-batches that are on
SET table.exec.mini-batch.enabled = true;
SELECT 1

-- case: mini-batches that are off
SET table.exec.mini-batch.enabled = false;
SELECT 1

-- case: the latency of mini-batches
SET table.exec.mini-batch.allow-latency = '5 s';
SELECT 1

-- case: the size of mini-batches
SET table.exec.mini-batch.size = 5000;
SELECT 1

-- case: two-phase aggregation
SET table.optimizer.agg-phase-strategy = TWO_PHASE;
SELECT 1

-- case: one-phase aggregation
SET table.optimizer.agg-phase-strategy = ONE_PHASE;
SELECT 1

-- case: distinct split
SET table.optimizer.distinct-agg.split.enabled = true;
SELECT 1

-- case: no distinct split
SET table.optimizer.distinct-agg.split.enabled = false;
SELECT 1

-- case: no idle source timeout
SET table.exec.source.idle-timeout = '0 ms';
SELECT 1

-- case: an idle source timeout
SET table.exec.source.idle-timeout = '10 s';
SELECT 1

-- case: no time to live of state
SET table.exec.state.ttl = 0;
SELECT 1

-- case: a time to live of state
SET table.exec.state.ttl = '1 h';
SELECT 1

-- case: a key of a family
SET execution.checkpointing.interval = '10 s';
SELECT 1

-- case: a streaming setting that is nearly right
SET table.exec.state.tll = 0;
SELECT 1

-- case: a streaming setting that is far from all
SET table.qqqqqqqqqqqq = 0;
SELECT 1

-- case: the local time zone
SET table.local-time-zone = 'Europe/Prague';
SELECT 1

-- case: the time zone of the machine
SET table.local-time-zone = default;
SELECT 1

-- case: a broadcast threshold
SET table.optimizer.join.broadcast-threshold = -1;
SELECT 1

-- case: a broadcast threshold that is no number
SET table.optimizer.join.broadcast-threshold = '10 mb';
SELECT 1

-- case: the name of the pipeline
SET pipeline.name = x;
SELECT 1

-- case: a setting without a known beginning
SET foo.bar = 1;
SELECT 1

-- case: a setting of Hadoop with the prefix that only the start of Spark removes
SET spark.hadoop.fs.s3a.endpoint = 'http://minio';
SET spark.hadoop.my.own = '1';
RESET spark.hadoop.fs.s3a.endpoint;
SELECT 1
