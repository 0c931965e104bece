"""A driver that writes to a table of a lake, and kills itself.

Arguments: the folder of the script, the number of the write behind which it dies, and the seconds from the
begin of that write to its death (0: none, it dies when the write has ended); the script is on standard input.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from spark_runner.connectors.base import Writer
from tests.lake_support import CONF, lake_jars
from tests.stream_driver import plan_of


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, write: int, seconds: float) -> None:
    """Run the script as the first attempt."""
    os.chdir(folder)  # Spark and Derby write into the working directory
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as in tests.stream_driver

    from spark_runner.sql.execution import catalogs  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution.catalog_sink import CatalogSink  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution.execution import execute  # noqa: PLC0415 - likewise
    from spark_runner.sql.grammar.statements import CatalogAction  # noqa: PLC0415 - likewise

    run, add, begun = catalogs.run, CatalogSink._add, [0]  # noqa: SLF001 - to die within them

    def dying(written: Any, *given: Any) -> Any:
        begun[0] += 1
        if begun[0] == write and seconds:
            timer = threading.Timer(seconds, _die)
            timer.daemon = True
            timer.start()
        result = written(*given)
        if begun[0] == write and not seconds:
            _die()
        return result

    def dying_statement(script: Any, step: Any, *given: Any) -> Any:
        writes = CatalogAction(step["action"]).writes
        return dying(run, script, step, *given) if writes else run(script, step, *given)

    def dying_insert(self: CatalogSink, session: Any) -> None:
        dying(add, self, session)

    catalogs.run = dying_statement  # type: ignore[assignment]  # the point of this program
    CatalogSink._add = dying_insert  # type: ignore[method-assign]  # noqa: SLF001 - likewise
    builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(map(str, lake_jars())))
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    execute(builder.getOrCreate(), plan_of(sys.stdin.read(), folder), lambda _: None, Writer("run"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
