"""The program of a job: a SQL script, a user's Python file, or the main class of a jar."""

import contextlib
import linecache
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import thread as pool_threads
from functools import cache
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, assert_never

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.driver.job_packages import use_packages
from spark_runner.driver.python_error import UserCode
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.process import INCARNATION_VARIABLE, RUN_DIR_VARIABLE, RUN_VARIABLE
from spark_runner.protocol.run_plan import JarProgram, PythonProgram, RunPlan, SqlProgram
from spark_runner.references.masks import Masks
from spark_runner.references.resolver import Resolver
from spark_runner.references.sources import Sources
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.folder import is_accessible, set_working_directory
from spark_runner.sql.execution.stream_control import StreamControl


class JvmError(SparkRunnerError):
    """An exception that the main method threw."""

    def __init__(self, error_type: str, message: str, stack: str) -> None:
        super().__init__(message or error_type)
        self.type = error_type  # the class of the exception
        self.stack = stack  # of Java


def run_main(spark: SparkSession, name: str, arguments: Sequence[str]) -> None:
    """Call `main` of the class; raises JvmError with the exception that it threw.

    `SparkSession.builder().getOrCreate()` in the class returns the session of the driver. An exit code with
    which the class ends the JVM, as in `System.exit(3)`, is the exit code of the driver.
    """
    context = spark.sparkContext
    jvm: Any = context._jvm  # noqa: SLF001 - PySpark has no public access to the JVM
    gateway: Any = context._gateway  # noqa: SLF001 - likewise
    texts = gateway.new_array(jvm.java.lang.String, len(arguments))
    for index, argument in enumerate(arguments):
        texts[index] = argument
    # spark-submit put the jars of the job into the class loader of its main thread, which Spark returns here.
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    try:
        program = jvm.java.lang.Class.forName(name, True, loader)
    except Py4JJavaError as error:
        message = f"there is no class {name} in the jars of the job"
        raise JvmError("ClassNotFoundException", message, "") from error
    try:
        main = program.getMethod("main", _array(gateway, jvm.java.lang.Class, texts.getClass()))
    except Py4JJavaError as error:
        raise JvmError("NoSuchMethodException", f"{name} has no public static main(String[])", "") from error
    jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)
    try:
        main.invoke(None, _array(gateway, jvm.java.lang.Object, texts))
    except Py4JJavaError as error:
        thrown = error.java_exception
        cause = thrown.getCause() or thrown  # reflection wraps the exception
        stack = jvm.org.apache.spark.util.Utils.exceptionString(cause)
        raise JvmError(cause.getClass().getName(), cause.getMessage() or "", stack) from error


def _array(gateway: Any, kind: Any, *items: Any) -> Any:
    made = gateway.new_array(kind, len(items))
    for index, item in enumerate(items):
        made[index] = item
    return made


def run_program(
    spark: SparkSession,
    plan: RunPlan,
    report: Callable[[str], None],
    bad_rows: list[dict[str, Any]],
    control: StreamControl,
) -> list[dict[str, Any]]:
    """Run the program of the plan; returns one dict per INSERT, none for other programs.

    `bad_rows` gets one dict per table with rows that do not fit, also if the program fails. `control` ends
    the streaming queries of a script, and gets their triggers.

    The environment identifies the run and its submission to the program, wherever it runs.
    """
    os.environ.setdefault(RUN_VARIABLE, plan.run)
    os.environ.setdefault(INCARNATION_VARIABLE, plan.incarnation)
    if not plan.warm:  # a shared JVM refuses all relative paths
        if plan.packages is not None:
            use_packages(
                plan.packages
            )  # first: their archive may be in the directory that Spark gave the driver
        set_working_directory(spark, plan.directory)
    match program := plan.program:
        case SqlProgram():
            writer = Writer(plan.run_key, plan.job.attempt)
            shares = bool(plan.warm)
            resolver = Resolver(Sources.of(plan.references), Masks(own_jvm=not shares))
            place = program.script.get("quarantine") or _own_quarantine(plan)
            return execute(
                spark,
                {**program.script, "quarantine": place},
                report,
                writer,
                shares_jvm=shares,
                resolver=resolver,
                bad_rows=bad_rows,
                control=control,
            )
        case JarProgram():
            report(f"running {program.main_class}")
            run_main(spark, program.main_class, program.arguments)
        case PythonProgram():
            _run_python(program, plan.directory, report)
        case _:
            assert_never(program)
    return []


def _own_quarantine(plan: RunPlan) -> str:
    """The folder of this run for rows that do not fit; empty on a cluster, whose nodes do not share it."""
    run = os.environ.get(RUN_DIR_VARIABLE)
    return f"file:{run}/quarantine" if run and plan.job.deploy_mode == "client" else ""


def _run_python(program: PythonProgram, directory: str, report: Callable[[str], None]) -> None:
    report(f"running {program.file}")
    script = script_of(program, directory)
    sys.argv = [str(script), *program.arguments]
    sys.path.insert(0, str(script.parent))  # as with `python job.py`: the modules beside it
    # The text is from the definition; the file of that name may have changed since.
    linecache.cache[str(script)] = (len(program.text), None, program.text.splitlines(True), str(script))
    main = ModuleType("__main__")
    main.__file__ = str(script)
    before, process = set(threading.enumerate()), os.getpid()
    previous, sys.modules["__main__"] = sys.modules["__main__"], main
    try:
        exec(compile(program.text, str(script), "exec"), main.__dict__)  # noqa: S102 - running it is the purpose of a job
    finally:
        _join_threads(before)
        if os.getpid() != process:
            _end_fork(sys.exception())
        sys.modules["__main__"] = previous


def _end_fork(error: BaseException | None) -> None:
    """End a process that the program forked, as Python would: its parent owns the attempt and the JVM.

    Locks that other threads of the driver held during the fork stay locked here, even those of imports. So
    nothing of the driver runs in this process.
    """
    code = 0
    if isinstance(error, SystemExit):
        code = exit_code(error)
    elif error is not None:
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def exit_code(ending: SystemExit) -> int:
    """The exit code that Python derives from `sys.exit(...)`; prints what is not a number."""
    if ending.code is None:
        return 0
    if isinstance(ending.code, int):
        return ending.code & 0xFF
    print(ending.code, file=sys.stderr)  # noqa: T201 - as Python does
    return 1


def user_code(plan: RunPlan) -> UserCode | None:
    """The Python files of a job, for its errors; None for a script in SQL, and for a jar."""
    if not isinstance(plan.program, PythonProgram):
        return None
    files, context = list[str](), SparkContext._active_spark_context  # noqa: SLF001 - no other way starts none
    with contextlib.suppress(Exception):  # its JVM has ended
        files = (context.getConf().get("spark.submit.pyFiles") or "").split(",") if context else []
    program = plan.program
    return UserCode(
        program.file,
        program.text,
        plan.directory,
        str(script_of(program, plan.directory)),
        {PurePosixPath(file).name: file for file in files if file},
    )


@cache
def script_of(program: PythonProgram, directory: str) -> Path:
    """The path that the program gets as its own file: the user's, or a copy if that is not accessible."""
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
    # pools must end first, or the join would never return.
    pool_threads._python_exit()  # noqa: SLF001 - the interpreter itself calls it
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
