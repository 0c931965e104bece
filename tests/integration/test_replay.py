from typing import Any

import pytest

from orchestrator.model.errors import NotDead, StateConflict
from orchestrator.model.job import JobError
from orchestrator.model.states import Queue, Status
from queues.model.codec import encode
from queues.model.errors import CorruptRecord, ItemNotFound, NotClaimed
from queues.model.names import Token
from queues.model.operations import Delete, Set
from spark_runner.protocol.attempt import AttemptState
from tests.jobs_support import Deployment, python_job
from tests.operators_support import JOB, Stage
from tests.waiting import wait_until

REASON = JobError(error_class="handler", message="the handler failed five times")


def dead_from(queue: Queue, status: Status) -> dict[str, Any]:
    return {
        "error": REASON,
        "handler_errors": 4,
        "buried_from": {"queue": queue.value, "status": status.value},
    }


@pytest.mark.parametrize(
    ("queue", "status"),
    [
        (Queue.ACCEPT, Status.ACCEPT),
        (Queue.RUNNING, Status.RUNNING_WARN),
        (Queue.SUCCESS, Status.SUCCESS),
        (Queue.FAIL, Status.ERROR_FAIL),
        (Queue.KILL, Status.KILL),
        (Queue.KILL, Status.CANCEL),
        (Queue.FINISH, Status.KILL),
        (Queue.FINISH, Status.SUCCESS),
    ],
)
def test_a_dead_job_goes_back_to_where_it_came_from_with_its_status(
    stage: Stage, queue: Queue, status: Status
) -> None:
    stage.put(Queue.DEAD, None, demotions=3, **dead_from(queue, status))
    (done,) = stage.client.replay([JOB])
    assert (done.id, done.queue, done.error) == (JOB, queue, None)
    state = stage.state()
    assert (state.status, state.handler_errors, state.demotions, state.buried_from) == (status, 0, 0, None)
    assert stage.places_of() == [(queue, "default")]
    assert stage.queues.get(JOB).token.due <= stage.clock.now_ms()


def test_all_dead_jobs_of_all_pools_go_back(stage: Stage) -> None:
    for pool in ("default", "team", "team.low"):
        stage.put(Queue.DEAD, job_id=f"in-{pool}", pool=pool, **dead_from(Queue.FAIL, Status.ERROR_FAIL))
    stage.put(Queue.FINISH, job_id="other")
    assert {done.id: done.queue for done in stage.client.replay()} == {
        f"in-{pool}": Queue.FAIL for pool in ("default", "team", "team.low")
    }
    assert stage.places_of("in-team.low") == [("fail", "team.low")]
    assert stage.client.count(Queue.DEAD) == 0
    assert stage.client.replay() == []


def test_a_failure_that_was_covered_by_the_reason_of_the_burial_is_found_in_the_attempt(stage: Stage) -> None:
    stage.put(Queue.DEAD, None, AttemptState.FAILED, **dead_from(Queue.FAIL, Status.ERROR_FAIL))
    stage.client.replay()
    error = stage.state().error
    assert error is not None
    assert (error.error_class, error.message) == ("user", "attempt 1 failed"), "`retry.on` decides by it"


def test_the_error_of_a_job_before_it_was_dead_is_shown_and_restored(stage: Stage) -> None:
    before = JobError(error_class="lost", message="no life")
    stage.put(Queue.DEAD, **dead_from(Queue.ACCEPT, Status.ACCEPT), buried_error=before)
    view = stage.client.get(JOB)
    assert (view.error, view.buried_error) == (REASON, before)
    stage.client.replay()
    assert (stage.state().error, stage.state().buried_error) == (before, None)


@pytest.mark.parametrize("noted", [Queue.ACCEPT, Queue.FAIL, Queue.SUCCESS])
def test_where_no_status_was_kept_the_queue_that_was_noted_decides(stage: Stage, noted: Queue) -> None:
    stage.put(Queue.DEAD)
    token = stage.queues.get(JOB).token
    stage.commit(Set(stage.queues.layout.token(Queue.DEAD, "default", token), encode({"queue": noted}), -1))
    stage.client.replay()
    assert stage.places_of() == [(noted, "default")]
    assert stage.state().status.queue is noted


def test_where_nothing_was_kept_a_job_goes_back_to_accept(stage: Stage) -> None:
    stage.put(Queue.DEAD)
    stage.client.replay()
    assert stage.places_of() == [("accept", "default")]
    assert stage.state().status is Status.ACCEPT


def test_a_job_that_had_ended_has_the_status_of_its_attempt_where_none_was_kept(stage: Stage) -> None:
    for job_id, attempts in (("ran", [AttemptState.SUCCEEDED]), ("never", [])):
        stage.put(Queue.DEAD, None, *attempts, job_id=job_id)
        token = stage.queues.get(job_id).token
        path = stage.queues.layout.token(Queue.DEAD, "default", token)
        stage.commit(Set(path, encode({"queue": "finish"}), -1))
    outcomes = {done.id: done for done in stage.client.replay()}
    assert outcomes["ran"].queue is Queue.FINISH
    assert stage.state("ran").status is Status.SUCCESS
    assert isinstance(outcomes["never"].error, StateConflict)
    assert stage.places_of("never") == [("dead", "default")]


def test_a_driver_that_may_run_is_looked_after_again_whatever_was_noted(stage: Stage) -> None:
    stage.put(Queue.DEAD, None, AttemptState.STARTED)
    stage.client.replay()
    assert stage.places_of() == [("running", "default")]
    assert stage.state().status is Status.RUNNING


def test_a_job_that_cannot_be_replayed_stays_and_the_error_says_why(stage: Stage) -> None:
    stage.put(Queue.DEAD, job_id="damaged")
    stage.commit(Set(stage.queues.layout.record("damaged"), b"no record", -1))
    stage.put(Queue.DEAD, job_id="no-job")
    stage.queues.move("no-job", "dead", payload={"kind": "something else"})
    stage.put(Queue.DEAD, job_id="without-record")
    record = stage.queues.layout.record("without-record")
    stage.commit(Delete(f"{record}/definition"), Delete(record))
    stage.put(Queue.DEAD, job_id="held")
    claim = stage.hold("held")
    stage.put(Queue.DEAD, job_id="well")
    stage.put(job_id="alive")
    ids = ["damaged", "no-job", "without-record", "held", "well", "alive", "absent"]
    outcomes = stage.client.replay(ids)
    assert [done.id for done in outcomes] == ids
    assert [type(done.error) for done in outcomes] == [
        CorruptRecord,
        CorruptRecord,
        ItemNotFound,
        NotClaimed,
        type(None),
        NotDead,
        ItemNotFound,
    ]
    claim.release()
    assert {row["id"] for row in stage.client.jobs_in_queue(Queue.DEAD)} == set(ids[:4])
    stage.hold("no-job").release()  # no claim is left


def test_a_job_whose_record_was_repaired_keeps_its_status(stage: Stage) -> None:
    stage.put(Queue.FAIL)
    record = stage.queues.layout.record(JOB)
    found = stage.session.get(record)
    assert found is not None
    (token,) = stage.queues.tokens(Queue.FAIL)
    stage.commit(Set(record, b"damaged", -1))
    assert move_to_dead(stage, token)
    stage.commit(Set(record, found[0], -1))
    (done,) = stage.client.replay([JOB])
    assert done.queue is Queue.FAIL
    assert stage.state().status is Status.ERROR_FAIL
    assert stage.places_of() == [("fail", "default")]


def move_to_dead(stage: Stage, token: Token) -> bool:
    return stage.queues.move_to_dead(
        Queue.FAIL, "default", token, CorruptRecord(token.id, "damaged by the test")
    )


def test_a_job_that_an_operator_moved_to_dead_returns_unchanged(stage: Stage) -> None:
    stage.put(Queue.FAIL, None, AttemptState.FAILED)
    stage.client.move(JOB, Queue.DEAD)
    assert stage.client.get(JOB).status is Status.DEAD
    stage.client.replay([JOB])
    assert (stage.client.get(JOB).status, stage.client.get(JOB).queue) == (Status.ERROR_FAIL, Queue.FAIL)


def test_a_job_that_was_moved_to_dead_before_it_was_due_keeps_its_due_time(stage: Stage) -> None:
    due = stage.client.submit(python_job("pass"), job_id=JOB, delay=3600)
    assert due.queue is Queue.ACCEPT
    before = stage.queues.get(JOB).token
    stage.client.move(JOB, Queue.DEAD)
    stage.client.replay([JOB])
    assert stage.queues.get(JOB).token == before


def test_a_request_to_stop_from_before_does_not_stop_a_job_that_is_brought_back(stage: Stage) -> None:
    run_key = stage.put(Queue.DEAD)
    stage.ask_to_stop(run_key)
    stage.client.replay()
    assert not stage.is_there(stage.stop())


def test_a_dead_job_runs_after_a_replay_when_its_cause_is_repaired(deployment: Deployment) -> None:
    job_id = deployment.submit("pass")
    definition = f"{deployment.client.detail(job_id).record_path}/definition"
    session = deployment.session()
    found = session.get(definition)
    assert found is not None
    stage = Stage(deployment)
    stage.commit(Set(definition, b"damaged", -1))
    deployment.worker(handler_errors=1)
    wait_until(lambda: deployment.client.get(job_id).queue is Queue.DEAD, 20, "the worker has given it up")
    error = deployment.client.get(job_id).error
    assert error is not None
    assert (error.error_class, error.type) == ("handler", "CorruptRecord")
    assert error.message.startswith(f"the record of {job_id!r} cannot be read: its definition is damaged: ")
    stage.commit(Set(definition, found[0], -1))
    (done,) = deployment.client.replay()
    assert (done.queue, done.error) == (Queue.ACCEPT, None)
    wait_until(lambda: deployment.client.get(job_id).queue is Queue.FINISH, 60, "it has run")
    assert deployment.client.get(job_id).status is Status.SUCCESS
