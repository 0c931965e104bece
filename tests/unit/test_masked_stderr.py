"""What a process writes on stderr has no secret in it: log lines, tracebacks, and what no code catches."""

import subprocess
import sys

import pytest

from tests.secret_kinds import KINDS

LOGGED = "from loguru import logger; settle(); logger.warning('{}', text)"
TRACED = """
from loguru import logger; settle()
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
def test_no_kind_of_secret_stands_on_stderr(program: str) -> None:
    text = "\n".join(kind.text for kind in KINDS.values())
    begin = (
        "from orchestrator.logs.console import log_to_stderr, mask_uncaught, settle\n"
        f"log_to_stderr('INFO', verbose=True); mask_uncaught(); text = {text!r}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", begin + program], capture_output=True, text=True, check=False
    )
    assert "***" in done.stderr, done.stderr
    found = [trace for kind in KINDS.values() for trace in kind.traces if trace in done.stderr]
    assert found == []
