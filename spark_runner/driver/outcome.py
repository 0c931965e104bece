"""The outcome of a program: its class, its message, and its files for when ZooKeeper is unreachable."""

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import AnalysisException, PySparkException

from orchestrator.logs.files import replace_file
from spark_runner.connectors.errors import ConnectorError, TargetChanged, Unreachable
from spark_runner.connectors.files.misfits import misfit
from spark_runner.driver.jvm import JvmGone
from spark_runner.driver.last_words import LastWords
from spark_runner.driver.program import JvmError, exit_code
from spark_runner.driver.python_error import PythonError, UserCode, described, from_program, text_of
from spark_runner.protocol.errors import EXCEPTION_LINE, PackagesUnusable, SparkRunnerError
from spark_runner.protocol.failures import PATTERNS, classify
from spark_runner.protocol.process import RUN_DIR_VARIABLE, TERMINATION_LOG_VARIABLE
from spark_runner.protocol.redacted import has_secrets, redacted
from spark_runner.protocol.shortages import shortage
from spark_runner.protocol.text import shortened
from spark_runner.protocol.zookeeper import encode
from spark_runner.sql.text.errors import SqlError

# Invalid programs, missing modules and missing files.
_OF_PYTHON = (SyntaxError, ImportError, FileNotFoundError, IsADirectoryError, NotADirectoryError)

_JAVA = re.compile(PATTERNS["definition"])


def is_permanent(error: BaseException) -> bool:
    """Whether a further attempt would end with the same error."""
    if isinstance(error, SqlError):
        # An error of the script alone has no cause.
        cause = error.__cause__
        found = None if cause is None else misfit(cause)
        return found.is_settled if found is not None else cause is None or is_permanent(cause)
    if isinstance(error, AnalysisException):
        # An error that another failure caused (a metastore does not answer) has a cause.
        cause = getattr(error, "_cause", None)
        return cause is None or is_permanent(cause)
    if isinstance(error, JvmError | Py4JJavaError):
        return _JAVA.match(_words(error)) is not None
    if isinstance(error, PackagesUnusable):
        return True
    if isinstance(error, ConnectorError):
        return not isinstance(error, TargetChanged | Unreachable)
    # UnboundLocalError, of a name that only one branch assigns, may depend on the data.
    return isinstance(error, _OF_PYTHON) or type(error) is NameError


def _words(error: JvmError | Py4JJavaError) -> str:
    """The class and message of a Java error; empty if its JVM has ended meanwhile."""
    if isinstance(error, JvmError):
        return f"{error.type}: {error}"
    with contextlib.suppress(Py4JError):
        raised = error.java_exception
        return f"{raised.getClass().getName()}: {raised.getMessage()}"
    return ""


def _is_unreachable(error: BaseException) -> bool:
    """Whether a system that a table names does not answer: that is no fault of the script."""
    while isinstance(error, SqlError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, PySparkException | Py4JJavaError):
        from spark_runner.connectors.arrow_tasks import error_of_task  # noqa: PLC0415 - it loads pyspark.sql

        error = error_of_task(error)
    return isinstance(error, Unreachable)


_MAX_MESSAGE_CHARACTERS = 4_000
_MAX_TRACEBACK_CHARACTERS = 8_000
_MAX_LINE_CHARACTERS = 300  # of the last lines on stderr
_MAX_LOGGED_FRAMES = 2_000  # of each traceback in the log: those nearest to the error
_MAX_BRIEF_CHARACTERS = 300  # each may become twelve bytes of JSON, and 4096 bytes is the limit


def of_exit(ending: SystemExit, last_words: LastWords | None = None) -> tuple[dict[str, Any], int]:
    """The outcome of a program that called `sys.exit`, and its exit code; its last lines say why."""
    code = exit_code(ending)
    if code == 0:
        return {"state": "succeeded", "tables": []}, 0
    words = ending.code if isinstance(ending.code, str) else ""
    message = redacted(_readable(words.strip()))
    if not message:
        lines = [] if last_words is None else redacted(last_words.lines())
        message = "\n".join(_of_code(code, [shortened(line, _MAX_LINE_CHARACTERS) for line in lines]))
    error = {"class": "user", "type": "SystemExit", "message": message[:_MAX_MESSAGE_CHARACTERS]}
    return {"state": "failed", "error": error}, code


def _of_code(code: int, lines: list[str]) -> list[str]:
    """The last line in the first one, which lists show; the block when there is more to read."""
    head = f"the program exited with code {code}"
    if not lines:
        return [head]
    block = ["its last lines on stderr:", *(f"  {line}" for line in lines)] if len(lines) > 1 else []
    return [f"{head}: {lines[-1].strip()}", *block]


def of_error(error: BaseException, *, is_local: bool = False, code: UserCode | None = None) -> dict[str, Any]:
    """The outcome of a program that raised an exception; also prints it to stderr for the user.

    `is_local`: its tasks ran in the JVM of the driver. `code` is a program in Python.
    """
    message = text_of(error) or type(error).__name__
    name, stack = type(error).__name__, ""
    if isinstance(error, JvmError):
        name, stack = error.type, _readable(error.stack)
    elif not isinstance(error, SparkRunnerError):  # its message is for users
        frames = error.__traceback__ if code is None else from_program(error, code)
        lines = traceback.format_exception(type(error), error, frames, limit=-_MAX_LOGGED_FRAMES)
        stack = _readable("".join(lines))
        if code is not None:
            print(EXCEPTION_LINE, file=sys.stderr)  # noqa: T201 - its log
    whole = f"{name}: {message}"
    kind = classify(whole)
    print("\n".join(filter(None, (kind.words, stack or message))), file=sys.stderr)  # noqa: T201 - its log
    if code is not None and stack and (shown := _of_program(error, code)):
        name, message, stack = shown.type, shown.message, shown.stack
    elif code is not None and isinstance(error, Py4JJavaError) and (words := _words(error)):
        (name, _, message), stack = words.partition(": "), ""  # Spark's own start: the log has its frames
    message, stack = redacted(message), redacted(stack)  # before the cut: half a secret is not recognized
    error_class, short_of = _class_of(error, kind.error_class, whole, is_local=is_local)
    document = {
        "class": error_class,
        "type": name,
        "message": (kind.words or message)[:_MAX_MESSAGE_CHARACTERS],
    }
    if short_of is not None:
        document["short_of"] = short_of
    if stack:
        document["traceback"] = stack[-_MAX_TRACEBACK_CHARACTERS:]
    return {"state": "lost" if error_class == "lost" else "failed", "error": document}


def _class_of(error: BaseException, found: str, whole: str, *, is_local: bool) -> tuple[str, str | None]:
    """The class of `retry.on` of an error, and what it is short of; `found` is that of its message."""
    if isinstance(error, MemoryError):
        return "memory", "driver.overhead"  # this process is beside the JVM
    if isinstance(error, JvmGone):
        return "lost", None
    if _is_unreachable(error):
        return "infrastructure", None
    if found == "user" and is_permanent(error):
        return "definition", None
    return found, shortage(whole, is_local=is_local) if found == "memory" else None


def _of_program(error: BaseException, code: UserCode) -> PythonError | None:
    with contextlib.suppress(Exception):  # the program made the exception, and may have made it odd
        return described(error, code)
    return None


def write_beside_logs(outcome: dict[str, Any]) -> None:
    """Write the outcome beside the logs: it is the verdict if ZooKeeper never comes back.

    Known secrets are masked, also in the first rows that a sink shows.
    """
    if has_secrets():
        outcome = redacted(outcome)
    if termination_log := os.environ.get(TERMINATION_LOG_VARIABLE):
        with contextlib.suppress(OSError):  # only needed if ZooKeeper never comes back
            Path(termination_log).write_bytes(_brief(outcome))
    directory = os.environ.get(RUN_DIR_VARIABLE)
    if not directory:
        return
    path = Path(directory) / "outcome.json"
    replace_file(path, encode(outcome), mode=None, durable=True)


def _brief(outcome: Mapping[str, Any]) -> bytes:
    """The outcome, cut to the size of the status of a container, the smallest store for it."""
    error = {
        name: text[:_MAX_BRIEF_CHARACTERS]
        for name, text in (outcome.get("error") or {}).items()
        if name in {"class", "type", "message", "short_of"}
    }
    kept = {name: outcome[name] for name in ("state", "exit_code", "application_id") if name in outcome}
    return encode({**kept, "error": error} if error else kept)


def _readable(text: str) -> str:
    # File names that are not UTF-8 hold lone surrogates, which no log and no node can store.
    return text.encode("utf-8", "replace").decode()
