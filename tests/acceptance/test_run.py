"""`orchestrator run`: one job from its script to its result, alone and beside `up`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from queues import running_server
from tests.acceptance.support import (
    COMMAND_TIMEOUT_S,
    DURATION,
    SPARK_TIMEOUT_S,
    Shell,
    assert_no_traceback,
    assert_nothing_is_left,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

SCRIPT = """\
-- the least push job: rows in, a file out
CREATE TABLE pets (name STRING, legs INT) WITH ('connector' = 'inline',
  'rows' = '[["cat", 4], ["hen", 2], ["snake", 0], ["dog", 4]]');
CREATE TABLE walkers WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'out/walkers');
INSERT OVERWRITE walkers SELECT name, legs FROM pets WHERE legs >= ${least:-1} ORDER BY name;
"""
WALKERS = [{"name": "cat", "legs": 4}, {"name": "dog", "legs": 4}, {"name": "hen", "legs": 2}]
NO_TERMINAL_CODES = re.compile(r"[^\x1b]*")


@pytest.fixture
def script(shell: Shell) -> Path:
    return shell.write("pets.sql", SCRIPT)


def written(shell: Shell) -> list[dict[str, Any]]:
    files = sorted(shell.directory.glob("out/walkers/part-*"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


@pytest.mark.spark
def test_a_script_runs_to_its_table_and_a_second_run_is_as_good(
    shell: Shell, script: Path, process_mark: str
) -> None:
    assert script.exists()
    first = shell.type("run", "pets.sql")
    assert first.code == 0, first.stderr
    assert_nothing_is_left(process_mark)
    assert written(shell) == WALKERS
    assert re.search(rf"walkers +json +3 +{DURATION} +out/walkers", first.stdout), first.stdout
    assert re.search(r"first rows of walkers.*cat +4.*dog +4.*hen +2", first.stdout, re.DOTALL)
    assert_plain_states(first.stderr)

    second = shell.type("run", "pets.sql", "--id", "second", "--set", "least=3", "-o", "json")
    assert second.code == 0, second.stderr
    assert_nothing_is_left(process_mark)
    assert written(shell) == WALKERS[:2]
    result = second.json()
    assert (result["job"]["id"], result["job"]["status"]) == ("second", "SUCCESS")
    assert [(table["target"], table["rows"]) for table in result["tables"]] == [("walkers", 2)]
    assert_plain_states(second.stderr)

    # Without a running server, past runs can still be shown.
    assert running_server(shell.state_dir / "zookeeper") is None
    page = shell.type("job", "show", "second")
    assert (page.code, "SUCCESS, in queue finish" in page.stdout) == (0, True)
    assert running_server(shell.state_dir / "zookeeper") is None
    assert_nothing_is_left(process_mark)

    server = shell.start("zookeeper")  # for all commands that follow: each would start its own
    wait_until(lambda: running_server(shell.state_dir / "zookeeper"), SPARK_TIMEOUT_S, "the server runs")
    jobs = shell.jobs()
    assert sorted((job["name"], job["queue"], job["status"]) for job in jobs) == [
        ("pets", "finish", "SUCCESS"),
        ("pets", "finish", "SUCCESS"),
    ]
    shown = shell.job("second")
    assert [attempt["state"] for attempt in shown["attempts"]] == ["succeeded"]
    assert {row["id"] for row in shell.type("queue", "show", "finish", "-o", "json").json()} == {
        job["id"] for job in jobs
    }
    runs = shell.type("job", "history", "pets", "-o", "json").json()
    assert [(run["job"], run["state"], run["class"]) for run in runs][1:] == [("second", "succeeded", None)]
    for run, rows in zip(runs, (3, 2), strict=True):
        taken = run["metrics"]
        assert (taken["output_rows"], taken["tasks_failed"], taken.get("partial")) == (rows, 0, None)
        assert taken["driver"]["rss_peak_bytes"] > taken["driver"]["heap_peak_bytes"] > 0
        assert run["settings"]["spark.master"].startswith("local")
        assert run["application_id"] == application_of(shell, run["job"])
    logs = shell.type("job", "logs", "second", "--stream", "spark")
    assert "SparkContext" in logs.stdout, logs.stderr
    server.terminate()
    server.wait()
    assert_nothing_is_left(process_mark)


def application_of(shell: Shell, job_id: str) -> str:
    (attempt,) = shell.job(job_id)["attempts"]
    return str(attempt["application_id"])


def assert_plain_states(stderr: str) -> None:
    """One line per state, in order, when stderr is not a terminal."""
    assert NO_TERMINAL_CODES.fullmatch(stderr), stderr
    assert_no_traceback(stderr)
    lines = re.findall(rf"^ *{DURATION}  (\w+) +[A-Z]*$", stderr, re.MULTILINE)
    assert [line for line in lines if line in {"accept", "running", "success", "finish"}] == [
        "accept",
        "running",
        "success",
        "finish",
    ], stderr


def test_a_python_program_shows_what_it_printed(stand_in_shell: Shell, process_mark: str) -> None:
    stand_in_shell.write("count.py", "print('rows:', 7)\n")
    ended = stand_in_shell.type("run", "count.py", "--quiet")
    assert ended.code == 0, ended.stderr
    assert "rows: 7" in ended.stdout
    assert ended.stderr == "", "--quiet: only errors"
    assert_nothing_is_left(process_mark)


def test_the_output_of_a_program_is_shown_while_it_runs_and_its_stderr_on_stderr(
    stand_in_shell: Shell, tmp_path: Path
) -> None:
    go_on = tmp_path / "go-on"
    program = f"""
import logging, pathlib, sys, time
print("of stdout", flush=True)
logging.warning("of logging \\x1b[2J")
try:
    int("x")
except ValueError:
    logging.exception("handled")
while not pathlib.Path({str(go_on)!r}).exists():
    time.sleep(0.05)
sys.exit(3)
"""
    stand_in_shell.write("slow.py", program)
    running = stand_in_shell.start("run", "slow.py", "--id", "slow")
    running.wait_for_words("ValueError: invalid literal", COMMAND_TIMEOUT_S)
    assert (running.stdout, running.has_ended) == ("of stdout\n", False)
    go_on.touch()
    ended = running.wait()
    assert ended.code == 1
    assert "WARNING:root:of logging \\x1b[2J\n" in ended.stderr
    assert ended.stderr.count("\nERROR:root:handled\n") == 1
    assert ended.stderr.count("\nTraceback (most recent call last):\n") == 1, (
        "a traceback that it logs is its own"
    )
    assert "error: the program exited with code 3: ValueError: invalid literal" in ended.stderr


def test_a_program_that_fails_ends_with_1_and_its_own_reason(
    stand_in_shell: Shell, process_mark: str
) -> None:
    stand_in_shell.write("broken.py", "print('before')\nraise RuntimeError('no more cheese')\n")
    ended = stand_in_shell.type("run", "broken.py", "--id", "broken")
    assert ended.code == 1
    assert "no more cheese" in ended.stderr
    assert_no_traceback(ended.stderr)
    assert_nothing_is_left(process_mark)
    job = stand_in_shell.job("broken")
    assert (job["status"], job["queue"], job["attempt"]) == ("ERROR_FAIL", "finish", 1)
    assert "broken.py" in job["error"]["traceback"], "the position is kept for `job show`"


def test_beside_up_its_server_is_used_and_goes_on(shell: Shell, process_mark: str) -> None:
    shell.use_stand_ins()
    shell.write("well.py", "print('well')\n")
    up = shell.start("up")
    up.wait_for_words("Ctrl-C ends them")
    server = running_server(shell.state_dir / "zookeeper")
    assert server is not None
    ended = shell.type("run", "well.py", "--id", "guest", timeout=SPARK_TIMEOUT_S)
    assert ended.code == 0, ended.stderr
    assert "well" in ended.stdout
    assert running_server(shell.state_dir / "zookeeper") == server
    assert [(job["id"], job["status"]) for job in shell.jobs()] == [("guest", "SUCCESS")]
    assert len(shell.submissions()) == 1, "one of the two workers ran it"
    up.press_ctrl_c()
    assert up.wait(60).code == 130
    assert_nothing_is_left(process_mark)
