import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from orchestrator.admin.operations import MOVES, reopened
from orchestrator.client.client import Client
from orchestrator.model.errors import AlreadyEnded, AttemptOpen, JobHeld, MoveRefused, NotEnded
from orchestrator.model.job import CallbackState, JobError, JobState
from orchestrator.model.states import Queue, Status
from queues.claims.claim import Claim
from queues.model.errors import ClaimLost, CorruptRecord, ItemNotFound
from queues.model.operations import Create, Delete, Set
from queues.queue_set import QueueSet
from spark_runner.protocol.attempt import AttemptState, attempt_path
from tests.jobs_support import Deployment
from tests.operators_support import JOB, Stage

FAILED, STARTED, INTENT = AttemptState.FAILED, AttemptState.STARTED, AttemptState.INTENT
ERROR = JobError(error_class="user", message="no such table")


# ---------------------------------------------------------------------- retry
@pytest.mark.parametrize(
    ("queue", "status"),
    [
        (Queue.FINISH, Status.ERROR_FAIL),
        (Queue.FINISH, Status.KILL),
        (Queue.FINISH, Status.CANCEL),
        (Queue.DEAD, Status.DEAD),
    ],
)
def test_a_job_that_has_ended_is_brought_back_and_counted_anew(
    stage: Stage, queue: Queue, status: Status
) -> None:
    run_key = stage.put(queue, status, FAILED, FAILED, failures=2, handler_errors=4, demotions=1, error=ERROR)
    created = stage.state().created
    job = stage.client.retry(JOB)
    assert (job.queue, job.status, job.attempt, job.created) == (Queue.ACCEPT, Status.ACCEPT, 2, created)
    state = stage.state()
    assert (state.failures, state.handler_errors, state.demotions, state.error) == (0, 0, 0, None)
    assert stage.places_of() == [("accept", "default")]
    record = stage.queues.get(JOB)
    assert record.run_key == run_key, "its attempts go on being named by it"
    assert record.token.due <= stage.clock.now_ms()
    assert stage.session.children(stage.queues.layout.locks("default")) == []


def test_only_by_force_a_success_is_run_again(stage: Stage) -> None:
    stage.put(Queue.FINISH, Status.SUCCESS, AttemptState.SUCCEEDED)
    with pytest.raises(AlreadyEnded, match="SUCCESS"):
        stage.client.retry(JOB)
    assert stage.places_of() == [("finish", "default")]
    assert stage.client.retry(JOB, force=True).attempt == 1
    assert stage.places_of() == [("accept", "default")]


@pytest.mark.parametrize("queue", sorted(set(Queue) - {Queue.FINISH, Queue.DEAD}))
def test_a_job_that_has_not_ended_is_not_run_again(stage: Stage, queue: Queue) -> None:
    stage.put(queue, None, FAILED)
    with pytest.raises(NotEnded, match=queue):
        stage.client.retry(JOB)
    assert stage.places_of() == [(queue, "default")]
    stage.hold().release()


def test_the_error_of_an_act_on_a_running_job_says_what_is_wrong_and_not_who_holds_it(stage: Stage) -> None:
    stage.put(Queue.RUNNING, None, STARTED)
    claim = stage.hold()
    with pytest.raises(NotEnded):
        stage.client.retry(JOB)
    with pytest.raises(AttemptOpen):
        stage.client.move(JOB, Queue.DEAD)
    with pytest.raises(AttemptOpen):
        stage.client.requeue(JOB)
    claim.release()


def test_a_demoted_job_goes_back_to_its_pool(stage: Stage) -> None:
    stage.queues.ensure_pool("team")
    stage.put(Queue.FINISH, Status.ERROR_FAIL, FAILED, pool="team.low", demotions=1)
    assert stage.client.retry(JOB).pool == "team"
    assert stage.places_of() == [("accept", "team")]


def test_a_late_request_to_stop_does_not_stop_the_job_that_is_run_again(stage: Stage) -> None:
    run_key = stage.put(Queue.FINISH, Status.ERROR_FAIL, FAILED)
    stage.ask_to_stop(run_key)
    stage.client.retry(JOB)
    assert not stage.is_there(stage.stop())


def test_a_held_job_is_not_run_again(stage: Stage) -> None:
    stage.put(Queue.FINISH)
    claim = stage.hold()
    with pytest.raises(JobHeld, match="worker-7"):
        stage.client.retry(JOB)
    claim.release()


def test_a_dead_job_whose_driver_may_run_is_not_run_a_second_time(stage: Stage) -> None:
    stage.put(Queue.DEAD, Status.DEAD, STARTED)
    with pytest.raises(AttemptOpen, match=f"queue replay {JOB}"):
        stage.client.retry(JOB)
    assert stage.places_of() == [("dead", "default")]


def test_of_two_simultaneous_reruns_of_a_job_one_is_refused_because_it_has_not_ended(stage: Stage) -> None:
    stage.put(Queue.FINISH, Status.ERROR_FAIL, FAILED)
    outcomes = list[Exception | None]()

    def retry(client: Client) -> None:
        try:
            client.retry(JOB)
        except (NotEnded, JobHeld) as error:
            outcomes.append(error)
        else:
            outcomes.append(None)

    clients = [Client(stage.other(f"client-{number}")) for number in range(4)]
    threads = [threading.Thread(target=retry, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(None) == 1
    assert len(outcomes) == 4
    assert stage.places_of() == [("accept", "default")]


def test_a_job_that_is_run_again_keeps_what_it_is_and_nothing_of_what_became_of_it() -> None:
    state = JobState.enqueued("flights", queued_limit=60.0).evolve(
        status=Status.ERROR_FAIL,
        **dict.fromkeys(("attempt", "failures", "submissions", "demotions", "handler_errors", "polls"), 3),
        **dict.fromkeys(("started", "ended", "application_id", "warning", "archive", "last_seen"), "some"),
        slot=1,
        name_slot=2,
        error=ERROR,
        callback=CallbackState(attempts=2, done=True),
        buried_from={"queue": "fail", "status": "ERROR_FAIL"},
    )
    again = reopened(state)
    fresh = JobState.enqueued("flights", queued_limit=60.0)
    differs = {"attempt": 3, "created": state.created, "updated": again.updated, "times": again.times}
    differs |= {"previous": Status.ERROR_FAIL, "first_started": "some", "notices": state.notices + 1}
    assert again == fresh.evolve(**differs)


def test_a_job_that_is_run_again_runs_in_an_attempt_of_its_own(deployment: Deployment) -> None:
    job_id = deployment.submit("raise ValueError('not yet')")
    deployment.worker()
    assert deployment.wait(job_id).job.status is Status.ERROR_FAIL
    deployment.client.retry(job_id)
    detail = deployment.wait(job_id)
    assert [attempt["attempt"] for attempt in detail.attempts] == [1, 2]
    assert (detail.job.attempt, detail.job.failures) == (2, 1)


# ---------------------------------------------------------------------- remove
@pytest.mark.parametrize("queue", Queue)
def test_nothing_is_left_of_a_job_that_is_removed(stage: Stage, queue: Queue) -> None:
    slots: dict[str, Any] = {"slot": 0, "name_slot": 3}
    stage.queues.root.ensure_bucket(JOB)
    stage.put(job_id="other")
    for folder in (stage.nodes.slots("default"), stage.nodes.name_slots("test")):
        stage.session.ensure_path(folder)
    before = stage.tree()
    run_key = stage.put(queue, None, FAILED, FAILED, FAILED, **slots)
    for path in (stage.nodes.slot("default", 0), stage.nodes.name_slot("test", 3)):
        stage.make(path, {"run_key": run_key})
    stage.ask_to_stop(run_key)
    stage.client.remove(JOB)
    assert stage.tree() == before
    with pytest.raises(ItemNotFound):
        stage.client.remove(JOB)
    stage.put()  # the id is free again


@pytest.mark.parametrize("reached", [INTENT, STARTED])
@pytest.mark.parametrize("queue", [Queue.RUNNING, Queue.KILL, Queue.DEAD])
def test_a_job_whose_attempt_is_open_is_not_removed(
    stage: Stage, queue: Queue, reached: AttemptState
) -> None:
    stage.put(queue, None, FAILED, reached)
    before = stage.tree()
    with pytest.raises(AttemptOpen, match=r"attempt 2 of job 'job' is open.*job kill job"):
        stage.client.remove(JOB)
    claim = stage.hold()
    with pytest.raises(AttemptOpen, match="job kill"):
        stage.client.remove(JOB)
    claim.release()
    assert stage.tree() == before


def test_slots_of_another_job_stay_when_one_is_removed(stage: Stage) -> None:
    stage.make(stage.nodes.slot("default", 0), {"run_key": "another"})
    stage.ask_to_stop("another")
    stage.put(slot=0)
    stage.client.remove(JOB)
    assert stage.is_there(stage.nodes.slot("default", 0))
    assert stage.is_there(stage.stop())


def test_a_held_job_is_not_removed(stage: Stage) -> None:
    stage.put()
    claim = stage.hold()
    with pytest.raises(JobHeld, match="worker-7"):
        stage.client.remove(JOB)
    claim.commit(queue="finish", release=True)
    stage.client.remove(JOB)


def test_a_job_with_very_many_attempts_is_removed(stage: Stage) -> None:
    attempts = 1_200
    run_key = stage.put(Queue.FINISH)
    record = stage.queues.layout.record(JOB)
    for start in range(1, attempts, 200):
        paths = [attempt_path(record, run_key, number) for number in range(start, start + 200)]
        stage.commit(*[Create(path, b'{"state": "failed"}') for path in paths])
    stage.client.remove(JOB)
    assert stage.is_gone()
    assert stage.places_of() == []


@pytest.mark.parametrize("damage", [b"", b"no record", b'{"id": "another"}'], ids=["empty", "text", "other"])
def test_a_dead_job_that_cannot_be_read_can_be_removed(stage: Stage, damage: bytes) -> None:
    stage.queues.root.ensure_bucket(JOB)
    stage.put(job_id="other")
    stage.queues.ensure_pool("team")
    before = stage.tree()
    run_key = stage.put(Queue.DEAD, Status.DEAD, FAILED, pool="team")
    stage.ask_to_stop(run_key, pool="team")
    stage.commit(Set(stage.queues.layout.record(JOB), damage, -1))
    stage.client.remove(JOB)
    assert stage.tree() == before


def test_a_token_in_dead_without_a_record_can_be_removed(stage: Stage) -> None:
    stage.put(Queue.DEAD)
    record = stage.queues.layout.record(JOB)
    stage.commit(Delete(f"{record}/definition"), Delete(record))
    stage.client.remove(JOB)
    assert stage.places_of() == []


def test_an_unreadable_job_is_removed_only_when_no_driver_may_run_and_no_claim_is_held(
    stage: Stage,
) -> None:
    stage.put(Queue.DEAD, Status.DEAD, STARTED)
    stage.put(Queue.DEAD, job_id="held")
    claim = stage.hold("held")
    for job_id in (JOB, "held"):
        stage.commit(Set(stage.queues.layout.record(job_id), b"damaged", -1))
    before = stage.tree()
    with pytest.raises(AttemptOpen):
        stage.client.remove(JOB)
    with pytest.raises(JobHeld):
        stage.client.remove("held")
    assert stage.tree() == before
    claim.abandon()


def test_a_job_that_cannot_be_read_and_is_not_in_dead_yet_is_left_to_the_workers(stage: Stage) -> None:
    stage.put()
    stage.commit(Set(stage.queues.layout.record(JOB), b"damaged", -1))
    before = stage.tree()
    with pytest.raises(CorruptRecord):
        stage.client.remove(JOB)
    assert stage.tree() == before


def change_before_the_claim(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]
) -> None:
    """Run an act of another client between the read of the client and its claim."""
    claim_by_id, done = QueueSet.claim_by_id, list[str]()

    def slow(self: QueueSet, job_id: str, *, force: bool = False) -> Claim:
        if self is not stage.queues and not done:
            done.append(job_id)
            change()
        return claim_by_id(self, job_id, force=force)

    monkeypatch.setattr(QueueSet, "claim_by_id", slow)


@pytest.mark.parametrize(
    ("act", "refusal"),
    [
        pytest.param(lambda client: client.remove(JOB), AttemptOpen, id="remove"),
        pytest.param(lambda client: client.move(JOB, Queue.DEAD), AttemptOpen, id="move"),
        pytest.param(lambda client: client.requeue(JOB, delay=60), AttemptOpen, id="requeue"),
    ],
)
def test_an_attempt_that_begins_in_the_moment_of_an_act_is_not_left_to_itself(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Client], object],
    refusal: type[Exception],
) -> None:
    run_key = stage.put()

    def begin() -> None:
        stage.queues.move(JOB, "running", payload=payload)
        stage.attempt(JOB, run_key, 1, INTENT)

    running = stage.state().evolve(status=Status.RUNNING, attempt=1)
    payload = running.to_payload()
    change_before_the_claim(stage, monkeypatch, begin)
    with pytest.raises(refusal):
        act(stage.client)
    assert stage.places_of() == [("running", "default")]
    stage.hold().release()


def test_a_job_that_is_run_again_by_another_in_that_moment_is_not_run_again_twice(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put(Queue.FINISH, Status.ERROR_FAIL, FAILED)
    other = Client(stage.other("other"))
    change_before_the_claim(stage, monkeypatch, lambda: other.retry(JOB))
    with pytest.raises(NotEnded):
        stage.client.retry(JOB)
    assert stage.places_of() == [("accept", "default")]


# ---------------------------------------------------------------------- move
SANE = [(source, target) for source, targets in MOVES.items() for target in targets]
_ENDED = {Queue.RUNNING: AttemptState.FAILED, Queue.KILL: AttemptState.KILLED}


@pytest.mark.parametrize(("source", "target"), SANE, ids=str)
def test_an_operator_moves_a_job_and_its_status_fits_its_new_queue(
    stage: Stage, source: Queue, target: Queue
) -> None:
    undone = (source, target) == (Queue.KILL, Queue.RUNNING)
    attempts = [STARTED] if undone else [_ENDED[source]] if source in _ENDED else []
    run_key = stage.put(source, None, *attempts, slot=0)
    stage.make(stage.nodes.slot("default", 0), {"run_key": run_key})
    before = stage.state().status
    job = stage.client.move(JOB, target)
    assert stage.places_of() == [(target, "default")]
    expected = MOVES[source][target] or before
    assert (job.queue, job.status) == (target, expected)
    assert target is Queue.FINISH or expected.queue is target
    runs = target in {Queue.RUNNING, Queue.KILL}
    assert stage.is_there(stage.nodes.slot("default", 0)) is runs
    assert (stage.state().slot is not None) is runs
    assert target.value in job.times


@pytest.mark.parametrize(
    ("source", "target"),
    [(s, t) for s, t in product(Queue, Queue) if s is not t and (s, t) not in SANE],
    ids=str,
)
def test_other_moves_by_hand_are_refused_with_what_to_do(stage: Stage, source: Queue, target: Queue) -> None:
    stage.put(source)
    with pytest.raises(MoveRefused) as refused:
        stage.client.move(JOB, target)
    assert ("job retry" in str(refused.value)) is (source in {Queue.FINISH, Queue.DEAD})
    assert ("queue replay" in str(refused.value)) is (source is Queue.DEAD)
    assert stage.places_of() == [(source, "default")]
    assert stage.state().status is JobState.from_payload(stage.queues.get(JOB).payload).status


@pytest.mark.parametrize("queue", Queue)
def test_a_move_to_the_queue_of_a_job_changes_nothing(stage: Stage, queue: Queue) -> None:
    stage.put(queue)
    before = stage.queues.get(JOB).payload
    stage.client.move(JOB, queue)
    assert stage.places_of() == [(queue, "default")]
    assert stage.queues.get(JOB).payload == before


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("target", sorted(set(Queue) - {Queue.RUNNING, Queue.KILL}))
@pytest.mark.parametrize("source", [Queue.RUNNING, Queue.KILL])
def test_an_open_attempt_is_never_left_to_itself_not_even_by_force(
    stage: Stage, source: Queue, target: Queue, force: bool
) -> None:
    stage.put(source, None, STARTED)
    with pytest.raises((AttemptOpen, MoveRefused)):
        stage.client.move(JOB, target, force=force)
    assert stage.places_of() == [(source, "default")]


def test_a_running_job_that_is_moved_to_kill_is_asked_to_stop_and_moved_back_it_is_not(stage: Stage) -> None:
    run_key = stage.put(Queue.RUNNING, Status.RUNNING_WARN, STARTED)
    stage.client.move(JOB, Queue.KILL)
    assert stage.is_there(stage.stop()), "a driver out of reach obeys this alone"
    job = stage.client.move(JOB, Queue.RUNNING)
    assert (job.queue, job.status) == (Queue.RUNNING, Status.RUNNING)
    assert not stage.is_there(stage.stop())
    assert stage.queues.get(JOB).run_key == run_key


def test_a_killed_job_whose_driver_was_faster_is_not_finished_as_killed(stage: Stage) -> None:
    stage.put(Queue.KILL, Status.KILL, AttemptState.SUCCEEDED)
    with pytest.raises(MoveRefused, match="succeeded"):
        stage.client.move(JOB, Queue.FINISH)
    assert stage.places_of() == [("kill", "default")]


def test_a_held_job_is_moved_only_by_force_and_its_holder_is_notified(stage: Stage) -> None:
    stage.put(Queue.FAIL)
    claim = stage.hold()
    with pytest.raises(JobHeld, match=r"worker-7.*by force"):
        stage.client.move(JOB, Queue.FINISH)
    stage.client.move(JOB, Queue.FINISH, force=True)
    with pytest.raises(ClaimLost):
        claim.commit(queue="accept", release=True)
    assert stage.places_of() == [("finish", "default")]


def test_a_job_that_is_finished_by_hand_is_kept_for_as_long_as_others(stage: Stage) -> None:
    stage.put(Queue.FAIL)
    stage.client.move(JOB, Queue.FINISH)
    left = stage.queues.get(JOB).token.due - stage.clock.now_ms()
    retention = stage.deployment.settings.retention * 1000
    assert retention - 60_000 < left <= retention


def test_a_record_whose_status_belongs_elsewhere_is_moved_to_where_it_belongs(stage: Stage) -> None:
    stage.put(Queue.ACCEPT, Status.ERROR_FAIL)
    assert stage.client.move(JOB, Queue.FAIL).status is Status.ERROR_FAIL
    assert stage.places_of() == [("fail", "default")]


# ---------------------------------------------------------------------- requeue
def test_a_job_is_due_when_an_operator_says(stage: Stage) -> None:
    stage.put(Queue.FINISH)
    before = stage.queues.get(JOB)
    now = stage.clock.now_ms()
    stage.client.requeue(JOB, delay=3600)
    after = stage.queues.get(JOB)
    assert 3_600_000 <= after.token.due - now < 3_700_000
    payload = {name: value for name, value in after.payload.items() if name != "actions"}
    assert (payload, after.token.seq) == (before.payload, before.token.seq)
    stage.client.requeue(JOB)
    assert stage.queues.get(JOB).token.due <= stage.clock.now_ms()
    assert stage.places_of() == [("finish", "default")]


def test_a_job_that_runs_is_dead_or_held_is_not_requeued(stage: Stage) -> None:
    stage.put(Queue.RUNNING, None, STARTED, job_id="runs")
    stage.put(Queue.DEAD, job_id="dead")
    stage.put(job_id="held")
    claim = stage.hold("held")
    with pytest.raises(AttemptOpen):
        stage.client.requeue("runs", delay=60)
    with pytest.raises(MoveRefused, match="queue replay"):
        stage.client.requeue("dead")
    with pytest.raises(JobHeld):
        stage.client.requeue("held")
    claim.release()
