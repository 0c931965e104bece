"""What a person sees who types `orchestrator run`."""

import re

import pytest

from tests.acceptance.support import (
    COMMAND,
    COMMAND_TIMEOUT_S,
    Desk,
    assert_no_traceback,
    assert_nothing_is_left,
)
from tests.acceptance.terminal import HIDE_CURSOR, SHOW_CURSOR, Terminal
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

# Four tasks of three quarters of a second, one after the other: long enough that their progress is shown.
SLOW_STAGE = """\
import time

from pyspark.sql import SparkSession


def slowly(number):
    time.sleep(0.75)
    return number


context = SparkSession.builder.getOrCreate().sparkContext
print("sum:", context.parallelize(range(4), 4).map(slowly).sum())
"""


def test_a_line_per_state_with_time_and_progress_then_the_result(desk: Desk, process_mark: str) -> None:
    definition = desk.python_job("slow", SLOW_STAGE)
    command = [*COMMAND, "run", str(definition), "--id", "slow-1"]
    with Terminal(command, desk.directory, desk.environment) as terminal:
        wait_until(lambda: terminal.is_closed, COMMAND_TIMEOUT_S, "the command ends")
        assert terminal.exit_code() == 0, terminal.text()
        text, raw = terminal.text(), terminal.raw()
    assert_nothing_is_left(process_mark)
    assert_no_traceback(text)
    for queue in ("accept", "running", "success"):
        assert re.search(rf"✓ {queue} +[\d.]+ s", text), text
    assert re.search(r"✓ finish +SUCCESS", text), text
    # The time of the state goes on while it lasts, and Spark's tasks are counted.
    assert len(set(re.findall(r"running +([\d.]+) s +running slow.py", text))) > 5, text
    assert re.search(r"running slow.py · stage \d+: [0-3]/4 tasks", text), text
    last_state = text.rindex("✓ finish")
    assert text.index("sum: 6") > last_state, "the result is below the states"
    assert "orchestrator job show slow-1" in text[last_state:]
    assert "orchestrator job logs slow-1" in text[last_state:]
    assert raw.rfind(SHOW_CURSOR) > raw.rfind(HIDE_CURSOR) >= 0, "the cursor is shown again"
