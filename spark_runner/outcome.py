"""What is told of the end of a program: its class, its words, where they are kept when ZooKeeper is away."""

import contextlib
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_runner.errors import SparkRunnerError
from spark_runner.failures import kind_of
from spark_runner.jvm import JvmGone
from spark_runner.jvm_main import JvmError
from spark_runner.permanence import is_permanent
from spark_runner.process import RUN_DIR_VARIABLE, TERMINATION_LOG_VARIABLE
from spark_runner.redacted import redacted
from spark_runner.zookeeper import encode

_MAX_MESSAGE_CHARACTERS = 4_000
_MAX_TRACEBACK_CHARACTERS = 8_000
_MAX_BRIEF_CHARACTERS = 300  # each may become twelve bytes of JSON, and there is room for 4096


def of_exit(ending: SystemExit) -> tuple[dict[str, Any], int]:
    """The outcome of a program that called `sys.exit`, and its exit code."""
    code = _exit_code(ending.code)
    if code == 0:
        return {"state": "succeeded", "tables": []}, 0
    words = ending.code if isinstance(ending.code, str) else ""
    message = redacted(_readable(words.strip())) or f"the program exited with code {code}"
    error = {"class": "user", "type": "SystemExit", "message": message[:_MAX_MESSAGE_CHARACTERS]}
    return {"state": "failed", "error": error}, code


def of_error(error: BaseException) -> dict[str, Any]:
    """The outcome of a program that raised; what its user needs to see of it goes to stderr."""
    message = _readable(str(error)) or type(error).__name__
    name, stack = type(error).__name__, ""
    if isinstance(error, JvmError):
        name, stack = error.type, _readable(error.stack)
    elif not isinstance(error, SparkRunnerError):  # ours are for the user, who knows no stack of ours
        stack = _readable("".join(traceback.format_exception(error)))
    kind = kind_of(f"{name}: {message}")
    print("\n".join(filter(None, (kind.words, stack or message))), file=sys.stderr)  # noqa: T201 - its log
    message, stack = redacted(message), redacted(stack)  # before they are cut: half a secret is none to know
    error_class = kind.error_class
    if isinstance(error, MemoryError):
        error_class = "memory"
    elif isinstance(error, JvmGone):
        error_class = "lost"
    elif error_class == "user" and is_permanent(error):
        error_class = "definition"
    described = {
        "class": error_class,
        "type": name,
        "message": (kind.words or message)[:_MAX_MESSAGE_CHARACTERS],
    }
    if stack:
        described["traceback"] = stack[-_MAX_TRACEBACK_CHARACTERS:]
    return {"state": "lost" if error_class == "lost" else "failed", "error": described}


def keep_beside_logs(outcome: dict[str, Any]) -> None:
    """Write the outcome next to the logs: the verdict when ZooKeeper never comes back."""
    if termination_log := os.environ.get(TERMINATION_LOG_VARIABLE):
        with contextlib.suppress(OSError):  # it is for the case that ZooKeeper never comes back, and no more
            Path(termination_log).write_bytes(_brief(outcome))
    directory = os.environ.get(RUN_DIR_VARIABLE)
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


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)  # noqa: T201 - what Python does with sys.exit("words")
    return 1


def _readable(text: str) -> str:
    # Names of files that are no UTF-8 come as lone surrogates, which no log and no node can hold.
    return text.encode("utf-8", "replace").decode()
