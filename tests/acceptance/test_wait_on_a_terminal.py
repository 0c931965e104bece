"""`job wait`, `job submit --wait` and `job list` on a terminal and in a pipe, without a driver."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from orchestrator.cli.grid import width
from orchestrator.model.job import JobError
from orchestrator.model.states import Queue, Status
from queues.model.codec import timestamp
from spark_runner.protocol.attempt import AttemptState, attempt_path
from tests.acceptance.support import COMMAND, COMMAND_TIMEOUT_S, Shell, assert_no_traceback
from tests.acceptance.terminal import HIDE_CURSOR, Terminal
from tests.byte_proxy import ByteProxy
from tests.chaos.proxy import ProxyLoop
from tests.operators_support import JOB, Stage
from tests.waiting import wait_until

UUID = "22384280-76cc-4af1-bfb5-fbefa83be498"
FAILED, STARTED = AttemptState.FAILED, AttemptState.STARTED
NO_WORKER = "waits: no worker is connected; `orchestrator worker` starts one"


@pytest.fixture
def operator(stage: Stage, shared_shell: Shell) -> Shell:
    """A shell at the root of the stage."""
    assert stage.queues.layout.root == shared_shell.environment["ORCHESTRATOR_ROOT"]
    return shared_shell


@contextmanager
def waiting(shell: Shell, words: str, *command: str, columns: int = 80) -> Iterator[Terminal]:
    """A command on a terminal that has shown these words."""
    whole = [*COMMAND, *(command or ("job", "wait", JOB))]
    with Terminal(whole, shell.directory, shell.environment, columns=columns) as terminal:
        wait_until(lambda: words in terminal.text() or terminal.is_closed, COMMAND_TIMEOUT_S, words)
        assert words in terminal.text()
        yield terminal
        wait_until(lambda: terminal.is_closed, COMMAND_TIMEOUT_S, "the command ends")
        assert HIDE_CURSOR not in terminal.raw(), "no end can leave the terminal without its cursor"
        assert_no_traceback(terminal.text())


def test_ctrl_c_ends_the_wait_and_leaves_the_job_alone(stage: Stage, operator: Shell) -> None:
    stage.put()
    with waiting(operator, NO_WORKER) as terminal:
        terminal.type(b"\x03")
    assert terminal.exit_code() == 130
    assert f"job {JOB} goes on" in terminal.text()
    assert f"orchestrator job wait {JOB}" in terminal.text()
    assert stage.state().status is Status.ACCEPT
    assert not stage.is_there(stage.stop()), "nobody asked to stop it"


def test_term_ends_the_wait_alone_too(stage: Stage, operator: Shell) -> None:
    stage.put()
    with waiting(operator, NO_WORKER) as terminal:
        os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.exit_code() == 143
    assert f"job {JOB} goes on" in terminal.text()


def test_a_failed_attempt_stays_on_the_screen_while_the_next_one_runs(stage: Stage, operator: Shell) -> None:
    run_key = stage.put(Queue.RUNNING, None, FAILED, STARTED)
    alive = f"{attempt_path(stage.queues.layout.record(JOB), run_key, 2)}/alive"
    stages = [{"stage": 3, "tasks": 8, "done": 5}]
    stage.make(alive, {"phase": "INSERT INTO totals (2 of 5)", "stages": stages})
    with waiting(operator, "stage 3: 5/8 tasks") as terminal:
        text = terminal.text()
        assert "✗ attempt 1" in text
        assert "attempt 1 failed" in text
        assert "INSERT INTO totals (2 of 5) · stage 3: 5/8 tasks" in text
        terminal.type(b"\x03")


def test_a_pipe_gets_plain_lines_on_stderr_and_one_document_on_stdout(stage: Stage, operator: Shell) -> None:
    at = timestamp()
    stage.put(Queue.FINISH, Status.SUCCESS, times={"accept": at, "finish": at})
    for options in ([], ["-o", "json"], ["-q"]):
        ended = operator.type("job", "wait", JOB, *options)
        assert ended.code == 0, ended.stderr
        assert "\x1b" not in ended.stdout + ended.stderr
        if "-q" in options:
            assert (ended.stdout, ended.stderr) == ("", "")
        else:
            assert "  finish   SUCCESS\n" in ended.stderr
            assert f"{JOB}: SUCCESS" in ended.stderr
        if "json" in options:
            assert json.loads(ended.stdout)["status"] == "SUCCESS"


def test_a_timeout_says_what_the_job_waits_for(stage: Stage, operator: Shell) -> None:
    stage.put()
    ended = operator.type("job", "wait", JOB, "--timeout", "100ms")
    assert ended.code == 6
    words = f"error: job 'job' is still ACCEPT after 0.1 s: {NO_WORKER}"
    assert words in ended.stderr


def test_a_submission_prints_its_id_before_it_waits(operator: Shell) -> None:
    operator.write("well.py", "print('well')\n")
    submit = ("job", "submit", "well.py", "--wait")
    with waiting(operator, NO_WORKER, *submit, "--id", "one") as terminal:
        assert terminal.text().startswith("one\r\n")
        terminal.type(b"\x03")
    assert terminal.exit_code() == 130
    waits = operator.start(*submit, "--id", "two", "-o", "json")
    waits.wait_for_words(NO_WORKER)
    assert "job two\n" in waits.stderr
    assert operator.type("job", "kill", "two", "-q").code == 0
    waits.press_ctrl_c()
    assert waits.wait().stdout == "", "no document that is not about the end"


def test_a_lost_connection_is_shown_and_the_wait_goes_on(
    stage: Stage, operator: Shell, zookeeper_hosts: str
) -> None:
    stage.put()
    port = int(zookeeper_hosts.rpartition(":")[2])
    with ProxyLoop() as proxies:
        with ByteProxy(proxies, port) as proxy:
            operator.environment |= {
                "ZOOKEEPER_HOSTS": f"127.0.0.1:{proxy.port}",
                "ORCHESTRATOR_SESSION_TIMEOUT": "4s",
            }
            waits = operator.start("job", "wait", JOB)
            waits.wait_for_words(NO_WORKER)
        waits.wait_for_words("ZooKeeper has not answered for")
        with ByteProxy(proxies, port, port=proxy.port):
            waits.wait_for_words("ZooKeeper answers again")
            claim = stage.hold()
            payload = {**claim.payload, "status": Status.CANCEL.value}
            claim.commit(queue=Queue.FINISH, payload=payload, release=True)
            ended = waits.wait()
    assert ended.code == 1
    assert f"{JOB}: CANCEL" in ended.stderr
    assert_no_traceback(ended.stderr)


# ------------------------------------------------------------------ job list
@pytest.fixture
def some_jobs(stage: Stage) -> None:
    error = JobError(error_class="user", message="销售额" * 20)
    stage.put(Queue.FINISH, job_id=UUID, name="totals", error=error)
    run_key = stage.put(Queue.RUNNING, None, STARTED, job_id="runs", name="runs")
    alive = f"{attempt_path(stage.queues.layout.record('runs'), run_key, 1)}/alive"
    stages = [{"stage": 1, "tasks": 4, "done": 1}]
    stage.make(alive, {"phase": "INSERT INTO t (2 of 5)", "stages": stages})
    stage.put(job_id="waits", name="waits", labels={"team": "sales"})


@pytest.mark.usefixtures("some_jobs")
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_list_fits_the_terminal_and_keeps_ids_and_statuses(operator: Shell, columns: int) -> None:
    with waiting(operator, "runs", "job", "list", columns=columns) as terminal:
        pass
    head, _, *rows = terminal.text().splitlines()
    assert all(width(line) <= columns for line in [head, *rows])
    assert [row.split()[0] for row in rows] == ["waits", "runs", UUID]
    assert head.split()[0] == "id"
    assert all(status in row for status, row in zip(("ACCEPT", "RUNNING", "ERROR_FAIL"), rows, strict=True))
    assert ("2/5 stmts 25%" in rows[1]) == (columns > 60)


@pytest.mark.usefixtures("some_jobs")
def test_filters_of_the_list(operator: Shell) -> None:
    def ids(*options: str) -> list[str]:
        return [job["id"] for job in operator.type("job", "list", "-o", "json", *options).json()]

    assert ids("--label", "team=sales") == ["waits"]
    assert ids("--label", "team=other") == []
    assert ids("--name", "wa*") == ["waits"]
    assert ids("--name", "r*", "--name", "waits") == ["waits", "runs"]
    assert ids("--name", "W*") == []
    assert ids("--status", "running,ACCEPT") == ["waits", "runs"]
    assert ids("--status", "ACCEPT", "--status", "RUNNING") == ["waits", "runs"]
    assert len(ids("--since", "1h")) == 3
    assert ids("--since", "2100-01-01") == []
    nothing = operator.type("job", "list", "--label", "team=other")
    assert nothing.stderr == "no job matches\n"
    assert operator.type("job", "list", "--status", "RUNING").code == 2


@pytest.mark.usefixtures("some_jobs")
def test_a_list_in_a_pipe_has_its_natural_width_and_no_blanks_at_the_end(operator: Shell) -> None:
    lines = operator.type("job", "list").stdout.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert "2/5 stmts 25%" in lines[3]
    assert lines[4].endswith("销售额" * 20), "a value in a pipe is complete"


def test_an_error_of_many_lines_is_its_first_one_in_a_list_and_commands_no_terminal(
    stage: Stage, operator: Shell
) -> None:
    message = f"job.sql:23:1: \x1b[2Jwriting failed {'7' * 300}\n  column amount\n\ttask 4"
    stage.put(Queue.FINISH, job_id="b", error=JobError(error_class="user", message=message))
    _, _, row = operator.type("job", "list").stdout.splitlines()
    assert row.endswith(f"writing failed {'7' * 300}")
    assert "\x1b" not in row
    with waiting(operator, "ERROR_FAIL", "job", "list", columns=200) as terminal:
        pass
    assert "777…\r\n" in terminal.text()
    assert "7" * 60 not in terminal.text()
    assert "column amount" not in terminal.text()


@pytest.mark.usefixtures("some_jobs")
def test_labels_are_shown(operator: Shell) -> None:
    assert "labels:   team=sales" in operator.type("job", "show", "waits").stdout.splitlines()
