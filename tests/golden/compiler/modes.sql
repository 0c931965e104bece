-- case: a stream of files
SET job.mode = 'streaming';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT a FROM s

-- case: a stream with a trigger
SET job.mode = 'streaming';
SET 'job.trigger' = '500 ms';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT a FROM s

-- case: a table without an end decides the mode
CREATE TABLE ticks (value BIGINT) USING rate OPTIONS (rows_per_second 10);
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT value FROM ticks

-- case: a table without an end that a view reads decides the mode
CREATE TABLE ticks (value BIGINT, `timestamp` TIMESTAMP) WITH ('connector' = 'rate', 'rows-per-second' = '10');
CREATE VIEW v AS SELECT value FROM ticks;
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT * FROM v

-- case: a table without an end that nothing reads decides nothing
CREATE TABLE ticks (value BIGINT) USING rate;
SELECT 1

-- case: a table without an end in mode batch
SET job.mode = batch;
CREATE TABLE ticks (value BIGINT) USING rate;
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT a.value
FROM ticks AS a

-- case: a query of a table without an end
CREATE TABLE ticks (value BIGINT) USING rate;
SELECT * FROM ticks

-- case: cached rows of a table without an end
CREATE TABLE ticks (value BIGINT) USING rate;
CREATE TABLE shown USING print;
CACHE TABLE ticks;
INSERT INTO shown SELECT 1

-- case: the mode that a table decided, with other settings of it
CREATE TABLE ticks (value BIGINT) USING rate;
SET job.error.limit.rows = 5;
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT value FROM ticks

-- case: a trigger in the mode that a table decided
SET job.trigger = '1 s';
CREATE TABLE ticks (value BIGINT) USING rate;
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT value FROM ticks

-- case: the mode that a table decided, after a reset
SET job.mode = batch;
RESET job.mode;
CREATE TABLE ticks (value BIGINT) USING rate;
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT value FROM ticks

-- case: a mode after the first table
CREATE TABLE ticks (value BIGINT) USING rate;
SET job.mode = 'streaming';
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT value FROM ticks

-- case: columns that connector rate does not have
SET job.mode = 'streaming';
CREATE TABLE ticks (valu BIGINT) USING rate;
CREATE TABLE more USING rate OPTIONS (rows_per_second 0, ramp 5);
SELECT 1

-- case: a target of connector rate
CREATE TABLE ticks (value BIGINT) USING rate;
INSERT INTO ticks SELECT 1

-- case: two streams into one table
SET job.mode = 'streaming';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT a FROM s;
INSERT INTO t SELECT a + 1 FROM s

-- case: two streams into one table that must be empty
SET job.mode = 'streaming';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out', mode 'error');
INSERT INTO t SELECT a FROM s;
INSERT INTO t SELECT a + 1 FROM s

-- case: a table that is written, then read as a whole, by queries that run at the same time
SET job.mode = 'streaming';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE w (a INT) USING json OPTIONS (path '/out', streaming 'false');
CREATE TABLE u USING json OPTIONS (path '/more');
INSERT INTO t SELECT a FROM s;
INSERT INTO u SELECT s.a FROM s JOIN w USING (a)

-- case: a table that is read as a whole, then written, by queries that run at the same time
SET job.mode = 'streaming';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE w (a INT) USING json OPTIONS (path '/out', streaming 'false');
CREATE TABLE u USING json OPTIONS (path '/more');
INSERT INTO u SELECT s.a FROM s JOIN w USING (a);
INSERT INTO t SELECT a FROM s

-- case: a table that is written, then read as a whole, by queries one after another
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE w (a INT) USING json OPTIONS (path '/out', streaming 'false');
CREATE TABLE u USING json OPTIONS (path '/more');
INSERT INTO t SELECT a FROM s;
INSERT INTO u SELECT s.a FROM s JOIN w USING (a)

-- case: a trigger that is no time
SET job.mode = 'streaming';
SET job.trigger = 'soon';
SELECT 1

-- case: a trigger in mode batch
SET job.trigger = '10 seconds';
SELECT 1

-- case: a stream with rules for rows that do not fit, and a table for them
SET job.mode = 'available-now';
SET job.error.limit.percent = 5;
SET job.quarantine = rejects;
CREATE TABLE rejects USING parquet OPTIONS (path '/rejects');
CREATE TABLE s (n INT, CONSTRAINT few EXPECT (n < 9) ON VIOLATION QUARANTINE, CONSTRAINT some EXPECT (n > 0) ON VIOLATION DROP ROW)
  USING csv OPTIONS (path '/in');
CREATE TABLE t (n TINYINT) USING json OPTIONS (path '/out');
INSERT INTO t SELECT n FROM s

-- case: a stream that reads the table for rows that do not fit
SET job.mode = 'available-now';
SET job.quarantine = rejects;
CREATE TABLE rejects (record STRING) USING parquet OPTIONS (path '/rejects');
CREATE TABLE t (record STRING) USING json OPTIONS (path '/out');
INSERT INTO t SELECT record FROM rejects

-- case: a statement set of streams with a view that its INSERTs share
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
CREATE VIEW v AS SELECT a + 1 AS b FROM s;
EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT b FROM v; INSERT INTO u SELECT b FROM v; END

-- case: a statement set of streams that run until they are stopped
SET job.mode = 'streaming';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
BEGIN STATEMENT SET; INSERT INTO t SELECT a FROM s; INSERT INTO t SELECT -a FROM s; END; INSERT INTO u SELECT a FROM s

-- case: a statement set of two streams
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
CREATE TABLE r (a INT) USING json OPTIONS (path '/other');
EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT a FROM s; INSERT INTO u SELECT a FROM r; END

-- case: a statement set with an INSERT of two streams
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
CREATE TABLE r (a INT) USING json OPTIONS (path '/other');
EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT a FROM s UNION ALL SELECT a FROM r; END

-- case: a statement set of a stream with a pace of its own
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
EXECUTE STATEMENT SET BEGIN
INSERT INTO t SELECT a FROM s; INSERT INTO u SELECT a FROM s WITH ('max_files_per_trigger' = '1'); END

-- case: an INSERT with a state in a statement set of streams
SET job.mode = 'available-now';
CREATE TABLE s (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
EXECUTE STATEMENT SET BEGIN
INSERT INTO t SELECT DISTINCT a FROM s;
INSERT INTO u SELECT count(*) FROM s GROUP BY window(ts, '1 minute');
INSERT INTO u SELECT a FROM s LIMIT 3;
INSERT INTO u SELECT a FROM s; END

-- case: names of files in a statement set of streams
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT input_file_name() FROM s; END

-- case: an INSERT without a stream in a statement set of streams
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT a FROM s; INSERT INTO u SELECT 1; END

-- case: INSERT OVERWRITE in a statement set of streams
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
EXECUTE STATEMENT SET BEGIN INSERT OVERWRITE t SELECT a FROM s; END

-- case: a statement set of a table without an end and of no mode
CREATE TABLE ticks (value BIGINT) USING rate;
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT value FROM ticks; INSERT INTO u SELECT value FROM ticks; END

-- case: a stream into a table of a catalog
SET job.mode = 'streaming';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE NAMESPACE IF NOT EXISTS spark_catalog.shop;
CREATE TABLE IF NOT EXISTS spark_catalog.shop.t (a INT) USING parquet;
INSERT INTO spark_catalog.shop.t BY NAME SELECT a FROM s

-- case: a table without an end into a table of a catalog, and no mode
CREATE TABLE ticks (value BIGINT) USING rate;
INSERT INTO spark_catalog.shop.t SELECT value FROM ticks

-- case: a table without an end into a table of a catalog in mode batch
SET job.mode = 'batch';
CREATE TABLE ticks (value BIGINT) USING rate;
INSERT INTO spark_catalog.shop.t SELECT value FROM ticks

-- case: a stream that replaces the rows of a table of a catalog
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
INSERT OVERWRITE spark_catalog.shop.t SELECT a FROM s

-- case: a stream that is merged into a table of a catalog
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
MERGE INTO spark_catalog.shop.t x USING s ON x.a = s.a WHEN NOT MATCHED THEN INSERT *

-- case: a table of a catalog that each run creates anew, and a stream
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
CREATE OR REPLACE TABLE spark_catalog.shop.t (a INT) USING parquet

-- case: a table of a catalog as target without a stream
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
INSERT INTO spark_catalog.shop.t SELECT 1 AS a

-- case: a table of a catalog in a statement set of streams
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT a FROM s; INSERT INTO spark_catalog.shop.t SELECT a FROM s; END

-- case: a table of a catalog as the first of a statement set decides the mode
CREATE TABLE s (value BIGINT) USING rate;
EXECUTE STATEMENT SET BEGIN INSERT INTO spark_catalog.shop.t SELECT value AS a FROM s; END

-- case: a table of a catalog in a statement set of streams that another INSERT of it reads
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO t SELECT a FROM s JOIN spark_catalog.shop.t USING (a);
  INSERT INTO spark_catalog.shop.t SELECT a FROM s; END

-- case: a table of a catalog in a statement set of streams, with another stream, with a state, and with OVERWRITE
SET job.mode = 'available-now';
CREATE TABLE s (a INT, at TIMESTAMP, WATERMARK FOR at AS at) USING json OPTIONS (path '/in');
CREATE TABLE r (a INT) USING json OPTIONS (path '/other');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO spark_catalog.shop.t SELECT a FROM s;
  INSERT INTO spark_catalog.shop.t SELECT a FROM r;
  INSERT INTO spark_catalog.shop.t SELECT a FROM s GROUP BY window(at, '1 minute'), a;
  INSERT OVERWRITE spark_catalog.shop.t SELECT a FROM s;
  MERGE INTO spark_catalog.shop.t USING s ON t.a = s.a WHEN MATCHED THEN DELETE; END

-- case: a stream into a table of a catalog, and a sort
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
CREATE TABLE u USING json OPTIONS (path '/more');
INSERT INTO spark_catalog.shop.t SELECT a FROM s ORDER BY a

-- case: a statement set of one INSERT with a pace of its own
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT a FROM s WITH ('max_files_per_trigger' = '1'); END

-- case: a table of a catalog that is read as a whole and written at the same time
SET job.mode = 'streaming';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT a FROM s JOIN spark_catalog.shop.t USING (a);
INSERT INTO spark_catalog.shop.t SELECT a FROM s

-- case: a table of a catalog that is read as a whole, then written by a query after it
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
INSERT INTO t SELECT a FROM s JOIN spark_catalog.shop.t USING (a);
INSERT INTO spark_catalog.shop.t SELECT a FROM s

-- case: a stream into a table whose rows clients fetch
SET job.mode = 'streaming';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING poll OPTIONS (token '${secret:shop/token}');
INSERT INTO t SELECT a FROM s

-- case: each run of a stream into a table whose rows clients fetch
SET job.mode = 'available-now';
CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING poll OPTIONS (token '${secret:shop/token}');
INSERT INTO t SELECT a FROM s
