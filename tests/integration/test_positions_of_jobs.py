"""How far the pushes of a job have come, as workers pass it on: to its next attempt, and to the next job."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.positions import keep_positions, positions_before
from orchestrator.model.paths import Nodes
from queues import Create, Delete, Operation, commit, encode
from queues.session import ReplyLost, Session
from spark_runner.protocol.attempt import Attempt, AttemptState, attempt_path, intent
from tests.queues_support import Open

PLACE = {"backend": "local", "host": "h", "boot": "b"}


class Cluster:
    """Jobs of one name, and the attempts that drivers have left."""

    def __init__(self, session: Session, root: str) -> None:
        self.session, self.root = session, root
        self.kept = Nodes(root).position("numbers")

    def job(self, job_id: str, attempt: int = 1) -> JobContext:
        """A job whose last attempt has this number."""
        fields = {
            "context": SimpleNamespace(session=self.session, layout=SimpleNamespace(root=self.root)),
            "definition": SimpleNamespace(name="numbers"),
            "id": job_id,
            "reads": self.session,
            "record_path": f"{self.root}/{job_id}",
            "run_key": "key",
            "state": SimpleNamespace(attempt=attempt),
        }
        return cast("JobContext", SimpleNamespace(**fields))

    def attempt(self, job_id: str, number: int, *states: AttemptState) -> Attempt:
        """An attempt that passes these states."""
        path = attempt_path(f"{self.root}/{job_id}", "key", number)
        self.session.ensure_path(f"{self.root}/{job_id}")
        commit(self.session, [intent(path, run_key="key", number=number, place=PLACE, at="now")])
        for state in states:
            facts = {"incarnation": "driver"} if state is AttemptState.STARTED else {}
            commit(self.session, [self.read(path).advance(state, **facts)])
        return self.read(path)

    def read(self, path: str) -> Attempt:
        found = Attempt.read(self.session, path)
        assert found is not None
        return found

    def ended(self, job_id: str, position: int) -> JobContext:
        """A job that has succeeded, and whose push has read up to a position."""
        made = self.attempt(job_id, 1, AttemptState.STARTED, AttemptState.SUCCEEDED)
        self.write(made, {"name": {"numbers": {"acknowledged": position, "read": position}}})
        return self.job(job_id)

    def write(self, attempt: Attempt, positions: dict[str, Any]) -> None:
        """Let the driver of an attempt keep positions."""
        commit(self.session, [Create(f"{attempt.path}/positions", encode(positions))])

    def reached(self) -> Any:
        found = self.session.get(self.kept)
        return None if found is None else json.loads(found[0])["numbers"]["acknowledged"]


@pytest.fixture
def cluster(open_queues: Open, zookeeper_root: str) -> Cluster:
    return Cluster(open_queues().session, zookeeper_root)


def test_a_job_that_is_recorded_again_moves_nothing_back(cluster: Cluster) -> None:
    first, second = cluster.ended("first", 50), cluster.ended("second", 80)
    keep_positions(first)
    assert cluster.reached() == 50
    keep_positions(second)
    keep_positions(first)  # its callback is tried again, or its worker died before it moved the job
    assert cluster.reached() == 80
    commit(cluster.session, [Delete(cluster.kept)])  # an operator lets the next run begin anew
    keep_positions(second)
    assert cluster.reached() is None


def test_positions_whose_reply_was_lost_are_kept_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, send, lost = cluster.ended("first", 50), Session.send, list[int]()

    def lose_one(session: Session, operations: Sequence[Operation], *, timeout: float) -> list[Any]:
        results = send(session, operations, timeout=timeout)
        if not lost and any(each.path == cluster.kept for each in operations):
            lost.append(1)
            raise ReplyLost
        return results

    monkeypatch.setattr(Session, "send", lose_one)
    keep_positions(first)
    assert (lost, cluster.reached()) == ([1], 50)
    (stat,) = [found[1] for found in [cluster.session.get(cluster.kept)] if found]
    assert stat.version == 0


@pytest.mark.parametrize("ends", [AttemptState.CLOSED, AttemptState.KILLED])
def test_an_attempt_that_never_began_does_not_lose_what_the_one_before_it_delivered(
    cluster: Cluster, ends: AttemptState
) -> None:
    began = cluster.attempt("job", 1, AttemptState.STARTED, AttemptState.LOST)
    cluster.write(began, {"attempt": {"dst#0": {"0": [7, "digest"]}}})
    cluster.attempt("job", 2, ends)  # such as without an answer of its cluster
    third = cluster.attempt("job", 3)
    assert positions_before(cluster.job("job", 3), third) == {"attempt": {"dst#0": {"0": [7, "digest"]}}}


def test_after_an_attempt_that_began_and_kept_nothing_all_rows_come_again(cluster: Cluster) -> None:
    began = cluster.attempt("job", 1, AttemptState.STARTED, AttemptState.LOST)
    cluster.write(began, {"attempt": {"dst#0": {"0": [7, "digest"]}}})
    cluster.attempt("job", 2, AttemptState.STARTED, AttemptState.FAILED)
    assert positions_before(cluster.job("job", 3), cluster.attempt("job", 3)) == {}


def test_after_a_success_all_rows_come_again_although_its_driver_could_not_remove_its_positions(
    cluster: Cluster,
) -> None:
    # Its worker has read the outcome beside the logs: ZooKeeper was away at the end.
    began = cluster.attempt("job", 1, AttemptState.STARTED, AttemptState.SUCCEEDED)
    cluster.write(began, {"attempt": {"dst#0": {"0": [7, "digest"]}}})
    assert positions_before(cluster.job("job", 2), cluster.attempt("job", 2)) == {}


@pytest.mark.parametrize("position", ["[" * 30 + "]" * 30, "[" * 900 + "]" * 900, "1e999", "NaN", "null"])
def test_what_is_no_position_reaches_no_other_job(cluster: Cluster, position: str) -> None:
    made = cluster.attempt("job", 1, AttemptState.STARTED, AttemptState.FAILED)
    data = f'{{"name": {{"numbers": {{"acknowledged": {position}}}}}}}'.encode()
    commit(cluster.session, [Create(f"{made.path}/positions", data)])
    keep_positions(cluster.job("job"))
    assert cluster.reached() is None


def test_positions_that_are_nested_deeply_are_in_no_plan(cluster: Cluster) -> None:
    made = cluster.attempt("job", 1, AttemptState.STARTED, AttemptState.FAILED)
    data = b'{"attempt": {"dst#0": {"0": ' + b"[" * 900 + b"]" * 900 + b"}}}"
    commit(cluster.session, [Create(f"{made.path}/positions", data)])
    assert positions_before(cluster.job("job", 2), cluster.attempt("job", 2)) == {}
