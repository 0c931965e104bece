"""Retention of tunings: the leader removes those that serve no run any more."""

import pytest

from orchestrator.leader import retention
from orchestrator.leader.election import Election
from orchestrator.leader.retention import OldTunings
from orchestrator.model.tuning import TuningMode
from orchestrator.tuning.resources import Resource
from queues.model.errors import Conflict
from queues.model.operations import Create
from queues.store.commit import commit
from tests.operators_support import Stage
from tests.tuning_support import NAME, decision, plant


def test_the_leader_removes_a_tuning_that_serves_no_run_any_more(stage: Stage) -> None:
    for name in ("gone", "reset", "pinned", "capped", "off", "damaged"):
        plant(stage.session, stage.nodes.tuning(name), b"{}")
        stage.client.tunings.add(name, decision())
    stage.client.tunings.add(NAME, decision())
    stage.client.tunings.reset("reset")
    stage.client.tunings.pin("pinned", {"driver.memory": "2g"})
    stage.client.tunings.cap("capped", {"driver.memory": "2g"})
    stage.client.tunings.set_mode("off", TuningMode.OFF)
    plant(stage.session, stage.nodes.tuning("damaged"), b"by hand")
    stage.make(stage.nodes.history(NAME), {})
    plant(stage.session, stage.nodes.tuning("no name"), b"{}")
    election = Election(stage.session, stage.nodes, "leader")
    assert election.look(lambda: None)
    left = {"capped", "damaged", NAME, "gone", "no name", "off", "pinned", "reset"}
    assert OldTunings(stage.queues, stage.nodes, election.fence).step() > 0
    assert set(stage.session.children(stage.nodes.tunings) or ()) == left, "written in the last 90 days"
    assert OldTunings(stage.queues, stage.nodes, election.fence, keep_ms=-60_000).step() > 0
    assert set(stage.session.children(stage.nodes.tunings) or ()) == left - {"gone", "reset"}


def test_a_former_leader_removes_no_tuning(stage: Stage) -> None:
    plant(stage.session, stage.nodes.tuning("gone"), b"{}")
    late = (Create(stage.nodes.root),)  # refused, as is the fence of a former leader
    OldTunings(stage.queues, stage.nodes, lambda: late, keep_ms=-60_000).step()
    assert stage.client.tunings.names() == ["gone"]


def test_the_leader_removes_a_hundred_tunings_at_a_time_and_goes_on_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_AT_ONCE", 2)
    for number in range(3):
        plant(stage.session, stage.nodes.tuning(f"gone-{number}"), b"{}")
    duty = OldTunings(stage.queues, stage.nodes, tuple, keep_ms=-60_000)
    assert duty.step() == 0
    assert len(stage.client.tunings.names()) == 1
    assert duty.step() > 0
    assert stage.client.tunings.names() == []


def test_a_tuning_that_is_written_at_the_same_moment_stays(stage: Stage) -> None:
    plant(stage.session, stage.nodes.tuning("gone"), b"{}")
    (removal,) = stage.client.tunings.abandoned(stage.clock.confirmed_ms() + 60_000)
    stage.client.tunings.pin("gone", {"driver.memory": "2g"})
    with pytest.raises(Conflict):
        commit(stage.session, [removal])
    assert stage.client.tunings.get("gone").pins == {Resource.DRIVER_MEMORY: 2048}
