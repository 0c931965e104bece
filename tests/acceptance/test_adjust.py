"""The pushes of a job are watched and steered on the command line while it runs."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
import yaml

from orchestrator.model.states import Queue, Status
from spark_runner.protocol.attempt import AttemptState
from tests.acceptance.error_output import assert_error
from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK_TIMEOUT_S, Shell
from tests.operators_support import Stage
from tests.servers.web import Received, Reply, WebServer, web_server
from tests.waiting import wait_until

SLOW_S = 0.1
"""How long the server takes for a request, so that requests at the same time can be told from others."""

FOLLOWS_S = 60
"""An operator waits for 2 s; a machine with other tests needs longer to show it."""

ROWS = 3000
LANES = ("a", "b", "c")
SCRIPT = """\
CREATE TABLE items (id BIGINT, topic STRING) USING http OPTIONS (
  url '{url}/items', lane 'topic', concurrency '6', parallelism '2'
);
INSERT INTO items SELECT id, element_at(array('a', 'b', 'c'), CAST(id % 3 + 1 AS INT)) FROM range({rows});
"""


# ---------------------------------------------------------------------- a job that pushes
class Target:
    """The server, as the operator sees it."""

    def __init__(self) -> None:
        self.slow_s = SLOW_S
        self.server: WebServer

    @contextmanager
    def serve(self) -> Iterator[None]:
        with web_server(lambda _: Reply(delay_s=self.slow_s)) as self.server:
            yield

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(each.body) for each in list(self.server.received)]

    def last(self, count: int, since: int) -> list[Received]:
        """The last requests; empty as long as there are fewer since then."""
        found = self.server.received[since:]
        return found[-count:] if len(found) >= count else []

    def is_one_at_a_time(self, since: int) -> bool:
        last = self.last(10, since)
        return bool(last) and all(after.at - before.at >= SLOW_S for before, after in pairwise(last))

    def lanes(self, since: int) -> set[str]:
        """Those of the last requests, of which each lane has several by a fair pick."""
        return {json.loads(each.body)["topic"] for each in self.last(20, since)}


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_an_operator_watches_a_push_slows_it_down_pauses_a_lane_suspends_it_and_lets_it_end(
    shared_shell: Shell,
) -> None:
    shell, target = shared_shell, Target()
    with target.serve():
        definition = {
            "name": "items",
            "script": {"text": SCRIPT.format(url=target.server.url, rows=ROWS)},
            "spark": {"master": "local[2]", "driver": {"memory": "512m"}},
            "retry": {"attempts": 1},
        }
        shell.write("items.yaml", yaml.safe_dump(definition))
        worker = shell.start("worker", "--slots", "1")
        worker.wait_for_words("1 slot", COMMAND_TIMEOUT_S)
        assert shell.type("job", "submit", "items.yaml", "--id", "items-1").code == 0
        wait_until(lambda: target.last(12, 0), SPARK_TIMEOUT_S, "rows arrive")
        assert not target.is_one_at_a_time(0)

        push = wait_for_push(shell, lambda push: {*LANES} <= {*push.get("lanes", ())})
        assert push["limits"] == {
            "concurrency": 6,
            "rate": 0.0,
            "buffer": 100_000,
            "buffer_bytes": 64 * 1024 * 1024,
            "is_suspended": False,
            "paused": [],
        }
        assert push["read"] == sum(counts["read"] for counts in push["lanes"].values())
        shown = shell.type("job", "show", "items-1").stdout
        assert "push into items" in shown
        assert " of 6 requests in flight · " in shown

        made = adjust(shell, "--concurrency", "1", "-o", "json").json()
        assert made == [{"id": "items-1", "concurrency": 1}]
        since = len(target.server.received)
        wait_until(lambda: target.is_one_at_a_time(since), FOLLOWS_S, "there is one request at a time")

        adjust(shell, "--pause-lane", "b")
        since = len(target.server.received)
        wait_until(lambda: target.lanes(since) == {"a", "c"}, FOLLOWS_S, "the lane gets no request")
        (lane,) = [
            line for line in shell.type("job", "show", "items-1").stdout.splitlines() if line[:2] == "b "
        ]
        assert lane.split()[-1] == "paused"
        adjust(shell, "--resume-lane", "b")
        since = len(target.server.received)
        wait_until(lambda: target.lanes(since) == {*LANES}, FOLLOWS_S, "it gets requests again")

        adjust(shell, "--suspend")
        push = wait_for_push(
            shell,
            lambda push: push["limits"]["is_suspended"] and push["requests"] == len(target.server.received),
        )
        count = len(target.server.received)
        assert "an operator has suspended it" in shell.type("job", "show", "items-1").stdout
        assert len(target.server.received) == count < ROWS, "nothing is sent"

        target.slow_s = 0.0
        shown = adjust(shell, "--resume", "--concurrency", "50").stdout.splitlines()
        assert [shown[0].split(), shown[2].split()] == [["id", "concurrency", "paused"], ["items-1", "50"]]
        assert shell.type("job", "wait", "items-1", timeout=SPARK_TIMEOUT_S).code == 0
        job = shell.job("items-1")
        assert job["status"] == "SUCCESS"
        assert sorted(row["id"] for row in target.rows()) == [*range(ROWS)]
        assert_error(shell.type("job", "adjust", "items-1", "--concurrency", "2"), 5, "ended as SUCCESS")
        run_again_from_zero(shell, target)
        worker.terminate()
        assert worker.wait().code == 0


def run_again_from_zero(shell: Shell, target: Target) -> None:
    """A further job of the name has its own counts, from 0, and the limits of its script."""
    target.slow_s, since = SLOW_S, len(target.server.received)
    assert shell.type("job", "submit", "items.yaml", "--id", "items-2").code == 0
    wait_until(lambda: target.last(12, since), SPARK_TIMEOUT_S, "rows arrive")
    push = wait_for_push(shell, lambda push: bool(push["delivered"]), "items-2")
    assert 0 < push["delivered"] <= len(target.server.received) - since
    assert push["limits"]["concurrency"] == 6
    target.slow_s = 0.0
    assert shell.type("job", "wait", "items-2", timeout=SPARK_TIMEOUT_S).code == 0
    assert len(target.server.received) == since + ROWS


def adjust(shell: Shell, *options: str) -> Any:
    ended = shell.type("job", "adjust", "items-1", *options)
    assert (ended.code, ended.stderr) == (0, "")
    return ended


def wait_for_push(
    shell: Shell, condition: Callable[[dict[str, Any]], bool], job_id: str = "items-1"
) -> dict[str, Any]:
    """The push in the progress of the job, once it is so."""

    def found() -> dict[str, Any] | None:
        push = ((shell.job(job_id)["progress"] or {}).get("pushes") or {}).get("items")
        return push if push and condition(push) else None

    return wait_until(found, FOLLOWS_S, "the progress of the job shows its push")


# ---------------------------------------------------------------------- exit codes
@pytest.fixture
def operator(stage: Stage, shared_shell: Shell) -> Shell:
    """A shell at the root of the stage."""
    assert stage.queues.layout.root == shared_shell.environment["ORCHESTRATOR_ROOT"]
    return shared_shell


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "nothing to change"),
        (("--rate", "0"), "'rate' is 0.0; it must be a number above 0"),
        (("--rate", "-1"), "'rate' is -1.0"),
        (("--rate", "nan"), "'rate' is nan"),
        (("--rate", "inf"), "'rate' is inf"),
        (("--concurrency", "10000000000"), "'concurrency' is 10000000000"),
    ],
)
def test_a_command_that_asks_for_nothing_possible_changes_nothing(
    operator: Shell, stage: Stage, options: tuple[str, ...], words: str
) -> None:
    stage.put(Queue.RUNNING, None, AttemptState.STARTED, job_id="runs")
    assert_error(operator.type("job", "adjust", "runs", *options), 2, words)
    assert not stage.is_there(f"{stage.queues.layout.record('runs')}/adjustment")


@pytest.mark.parametrize("options", [("--concurrency", "0"), ("--buffer", "0"), ("--rate", "fast")])
def test_a_value_that_no_limit_can_have_is_a_usage_error(operator: Shell, options: tuple[str, ...]) -> None:
    ended = operator.type("job", "adjust", "runs", *options)
    assert (ended.code, ended.stdout) == (2, "")
    assert options[0] in ended.stderr


def test_only_a_job_that_has_not_ended_is_adjusted(operator: Shell, stage: Stage) -> None:
    stage.put(Queue.FINISH, Status.SUCCESS, AttemptState.SUCCEEDED, job_id="ended")
    stage.put(job_id="waits")
    assert_error(
        operator.type("job", "adjust", "ended", "--rate", "2"), 5, "'ended' has already ended as SUCCESS"
    )
    assert_error(operator.type("job", "adjust", "unknown", "--rate", "2"), 4, "unknown")
    assert_error(operator.type("job", "adjust", "no/id", "--rate", "2"), 2, "'no/id' is not valid")
    ended = operator.type("job", "adjust", "waits", "--rate", "2", "--pause-lane", "a", "--pause-lane", "b")
    assert ended.code == 0
    assert ended.stderr == "waits has no push or stream that runs: the limits hold for those that begin\n"
    assert [line.split() for line in ended.stdout.splitlines()[::2]] == [
        ["id", "rate", "paused"],
        ["waits", "2.0", "a,", "b"],
    ]
    assert operator.type("job", "adjust", "waits", "--keep", "-q").stderr == ""
