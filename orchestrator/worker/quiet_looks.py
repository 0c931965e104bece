"""Looks at running jobs that are calm: many in one request, and no handler runs where nothing has changed."""

from collections import deque
from collections.abc import Callable, Sequence

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.liveness import note_alive
from orchestrator.loop import Loop
from queues import QueueError, Session

_LOOK_SECONDS = 1.0  # thousands of jobs have hundreds of looks per second, which then share few requests


class QuietLooks:
    """Reads the nodes of calm jobs whose timers have fired. Thread-safe.

    A job is calm while only a change of one of its nodes needs its handler. Their watches report such a
    change at once: a look finds what a lost watch has hidden. `ready` receives each job whose handler is
    needed, and `park` each other job, with the seconds until its next look.
    """

    def __init__(
        self,
        session: Session,
        *,
        ready: Callable[[JobContext], None],
        park: Callable[[JobContext, float], None],
    ) -> None:
        self._session, self._ready, self._park = session, ready, park
        self._jobs = deque[JobContext]()
        self._loop = Loop("quiet-looks", self.step, first=_LOOK_SECONDS)
        self.start, self.stop, self.trouble = self._loop.start, self._loop.stop, self._loop.trouble

    def put(self, job: JobContext) -> None:
        """Look at a calm job within a second; one that is not calm goes to its handler."""
        if job.calm_seconds() > 0:
            self._jobs.append(job)
        else:
            self._ready(job)

    def empty(self) -> list[JobContext]:
        """Take out and return all jobs, to release them."""
        return [self._jobs.popleft() for _ in range(len(self._jobs))]

    def step(self) -> float:
        """Look at all jobs once; returns the seconds until the next look."""
        jobs = self.empty()
        try:
            quiet = self.unchanged(jobs) if jobs else set()
        except QueueError as error:
            logger.debug("{} jobs are left to their handlers: {}", len(jobs), error)
            quiet = set()
        for job in jobs:
            if job in quiet:
                self._park(job, job.calm_seconds())
            else:
                self._ready(job)
        return _LOOK_SECONDS

    def unchanged(self, jobs: Sequence[JobContext]) -> set[JobContext]:
        """The jobs of which no node has changed."""
        watched = [(job, paths) for job in jobs if (paths := job.watched_paths) is not None]
        found = self._session.get_many([path for _, paths in watched for path in paths])
        quiet = set[JobContext]()
        for number, (job, _) in enumerate(watched):
            stop, attempt, alive = found[3 * number : 3 * number + 3]
            is_same = stop is None and attempt is not None and attempt[1].version == job.attempt_version
            if is_same and alive is not None and note_alive(job.monitor, alive) and job.calm_seconds() > 0:
                quiet.add(job)
        return quiet
