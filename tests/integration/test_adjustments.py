"""The limits of pushes that an operator changes: their node, who reads it, and which jobs have them."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import NoAuthError

from orchestrator.client.client import Client
from orchestrator.doctor.findings import FindingKind
from orchestrator.model.errors import AlreadyEnded, DefinitionError
from orchestrator.model.states import Queue, Status
from queues.model.codec import decode, encode
from queues.model.errors import ItemNotFound
from queues.model.operations import Create, Operation, Set
from queues.session import Acl, Session
from queues.store.batch import commit_once
from queues.store.commit import Receipts, commit
from spark_runner.driver.attempt_holder import AttemptHolder
from spark_runner.protocol.attempt import AttemptState, intent
from spark_runner.push.adjustment import Adjustment
from spark_runner.push.pushes import Pushes
from tests.claims_support import lose_reply, names_node
from tests.integration.test_audit import ME, events_of
from tests.integration.test_driver_rights import (
    closed_settings,
    deployments,
    intruder,
    is_started,
    plan_in,
)
from tests.jobs_support import Deployment, waits_for
from tests.operators_support import JOB, Stage
from tests.queues_support import Open
from tests.run_plans import run_plan
from tests.servers.secured import ADA, Secured
from tests.servers.zookeeper import zookeeper_client
from tests.waiting import wait_until

WAIT_S = 60
OF_ANOTHER = {"run_key": "of an earlier job", "concurrency": 9, "paused": ["z"]}


def node(session: Session, record: str) -> dict[str, Any] | None:
    found = session.get(f"{record}/adjustment")
    return None if found is None else decode(found[0])


def node_of(stage: Stage, job_id: str = JOB) -> dict[str, Any]:
    found = node(stage.session, stage.queues.layout.record(job_id))
    assert found is not None
    return found


# ---------------------------------------------------------------------- an operator changes them
def test_changes_add_up_in_a_node_that_names_who_made_the_last_one_and_when(stage: Stage) -> None:
    run_key = stage.put(Queue.RUNNING)
    stage.client.adjust(JOB, {"concurrency": 4}, pause=["b", "a"])
    first = node_of(stage)
    made = stage.client.adjust(JOB, {"rate": 2.5, "is_suspended": True}, pause=["c"], resume=["a"])
    found = node_of(stage)
    limits = {"concurrency": 4, "rate": 2.5, "paused": ["b", "c"], "is_suspended": True}
    assert made.document() == limits
    assert {name: found[name] for name in limits} == limits
    assert (found["run_key"], found["by"]) == (run_key, ME)
    assert found["host"]
    assert found["since"] >= first["since"]
    stage.client.adjust(JOB, {"is_suspended": False}, is_rollback=True)
    stage.client.adjust(JOB, {}, is_rollback=True)
    found = node_of(stage)
    assert "is_suspended" not in found
    assert found["rollbacks"] == 2


def test_each_change_has_an_audit_entry_with_all_limits(stage: Stage) -> None:
    stage.put(Queue.RUNNING)
    stage.client.adjust(JOB, {"concurrency": 4})
    stage.client.adjust(JOB, {"rate": 2.0}, pause=["a"], keep=True)
    first, last = events_of(stage)
    assert (first.kind, first.target, first.act.action, first.act.by) == ("job", JOB, "adjust", ME)
    assert first.act.detail == "concurrency 4"
    assert last.act.detail == "concurrency 4, rate 2.0, paused a, kept"


def test_the_limits_of_a_job_that_has_ended_stay_as_they_are(stage: Stage) -> None:
    stage.put(Queue.FINISH, Status.SUCCESS, AttemptState.SUCCEEDED)
    with pytest.raises(AlreadyEnded, match="SUCCESS"):
        stage.client.adjust(JOB, {"concurrency": 4})
    assert node(stage.session, stage.queues.layout.record(JOB)) is None
    assert events_of(stage) == []


def test_a_job_that_is_unknown_has_no_limits(stage: Stage) -> None:
    with pytest.raises(ItemNotFound):
        stage.client.adjust("unknown", {"concurrency": 4})


@pytest.mark.parametrize(
    "values", [{"concurrency": 0}, {"rate": float("nan")}, {"buffer": -1}, {"concurrency": 10**400}]
)
def test_a_wrong_value_changes_nothing(stage: Stage, values: dict[str, Any]) -> None:
    stage.put(Queue.RUNNING)
    with pytest.raises(DefinitionError, match=f"'{next(iter(values))}' is "):
        stage.client.adjust(JOB, values)
    assert node(stage.session, stage.queues.layout.record(JOB)) is None


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Act once, between what an operator reads and what is committed."""
    left = [act]

    def after(session: Session, operations: Sequence[Operation], receipts: Receipts) -> bool:
        if left:
            left.pop()()
        return commit_once(session, operations, receipts)

    monkeypatch.setattr("orchestrator.admin.adjustments.commit_once", after)


@pytest.mark.parametrize("is_first", [True, False])
def test_two_operators_at_the_same_time_lose_no_change(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    stage.put(Queue.RUNNING)
    if not is_first:
        stage.client.adjust(JOB, {"buffer": 70})
    other = Client(stage.other("bob"))
    meanwhile(monkeypatch, lambda: other.adjust(JOB, {"rate": 3.0}, pause=["b"]))
    stage.client.adjust(JOB, {"concurrency": 4}, pause=["a"])
    found = node_of(stage)
    assert (found["concurrency"], found["rate"], found["paused"]) == (4, 3.0, ["a", "b"])
    assert len(events_of(stage)) == 2 + (not is_first), "what was refused has left no entry"


def test_many_operators_at_once_lose_no_change(stage: Stage) -> None:
    stage.put(Queue.RUNNING)
    clients = [Client(stage.other(f"client-{number}")) for number in range(4)]

    def pause(number: int) -> None:
        for lane in range(4):
            clients[number].adjust(JOB, {}, pause=[f"{number}-{lane}"])

    threads = [threading.Thread(target=pause, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert node_of(stage)["paused"] == sorted(f"{number}-{lane}" for number in range(4) for lane in range(4))


def test_a_job_that_ends_meanwhile_is_not_changed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put(Queue.FAIL)
    meanwhile(monkeypatch, lambda: stage.client.move(JOB, Queue.FINISH))
    with pytest.raises(AlreadyEnded):
        stage.client.adjust(JOB, {"concurrency": 4})
    assert node(stage.session, stage.queues.layout.record(JOB)) is None


def test_a_rollback_whose_reply_was_lost_is_ordered_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put(Queue.RUNNING)
    lost = lose_reply(monkeypatch, names_node("/adjustment"))
    stage.client.adjust(JOB, {}, is_rollback=True)
    assert lost
    assert node_of(stage)["rollbacks"] == 1
    assert len(events_of(stage)) == 1


def test_limits_of_an_earlier_job_of_the_id_are_not_those_of_this_one(stage: Stage) -> None:
    run_key = stage.put(Queue.RUNNING)
    stage.make(f"{stage.queues.layout.record(JOB)}/adjustment", OF_ANOTHER)
    stage.client.adjust(JOB, {"rate": 2.0})
    found = node_of(stage)
    assert (found["run_key"], found["rate"]) == (run_key, 2.0)
    assert found.keys().isdisjoint({"concurrency", "paused"})


def test_the_limits_go_with_their_job(stage: Stage) -> None:
    def lasting() -> set[str]:
        return {path for path in stage.tree() if not path.startswith(f"{stage.queues.layout.receipts}/")}

    stage.queues.root.ensure_bucket(JOB)
    stage.put(job_id="other")
    before = lasting()
    stage.put(Queue.FAIL)
    stage.client.adjust(JOB, {"concurrency": 4})
    stage.client.remove(JOB)
    assert lasting() == before


def test_the_limits_go_at_the_end_of_the_retention(deployment: Deployment) -> None:
    job_id = deployment.submit("pass")
    deployment.client.adjust(job_id, {"concurrency": 4})
    deployment.worker(retention=0)
    record = deployment.queues.layout.record(job_id)
    wait_until(lambda: deployment.queues.session.exists(record) is None, WAIT_S, "the job is removed")


# ---------------------------------------------------------------------- the next jobs of a name
def limits_at_the_end(deployment: Deployment, name: str, **values: Any) -> dict[str, Any] | None:
    """The node of a job of this name after it has run; `values` are changed before that."""
    job_id = deployment.submit("pass", name=name)
    if values:
        deployment.client.adjust(job_id, values)
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.SUCCESS, detail.job.error
    found = node(deployment.queues.session, deployment.queues.layout.record(job_id))
    assert found is None or found["run_key"] == deployment.queues.get(job_id).run_key
    return found


def test_kept_limits_are_those_with_which_the_next_jobs_of_the_name_begin(deployment: Deployment) -> None:
    first = deployment.submit("pass", name="invoices")
    deployment.client.adjust(first, {"concurrency": 4}, pause=["a"], is_rollback=True, keep=True)
    deployment.client.adjust(first, {"rate": 2.0})
    deployment.worker()
    for _ in range(2):
        found = limits_at_the_end(deployment, "invoices")
        assert found is not None
        assert (found["concurrency"], found["paused"]) == (4, ["a"])
        assert "rate" not in found, "it was not to be kept"
        assert not found.get("rollbacks"), "an order is not repeated"
    assert limits_at_the_end(deployment, "returns") is None


def test_a_change_before_the_start_adds_to_the_kept_limits(deployment: Deployment) -> None:
    first = deployment.submit("pass", name="invoices")
    deployment.client.adjust(first, {"concurrency": 4, "buffer": 70}, keep=True)
    second = deployment.submit("pass", name="invoices")
    made = deployment.client.adjust(second, {"concurrency": 5}, keep=True)
    assert made.document() == {"concurrency": 5, "buffer": 70}
    deployment.worker()
    found = limits_at_the_end(deployment, "invoices")
    assert found is not None
    assert (found["concurrency"], found["buffer"]) == (5, 70)


def test_kept_limits_that_cannot_be_read_hold_up_no_job(deployment: Deployment) -> None:
    session, folder = deployment.queues.session, f"{deployment.settings.root}/adjustments"
    session.ensure_path(folder)
    commit(session, [Create(f"{folder}/invoices", b"no JSON"), Create(f"{folder}/wrong", b'{"rate": 0}')])
    deployment.worker()
    for name in ("invoices", "wrong"):
        limits_at_the_end(deployment, name)
    job_id = deployment.submit("pass", name="wrong", pool="other")
    assert deployment.client.adjust(job_id, {"rate": 1.0}, keep=True).rate == 1.0, "the way to mend them"


# ---------------------------------------------------------------------- a driver follows them
@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[Adjustment]:
    """The adjustments that the pushes of drivers in this process get."""
    found, adjust = list[Adjustment](), Pushes.adjust

    def noted(self: Pushes, adjustment: Adjustment) -> None:
        found.append(adjustment)
        adjust(self, adjustment)

    monkeypatch.setattr(Pushes, "adjust", noted)
    return found


@pytest.fixture
def looking(open_queues: Open) -> Session:
    """A session of another client."""
    return open_queues().session


@dataclass
class Driver:
    """A driver in this process that has taken its attempt."""

    folder: str  # the record of the job
    report: Callable[[str], None]


@pytest.fixture
def driver(open_queues: Open, zookeeper_root: str) -> Iterator[Driver]:
    session, path = open_queues().session, f"{zookeeper_root}/attempt-1-key"
    commit(session, [intent(path, run_key="key", number=1, place={"backend": "local"}, at="now")])
    plan = run_plan(attempt_path=path, stop_path=f"{path}-stop", run_key="key", incarnation="driver")
    holder = AttemptHolder(session, plan)
    holder.take()
    yield Driver(zookeeper_root, holder.report)
    holder.abandon()


def progress(session: Session, driver: Driver) -> str:
    """What the driver shows."""
    found = session.get(f"{driver.folder}/attempt-1-key/alive")
    return "" if found is None else found[0].decode()


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """All that was said on stderr."""
    parts = list[str]()

    def read() -> str:
        parts.append(capsys.readouterr().err)
        return "".join(parts)

    return read


def test_a_driver_follows_each_change(driver: Driver, looking: Session, followed: list[Adjustment]) -> None:
    path = f"{driver.folder}/adjustment"
    commit(looking, [Create(path, encode({"run_key": "key", "concurrency": 4}))])
    wait_until(lambda: followed == [Adjustment(concurrency=4)], WAIT_S, "it follows the first one")
    commit(looking, [Set(path, encode({"run_key": "key", "rate": 1.5, "by": "ada"}), -1)])
    wait_until(lambda: followed[1:] == [Adjustment(rate=1.5)], WAIT_S, "and the second one")


def test_a_driver_does_not_follow_the_limits_of_an_earlier_job(
    driver: Driver, looking: Session, followed: list[Adjustment]
) -> None:
    path = f"{driver.folder}/adjustment"
    commit(looking, [Create(path, encode(OF_ANOTHER))])
    for phase in ("looks", "looks again"):
        driver.report(phase)
        wait_until(lambda: f'"{phase}"' in progress(looking, driver), WAIT_S, "it has looked")  # noqa: B023 - at once
    assert followed == []
    commit(looking, [Set(path, encode({"run_key": "key", "concurrency": 4}), -1)])
    wait_until(lambda: followed == [Adjustment(concurrency=4)], WAIT_S, "it follows those of its job")


@pytest.mark.parametrize(
    "data",
    [
        b"\xff no JSON",
        b"[]",
        b"[" * 100_000,
        b'{"run_key": "key", "concurrency": "many"}',
        b'{"run_key": "key", "rate": NaN}',
        b'{"run_key": "key", "rate": 1' + b"0" * 400 + b"}",
        b'{"run_key": "key", "concurrency": "' + b"long" * 10_000 + b'"}',
        b'{"run_key": "key", "paused": {"a": 1}}',
        b'{"run_key": "key", "rollbacks": null, "paused": [null]}',
    ],
    ids=lambda data: repr(data[:40]),
)
def test_a_node_that_cannot_be_followed_is_named_once_and_ends_no_driver(
    driver: Driver, looking: Session, followed: list[Adjustment], data: bytes, said: Callable[[], str]
) -> None:
    path = f"{driver.folder}/adjustment"
    commit(looking, [Create(path, data)])
    wait_until(lambda: "adjustment cannot be followed: " in said(), WAIT_S, "it says so")
    for phase in ("one", "another"):
        driver.report(phase)
        wait_until(lambda: phase in progress(looking, driver), WAIT_S, "it goes on")  # noqa: B023 - at once
    assert followed == []
    commit(looking, [Set(path, encode({"run_key": "key", "concurrency": 4}), -1)])
    wait_until(lambda: followed == [Adjustment(concurrency=4)], WAIT_S, "it follows the next ones")
    (line,) = said().splitlines()
    assert len(line) < 500


# ---------------------------------------------------------------------- rights
@pytest.fixture
def closed(secured: Secured, tmp_path: Path, process_mark: str) -> Iterator[Deployment]:
    """A deployment in which each node is for its creator, and those whom it names."""
    yield from deployments(secured, tmp_path, process_mark, "digest")


SHOWS_AND_WAITS = """
import os, pathlib, shutil
folder = pathlib.Path({folder!r})
number = 2 if (folder / "plan-1.json").exists() else 1
shutil.copy(os.environ["ORCHESTRATOR_RUN_DIR"] + "/plan.json", folder / f"plan-{{number}}.json")
go = folder / f"go-{{number}}"
"""


def attempts_in(folder: Path) -> str:
    """A program that shows the plans of its attempts, and fails in the first one."""
    waits = "import time\nfor _ in range(600):\n    if go.exists():\n        break\n    time.sleep(0.1)\n"
    return SHOWS_AND_WAITS.format(folder=str(folder)) + waits + "assert number == 2"


def test_the_driver_of_each_attempt_and_no_earlier_one_reads_the_limits(
    closed: Deployment, tmp_path: Path
) -> None:
    closed.worker()
    job_id = closed.submit(attempts_in(tmp_path), retry={"attempts": 2, "delay": "0s", "on": ["user"]})
    path = f"{closed.queues.session.folder}{closed.queues.layout.record(job_id)}/adjustment"
    first = plan_in(tmp_path / "plan-1.json")["zookeeper"]
    closed.client.adjust(job_id, {"concurrency": 4})
    with intruder(first) as client:
        assert decode(client.get(path)[0])["concurrency"] == 4
        with pytest.raises(NoAuthError):
            client.set(path, b"{}")
        with pytest.raises(NoAuthError):
            client.get(path.replace("/adjustment", "/definition"))
    (tmp_path / "go-1").touch()
    second = plan_in(tmp_path / "plan-2.json")["zookeeper"]
    with intruder(second) as client:
        found = decode(client.get(path)[0])
        assert (found["concurrency"], found["by"]) == (4, f"digest:{ADA.user}"), "still with its author"
    with intruder(first) as client, pytest.raises(NoAuthError):
        client.get(path)
    closed.client.adjust(job_id, {"rate": 2.0})
    with intruder(second) as client:
        assert decode(client.get(path)[0])["rate"] == 2.0
    findings = {finding.kind for finding in closed.client.doctor.check()}
    assert findings.isdisjoint({FindingKind.SHARED_RIGHTS, FindingKind.FOREIGN_RIGHTS}), findings
    (tmp_path / "go-2").touch()
    detail = closed.wait(job_id)
    assert (detail.job.status, detail.job.attempt) == (Status.SUCCESS, 2), detail.job.error


def test_the_driver_of_a_closed_ensemble_reads_kept_limits_and_those_from_before_its_start(
    closed: Deployment, tmp_path: Path
) -> None:
    kept = closed.submit("pass", name="invoices", pool="not-served")
    closed.client.adjust(kept, {"concurrency": 4}, keep=True)
    waiting = closed.submit("pass", name="invoices", pool="not-served")
    closed.client.adjust(waiting, {"rate": 2.0})
    closed.worker()
    job_id = closed.submit(attempts_in(tmp_path), name="invoices")
    session = closed.queues.session
    with intruder(plan_in(tmp_path / "plan-1.json")["zookeeper"]) as client:
        path = f"{session.folder}{closed.queues.layout.record(job_id)}/adjustment"
        assert decode(client.get(path)[0])["concurrency"] == 4
        for other in (
            f"{session.folder}{closed.queues.layout.record(waiting)}/adjustment",
            f"{session.folder}{closed.settings.root}/adjustments/invoices",
        ):
            with pytest.raises(NoAuthError):
                client.get(other)
    (tmp_path / "go-1").touch()
    closed.wait(job_id)


def test_a_driver_without_a_login_can_read_limits_after_the_doctor_has_closed_the_other_nodes(
    secured: Secured, tmp_path: Path, process_mark: str
) -> None:
    """It is from a time when all nodes were open."""
    assert process_mark
    settings = closed_settings(secured, tmp_path, "digest")
    with ExitStack() as stack:
        before = Deployment(settings.model_copy(update={"zookeeper_acl": Acl.OPEN}))
        stack.callback(before.close)
        worker = before.worker()
        job_id = before.submit(waits_for(tmp_path / "go"))
        wait_until(lambda: is_started(before, job_id), WAIT_S, "the job runs")
        before.client.adjust(job_id, {"concurrency": 4})
        worker.drain()
        after = Deployment(settings)
        stack.callback(after.close)
        after.client.doctor.fix(after.client.doctor.check())
        record = before.queues.layout.record(job_id)
        with zookeeper_client(settings.zookeeper_hosts) as stranger:
            assert decode(stranger.get(f"{record}/adjustment")[0])["concurrency"] == 4
            with pytest.raises(NoAuthError):
                stranger.get(f"{record}/definition")
        after.worker()
        (tmp_path / "go").touch()
        assert after.wait(job_id).job.status is Status.SUCCESS
