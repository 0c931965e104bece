"""`cluster status` and `cluster doctor` on the command line."""

import json

import pytest

from orchestrator.model.states import Queue
from queues.model.operations import Create, Delete
from tests.acceptance.error_output import assert_error
from tests.acceptance.support import Shell
from tests.operators_support import JOB, Stage


@pytest.fixture
def operator(stage: Stage, shared_shell: Shell) -> Shell:
    """A shell at the root of the stage."""
    assert stage.queues.layout.root == shared_shell.environment["ORCHESTRATOR_ROOT"]
    return shared_shell


def test_a_fault_is_reported_with_its_node_and_repaired_on_demand(operator: Shell, stage: Stage) -> None:
    stage.put(Queue.FINISH, job_id=JOB)
    stage.queues.requeue(JOB, delay_ms=3_600_000)  # not due: the absence of workers is no fault
    record = stage.queues.get(JOB)
    token = stage.queues.layout.token(record.queue, record.pool, record.token)
    stage.commit(Delete(token))
    ended = operator.type("cluster", "doctor", "-o", "json")
    assert ended.code == 1, ended.stderr
    (error,) = [row for row in json.loads(ended.stdout) if row["severity"] != "note"]
    assert (error["kind"], error["path"]) == ("record-without-token", stage.queues.layout.record(JOB))
    assert (error["fixable"], error["fixed"]) == (True, False)
    assert not stage.is_there(token)
    reported = operator.type("cluster", "doctor")
    assert reported.code == 1
    assert error["path"] in reported.stdout
    assert_error(operator.type("cluster", "doctor", "--fix"), 2, "confirm with --yes")
    assert not stage.is_there(token)
    fixed = operator.type("cluster", "doctor", "--fix", "--yes", "-o", "jsonl")
    assert fixed.code == 0, fixed.stderr
    assert [row["kind"] for row in map(json.loads, fixed.stdout.splitlines()) if row["fixed"]] == [
        "record-without-token"
    ]
    assert stage.is_there(token)
    assert operator.type("cluster", "doctor", "-o", "json").code == 0


def test_a_secret_of_this_host_that_other_users_may_read_is_reported(operator: Shell, stage: Stage) -> None:
    stage.put(Queue.FINISH, job_id=JOB)
    key = operator.write("key", "secret")
    key.chmod(0o644)
    archive = {"ORCHESTRATOR_ARCHIVE__URL": "http://search:9200", "ORCHESTRATOR_ARCHIVE__KEY_FILE": str(key)}
    operator.environment |= archive
    ended = operator.type("cluster", "doctor", "-o", "json")
    found = {row["kind"]: row["path"] for row in json.loads(ended.stdout)}
    assert ended.code == 1
    assert (found["readable-secret"], found["unencrypted-login"]) == (str(key), "archive.url")


def test_the_status_of_a_cluster(operator: Shell, stage: Stage) -> None:
    stage.put(pool="team")
    stage.queues.pools.change("team", weight=3, cap=2, paused=True)
    worker_7 = {"host": "here", "pid": 7, "slots": 4, "running": 1, "pools": None}
    stage.make(stage.nodes.worker("worker-7"), {**worker_7, "sparks": {"*": "4.1.4", "team": "4.0.5"}})
    stage.commit(Create(stage.nodes.leader, b'{"worker": "worker-7"}', ephemeral=True))
    stage.client.config.change(retention_count=5)
    shown = operator.type("cluster", "status", "-o", "json").json()
    assert shown["root"] == stage.queues.layout.root
    assert shown["zookeeper"] == operator.environment["ZOOKEEPER_HOSTS"]
    assert [(server["address"], server["reached"]) for server in shown["servers"]] == [
        (address, True) for address in operator.environment["ZOOKEEPER_HOSTS"].split(",")
    ]
    assert shown["config"] == {"retention_count": 5}
    assert shown["leader"] == "worker-7"
    (worker,) = shown["workers"]
    assert (int(shown["session"], 16) > 0, int(worker["session"], 16)) == (True, 0), "made by hand"
    assert (worker["name"], worker["pid"], worker["slots"], worker["running"]) == ("worker-7", 7, 4, 1)
    assert worker["leads"]
    pools = {pool["pool"]: pool for pool in shown["pools"]}
    assert (pools["team"]["weight"], pools["team"]["cap"], pools["team"]["paused"]) == (3, 2, True)
    assert pools["team"]["queues"]["accept"] == 1
    page = operator.type("cluster", "status").stdout.splitlines()
    assert "leading worker worker-7" in page, "ZooKeeper has a leader, too"
    assert pools["team"]["spark"] == ["4.0.5"]
    table = operator.type("cluster", "status").stdout
    assert "worker-7" in table
    assert "paused" in table
    assert "4.0.5" in table
    assert "retention_count = 5" in table


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_the_help_has_a_worked_example(shell: Shell, command: str) -> None:
    ended = shell.type("cluster", command, "--help")
    assert ended.code == 0
    assert f"Example: orchestrator cluster {command}" in " ".join(ended.stdout.split())
