"""A sample of short jobs, which runs while a class archive is made, so that their classes are loaded.

spark-submit runs it like a driver. It works below the current directory, which is its run directory.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1_000
SCRIPT = """
SET spark.sql.session.timeZone = UTC;
SET spark.sql.shuffle.partitions = 4;
CREATE TABLE numbers (n INT, name STRING) WITH ('connector' = 'inline', 'rows' = '[[1, "one"], [2, "two"]]');
CREATE TABLE items USING parquet OPTIONS (path 'items');
CREATE TABLE lines (n BIGINT, kind STRING, at TIMESTAMP, price DECIMAL(10, 2))
USING csv OPTIONS (path 'lines');
CREATE TABLE pages USING json OPTIONS (path 'pages');
CREATE TABLE totals (kind STRING, n BIGINT, mean DECIMAL(10, 2), place INT)
USING parquet OPTIONS (path 'totals');
CREATE TABLE days USING csv OPTIONS (path 'days');
CREATE TABLE shown USING print;

INSERT INTO lines
SELECT n, CONCAT('k', n % 7), TIMESTAMP '2024-01-01 00:00:00' + MAKE_DT_INTERVAL(0, n), n / 3 FROM items;
INSERT INTO pages SELECT i.n, i.half, l.name FROM items i JOIN numbers l ON i.n = l.n;
CREATE VIEW joined AS
SELECT l.*, p.name, i.half > 10 OR COALESCE(i.half, 0) >= 30 AS high
FROM lines l JOIN items i ON l.n = i.n LEFT JOIN pages p ON p.n = l.n;
INSERT INTO totals
WITH means AS (
  SELECT kind, COUNT(*) AS n, AVG(price) AS mean, AVG(price) FILTER (WHERE high) AS high_mean,
    PERCENTILE(price, 0.9) AS much, COUNT_IF(name IS NULL) AS nameless, MAX(UPPER(name)) AS name
  FROM joined WHERE kind <> 'k0' GROUP BY kind
)
SELECT kind, n, mean, RANK() OVER (ORDER BY mean DESC) FROM means ORDER BY kind;
INSERT OVERWRITE days
SELECT
  DATE_TRUNC('hour', at) AS hour, COUNT(DISTINCT kind) AS kinds, SUM(CASE WHEN high THEN 1.0D ELSE 0 END) AS s
FROM joined GROUP BY 1;
INSERT INTO shown SELECT kind, n FROM totals WHERE kind IN (SELECT kind FROM lines WHERE n < 5) LIMIT 3;
"""


def run_sample(spark: "SparkSession") -> None:
    """Run the script as a short job would."""
    from spark_runner.sql.compiler.compile import compile_script  # noqa: PLC0415 - after `prepare_imports`
    from spark_runner.sql.execution.execution import execute  # noqa: PLC0415 - likewise

    frame = spark.range(ROWS).selectExpr("id AS n", "id / 2 AS half")
    frame.write.mode("overwrite").parquet("items")
    spark.createDataFrame([(1, "a")], "n INT, word STRING").collect()
    plan = compile_script(SCRIPT, file="sample.sql", base_dir=str(Path.cwd()), variables={})
    execute(spark, plan, lambda _phase: None)


def main() -> None:
    """Run the sample in a session of its own."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - after `prepare_imports`

    from spark_runner.protocol.process import end_with_parent  # noqa: PLC0415 - likewise

    end_with_parent()
    spark = SparkSession.builder.getOrCreate()
    run_sample(spark)
    spark.sparkContext.parallelize(range(4), 2).map(lambda n: n + 1).collect()
    spark.stop()


if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder, as in driver_main
    from spark_runner.driver.quick_imports import prepare_imports

    prepare_imports()
    main()
