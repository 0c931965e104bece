"""A sample of short jobs, which runs while a class archive is made, so that their classes are loaded.

spark-submit runs it like a driver. It works below the current directory, which is its run directory.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1_000


def run_sample(spark: "SparkSession", sample: Mapping[str, Any]) -> None:
    """Run the compiled script of `spark_runner.sql.sample` as a short job would."""
    from spark_runner.sql.execution.execution import execute  # noqa: PLC0415 - after `prepare_imports`
    from spark_runner.sql.sample import sample_below  # noqa: PLC0415 - likewise

    frame = spark.range(ROWS).selectExpr("id AS n", "id / 2 AS half")
    frame.write.mode("overwrite").parquet("items")
    spark.createDataFrame([(1, "a")], "n INT, word STRING").collect()
    execute(spark, sample_below(sample, str(Path.cwd())), lambda _phase: None)


def main(plan: Path) -> None:
    """Run the sample of a plan in a session of its own."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - after `prepare_imports`

    from spark_runner.protocol.process import end_with_parent  # noqa: PLC0415 - likewise

    end_with_parent()
    spark = SparkSession.builder.getOrCreate()
    run_sample(spark, json.loads(plan.read_text("utf-8"))["sample"])
    spark.sparkContext.parallelize(range(4), 2).map(lambda n: n + 1).collect()
    spark.stop()


if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder, as in driver_main
    from spark_runner.driver.quick_imports import prepare_imports

    prepare_imports()
    main(Path(sys.argv[1]))
