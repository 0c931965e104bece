"""Commands of operators: output, documents and exit codes."""

import json
import re
from pathlib import Path

import pytest

from orchestrator.model.states import Queue, Status
from queues.model.operations import Set
from spark_runner.protocol.attempt import AttemptState
from tests.acceptance.error_output import assert_error
from tests.acceptance.support import COMMAND, Shell
from tests.acceptance.terminal import Terminal
from tests.claims_support import Collector
from tests.jobs_support import python_job
from tests.operators_support import Stage
from tests.waiting import wait_until

FAILED, STARTED = AttemptState.FAILED, AttemptState.STARTED
LISTED = {"id", "name", "pool", "queue", "status", "attempt", "created", "updated", "error"}
HELP_OF = [
    *("job submit", "job list", "job show", "job wait", "job kill", "job retry", "job remove", "job logs"),
    "job history",
    "job adjust",
    *(
        "queue list",
        "queue show",
        "queue pause",
        "queue resume",
        "queue requeue",
        "queue move",
        "queue replay",
        "queue pool list",
        "queue pool remove",
    ),
]


@pytest.fixture
def operator(stage: Stage, shared_shell: Shell) -> Shell:
    """A shell at the root of the stage."""
    assert stage.queues.layout.root == shared_shell.environment["ORCHESTRATOR_ROOT"]
    return shared_shell


@pytest.fixture
def script(shared_shell: Shell) -> Path:
    return shared_shell.write("well.py", "print('well')\n")


@pytest.mark.parametrize("command", HELP_OF)
def test_the_help_of_each_command_has_a_worked_example(shell: Shell, command: str) -> None:
    ended = shell.type(*command.split(), "--help")
    assert ended.code == 0
    assert f"Example: orchestrator {command}" in " ".join(ended.stdout.split())


@pytest.mark.parametrize(
    "command",
    [
        ["job", "adjust", "some", "--rate", "2"],
        *(["job", "retry", "some"], ["job", "remove", "some", "--yes"], ["queue", "pause", "default"]),
        *(["queue", "resume", "default"], ["queue", "requeue", "some", "--delay", "1s"]),
        *(["queue", "move", "some", "finish"], ["queue", "replay"], ["queue", "pool", "remove", "some"]),
    ],
    ids=lambda command: "-".join(command[:2]),
)
def test_no_act_without_a_zookeeper(shell: Shell, command: list[str]) -> None:
    assert_error(shell.type(*command), 3, "no ZooKeeper to talk to", "ZOOKEEPER_HOSTS")


# ---------------------------------------------------------------------- submit, list
def test_jobs_of_several_pools_are_submitted_and_listed(operator: Shell, script: Path) -> None:
    for number, pool in enumerate(("default", "team", "team")):
        ended = operator.type("job", "submit", str(script), "--id", f"job-{number}", "--pool", pool)
        assert (ended.code, ended.stdout) == (0, f"job-{number}\n"), ended.stderr
    jobs = operator.jobs()
    assert [(job["id"], job["pool"]) for job in jobs] == [
        ("job-2", "team"),
        ("job-1", "team"),
        ("job-0", "default"),
    ]
    assert set(jobs[0]) >= LISTED
    listed = operator.type(
        "job", "list", "--pool", "team", "--queue", "accept", "--limit", "1", "-o", "jsonl"
    )
    (line,) = listed.stdout.splitlines()
    assert json.loads(line)["id"] == "job-2"
    table = operator.type("job", "list", "--name", "well", "--status", "ACCEPT").stdout.splitlines()
    assert table[0].split() == [
        "id",
        "name",
        "pool",
        "queue",
        "status",
        "attempt",
        "created",
        "took",
        "progress",
        "callback",
        "worker",
        "error",
    ]
    pools = ((2, "team"), (1, "team"), (0, "default"))
    assert [line.split()[:3] for line in table[2:]] == [[f"job-{n}", "well", pool] for n, pool in pools]
    assert operator.type("job", "list", "--status", "KILL", "-o", "json").json() == []


def test_the_list_names_the_worker_of_the_last_attempt(operator: Shell, stage: Stage) -> None:
    stage.put(Queue.RUNNING, None, STARTED, job_id="runs", worker="node-2-8180-a1049a")
    header, _, row = operator.type("job", "list").stdout.splitlines()
    assert row[header.index("worker") :].split()[0] == "node-2-8180-a1049a"
    assert [job["worker"] for job in operator.jobs()] == ["node-2-8180-a1049a"]


def test_an_invalid_pool_is_refused_without_a_server(shell: Shell) -> None:
    script = shell.write("well.py", "print('well')\n")
    assert_error(
        shell.type("job", "submit", str(script), "--pool", "team.low"), 2, "low lane", "name the pool"
    )
    assert_error(shell.type("job", "submit", str(script), "--pool", "a b"), 2, "'a b' is not valid")


def test_a_job_makes_no_more_pools_than_there_may_be(operator: Shell, script: Path) -> None:
    assert operator.type("job", "submit", str(script), "--pool", "team").code == 0
    assert operator.type("config", "set", "max_pools", "2").code == 0
    assert_error(
        operator.type("job", "submit", str(script), "--pool", "new"),
        5,
        "'new'",
        "limit of 2 pools",
        "max_pools",
    )
    assert operator.type("job", "submit", str(script), "--pool", "team").code == 0


def test_pools_are_listed_and_unused_ones_are_removed(operator: Shell, stage: Stage, script: Path) -> None:
    for pool in ("empty", "empty.low", "full", "named"):
        stage.queues.ensure_pool(pool)
    stage.put(Queue.FINISH, job_id="ended", pool="full")
    operator.type("config", "set", "pool.empty.bound", "500")
    with Collector(stage.queues, pools=["named"]):
        members = stage.queues.layout.consumers
        wait_until(lambda: stage.queues.session.children(members), 10, "it is served")
        rows = {row["pool"]: row for row in operator.type("queue", "pool", "list", "-o", "json").json()}
        assert list(rows) == ["default", "empty", "empty.low", "full", "named"]
        assert [row["jobs"] for row in rows.values()] == [0, 0, 0, 1, 0]
        assert [row["workers"] for row in rows.values()] == [0, 0, 0, 0, 1]
        assert (rows["empty"]["bound"], rows["full"]["paused"]) == (500, False)
        assert_error(operator.type("queue", "pool", "remove", "named"), 5, "served by name")
    ended = operator.type("queue", "pool", "remove", "empty", "full")
    assert_error(ended, 5, "empty is removed", "'full' is in use", "1 in", "finish/full")
    assert_error(operator.type("queue", "pool", "remove", "empty"), 4, "no pool 'empty'")
    table = operator.type("queue", "pool", "list").stdout.splitlines()
    assert [line.split()[0] for line in table[2:]] == ["default", "full", "named"]
    assert operator.type("job", "submit", str(script), "--pool", "empty").code == 0


# ---------------------------------------------------------------------- why does it not run?
def test_each_job_that_waits_says_for_what_and_the_queue_sums_it_up(operator: Shell, stage: Stage) -> None:
    for job_id, pool in (("a", "nightly"), ("b", "nightly"), ("c", "default")):
        stage.put(job_id=job_id, pool=pool)
    stage.client.pause("nightly")
    paused = "pool nightly is paused; `orchestrator queue resume nightly` ends that"
    shown = operator.type("job", "show", "a").stdout.splitlines()
    assert f"waits:    {paused}" in shown
    document = operator.type("job", "show", "a", "-o", "json").json()
    assert document["waiting"] == {"reason": "paused", "message": paused}
    rows = operator.type("queue", "show", "accept", "-o", "json").json()
    assert [row["waiting"]["reason"] for row in rows] == ["paused", "paused", "no-worker"]
    table = operator.type("queue", "show", "accept").stdout
    rows_shown, _, sums = table.partition("\n\n")
    assert rows_shown.count(paused) == 2
    assert [line.split()[:2] for line in sums.splitlines()[2:]] == [["paused", "2"], ["no-worker", "1"]]
    stage.put(Queue.FINISH, job_id="ended")
    assert operator.type("job", "show", "ended", "-o", "json").json()["waiting"] is None
    assert "waits:" not in operator.type("job", "show", "ended").stdout


def test_the_definition_that_a_job_shows_can_be_submitted_again(
    operator: Shell, stage: Stage, tmp_path: Path
) -> None:
    program = "print('a.py')  # a text, and no name of a file"
    first = python_job(program, labels={"team": "x"}, directory=str(tmp_path))
    stage.client.submit(first, job_id="a")
    shown = operator.type("job", "show", "a", "-o", "json").json()["definition"]
    (tmp_path / "again.json").write_text(json.dumps(shown))
    assert operator.type("job", "submit", str(tmp_path / "again.json"), "--id", "b").code == 0
    again = operator.type("job", "show", "b", "-o", "json").json()["definition"]
    assert again == shown


def test_a_job_shows_its_submitter_and_the_operations_on_it(operator: Shell, stage: Stage) -> None:
    stage.client.submit(python_job("pass"), job_id="a")
    assert operator.type("queue", "requeue", "a", "--delay", "1h").code == 0
    shown = operator.type("job", "show", "a").stdout
    assert re.search(r"^created: .*, by ip:127\.0\.0\.1 on \S+$", shown, re.MULTILINE), shown
    assert re.search(r"^requeue .* ip:127\.0\.0\.1 .* due in accept after 3600 s *$", shown, re.MULTILINE), (
        shown
    )
    document = operator.type("job", "show", "a", "-o", "json").json()
    assert document["submitted"]["by"] == "ip:127.0.0.1"
    assert [act["action"] for act in document["actions"]] == ["requeue"]


# ---------------------------------------------------------------------- kill, retry, remove
def test_several_jobs_are_killed_and_each_failure_is_reported(operator: Shell, stage: Stage) -> None:
    for job_id, pool in (("a", "default"), ("b", "team.low")):
        stage.put(job_id=job_id, pool=pool)
    stage.put(Queue.FINISH, Status.SUCCESS, job_id="ended")
    ended = operator.type("job", "kill", "a", "nobody", "b", "ended", "-o", "json")
    assert ended.code == 1, "the failures have different codes"
    rows = {row["id"]: row for row in json.loads(ended.stdout)}
    assert [row["id"] for row in json.loads(ended.stdout)] == ["a", "nobody", "b", "ended"]
    assert (rows["a"]["queue"], rows["a"]["error"], rows["b"]["pool"]) == ("accept", None, "team.low")
    assert "nobody" in rows["nobody"]["error"]
    assert "SUCCESS" in rows["ended"]["error"]
    assert ended.stderr.count("error: ") == 2
    assert "asked to stop a" in ended.stderr
    assert stage.is_there(stage.stop("default", "a"))
    assert stage.is_there(stage.stop("team.low", "b"))
    assert operator.type("job", "kill", "ended").code == 5
    assert operator.type("job", "kill", "nobody", "nobody-else").code == 4


def test_a_job_that_has_ended_is_run_again(operator: Shell, stage: Stage) -> None:
    stage.put(Queue.FINISH, Status.ERROR_FAIL, FAILED, job_id="failed")
    stage.put(Queue.FINISH, Status.SUCCESS, AttemptState.SUCCEEDED, job_id="well")
    stage.put(Queue.RUNNING, None, STARTED, job_id="runs")
    ended = operator.type("job", "retry", "failed")
    assert (ended.code, ended.stdout) == (0, "")
    assert "failed is back in accept of pool default" in ended.stderr
    assert operator.job("failed")["attempt"] == 1, "the next attempt is the second"
    assert_error(operator.type("job", "retry", "failed"), 5, "has not ended: it is ACCEPT in accept")
    assert_error(operator.type("job", "retry", "runs"), 5, "has not ended: it is RUNNING in running")
    assert_error(operator.type("job", "retry", "well"), 5, "has ended as SUCCESS", "force")
    (row,) = operator.type("job", "retry", "well", "--force", "-o", "json").json()
    assert (row["id"], row["status"], row["queue"], row["error"]) == ("well", "ACCEPT", "accept", None)
    assert_error(operator.type("job", "retry", "nobody"), 4, "nobody")


def test_a_job_is_removed_with_yes(operator: Shell, stage: Stage) -> None:
    stage.put(Queue.FINISH, job_id="old")
    stage.put(Queue.RUNNING, None, STARTED, job_id="runs")
    stage.put(job_id="held")
    claim = stage.hold("held")
    assert_error(operator.type("job", "remove", "old"), 2, "Remove old permanently?", "--yes")
    assert not stage.is_gone("old")
    ended = operator.type("job", "remove", "old", "--yes")
    assert (ended.code, ended.stdout) == (0, "")
    assert "old is removed" in ended.stderr
    assert stage.is_gone("old")
    assert_error(operator.type("job", "remove", "old", "--yes"), 4, "'old'")
    assert_error(operator.type("job", "remove", "runs", "--yes"), 5, "is open", "orchestrator job kill runs")
    assert_error(operator.type("job", "remove", "held", "--yes"), 5, "held by worker-7")
    assert_error(operator.type("job", "remove", "no/id", "--yes"), 2, "'no/id' is not valid")
    claim.release()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_at_a_terminal_a_removal_needs_a_confirmation(operator: Shell, stage: Stage, answer: str) -> None:
    stage.put(Queue.FINISH, job_id="old")
    command = [*COMMAND, "job", "remove", "old"]
    with Terminal(command, operator.directory, operator.environment) as terminal:
        wait_until(lambda: "Remove old permanently?" in terminal.text(), 30, "the question is asked")
        assert not stage.is_gone("old")
        terminal.type(answer.encode() + b"\n")
        wait_until(lambda: terminal.is_closed, 30, "the command has ended")
        assert terminal.exit_code() == (0 if answer == "y" else 1)
    assert stage.is_gone("old") is (answer == "y")


# ---------------------------------------------------------------------- queues and pools
def test_the_queues_are_listed_by_pool_with_weight_cap_and_pause(operator: Shell, stage: Stage) -> None:
    stage.put(job_id="a")
    stage.put(job_id="b", pool="team")
    stage.put(Queue.FINISH, job_id="c", pool="team")
    stage.put(job_id="d", pool="team.low")
    stage.queues.pools.change("team", cap=4, weight=3)
    ended = operator.type("queue", "pause", "team")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "team is paused\n")
    table = [line.split() for line in operator.type("queue", "list").stdout.splitlines()]
    assert table[0] == ["pool", *Queue, "weight", "cap", "paused"]
    assert table[2] == ["default", "1", "0", "0", "0", "0", "0", "0", "1"]
    assert table[3] == ["team", "1", "0", "0", "0", "0", "1", "0", "3", "4", "paused"]
    assert table[4] == ["team.low", "1", "0", "0", "0", "0", "0", "0", "paused"]
    rows = operator.type("queue", "list", "-o", "json").json()
    assert len(rows) == 3 * len(Queue)
    assert {"queue": "finish", "pool": "team", "jobs": 1, "paused": True, "cap": 4, "weight": 3} in rows
    assert operator.type("queue", "resume", "team").code == 0
    assert not any(row["paused"] for row in operator.type("queue", "list", "-o", "json").json())
    assert_error(operator.type("queue", "pause", "taem"), 4, "there is no pool 'taem'", "team")


def test_the_jobs_of_a_queue_are_shown_for_one_pool_or_all(operator: Shell, stage: Stage) -> None:
    stage.put(job_id="a")
    stage.put(job_id="b", pool="team")
    claim = stage.hold("b")
    rows = operator.type("queue", "show", "accept", "-o", "json").json()
    assert [(row["id"], row["pool"], row["status"], row["held_by"]) for row in rows] == [
        ("a", "default", "ACCEPT", None),
        ("b", "team", "ACCEPT", "worker-7"),
    ]
    assert set(rows[0]) == {"id", "pool", "status", "due", "held_by", "reason", "waiting"}
    shown = operator.type("queue", "show", "accept", "--pool", "team").stdout
    table = shown.partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in table[2:]] == ["b"]
    claim.release()


# ---------------------------------------------------------------------- requeue, move, replay
def test_a_job_is_requeued_with_a_delay_or_now(operator: Shell, stage: Stage) -> None:
    stage.put(job_id="a")
    stage.put(Queue.RUNNING, None, STARTED, job_id="runs")
    before = stage.queues.clock.now_ms()
    ended = operator.type("queue", "requeue", "a", "--delay", "10m")
    assert ended.code == 0, ended.stderr
    assert "a is due in accept after 10m" in ended.stderr
    assert stage.queues.get("a").token.due >= before + 600_000
    assert_error(operator.type("queue", "requeue", "a", "--delay", "soon"), 2, "--delay: 'soon'")
    assert_error(operator.type("queue", "requeue", "runs", "--delay", "1s"), 5, "is open", "job kill runs")
    assert operator.type("queue", "requeue", "a").code == 2


def test_an_operator_moves_a_job_to_a_valid_queue_only(operator: Shell, stage: Stage) -> None:
    stage.put(Queue.FAIL, job_id="a")
    stage.put(Queue.RUNNING, None, STARTED, job_id="runs")
    stage.put(job_id="held")
    claim = stage.hold("held")
    job = operator.type("queue", "move", "a", "accept", "-o", "json").json()
    assert (job["id"], job["queue"], job["status"]) == ("a", "accept", "ACCEPT")
    assert_error(operator.type("queue", "move", "a", "success"), 5, "cannot be moved to success", "finish")
    assert_error(operator.type("queue", "move", "runs", "dead"), 5, "is open", "job kill runs")
    assert_error(operator.type("queue", "move", "runs", "dead", "--force"), 5, "is open", "job kill runs")
    assert_error(operator.type("queue", "move", "held", "finish"), 5, "held by worker-7", "by force")
    assert operator.type("queue", "move", "held", "finish", "--force").code == 0
    assert operator.job("held")["status"] == "CANCEL"
    assert_error(operator.type("queue", "move", "held", "accept"), 5, "job retry held")
    assert operator.type("queue", "move", "a", "acept").code == 2
    claim.abandon()


def test_dead_jobs_are_replayed_and_each_failure_has_a_reason(operator: Shell, stage: Stage) -> None:
    for job_id in ("a", "b", "damaged"):
        origin = {"queue": "fail", "status": "ERROR_FAIL"}
        stage.put(Queue.DEAD, job_id=job_id, buried_from=origin)
    stage.commit(Set(stage.queues.layout.record("damaged"), b"no record", -1))
    ended = operator.type("queue", "replay", "a")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "a is back in fail\n")
    ended = operator.type("queue", "replay", "-o", "json")
    assert ended.code == 1
    rows = {row["id"]: row for row in json.loads(ended.stdout)}
    assert (rows["b"]["queue"], rows["b"]["error"]) == ("fail", None)
    assert "cannot be read" in rows["damaged"]["error"]
    assert "the record of 'damaged' cannot be read" in ended.stderr
    assert [row["id"] for row in operator.type("queue", "show", "dead", "-o", "json").json()] == ["damaged"]
    assert_error(operator.type("queue", "replay", "a"), 5, "'a' is not in dead but in fail")
    assert_error(operator.type("queue", "replay", "nobody"), 4, "nobody")
    assert operator.type("job", "remove", "damaged", "--yes").code == 0
    assert operator.type("queue", "replay").stderr == "there is no job in dead\n"
