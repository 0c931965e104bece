"""The process that Spark starts for a driver: its parent, its streams and its name."""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from orchestrator.logs.files import write_json
from spark_runner.process import RUN_DIR_VARIABLE

_PR_SET_PDEATHSIG = 1
APPLICATION_FILE = "application.json"  # in the run directory: the application, for the log collector


def end_with_parent() -> None:
    """Make the kernel end this process with the JVM that started it; otherwise it stays (measured)."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux: the owner of the run directory cleans up
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def keep_streams_apart() -> None:
    """Write to the logs of the run directory: Spark merges the stderr of a Python driver into its stdout."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    if not directory:
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # Spark's pipe never ends: a reader would wait for ever
    os.close(nothing)
    for stream, name in ((sys.stdout, "stdout.log"), (sys.stderr, "stderr.log")):
        stream.flush()
        path = Path(directory, name)
        if path.is_symlink():  # to an open file of the JVM: this user cannot open the log by name
            path = Path("/proc", str(os.getppid()), *path.readlink().parts[3:])
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, stream.fileno())
        os.close(log)


def name_application(facts: Mapping[str, str]) -> None:
    """Write the id of the application beside its logs, if there is a run directory."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    if not directory:
        return
    with contextlib.suppress(OSError):  # logs then name only the job
        write_json(Path(directory, APPLICATION_FILE), dict(facts), mode=None)
