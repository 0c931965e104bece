"""What a job consists of: a SQL script, a user's Python file, or the main class of a jar."""

import linecache
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import thread as pool_threads
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.folder import is_here, settle
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
    if "warm" not in plan:  # a JVM that others use, too, refuses relative paths for all
        settle(spark, plan.get("directory", ""))
    if "sql" in plan:
        writer = Writer(plan["run_key"], plan["job"]["attempt"])
        return execute(spark, plan["sql"], report, writer, shares_jvm="warm" in plan)
    if "jar" in plan:
        report(f"running {plan['jar']['class']}")
        run_main(spark, plan["jar"]["class"], plan["jar"]["arguments"])
    else:
        _run_python(plan["python"], plan.get("directory", ""), report)
    return []


def _run_python(python: dict[str, Any], directory: str, report: Callable[[str], None]) -> None:
    report(f"running {python['file']}")
    script = _script(python, directory)
    sys.argv = [str(script), *python["arguments"]]
    sys.path.insert(0, str(script.parent))  # as for `python job.py`: the modules beside it
    # The text travels in the definition, and a file of that name may have changed since.
    linecache.cache[str(script)] = (len(python["text"]), None, python["text"].splitlines(True), str(script))
    main = ModuleType("__main__")
    main.__file__ = str(script)
    before = set(threading.enumerate())
    ours, sys.modules["__main__"] = sys.modules["__main__"], main
    try:
        exec(compile(python["text"], str(script), "exec"), main.__dict__)  # noqa: S102 - it is what a job is
    finally:
        _join_threads(before)
        sys.modules["__main__"] = ours


def _script(python: dict[str, Any], directory: str) -> Path:
    """What the program finds as its own file: the user's, or a copy where that is not there."""
    name = Path(python["file"]).name
    if is_here(directory):
        return Path(directory, name)
    # On a cluster that is in the folder that the node has given this driver.
    folder = Path(os.environ.get(RUN_DIR_VARIABLE) or tempfile.mkdtemp(), "program").absolute()
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(python["text"], encoding="utf-8")
    return script


def _join_threads(before: set[threading.Thread]) -> None:
    # As Python does at its end: while a thread of the program works, there is no outcome yet. Idle threads of
    # pools are told to end first, or they would be waited for for ever.
    pool_threads._python_exit()  # noqa: SLF001 - what the interpreter itself calls
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
