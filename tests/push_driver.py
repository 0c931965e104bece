"""A driver that runs the script on standard input, and writes the numbers of its pushes while it runs.

Arguments: the folder of the script, the master, settings as JSON, and the file of the numbers. Each of its
lines is a JSON array: the time by the monotonic clock of this host, and the numbers by target.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

from tests.stream_driver import plan_of

_LOOK_S = 0.1


def main(folder: Path, master: str, conf: dict[str, str], numbers: Path) -> None:
    """Run the script."""
    os.chdir(folder)  # Spark writes into the working directory
    from pyspark.sql import SparkSession  # noqa: PLC0415 - after the change of the directory

    from spark_runner.connectors.base import Writer  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution.execution import execute  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution.stream_control import StreamControl  # noqa: PLC0415 - likewise

    control, is_done = StreamControl(lambda: None), threading.Event()

    def write() -> None:
        with numbers.open("a", encoding="utf-8") as file:
            while not is_done.wait(_LOOK_S):
                found = control.pushes.document()  # counts what has come until now
                file.write(json.dumps([time.monotonic(), found]) + "\n")
                file.flush()

    builder = SparkSession.builder.master(master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    thread = threading.Thread(target=write)
    thread.start()
    try:
        execute(spark, plan_of(sys.stdin.read(), folder), lambda _: None, Writer("run"), control=control)
    finally:
        is_done.set()
        thread.join()
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), Path(sys.argv[4]))
