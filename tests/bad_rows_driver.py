"""A driver that kills itself at a chosen point of the writes to one folder.

Arguments: the folder of the script, the name of the folder that is written, the point, the number of the
attempt; the script, or a plan as JSON, is on standard input.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script

BEFORE, WITHIN, AFTER = "before the write", "within the write", "after the write"


def plan_of(text: str, folder: Path) -> dict[str, Any]:
    """The plan of a job with its quarantine in the folder."""
    plan = compile_script(text, file="s.sql", base_dir=str(folder), variables={})
    return {**plan, "quarantine": f"file:{folder}/bad"}


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, written: str, point: str, attempt: int) -> None:
    """Run the script until the point."""
    os.chdir(folder)  # Spark and Derby write into the working directory
    from pyspark.sql import SparkSession  # noqa: PLC0415 - tests import `plan_of` alone

    from spark_runner.connectors.files.sink import FileSink  # noqa: PLC0415 - likewise
    from spark_runner.connectors.files.targets import TargetDirectory  # noqa: PLC0415 - likewise
    from spark_runner.sql.execution.execution import execute  # noqa: PLC0415 - likewise

    write, move, here = FileSink.write, TargetDirectory._move_files, [False]  # noqa: SLF001 - to die within it

    def dying_write(self: FileSink, frame: Any, options: Any, request: Any) -> Any:
        here[0] = str(options["path"]).endswith(f"/{written}")
        if here[0] and point == BEFORE:
            _die()
        result = write(self, frame, options, request)
        if here[0] and point == AFTER:
            _die()
        return result

    def dying_move(self: TargetDirectory, root: Any, moved: list[Any] | None = None) -> None:
        move(self, root, moved)
        if here[0] and point == WITHIN:
            _die()

    FileSink.write = dying_write  # type: ignore[method-assign]  # the point of this program
    TargetDirectory._move_files = dying_move  # type: ignore[method-assign]  # noqa: SLF001 - likewise
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    given = sys.stdin.read()
    plan = json.loads(given) if given.startswith("{") else plan_of(given, folder)
    execute(spark, plan, lambda _: None, Writer("run", attempt))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
