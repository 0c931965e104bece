"""A worker that receives a second signal does not wait for the jobs that it holds."""

from pathlib import Path

import pytest

from tests.acceptance.support import SPARK_TIMEOUT_S, Shell, assert_nothing_is_left, has_started
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)


def test_a_second_signal_ends_a_worker_at_once_and_the_next_one_finishes_what_it_had_in_hand(
    stand_in_shell: Shell, process_mark: str, tmp_path: Path
) -> None:
    shell, started, asked = stand_in_shell, tmp_path / "starts", tmp_path / "asked"
    stubborn = (
        "import os, pathlib, signal, time\n"
        "os._exit = lambda _: time.sleep(600)\n"  # a driver exits by this call: this one must be killed
        f"signal.signal(signal.SIGTERM, lambda *_: pathlib.Path({str(asked)!r}).touch())\n"
        f"with open({str(started)!r}, 'a') as file:\n"
        "    file.write('started\\n')\n"
        "time.sleep(600)\n"
    )
    shell.environment["ORCHESTRATOR_SESSION_TIMEOUT"] = "4s"  # the next worker waits for this timeout
    worker = shell.start("worker", "--slots", "1", ORCHESTRATOR_KILL_GRACE="120s")
    shell.python_job("stubborn", stubborn)
    assert shell.type("job", "submit", "stubborn.yaml", "--id", "stubborn").code == 0
    wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "the program runs")
    assert shell.type("job", "kill", "stubborn").code == 0
    worker.wait_for_words("stubborn running -> kill")
    # The kill is in progress only now; between that transition and this point none is.
    wait_until(asked.exists, SPARK_TIMEOUT_S, "the program is asked to end")
    worker.terminate()
    worker.wait_for_words("no longer leads")  # it drains, and the kill continues
    worker.terminate()
    ended = worker.wait(5)
    assert ended.code == 143
    assert "has released its jobs" not in ended.stderr
    assert "with 1 jobs in hand" not in ended.stderr
    second = shell.start("worker", "--slots", "1", ORCHESTRATOR_KILL_GRACE="1s")
    done = shell.type("job", "wait", "stubborn", "--timeout", "60s", "-o", "json", timeout=90)
    assert '"status": "KILL"' in done.stdout, done
    second.terminate()
    assert second.wait().code == 0
    assert_nothing_is_left(process_mark)
