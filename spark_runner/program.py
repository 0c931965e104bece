"""What a job consists of: a SQL script, a user's Python file, or the main class of a jar."""

import os
import runpy
import sys
import threading
from collections.abc import Callable
from concurrent.futures import thread as pool_threads
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.jvm_main import run_main
from spark_runner.process import INCARNATION_VARIABLE, RUN_DIR_VARIABLE, RUN_VARIABLE
from spark_runner.sql.execution import execute


def run_program(
    spark: SparkSession, plan: dict[str, Any], report: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Run the program of the plan; returns what each INSERT wrote, nothing for other programs.

    It can tell its attempt from others by the environment, wherever it runs.
    """
    os.environ.setdefault(RUN_VARIABLE, plan["run"])
    os.environ.setdefault(INCARNATION_VARIABLE, plan["incarnation"])
    if "sql" in plan:
        return execute(spark, plan["sql"], report)
    if "jar" in plan:
        report(f"running {plan['jar']['class']}")
        run_main(spark, plan["jar"]["class"], plan["jar"]["arguments"])
    else:
        _run_python(plan["python"], report)
    return []


def _run_python(python: dict[str, Any], report: Callable[[str], None]) -> None:
    report(f"running {python['file']}")
    # The text travels in the definition; the file is made here under its own name, so that tracebacks fit.
    # On a cluster that is in the folder that the node has given this driver.
    folder = Path(os.environ.get(RUN_DIR_VARIABLE, "."), "program").absolute()
    folder.mkdir(exist_ok=True)
    script = folder / Path(python["file"]).name
    script.write_text(python["text"], encoding="utf-8")
    sys.argv = [str(script), *python["arguments"]]
    sys.path.insert(0, str(script.parent))
    directory = python["directory"]
    if directory and Path(directory).is_dir():  # it may not be there on another node
        sys.path.insert(0, directory)  # as for `python job.py`: the modules beside it
        os.chdir(directory)  # relative paths mean the same as in a SQL script
    before = set(threading.enumerate())
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        _join_threads(before)


def _join_threads(before: set[threading.Thread]) -> None:
    # As Python does at its end: while a thread of the program works, there is no outcome yet. Idle threads of
    # pools are told to end first, or they would be waited for for ever.
    pool_threads._python_exit()  # noqa: SLF001 - what the interpreter itself calls
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
