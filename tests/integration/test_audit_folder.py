"""Changes of operators that wait in ZooKeeper: bounded while there is no leader, and never in its way."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.security import make_digest_acl

from orchestrator.audit import trail
from orchestrator.audit.documents import DATASET, AuditLog
from orchestrator.audit.event import AuditEvent
from orchestrator.leader import audit_trail
from orchestrator.leader.audit_trail import AuditTrail
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.reading.query import LogQuery
from orchestrator.logs.reading.reader import SpooledLogs
from orchestrator.logs.record.document import Days
from orchestrator.logs.settings import LogSettings
from queues.model.errors import Conflict
from queues.model.operations import Create, Operation
from queues.session import Session
from queues.store.commit import commit
from tests.operators_support import Stage
from tests.servers.zookeeper import zookeeper_client

ME = "ip:127.0.0.1"


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogPipeline]:
    with LogPipeline(LogSettings(), tmp_path / "logs", "test") as made:
        yield made


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of ten entries, which drops four at a time, and a leader that reads three at once."""
    monkeypatch.setattr(trail, "MAX_WAITING", 10)
    monkeypatch.setattr(trail, "SUMMED_AT_ONCE", 4)
    monkeypatch.setattr(audit_trail, "_AT_ONCE", 3)


def leader(stage: Stage, logs: LogPipeline) -> AuditTrail:
    return AuditTrail(stage.queues, stage.nodes, tuple, AuditLog(logs, Days("logs")))


def waiting(stage: Stage) -> list[AuditEvent]:
    session, nodes = stage.session, stage.nodes
    names = sorted(session.children(nodes.audit) or ())
    found = session.get_many([nodes.audit_entry(name) for name in names])
    return [AuditEvent.read(name, node[0]) for name, node in zip(names, found, strict=True) if node]


def documents(folder: Path) -> list[dict[str, Any]]:
    found = SpooledLogs(folder / "logs" / "spool").new(LogQuery.of(event_dataset=DATASET))
    return [dict(entry.document) for entry in found]


def make_closed(stage: Stage, path: str) -> None:
    """A node that only another user may access."""
    with zookeeper_client(stage.session.settings.hosts) as client:
        client.create(path, b"", acl=[make_digest_acl("other", "password", all=True)])


def change_caps(stage: Stage, count: int) -> None:
    for cap in range(1, count + 1):
        stage.client.change_pool("default", cap=cap)


# ---------------------------------------------------------------------- bounded
@pytest.mark.usefixtures("small")
def test_without_a_leader_the_folder_is_bounded_and_each_login_and_action_stays_counted(
    stage: Stage,
) -> None:
    change_caps(stage, 60)
    stage.queues.ensure_pool("old")
    stage.client.remove_pool("old")
    found = waiting(stage)
    assert len(found) <= 10
    assert found[-1].act.action == "remove"  # the change itself is never omitted
    sums = [event for event in found if event.act.action == "sum-up"]
    counted = sum((Counter(event.before) for event in sums), Counter())
    alone = [event for event in found if event.act.action != "sum-up"]
    assert counted[f"{ME} set pool"] + len(alone) == 61
    assert all(event.act.by == ME for event in sums)
    first = min(sums, key=lambda event: event.id)
    assert first.act.detail.split(" ")[0].isdecimal()  # their number and period
    assert stage.nodes.audit in first.target


@pytest.mark.usefixtures("small")
def test_a_summary_becomes_a_document(stage: Stage, logs: LogPipeline, tmp_path: Path) -> None:
    change_caps(stage, 30)
    duty = leader(stage, logs)
    while duty.step() == 0:
        pass
    assert waiting(stage) == []
    counts = Counter(document["event.action"] for document in documents(tmp_path))
    assert counts["sum-up"] >= 1
    sums = [document for document in documents(tmp_path) if document["event.action"] == "sum-up"]
    assert all(f'"{ME} set pool"' in document["audit.before"] for document in sums)


@pytest.mark.usefixtures("small")
def test_the_names_in_a_sum_are_bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "_MAX_NAMES", 3)
    stage.session.ensure_path(stage.nodes.audit)
    for number in range(12):
        entry: dict[str, object] = {
            "act": {"at": "2026", "by": f"digest:{number}", "action": "set"},
            "kind": "pool",
            "target": "p",
        }
        stage.make(stage.nodes.audit_entry(f"2026-{number:02}"), entry)
    change_caps(stage, 30)
    sums = [event for event in waiting(stage) if event.act.action == "sum-up"]
    assert sums
    assert all(len(event.before) <= 4 for event in sums)
    assert any(event.before.get("others") for event in sums)


@pytest.mark.usefixtures("small")
def test_two_who_sum_up_at_once_count_nothing_twice(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    change_caps(stage, 10)
    other = stage.other("second")
    commits = list[list[Operation]]()

    def faster(session: Session, operations: list[Operation]) -> object:
        if not commits:
            commits.append(operations)
            commit(
                other.session, operations[1:]
            )  # another client removes them; our multi is refused as a whole
        return commit(session, operations)

    monkeypatch.setattr(trail, "commit", faster)
    stage.client.change_pool("default", cap=99)
    found = waiting(stage)
    assert [event.act.action for event in found] == ["set"] * 7
    with pytest.raises(Conflict):
        commit(stage.session, commits[0])


@pytest.mark.usefixtures("small")
def test_an_entry_that_cannot_be_removed_hinders_no_change(stage: Stage) -> None:
    stage.session.ensure_path(stage.nodes.audit)
    for number in range(12):
        stage.session.ensure_path(f"{stage.nodes.audit_entry(f'0-{number:02}')}/below")
    change_caps(stage, 30)
    assert len(waiting(stage)) <= 12 + 10


# ---------------------------------------------------------------------- entries of other programs
@pytest.mark.usefixtures("small")
def test_entries_that_cannot_be_removed_are_written_once_and_hold_nothing_up(
    stage: Stage, logs: LogPipeline, tmp_path: Path
) -> None:
    stage.session.ensure_path(stage.nodes.audit)
    for number in range(4):  # sorted before all others
        stage.session.ensure_path(f"{stage.nodes.audit_entry(f'0-{number}')}/below")
    change_caps(stage, 2)
    duty = leader(stage, logs)
    pauses = [duty.step() for _ in range(8)]
    counts = Counter(document["event.action"] for document in documents(tmp_path))
    assert counts == {"unreadable": 4, "set": 2}
    assert pauses[-1] > 0
    assert len(waiting(stage)) == 4


@pytest.mark.usefixtures("small")
def test_entries_that_a_leader_may_not_read_hold_nothing_up(
    stage: Stage, logs: LogPipeline, tmp_path: Path
) -> None:
    stage.session.ensure_path(stage.nodes.audit)
    for number in range(4):
        path = stage.nodes.audit_entry(f"0-{number}")
        make_closed(stage, path)
    commit(stage.session, [Create(stage.nodes.audit_entry("1"), b"{}")])
    change_caps(stage, 2)
    duty = leader(stage, logs)
    for _ in range(8):
        duty.step()
    actions = Counter(document["event.action"] for document in documents(tmp_path))
    assert actions["set"] == 2
    assert not [name for name in stage.session.children(stage.nodes.audit) or () if name > "1"]
