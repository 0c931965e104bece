"""A driver that writes to a database, and kills itself some time after its first write has begun.

Arguments: the folder of the script, the number of the attempt, the seconds until the kill (0: none), and the
jars of the JDBC drivers; the script is on standard input.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from spark_runner.connectors.base import Writer
from tests.stream_driver import plan_of


def main(folder: Path, attempt: int, seconds: float, jars: str) -> None:
    """Run the script as one attempt."""
    os.chdir(folder)  # Spark and Derby write into the working directory
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as in tests.stream_driver

    from spark_runner.connectors.jdbc.record import WriteRecord  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution.execution import execute  # noqa: PLC0415 - likewise

    begin = WriteRecord.begin

    def begin_and_die(*given: Any, **named: Any) -> Any:
        if seconds:
            timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
            timer.daemon = True
            timer.start()
        return begin(*given, **named)

    WriteRecord.begin = begin_and_die  # type: ignore[method-assign]  # the point of this program
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()
    execute(spark, plan_of(sys.stdin.read(), folder), lambda _: None, Writer("killed-run", attempt))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
