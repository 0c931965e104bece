"""The jobs in flight of a worker, counted by queue and pool."""

import threading
from collections import Counter

from orchestrator.handlers.job_context import JobContext
from orchestrator.model.states import Queue
from queues import InFlight


class JobsInFlight(InFlight[JobContext]):
    """The jobs in flight by id, and their counts by queue and pool. Thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self._jobs: dict[str, JobContext] = {}
        self._where: dict[JobContext, tuple[Queue, str]] = {}
        self._counts: Counter[Queue] = Counter()
        self._by_pool: Counter[tuple[Queue, str]] = Counter()
        self._out_of_reach: set[JobContext] = set()  # in running, with drivers on other hosts

    def add(self, item: JobContext) -> None:
        """Add a held job, in the queue and pool of its claim."""
        self.note(item)

    def note(self, job: JobContext) -> bool:
        """Count the job in the queue and pool of its claim; True when its driver is newly out of reach."""
        with self._guard:
            was_out_of_reach = job in self._out_of_reach
            self._take_out(job)
            where = (Queue(job.claim.queue), job.claim.record.pool)
            self._jobs[job.id] = job
            self._where[job] = where
            self._counts[where[0]] += 1
            self._by_pool[where] += 1
            if where[0] is Queue.RUNNING and job.monitor.is_out_of_reach:
                self._out_of_reach.add(job)
            return job in self._out_of_reach and not was_out_of_reach

    def discard(self, item: JobContext) -> None:
        """Remove a job that this claim no longer holds; another claim may hold it already."""
        with self._guard:
            self._take_out(item)
            if self._jobs.get(item.id) is item:
                del self._jobs[item.id]

    def _take_out(self, job: JobContext) -> None:
        where = self._where.pop(job, None)
        if where is not None:
            self._counts[where[0]] -= 1
            self._by_pool[where] -= 1
            self._out_of_reach.discard(job)

    def count(self, *queues: Queue) -> int:
        """The number of jobs in these queues."""
        with self._guard:
            return sum(self._counts[queue] for queue in queues)

    def count_out_of_reach(self) -> int:
        """The number of running jobs whose drivers are on other hosts, where this worker can only watch."""
        with self._guard:
            return len(self._out_of_reach)

    def count_in(self, queue: Queue, pool: str) -> int:
        """The number of jobs in one queue of one pool."""
        with self._guard:
            return self._by_pool[queue, pool]

    def get(self, job_id: str) -> JobContext | None:
        """The job in flight with this id."""
        with self._guard:
            return self._jobs.get(job_id)

    def running(self) -> list[str]:
        """The ids of the jobs in running, sorted."""
        return sorted(job.id for job in self.in_running())

    def in_running(self) -> list[JobContext]:
        """The jobs in running."""
        with self._guard:
            return [job for job, (queue, _) in self._where.items() if queue is Queue.RUNNING]

    def ids(self) -> frozenset[str]:
        """The ids of all jobs in flight."""
        with self._guard:
            return frozenset(self._jobs)

    def __len__(self) -> int:
        with self._guard:
            return len(self._where)
