"""A driver that kills itself at a chosen point of a chosen micro-batch, or behind an INSERT into a catalog.

Arguments: the folder of the script, the batch, the point, and for a point within a write the end of the name
of the folder, or of the table of a catalog, that is written; the script is on standard input. MASTER in its
environment is another cluster than the local one.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script


def plan_of(text: str, folder: Path, **variables: str) -> dict[str, Any]:
    """The plan of a job named `job` with its checkpoints in the folder."""
    plan = compile_script(text, file="s.sql", base_dir=str(folder), variables=variables)
    found: dict[str, Any] = json.loads(json.dumps(plan))
    return {**found, "checkpoints": f"file:{folder}/checkpoints/job"}


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, batch: int, point: str, written: str = "") -> None:
    """Run the script until the point."""
    os.chdir(folder)  # Spark and Derby write into the working directory
    from pyspark.sql import SparkSession  # noqa: PLC0415 - tests import `plan_of` alone

    from spark_runner.connectors.files.targets import TargetDirectory  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution import catalogs  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution.catalog_sink import CatalogSink  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution.execution import execute  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution.streaming import MicroBatches  # noqa: PLC0415 - likewise

    write, moved = MicroBatches.write, [0]
    add, insert = TargetDirectory._move_files, CatalogSink._add  # noqa: SLF001 - to die within them

    def dying_write(self: MicroBatches, frame: Any, number: int) -> None:
        moved[0] = number
        if number == batch and point == "before the write":
            _die()
        write(self, frame, number)
        if number == batch and point == "after the write":
            _die()

    def dying_add(self: TargetDirectory, root: Any, done: list[Any] | None = None) -> None:
        add(self, root, done)
        if moved[0] == batch and point == "within the write" and self._location.endswith(written):
            _die()

    def dying_insert(self: CatalogSink, session: Any) -> None:
        insert(self, session)
        if moved[0] == batch and point == "within the write" and written in self._statement:
            _die()

    def dying_statement(script: Any, step: Any, of_set: Any = ()) -> Any:
        result = run(script, step, of_set)
        if point == "behind an INSERT" and step["action"].startswith("INSERT") and step["target"] == written:
            _die()
        return result

    run, catalogs.run = catalogs.run, dying_statement
    MicroBatches.write = dying_write  # type: ignore[method-assign, assignment]  # the point of this program
    TargetDirectory._move_files = dying_add  # type: ignore[method-assign, assignment]  # noqa: SLF001 - likewise
    CatalogSink._add = dying_insert  # type: ignore[method-assign]  # noqa: SLF001 - likewise
    builder = SparkSession.builder.master(os.environ.get("MASTER", "local[2]"))
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    execute(spark, plan_of(sys.stdin.read(), folder), lambda _: None, Writer("run"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
