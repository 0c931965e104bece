"""Support for tests of the archive: expired jobs, and a handler that runs until a crash."""

import os
import signal
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.admission.declined import Declined
from orchestrator.admission.high_water import HighWater
from orchestrator.admission.hosts import Hosts
from orchestrator.admission.slots import Slots
from orchestrator.archive.base import Archive
from orchestrator.archive.elasticsearch import ElasticsearchArchive
from orchestrator.archive.jsonl import JsonlArchive
from orchestrator.handlers import finish
from orchestrator.handlers.actions import Action, Keep
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.worker_context import Admission, DriverControl, Reporting, WorkerContext
from orchestrator.logs import files
from orchestrator.model.job import JobState
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from orchestrator.worker.transitions import Transitions
from queues.model.codec import encode
from queues.model.names import Layout
from queues.model.operations import Create
from queues.queue_set import QueueSet
from queues.session import Session
from spark_runner.protocol.attempt import attempt_path
from spark_runner.runners.base import SubmissionPlace
from spark_runner.runners.registry import Runners
from tests.claims_support import claim_of
from tests.queues_support import open_session

PLACE = SubmissionPlace("local", "somewhere-else", "boot")
NO_RUNNERS = Runners({})
CRASHES = ("before mark", "after mark", "torn line", "before fsync", "after fsync", "before removal")


def queue_set(session: Session, root: str) -> QueueSet:
    made = QueueSet(session, Layout(root), list(Queue), dead=Queue.DEAD, owner="test")
    made.ensure_pool()
    return made


def put_finished(
    queues: QueueSet,
    *,
    attempts: int = 2,
    place: SubmissionPlace = PLACE,
    mark: str | None = None,
    run_key: str = "",
) -> str:
    """Put a job in finish whose retention is over; returns the id."""
    job_id, key = f"job-{uuid.uuid4().hex[:8]}", run_key or str(uuid.uuid4())
    state = JobState.enqueued("report").evolve(status=Status.SUCCESS, attempt=attempts, archive=mark)

    def below(path: str) -> list[Create]:
        nodes = [Create(f"{path}/definition", encode({"name": "report", "python": "pass"}))]
        for number in range(1, attempts + 1):
            document = {"attempt": number, "state": "succeeded", "place": place.to_json()}
            nodes.append(Create(attempt_path(path, key, number), encode(document)))
        return nodes

    queues.put(Queue.FINISH, job_id, state.to_payload(), run_key=key, extra=below)
    return job_id


def held(queues: QueueSet, job_id: str, archive: Archive | None, runners: Runners = NO_RUNNERS) -> JobContext:
    """Claim the job as a worker with this archive."""
    slots = Slots(queues.session, Nodes(queues.layout.root), queues.pools)
    context = WorkerContext(
        session=queues.session,
        layout=queues.layout,
        clock=queues.clock,
        drivers=DriverControl(runners, kill_grace=1.0),
        admission=Admission(
            slots=slots,
            high_water=HighWater(queues.session, Nodes(queues.layout.root), queues.pools),
            declined=Declined(slots.name_capacity),
            elsewhere=Declined(slots.name_capacity),
            hosts=Hosts(queues.session, Nodes(queues.layout.root)),
        ),
        reporting=Reporting(archive=archive),
    )
    return JobContext(claim_of(queues, job_id, Queue.FINISH), context)


def follow(job: JobContext, before: Callable[[Action], None] = lambda _action: None) -> list[Action]:
    """Handle the job until its release; returns the actions of the handler."""
    asked = list[Action]()
    while job.claim.held:
        asked.append(finish.handle(job))
        before(asked[-1])
        apply(job, asked[-1])
    return asked


def apply(job: JobContext, action: Action) -> None:
    """Apply an action of the handler."""
    Transitions(job.context).of(job, action).step.run()


# ---------------------------------------------------------------------- the process that crashes
class _Crashing:
    """The `os` of the archive module, with a crash in one of its calls."""

    def __init__(self, crash: str) -> None:
        self._crash = crash

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, file: int, data: memoryview) -> int:
        if self._crash == "torn line":
            os.write(file, data[: len(data) // 2])
            _end()
        return os.write(file, data)

    def fsync(self, file: int) -> None:
        if self._crash == "before fsync":
            _end()
        os.fsync(file)
        if self._crash == "after fsync":
            _end()


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(hosts: str, root: str, job_id: str, crash: str, *place: str) -> None:
    """Archive one job up to the crash: into a folder, or into an index at a URL."""
    archive = JsonlArchive(Path(place[0])) if len(place) == 1 else ElasticsearchArchive(*place)
    with open_session(hosts, session_timeout=1.0) as session:
        job = held(queue_set(session, root), job_id, archive)
        if crash == "after mark":
            apply(job, finish.handle(job))
            _end()
        archive.owner()  # written by the same calls, which must not crash yet
        vars(files)["os"] = _Crashing(crash)

        def before(action: Action) -> None:
            kind = "before mark" if isinstance(action, Keep) else "before removal"
            if crash == kind:
                _end()

        follow(job, before)


if __name__ == "__main__":
    main(*sys.argv[1:])
