"""The program inside Spark: takes the attempt, runs the job, records what became of it.

Everything that this module imports travels to nodes that have only Java and PySpark: standard library,
kazoo, and our own pure-Python modules.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from queues.errors import QueueError
from queues.session import Session, SessionSettings
from spark_runner import exit_codes, outcome
from spark_runner.announcement import announce, leave_exit_code
from spark_runner.holder import AttemptHolder, Superseded
from spark_runner.process import RUN_DIR_VARIABLE
from spark_runner.program import run_program
from spark_runner.progress import SparkWatch

_PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> int:
    """Run the plan in the file named by the only argument; returns the exit code of the driver."""
    end_with_parent()
    keep_streams_apart()
    announce()
    exit_code = _drive(arguments)
    leave_exit_code(exit_code)
    return exit_code


def _drive(arguments: Sequence[str]) -> int:
    plan = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    settings = SessionSettings.from_plan(plan["zookeeper"])
    session = Session(settings)
    try:
        session.start()
        holder = AttemptHolder(session, plan)
        holder.take()
    except Superseded as error:
        print(f"this driver ends without running anything: {error}", file=sys.stderr)  # noqa: T201 - its log
        return exit_codes.SUPERSEDED
    except QueueError as error:
        print(f"the attempt could not be taken, nothing was run: {error}", file=sys.stderr)  # noqa: T201
        return exit_codes.NO_CONTACT
    ended, exit_code = _run(plan, holder)
    outcome.keep_beside_logs(ended)
    try:
        holder.end(ended)
    except Superseded as error:
        print(f"the outcome was not recorded: {error}", file=sys.stderr)  # noqa: T201 - its log
        return exit_codes.SUPERSEDED
    with contextlib.suppress(Exception):  # the job is over and its outcome stands; Spark may stop as it likes
        active = SparkSession.getActiveSession()
        if active is not None:
            active.stop()
    session.close()
    return exit_code


def end_with_parent() -> None:
    """Make the kernel end this process with the JVM that started it; measured: else it stays for ever."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux: the run directory's owner cleans up
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def keep_streams_apart() -> None:
    """Write to the run directory's own logs: Spark merges a Python driver's stderr into its stdout."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    if not directory:
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # Spark's pipe never ends: who reads it would wait for ever
    os.close(nothing)
    for stream, name in ((sys.stdout, "stdout.log"), (sys.stderr, "stderr.log")):
        stream.flush()
        log = os.open(Path(directory, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, stream.fileno())
        os.close(log)


def _run(plan: dict[str, Any], holder: AttemptHolder) -> tuple[dict[str, Any], int]:
    """The outcome of the user's program, with what it took, and the exit code that says the same."""
    facts: dict[str, Any] = {}
    process = os.getpid()
    ended, exit_code = _run_program(plan, holder, facts)
    if os.getpid() != process:  # a fork of the program came back to here: the attempt is its parent's
        sys.stdout.flush()
        os._exit(exit_code)
    if metrics := holder.finish_watching():
        facts["metrics"] = metrics
    return {**ended, "exit_code": exit_code, **facts}, exit_code


def _run_program(
    plan: dict[str, Any], holder: AttemptHolder, facts: dict[str, Any]
) -> tuple[dict[str, Any], int]:
    try:
        holder.report("starting Spark")
        spark = SparkSession.builder.getOrCreate()
        watch = SparkWatch(spark, holder.look_again)
        facts |= watch.application
        holder.observe(watch)
        facts["tables"] = run_program(spark, plan, holder.report)
    except SystemExit as ending:
        return outcome.of_exit(ending)
    except BaseException as error:  # noqa: BLE001 - whatever ends the user's code is its outcome
        return outcome.of_error(error), 1
    return {"state": "succeeded"}, 0
