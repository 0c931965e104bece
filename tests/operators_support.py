"""Support for tests of operations: jobs in any state without a worker, and the whole tree."""

from collections.abc import Iterator

import pytest

from orchestrator.client.client import Client
from orchestrator.compose import build_queue_set
from orchestrator.model.job import JobState
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from queues.claims.claim import Claim
from queues.model.codec import encode, timestamp
from queues.model.errors import ItemNotFound
from queues.model.names import LOW_LANE_SUFFIX
from queues.model.operations import Create, Operation
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.commit import commit
from spark_runner.protocol.attempt import Attempt, AttemptState, attempt_path, intent
from tests.jobs_support import Deployment, python_job

PLACE = {"backend": "local", "host": "elsewhere", "boot": "some"}
JOB = "job"


class Stage:
    """A root with a client, and a queue set that acts as the workers."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.client: Client = deployment.client
        self.queues: QueueSet = self.other("worker-7")
        self.clock = deployment.queues.clock  # that of the client: two clocks differ by the time of a request
        self.nodes = Nodes(self.queues.layout.root)
        self.queues.ensure_pool()

    def other(self, owner: str) -> QueueSet:
        """A queue set on its own session."""
        return build_queue_set(self.deployment.session(), self.deployment.settings, owner=owner)

    @property
    def session(self) -> Session:
        return self.queues.session

    def put(
        self,
        queue: Queue = Queue.ACCEPT,
        status: Status | None = None,
        *attempts: AttemptState,
        job_id: str = JOB,
        pool: str = "default",
        **state: object,
    ) -> str:
        """Put a job with this status and attempts in these states into a queue; returns its run key."""
        name = str(state.pop("name", "test"))
        definition = python_job("pass", name=name, pool=pool.removesuffix(LOW_LANE_SUFFIX))
        payload = JobState.enqueued(name).evolve(
            status=status or _STATUS_IN[queue], attempt=len(attempts), **state
        )
        record = self.queues.put(
            queue,
            job_id,
            payload.to_payload(),
            pool=pool,
            extra=lambda path: [
                Create(
                    f"{path}/definition", encode(definition.model_dump(mode="json", exclude_defaults=True))
                )
            ],
        )
        for number, reached in enumerate(attempts, start=1):
            self.attempt(job_id, record.run_key, number, reached)
        return record.run_key

    def attempt(self, job_id: str, run_key: str, number: int, reached: AttemptState) -> None:
        path = attempt_path(self.queues.layout.record(job_id), run_key, number)
        commit(self.session, [intent(path, run_key=run_key, number=number, place=PLACE, at=timestamp())])
        if reached in {AttemptState.STARTED, AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.LOST}:
            self._advance(path, AttemptState.STARTED, incarnation="some")
        if reached not in {AttemptState.INTENT, AttemptState.STARTED}:
            error = {"class": "user", "message": f"attempt {number} failed"}
            self._advance(path, reached, **({"error": error} if reached is AttemptState.FAILED else {}))

    def _advance(self, path: str, state: AttemptState, **facts: object) -> None:
        attempt = Attempt.read(self.session, path)
        assert attempt is not None
        commit(self.session, [attempt.advance(state, **facts)])

    def state(self, job_id: str = JOB) -> JobState:
        return JobState.from_payload(self.queues.get(job_id).payload)

    def hold(self, job_id: str = JOB) -> Claim:
        """Claim a job as a worker does."""
        return self.queues.claim_by_id(job_id)

    def stop(self, pool: str = "default", job_id: str = JOB) -> str:
        return self.queues.layout.stop(pool, job_id)

    def ask_to_stop(self, run_key: str, pool: str = "default", **more: str) -> None:
        commit(self.session, [Create(self.stop(pool), encode({"run_key": run_key, **more}))])

    def make(self, path: str, document: dict[str, object]) -> None:
        self.session.ensure_path(path.rpartition("/")[0])
        commit(self.session, [Create(path, encode(document))])

    def commit(self, *operations: Operation) -> None:
        commit(self.session, operations)

    def is_there(self, path: str) -> bool:
        return self.session.exists(path) is not None

    def places_of(self, job_id: str = JOB) -> list[tuple[str, str]]:
        """Every queue and pool with a token of the job."""
        return [
            (queue, pool)
            for queue in Queue
            for pool in self.queues.pools.names(low=True)
            for token in self.queues.tokens(queue, pool)
            if token.id == job_id
        ]

    def tree(self) -> set[str]:
        """Every node below the root, except events that the leader has yet to log."""
        audit = self.nodes.audit
        return {path for path in _below(self.session, self.queues.layout.root) if not path.startswith(audit)}

    def is_gone(self, job_id: str = JOB) -> bool:
        try:
            self.queues.get(job_id)
        except ItemNotFound:
            return True
        return False


_STATUS_IN = {
    Queue.ACCEPT: Status.ACCEPT,
    Queue.RUNNING: Status.RUNNING,
    Queue.SUCCESS: Status.SUCCESS,
    Queue.FAIL: Status.ERROR_FAIL,
    Queue.KILL: Status.KILL,
    Queue.FINISH: Status.ERROR_FAIL,
    Queue.DEAD: Status.DEAD,
}


def _below(session: Session, path: str) -> Iterator[str]:
    for name in session.children(path) or ():
        yield f"{path}/{name}"
        yield from _below(session, f"{path}/{name}")


@pytest.fixture
def stage(deployment: Deployment) -> Stage:
    """A root without workers: jobs stay where the test puts them."""
    return Stage(deployment)
