-- case: filesystem with a format
CREATE TABLE t WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = 'x'); SELECT * FROM t

-- case: the format as the connector
CREATE TABLE t WITH ('connector' = 'csv', 'path' = 'x'); SELECT * FROM t

-- case: keys of the formats
CREATE TABLE t WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = 'x', 'csv.field-delimiter' = ';', 'csv.null-literal' = '-', 'csv.escape-character' = '\\'); SELECT * FROM t

-- case: keys of the first generation
CREATE TABLE t WITH ('connector.type' = 'filesystem', 'connector.path' = 'x', 'format.type' = 'csv', 'format.field-delimiter' = ';', 'update-mode' = 'append', 'connector.property-version' = '1', 'format.property-version' = '1', 'format.derive-schema' = 'true'); SELECT * FROM t

-- case: both generations mixed
CREATE TABLE t WITH ('connector' = 'filesystem', 'format.type' = 'json', 'connector.path' = 'x'); SELECT * FROM t

-- case: values in any case
CREATE TABLE t WITH ('Connector' = 'FileSystem', 'FORMAT' = 'Parquet', 'path' = 'x'); SELECT * FROM t

-- case: print
CREATE TABLE t WITH ('connector' = 'print', 'limit' = '5'); INSERT INTO t SELECT 1

-- case: columns and a connector
CREATE TABLE t (a INT, b STRING) WITH ('connector' = 'json', 'path' = 'x'); SELECT * FROM t

-- case: no equals signs
CREATE TABLE t WITH ('connector' 'csv', 'path' 'x'); SELECT * FROM t

-- case: no connector
CREATE TABLE t WITH ('path' = 'x')

-- case: an empty list
CREATE TABLE t WITH ()

-- case: WITH alone
CREATE TABLE t WITH

-- case: filesystem without a format
CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = 'x')

-- case: an unknown format
CREATE TABLE t WITH ('connector' = 'filesystem', 'format' = 'avro', 'path' = 'x')

-- case: a format that is nearly right
CREATE TABLE t WITH ('connector' = 'filesystem', 'format' = 'parqet', 'path' = 'x')

-- case: a connector that is nearly right
CREATE TABLE t WITH ('connector' = 'filesistem')

-- case: a topic without its servers
CREATE TABLE t WITH ('connector' = 'kafka', 'topic' = 'x')

-- case: the connector in both generations
CREATE TABLE t WITH ('connector' = 'csv', 'connector.type' = 'csv', 'path' = 'x')

-- case: the path in both generations
CREATE TABLE t WITH ('connector' = 'csv', 'path' = 'x', 'connector.path' = 'y')

-- case: the delimiter in two ways
CREATE TABLE t WITH ('connector' = 'csv', 'path' = 'x', 'csv.field-delimiter' = ';', 'delimiter' = ',')

-- case: update mode upsert
CREATE TABLE t WITH ('connector' = 'csv', 'path' = 'x', 'update-mode' = 'upsert')

-- case: a later property version
CREATE TABLE t WITH ('connector' = 'csv', 'path' = 'x', 'connector.property-version' = '2')

-- case: a schema that is not derived
CREATE TABLE t WITH ('connector' = 'csv', 'path' = 'x', 'format.derive-schema' = 'false')

-- case: a first generation key that is nearly right
CREATE TABLE t WITH ('connector.type' = 'csv', 'connector.pth' = 'x')

-- case: a startup mode of files
CREATE TABLE t WITH ('connector.type' = 'csv', 'connector.path' = 'x', 'connector.startup-mode' = 'earliest-offset')

-- case: keys of the first generation in OPTIONS
CREATE TABLE t USING csv OPTIONS ('connector.path' 'x')

-- case: USING and WITH
CREATE TABLE t USING csv WITH ('path' = 'x')

-- case: WITH before the columns
CREATE TABLE t WITH ('connector' = 'csv', 'path' = 'x') (a INT)

-- case: partitions behind the columns
CREATE TABLE t (a INT) PARTITIONED BY (a) WITH ('connector' = 'csv', 'path' = 'x')

-- case: a comment of the table
CREATE TABLE t (a INT) COMMENT 'x' WITH ('connector' = 'csv', 'path' = 'x')
