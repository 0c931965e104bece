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
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from queues.documents import encode
from queues.errors import QueueError
from queues.session import Session, SessionSettings
from spark_runner import exit_codes
from spark_runner.announcement import announce, leave_exit_code
from spark_runner.errors import SparkRunnerError
from spark_runner.holder import AttemptHolder, Superseded
from spark_runner.process import TERMINATION_LOG_VARIABLE
from spark_runner.program import run_program
from spark_runner.progress import SparkWatch

_PR_SET_PDEATHSIG = 1
_MAX_MESSAGE_CHARACTERS = 4_000
_MAX_TRACEBACK_CHARACTERS = 8_000
_OUT_OF_MEMORY = ("java.lang.OutOfMemoryError", "Command exited with code 52")  # the second: an executor's
_MAX_BRIEF_CHARACTERS = 300  # each may become twelve bytes of JSON, and there is room for 4096


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
    outcome, exit_code = _run(plan, holder)
    _keep_beside_logs(outcome)
    try:
        holder.end(outcome)
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
    directory = os.environ.get("ORCHESTRATOR_RUN_DIR")
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
    outcome, exit_code = _run_program(plan, holder, facts)
    if metrics := holder.finish_watching():
        facts["metrics"] = metrics
    return {**outcome, "exit_code": exit_code, **facts}, exit_code


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
        code = _exit_code(ending.code)
        if code == 0:
            return {"state": "succeeded", "tables": []}, 0
        words = ending.code if isinstance(ending.code, str) else ""
        message = _readable(words.strip()) or f"the program exited with code {code}"
        error = {"class": "user", "type": "SystemExit", "message": message[:_MAX_MESSAGE_CHARACTERS]}
        return {"state": "failed", "error": error}, code
    except BaseException as error:  # noqa: BLE001 - whatever ends the user's code is its outcome
        return {"state": "failed", "error": _describe(error)}, 1
    return {"state": "succeeded"}, 0


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)  # noqa: T201 - what Python does with sys.exit("words")
    return 1


def _describe(error: BaseException) -> dict[str, Any]:
    message = _readable(str(error)) or type(error).__name__
    out_of_memory = isinstance(error, MemoryError) or any(sign in message for sign in _OUT_OF_MEMORY)
    described = {
        "class": "memory" if out_of_memory else "user",
        "type": type(error).__name__,
        "message": message[:_MAX_MESSAGE_CHARACTERS],
    }
    if isinstance(error, SparkRunnerError):  # a message for the user, who knows nothing of our stack
        print(message, file=sys.stderr)  # noqa: T201 - its log
    else:
        text = _readable("".join(traceback.format_exception(error)))
        print(text, file=sys.stderr)  # noqa: T201 - its log
        described["traceback"] = text[-_MAX_TRACEBACK_CHARACTERS:]
    return described


def _readable(text: str) -> str:
    # Names of files that are no UTF-8 come as lone surrogates, which no log and no node can hold.
    return text.encode("utf-8", "replace").decode()


def _keep_beside_logs(outcome: dict[str, Any]) -> None:
    """Write the outcome next to the logs: the verdict when ZooKeeper never comes back."""
    if termination_log := os.environ.get(TERMINATION_LOG_VARIABLE):
        with contextlib.suppress(OSError):  # it is for the case that ZooKeeper never comes back, and no more
            Path(termination_log).write_bytes(_brief(outcome))
    directory = os.environ.get("ORCHESTRATOR_RUN_DIR")
    if not directory:
        return
    path = Path(directory) / "outcome.json"
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(encode(outcome))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _brief(outcome: Mapping[str, Any]) -> bytes:
    """The outcome in as few words as its smallest place takes: the status of a container."""
    error = {
        name: text[:_MAX_BRIEF_CHARACTERS]
        for name, text in (outcome.get("error") or {}).items()
        if name in {"class", "type", "message"}
    }
    kept = {name: outcome[name] for name in ("state", "exit_code", "application_id") if name in outcome}
    return encode({**kept, "error": error} if error else kept)
