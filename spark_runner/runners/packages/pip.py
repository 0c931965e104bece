"""Runs pip, which installs wheels into a folder."""

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from spark_runner.protocol.errors import SubmissionError
from spark_runner.runners.packages.pip_failures import (
    HIDDEN_LOGIN,
    failure,
    last_words,
    unfetched_pages,
    without_logins,
)
from spark_runner.runners.packages.python import TargetPython

INSTALL_SECONDS = 1200.0  # a gigabyte at 1 MB/s; then the index counts as unavailable
_CONFIG_SECONDS = 60.0
_RETRIES = 3  # of each request
_MAX_OUTPUT_BYTES = 4 << 20

# The child ends with this process: nothing may write into a folder that has no owner.
_WITH_PARENT = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGKILL);"
    " os.execv(sys.argv[1], sys.argv[1:])"
)
# The operator's settings for pip count, except for those that select the place of the packages.
_PLACES = (
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_PYTHON",
    "PIP_REPORT",
    "PIP_DRY_RUN",
    "PIP_REQUIREMENT",
)
_SETTINGS = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_NO_COLOR": "1",
    "PIP_PROGRESS_BAR": "off",
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_USER": "0",
    "PYTHONUTF8": "1",
}
_LOG = "pip.log"  # pip names pages that it could not fetch in its log alone


def check_pip() -> None:
    """Raise SubmissionError if this Python has no pip."""
    if importlib.util.find_spec("pip") is None:
        raise SubmissionError(
            f"`requirements` need pip in the Python of the worker: run {sys.executable} -m ensurepip"
        )


def index_settings() -> list[str]:
    """The settings of pip in force on this host, without logins; raises SubmissionError."""
    lines = _run([sys.executable, "-P", "-m", "pip", "config", "list"], Path("/"), _CONFIG_SECONDS)
    return sorted({line.replace(HIDDEN_LOGIN, "") for line in lines.splitlines() if "=" in line})


def install(
    requirements: Sequence[str],
    target: Path,
    *,
    python: TargetPython,
    provided: Path,
    constraints: Path,
    seconds: float = INSTALL_SECONDS,
) -> None:
    """Install wheels into `target`; `provided` has wheels of what the platform offers.

    Raises RefusedSubmission where no try can succeed, SubmissionError where a later one may.
    """
    chosen = [] if python.is_own else ["--python", python.path]
    command = [sys.executable, "-P", "-m", "pip", *chosen, "install", "--target", str(target)]
    # A source distribution would run its code as the user of the worker.
    # Pip reports a failed connection only when it tries again.
    log = target.parent / _LOG
    command += [
        "--log",
        str(log),
        "--retries",
        str(_RETRIES),
        "--only-binary",
        ":all:",
        "--find-links",
        str(provided),
        "--constraint",
        str(constraints),
    ]
    try:
        _run([*command, *requirements], target.parent, seconds)
    except _PipFailed as error:
        raise failure(error.text, requirements, python, unfetched_pages(log)) from error


class _PipFailed(SubmissionError):
    """Pip ended with an error; `text` is its output."""

    def __init__(self, text: str) -> None:
        super().__init__(f"pip failed: {last_words(text)}")
        self.text = text


def _run(command: Sequence[str], folder: Path, seconds: float) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in {*_PLACES, "PYTHONPATH"}}
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WITH_PARENT, *command],
        cwd=folder,
        env=kept | _SETTINGS,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    try:
        output, _ = child.communicate(timeout=seconds)
    except BaseException as error:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            message = f"pip has not ended within {seconds:.0f} s"
            raise SubmissionError(message) from error
        raise
    text = without_logins(output[-_MAX_OUTPUT_BYTES:].decode("utf-8", "replace"))
    if child.returncode:
        raise _PipFailed(text)
    return text
