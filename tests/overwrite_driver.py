"""A driver that kills itself when it has made some changes to a folder that it replaces.

Arguments: the folder of the script, how folders are replaced, the number of changes; the script is on
standard input.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script


def plan_of(text: str, folder: Path) -> dict[str, Any]:
    """The plan of a script in this folder."""
    plan = compile_script(text, file="s.sql", base_dir=str(folder), variables={})
    found: dict[str, Any] = json.loads(json.dumps(plan))
    return found


def main(folder: Path, kind: str, changes: int) -> None:
    """Run the script until its death."""
    os.chdir(folder)  # Spark and Derby write into the working directory
    from pyspark.sql import SparkSession  # noqa: PLC0415 - tests import `plan_of` alone

    from spark_runner.sql.execution.execution import execute  # noqa: PLC0415 - likewise
    from tests.dying_files import arm  # noqa: PLC0415 - likewise

    arm(pytest.MonkeyPatch(), kind, changes, lambda: os.kill(os.getpid(), signal.SIGKILL))
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    execute(spark, plan_of(sys.stdin.read(), folder), lambda _: None, Writer("run"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
