"""Random walks of a job through its states: a legal transition is one multi, any other changes nothing."""

import uuid
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.compose import build_worker
from orchestrator.handlers.actions import Action, DeadLetter, Finish, Keep, SetStatus
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.worker_context import WorkerContext
from orchestrator.model.job import JobError, JobState
from orchestrator.model.states import TRANSITIONS, IllegalTransition, Queue, Status
from orchestrator.worker.transitions import Transitions
from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.queue_set import QueueSet
from spark_runner.runners.registry import Runners
from tests.jobs_support import Deployment

REASON = JobError(error_class="handler", message="as the walk wants it")

actions = st.one_of(
    st.sampled_from(Status).map(SetStatus),
    st.sampled_from(Status).map(Finish),
    st.just(Keep({"submissions": 1})),
    st.just(DeadLetter(REASON)),
)


def target(state: JobState, queue: Queue, action: Action) -> tuple[Status, Queue]:
    match action:
        case SetStatus(status):
            return status, status.queue
        case Finish(status):
            return status, Queue.FINISH
        case Keep():
            return state.status, queue
        case _:
            return Status.DEAD, Queue.DEAD


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(walk=st.lists(actions, min_size=1, max_size=14))
def test_a_random_walk_takes_legal_steps_alone(deployment: Deployment, walk: Sequence[Action]) -> None:
    worker = build_worker(
        deployment.queues.session, deployment.settings, runners=Runners({})
    )  # never started
    context: WorkerContext = worker._context  # noqa: SLF001 - of a worker as it is composed
    queue_set: QueueSet = worker._set  # noqa: SLF001 - likewise
    job_id = f"walk-{uuid.uuid4().hex[:8]}"
    queue_set.put(Queue.ACCEPT, job_id, JobState.enqueued("walk").to_payload())
    job = JobContext(claim(queue_set, job_id), context)
    for action in walk:
        if not job.claim.held:  # it was released with a delay: claimed again as an operator would
            job = JobContext(claim(queue_set, job_id), context)
        before, queue = job.state, Queue(job.claim.queue)
        status, queue_after = target(before, queue, action)
        if status is before.status or status in TRANSITIONS[before.status]:
            Transitions(context).of(job, action).step.run()
            after = JobState.from_payload(queue_set.get(job_id).payload)
            assert (after.status, places_of(queue_set, job_id)) == (status, [queue_after])
        else:
            with pytest.raises(IllegalTransition):
                Transitions(context).of(job, action)
            assert JobState.from_payload(queue_set.get(job_id).payload) == before
            assert places_of(queue_set, job_id) == [queue]
    job.claim.give_up()


def places_of(queue_set: QueueSet, job_id: str) -> list[Queue]:
    return [queue for queue in Queue for token in queue_set.tokens(queue) if token.id == job_id]


def claim(queue_set: QueueSet, job_id: str) -> Claim:
    record = queue_set.get(job_id)
    (taken,) = queue_set.claimer.claim([Candidate(record.queue, record.pool, record.token)], capped=False)
    assert isinstance(taken, Claim)
    return taken
