"""Runs the program of a job: a SQL script, a user's Python file, or the main class of a jar."""

import linecache
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import thread as pool_threads
from pathlib import Path
from types import ModuleType
from typing import Any, assert_never

from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.folder import is_accessible, set_working_directory
from spark_runner.jvm_main import run_main
from spark_runner.process import INCARNATION_VARIABLE, RUN_DIR_VARIABLE, RUN_VARIABLE
from spark_runner.run_plan import JarProgram, PythonProgram, RunPlan, SqlProgram
from spark_runner.sql.execution import execute


def run_program(spark: SparkSession, plan: RunPlan, report: Callable[[str], None]) -> list[dict[str, Any]]:
    """Run the program of the plan; returns one dict per INSERT, none for other programs.

    The environment identifies the run and its submission to the program, wherever it runs.
    """
    os.environ.setdefault(RUN_VARIABLE, plan.run)
    os.environ.setdefault(INCARNATION_VARIABLE, plan.incarnation)
    if not plan.warm:  # a shared JVM refuses all relative paths
        set_working_directory(spark, plan.directory)
    match program := plan.program:
        case SqlProgram():
            writer = Writer(plan.run_key, plan.job.attempt)
            return execute(spark, program.script, report, writer, shares_jvm=bool(plan.warm))
        case JarProgram():
            report(f"running {program.main_class}")
            run_main(spark, program.main_class, program.arguments)
        case PythonProgram():
            _run_python(program, plan.directory, report)
        case _:
            assert_never(program)
    return []


def _run_python(program: PythonProgram, directory: str, report: Callable[[str], None]) -> None:
    report(f"running {program.file}")
    script = _script(program, directory)
    sys.argv = [str(script), *program.arguments]
    sys.path.insert(0, str(script.parent))  # as with `python job.py`: the modules beside it
    # The text is from the definition; the file of that name may have changed since.
    linecache.cache[str(script)] = (len(program.text), None, program.text.splitlines(True), str(script))
    main = ModuleType("__main__")
    main.__file__ = str(script)
    before = set(threading.enumerate())
    ours, sys.modules["__main__"] = sys.modules["__main__"], main
    try:
        exec(compile(program.text, str(script), "exec"), main.__dict__)  # noqa: S102 - to run it is the purpose of a job
    finally:
        _join_threads(before)
        sys.modules["__main__"] = ours


def _script(program: PythonProgram, directory: str) -> Path:
    """The path that the program gets as its own file: the user's, or a copy where it is not accessible."""
    name = Path(program.file).name
    if is_accessible(directory):
        return Path(directory, name)
    # On a cluster the copy is in the folder that the node gave this driver.
    folder = Path(os.environ.get(RUN_DIR_VARIABLE) or tempfile.mkdtemp(), "program").absolute()
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(program.text, encoding="utf-8")
    return script


def _join_threads(before: set[threading.Thread]) -> None:
    # As Python does at exit: while a thread of the program works, there is no outcome yet. Idle threads of
    # pools are asked to end first, or the join would never return.
    pool_threads._python_exit()  # noqa: SLF001 - the interpreter itself calls it
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
