"""A multi that is sent again after a lost reply changes nothing of a later job of the same id.

The first sending is carried out. Before the second one all that there is of the job is removed, and a job of
its id comes to the versions at which the first one was. Each kind of multi that names nodes of a job is here.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from orchestrator.admin.stops import Stops
from orchestrator.doctor.doctor import Doctor
from orchestrator.leader.election import Election
from orchestrator.leader.retention import OldHistories
from orchestrator.leader.stale_slots import StaleSlots
from orchestrator.leader.stale_stops import StaleStops
from orchestrator.model.errors import OrchestratorError
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from queues.admin.scrubber import Scrubber
from queues.claims.claim import Claim
from queues.model.errors import CorruptRecord, QueueError
from queues.model.operations import Create, Delete, Operation, Set
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import Posted, Session
from queues.store.commit import commit
from spark_runner.driver.attempt_holder import AttemptHolder, Superseded
from spark_runner.protocol.attempt import AttemptState, attempt_path
from spark_runner.protocol.errors import SparkRunnerError
from tests.claims_support import lose_reply, names_node
from tests.operators_support import JOB, Stage
from tests.queues_support import expire
from tests.run_plans import run_plan

Act = Callable[[], object]


def nodes(session: Session, path: str) -> dict[str, tuple[bytes, int, int]]:
    """All nodes with data, version and owner, except the clock's and the receipts."""
    found = session.get(path)
    if found is None or path.endswith(("/receipts", "/config/clock")):
        return {}
    below = {path: (found[0], found[1].version, found[1].owner)}
    for name in session.children(path) or ():
        below |= nodes(session, f"{path}/{name}")
    return below


def wipe(stage: Stage) -> None:
    """Remove all nodes of the job, as a forced removal does."""
    session, root = stage.session, stage.queues.layout.root
    ours = [path for path in nodes(session, root) if JOB in re.split(r"[/|]", path)]
    commit(session, [Delete(path) for path in sorted(ours, key=len, reverse=True)])


def changes_nothing(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    act: Act,
    concerns: Callable[[Sequence[Operation]], bool],
    later: Act,
    *,
    late: bool = False,
) -> None:
    """Act, lose the reply of the multi that `concerns` says, and let the later job come in between.

    `late`: it comes in the last moment, when the sender has read what it reads before it sends again.
    """
    before = dict[str, tuple[bytes, int, int]]()

    def meanwhile() -> None:
        wipe(stage)
        later()
        before.update(nodes(stage.session, stage.queues.layout.root))

    lost = lose_reply(monkeypatch, concerns, (lambda: None) if late else meanwhile)
    post = Session.post

    def last_moment(session: Session, operations: Sequence[Operation]) -> Posted:
        if lost and operations is lost[0] and not before:
            meanwhile()
        return post(session, operations)

    monkeypatch.setattr(Session, "post", last_moment)
    with suppress(QueueError, OrchestratorError, SparkRunnerError):
        act()
    assert lost, "the multi was sent"
    assert before, "the later job is there"
    assert nodes(stage.session, stage.queues.layout.root) == before


def later_job(stage: Stage, *, claims: int = 0) -> QueueSet:
    """A job of the same id, claimed so often by another worker; the last claim is kept."""
    other = stage.other("other")
    other.put(Queue.ACCEPT, JOB, JobState.enqueued("later").to_payload())
    for number in range(claims):
        claim = other.claim_by_id(JOB)
        if number < claims - 1:
            claim.release()
    return other


def does(kind: type[Operation], path: str) -> Callable[[Sequence[Operation]], bool]:
    """Whether a multi has this kind of operation on a node with this text in its path."""
    return lambda operations: any(isinstance(o, kind) and path in o.path for o in operations)


# ---------------------------------------------------------------------- holders
STEPS: list[Any] = [
    pytest.param(lambda claim: claim.release(), id="release"),
    pytest.param(lambda claim: claim.commit(payload={"n": 1}), id="commit"),
    pytest.param(lambda claim: claim.commit(due=1, release=True), id="requeue"),
    pytest.param(lambda claim: claim.commit(queue=Queue.RUNNING), id="move"),
    pytest.param(lambda claim: claim.commit(pool="team"), id="pool"),
    pytest.param(lambda claim: claim.remove(), id="remove"),
]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_a_holder(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, step: Callable[[Claim], object]
) -> None:
    stage.queues.put(Queue.ACCEPT, JOB, {})
    stage.queues.ensure_pool("team")
    claim = stage.hold()
    changes_nothing(
        stage, monkeypatch, lambda: step(claim), names_node("/locks/"), lambda: later_job(stage, claims=1)
    )


def test_a_claim(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.queues.put(Queue.ACCEPT, JOB, {})
    (token,) = stage.queues.tokens(Queue.ACCEPT)
    changes_nothing(
        stage,
        monkeypatch,
        lambda: stage.queues.claim(Queue.ACCEPT, "default", token),
        does(Create, "/locks/"),
        lambda: later_job(stage),
    )


def test_a_claim_by_force(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.queues.put(Queue.ACCEPT, JOB, {})
    stage.other("holder").claim_by_id(JOB)
    changes_nothing(
        stage,
        monkeypatch,
        lambda: stage.queues.claim_by_id(JOB, force=True),
        does(Delete, "/locks/"),
        lambda: later_job(stage, claims=1),
    )


def test_the_release_of_an_orphan_lock(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.queues.put(Queue.ACCEPT, JOB, {})
    stage.hold().abandon()
    changes_nothing(
        stage,
        monkeypatch,
        lambda: stage.queues.release_orphan_locks("default", [JOB]),
        does(Delete, "/locks/"),
        lambda: later_job(stage, claims=1),
    )


# ---------------------------------------------------------------------- put, dead letter, repair
@pytest.mark.parametrize("many", [False, True])
def test_a_put(stage: Stage, monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    items = [NewItem({}, id=name) for name in ("first", JOB)]

    def put() -> None:
        if many:
            stage.queues.put_many(Queue.ACCEPT, items)
        else:
            stage.queues.put(Queue.ACCEPT, JOB, {})

    changes_nothing(stage, monkeypatch, put, does(Create, "/jobs/"), lambda: later_job(stage))


def damage(stage: Stage, queue: Queue) -> None:
    stage.queues.put(queue, JOB, {})
    commit(stage.session, [Set(stage.queues.layout.record(JOB), b"garbage", -1)])


def test_a_burial(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(stage, Queue.ACCEPT)
    (token,) = stage.queues.tokens(Queue.ACCEPT)
    error = CorruptRecord(JOB, "garbage")
    changes_nothing(
        stage,
        monkeypatch,
        lambda: stage.queues.move_to_dead(Queue.ACCEPT, "default", token, error),
        does(Delete, "/queues/"),
        lambda: later_job(stage),
    )


def test_the_removal_of_what_cannot_be_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(stage, Queue.DEAD)
    changes_nothing(
        stage,
        monkeypatch,
        lambda: stage.client.remove(JOB),
        does(Delete, "/queues/"),
        lambda: later_job(stage),
    )


def test_a_token_that_is_restored(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.queues.put(Queue.ACCEPT, JOB, {})
    (token,) = stage.queues.tokens(Queue.ACCEPT)
    commit(stage.session, [Delete(stage.queues.layout.token(Queue.ACCEPT, "default", token))])
    scrubber = Scrubber(stage.queues.root, stage.queues.claimer)
    changes_nothing(stage, monkeypatch, scrubber.scrub, does(Create, "/queues/"), lambda: later_job(stage))


# ---------------------------------------------------------------------- requests and slots
def later_job_is_stopped(stage: Stage) -> None:
    later_job(stage)
    stage.ask_to_stop(stage.queues.get(JOB).run_key)


def earlier_stop(stage: Stage) -> None:
    stage.ask_to_stop("of an earlier job")


@pytest.mark.parametrize("later", [later_job, later_job_is_stopped])
@pytest.mark.parametrize("earlier", [lambda _stage: None, earlier_stop], ids=["made", "set"])
def test_a_request_to_stop(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    earlier: Callable[[Stage], None],
    later: Callable[[Stage], Any],
) -> None:
    stage.put()
    earlier(stage)
    changes_nothing(
        stage, monkeypatch, lambda: stage.client.kill(JOB), names_node("/stops/"), lambda: later(stage)
    )


def test_a_request_that_is_taken_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    run_key = stage.put()
    stage.ask_to_stop(run_key)
    changes_nothing(
        stage,
        monkeypatch,
        lambda: Stops(stage.queues).withdraw(stage.stop(), run_key),
        does(Delete, "/stops/"),
        lambda: later_job_is_stopped(stage),
    )


def test_a_stale_request_that_the_leader_removes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put()
    earlier_stop(stage)
    duty = StaleStops(stage.queues, leading(stage).fence, patience=0)
    changes_nothing(
        stage, monkeypatch, duty.step, does(Delete, "/stops/"), lambda: later_job_is_stopped(stage)
    )


def leading(stage: Stage) -> Election:
    election = Election(stage.session, stage.nodes, "leader")
    assert election.look(lambda: None)
    return election


def test_a_stale_slot_that_the_leader_frees(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = stage.nodes.slot("default", 0)
    stage.put()
    stage.make(slot, {"id": JOB, "run_key": "of an earlier job"})

    def later() -> None:
        later_job(stage)
        stage.make(slot, {"id": JOB, "run_key": stage.queues.get(JOB).run_key})

    duty = StaleSlots(stage.queues, stage.nodes, leading(stage).fence, patience=0)
    changes_nothing(stage, monkeypatch, duty.step, does(Delete, slot), later)


def test_an_old_history_that_the_leader_removes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stage.nodes.history("old")
    stage.make(path, {})
    duty = OldHistories(stage.queues, stage.nodes, leading(stage).fence, keep_ms=-60_000)
    changes_nothing(stage, monkeypatch, duty.step, does(Delete, path), lambda: stage.make(path, {}))


def test_a_lock_that_the_doctor_removes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.queues.ensure_pool("team")
    stage.put(pool="team")
    stage.hold().release()
    lock = stage.queues.layout.lock("default", JOB)  # in another pool than that of the job
    stage.make(lock, {"worker": "worker-7"})
    doctor = Doctor(stage.other("doctor"))
    found = list(doctor.check())
    changes_nothing(
        stage,
        monkeypatch,
        lambda: doctor.fix(found),
        does(Delete, lock),
        lambda: later_job(stage, claims=1),
    )


def test_a_leaders_node_that_was_changed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    election, path = leading(stage), stage.nodes.leader
    stage.commit(Delete(path))
    stage.commit(Create(path, b"changed by another", ephemeral=True))  # at the same version
    next_one = Election(stage.other("next").session, stage.nodes, "next")
    changes_nothing(
        stage,
        monkeypatch,
        lambda: election.look(lambda: None),
        does(Delete, path),
        lambda: next_one.look(lambda: None),
    )


def test_the_removal_of_a_pool(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.queues.ensure_pool("team")
    changes_nothing(
        stage,
        monkeypatch,
        lambda: stage.queues.remove_pool("team"),
        does(Delete, stage.queues.layout.pool("team")),
        lambda: stage.other("other").ensure_pool("team"),
    )


# ---------------------------------------------------------------------- drivers
@dataclass
class Driver:
    """A driver of the job's only attempt, which polls for orders when the test calls it."""

    stage: Stage
    session: Session
    holder: AttemptHolder

    @classmethod
    def of(cls, stage: Stage) -> "Driver":
        run_key = stage.put(Queue.RUNNING, Status.RUNNING, AttemptState.INTENT)
        session = stage.other("driver").session
        plan = run_plan(
            attempt_path=attempt_path(stage.queues.layout.record(JOB), run_key, 1),
            stop_path=stage.stop(),
            run_key=run_key,
        )
        holder = AttemptHolder(session, plan)
        holder._thread = type("Unstarted", (), {"start": lambda _self: None})()  # noqa: SLF001 - the test calls its poll
        return cls(stage, session, holder)

    def later(self, reached: AttemptState, *, alive: bool) -> Act:
        """A later job with an attempt, held by another driver if that is alive."""

        def act() -> None:
            run_key = self.stage.put(Queue.RUNNING, Status.RUNNING, reached)
            if alive:
                path = attempt_path(self.stage.queues.layout.record(JOB), run_key, 1)
                commit(self.stage.session, [Create(f"{path}/alive", b"{}", ephemeral=True)])

        return act


ALSO_LATE = pytest.mark.parametrize("late", [False, True])


@pytest.fixture
def driver(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setattr(AttemptHolder, "_exit", lambda *_: None)  # it would end this process
    return Driver.of(stage)


@ALSO_LATE
def test_a_driver_that_takes_its_attempt(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, driver: Driver, late: bool
) -> None:
    later = driver.later(AttemptState.INTENT, alive=False)
    changes_nothing(stage, monkeypatch, driver.holder.take, does(Create, "/alive"), later, late=late)


@ALSO_LATE
def test_a_driver_that_records_its_outcome(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, driver: Driver, late: bool
) -> None:
    driver.holder.take()
    later = driver.later(AttemptState.STARTED, alive=True)
    changes_nothing(
        stage,
        monkeypatch,
        lambda: driver.holder.end({"state": "succeeded"}),
        does(Delete, "/alive"),
        later,
        late=late,
    )


@ALSO_LATE
def test_a_driver_that_obeys_a_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, driver: Driver, late: bool
) -> None:
    driver.holder.take()
    stage.ask_to_stop(stage.queues.get(JOB).run_key)
    later = driver.later(AttemptState.STARTED, alive=True)
    changes_nothing(stage, monkeypatch, driver.holder._look, does(Delete, "/alive"), later, late=late)  # noqa: SLF001 - one poll for orders


@ALSO_LATE
def test_a_driver_that_shows_itself_again_after_a_lost_session(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, driver: Driver, late: bool
) -> None:
    driver.holder.take()
    expire(driver.session)
    later = driver.later(AttemptState.STARTED, alive=False)
    changes_nothing(stage, monkeypatch, driver.holder._look, does(Create, "/alive"), later, late=late)  # noqa: SLF001 - likewise


@ALSO_LATE
def test_a_driver_that_shows_its_progress(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, driver: Driver, late: bool
) -> None:
    driver.holder.take()
    driver.holder.report("phase of the earlier job")
    later = driver.later(AttemptState.STARTED, alive=True)
    changes_nothing(stage, monkeypatch, driver.holder._look, does(Set, "/alive"), later, late=late)  # noqa: SLF001 - likewise


@pytest.mark.parametrize("has_taken", [False, True])
def test_a_driver_reads_before_it_sends_again_and_sends_nothing_of_a_job_that_is_gone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, driver: Driver, has_taken: bool
) -> None:
    if has_taken:
        driver.holder.take()
    post, sent = Session.post, list[Sequence[Operation]]()

    def counting(session: Session, operations: Sequence[Operation]) -> Posted:
        if session is driver.session:
            sent.append(operations)
        return post(session, operations)

    monkeypatch.setattr(Session, "post", counting)
    lost = lose_reply(monkeypatch, does(Set, "/attempt-"), lambda: wipe(stage))
    act = partial(driver.holder.end, {"state": "succeeded"}) if has_taken else driver.holder.take
    with pytest.raises(Superseded, match="is gone"):
        act()
    assert (len(lost), len(sent)) == (1, 1)  # the one with the lost reply
