"""The stderr of a process contains no secret: in log lines, tracebacks and uncaught errors."""

import os
import subprocess
import sys

import pytest

from tests.secret_kinds import KINDS

LOGGED = "from loguru import logger; configure_loguru(); logger.warning('{}', text)"
TRACED = """
from loguru import logger; configure_loguru()
try:
    raise RuntimeError(text)
except RuntimeError as error:
    logger.opt(exception=error).error("it failed")
"""
OF_A_THREAD = """
import threading
def fail():
    raise RuntimeError(text)
thread = threading.Thread(target=fail); thread.start(); thread.join()
"""
OF_THE_LIBRARY = "import logging; logging.getLogger('kazoo.client').error('%s', text)"
UNCAUGHT = "raise RuntimeError(text)"


@pytest.mark.parametrize("program", [LOGGED, TRACED, OF_A_THREAD, OF_THE_LIBRARY, UNCAUGHT])
def test_no_kind_of_secret_is_written_to_stderr(program: str) -> None:
    text = "\n".join(kind.text for kind in KINDS.values())
    # Not in an argument: other tests search the command lines of all processes for secrets.
    begin = (
        "import sys\n"
        "from orchestrator.logs.console import log_to_stderr, mask_uncaught, configure_loguru\n"
        "log_to_stderr('INFO', verbose=True); mask_uncaught(); text = sys.stdin.read()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", begin + program], input=text, capture_output=True, text=True, check=False
    )
    assert "***" in done.stderr, done.stderr
    found = [trace for kind in KINDS.values() for trace in kind.traces if trace in done.stderr]
    assert found == []


HIDING = ("8", "30", "1;8", "30;40", "41", "47", "38;5;0", "38;2;0;0;0", "7", "97", "00008", "")
"""Codes that conceal text or give it the colour of its background."""


@pytest.mark.parametrize("program", [LOGGED, TRACED, UNCAUGHT])
def test_colours_in_a_message_are_removed_from_stderr_and_those_of_the_log_pass(program: str) -> None:
    text = "".join(f"\x1b[{code}m" for code in HIDING)
    begin = (
        "import sys; sys.stderr.isatty = lambda: True\n"
        "from orchestrator.logs.console import log_to_stderr, mask_uncaught, configure_loguru\n"
        f"log_to_stderr('INFO', verbose=True); mask_uncaught(); text = {text!r}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", begin + program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TERM": "xterm", "FORCE_COLOR": "1"},
    )
    shown = "".join(f"\\x1b[{code}m" for code in HIDING)
    assert shown in done.stderr
    assert "\x1b[8m" not in done.stderr
    without = done.stderr.replace(shown, "")
    assert "\\x1b[" not in without, "a colour of the log itself"
    assert ("\x1b[" in without) is (program is not UNCAUGHT)
