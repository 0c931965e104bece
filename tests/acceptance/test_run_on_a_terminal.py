"""The output of `orchestrator run` on a terminal."""

import re
from pathlib import Path

import pytest

from tests.acceptance.support import (
    COMMAND,
    COMMAND_TIMEOUT_S,
    DURATION,
    SPARK_TIMEOUT_S,
    Shell,
    assert_no_traceback,
    assert_nothing_is_left,
)
from tests.acceptance.terminal import HIDE_CURSOR, Terminal
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

TIMES = re.compile(rf"running +({DURATION}) +running slow.py")
PROGRESS = re.compile(r"running slow.py · stage \d+: [0-3]/4 tasks")


def slow_stage(go_on: Path) -> str:
    """Four sequential tasks, none of which ends before the file exists."""
    return f"""
import pathlib, time

from pyspark.sql import SparkSession


def slowly(number):
    while not pathlib.Path({str(go_on)!r}).exists():
        time.sleep(0.05)
    return number


context = SparkSession.builder.getOrCreate().sparkContext
print("sum:", context.parallelize(range(4), 4).map(slowly).sum())
"""


def test_a_line_per_state_with_time_and_progress_then_the_result(
    shell: Shell, process_mark: str, tmp_path: Path
) -> None:
    go_on = tmp_path / "go-on"
    definition = shell.python_job("slow", slow_stage(go_on))
    command = [*COMMAND, "run", str(definition), "--id", "slow-1"]
    with Terminal(command, shell.directory, shell.environment) as terminal:
        # The time of the current state advances, and Spark's tasks are counted.
        wait_until(lambda: PROGRESS.search(terminal.text()), SPARK_TIMEOUT_S, "its progress is shown")
        wait_until(lambda: len({*TIMES.findall(terminal.text())}) > 5, SPARK_TIMEOUT_S, "its time advances")
        go_on.touch()
        wait_until(lambda: terminal.is_closed, COMMAND_TIMEOUT_S, "the command ends")
        assert terminal.exit_code() == 0, terminal.text()
        text, raw = terminal.text(), terminal.raw()
    assert_nothing_is_left(process_mark)
    assert_no_traceback(text)
    for queue in ("accept", "running", "success"):
        assert re.search(rf"✓ {queue} +{DURATION}", text), text
    assert re.search(r"✓ finish +SUCCESS", text), text
    last_state = text.rindex("✓ finish")
    assert text.index("sum: 6") < last_state, "the output of the program is above the states, as it comes"
    assert text.count("sum: 6") == 1
    assert "orchestrator job show slow-1" in text[last_state:]
    assert "orchestrator job logs slow-1" in text[last_state:]
    assert HIDE_CURSOR not in raw, "no end can leave the terminal without its cursor"
