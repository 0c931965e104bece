"""A worker: claims jobs, follows each in a thread of its own, drains when told to stop."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from loguru import logger

from orchestrator.handlers.job import Context, HeldJob
from orchestrator.job_loop import JobLoop
from orchestrator.scrubbing import Scrubbing
from orchestrator.states import Queue
from queues.claim import Claim
from queues.consumer import Consumer
from queues.documents import encode, timestamp
from queues.errors import Conflict, QueueError
from queues.names import check_pool
from queues.operations import Create
from queues.queue import QueueSet
from queues.scrubber import Scrubber
from queues.session import SessionState
from queues.transaction import commit
from spark_runner.process import current_boot_id

# Jobs on their way to an end come first: they free slots and are short. Then those that run, then new ones.
SERVED_QUEUES = (Queue.KILL, Queue.SUCCESS, Queue.FAIL, Queue.RUNNING, Queue.ACCEPT, Queue.FINISH)
_OCCUPYING = {Queue.ACCEPT, Queue.RUNNING}
_MAX_ADOPTED = 256  # running jobs are watched beyond the slots: their drivers run whether watched or not
_MAX_PASSING = 32  # jobs in the short queues, at once


class Worker:
    """Serves the queues with `slots` jobs running at once."""

    def __init__(
        self,
        queue_set: QueueSet,
        context: Context,
        loop: JobLoop,
        *,
        name: str,
        slots: int,
        scrub_interval: float,
        accepts: Callable[[str], bool] = lambda _id: True,
    ) -> None:
        self.name = check_pool(name)
        self._set = queue_set
        self._context = context
        self._loop = loop
        self._slots = slots
        self._guard = threading.Lock()
        self._jobs: dict[str, HeldJob] = {}
        self._announced_generation = -1
        self._taking = True
        self._threads = ThreadPoolExecutor(
            max_workers=slots + _MAX_ADOPTED + _MAX_PASSING, thread_name_prefix="job"
        )
        self._consumer = Consumer(
            queue_set,
            [queue.value for queue in SERVED_QUEUES],
            hand_out=self._hand_out,
            room=self._room,
            accepts=accepts,
        )
        self._scrubbing = Scrubbing(Scrubber(queue_set.root, queue_set.claimer), scrub_interval)

    def start(self) -> None:
        """Announce the worker and start to claim jobs."""
        self._announce()
        self._set.session.on_change(self._on_session_change)
        self._consumer.start()
        self._scrubbing.start()
        logger.info("worker {} serves {} with {} slots", self.name, self._set.layout.root, self._slots)

    def stop_taking(self) -> None:
        """Start no new job from now on; those at hand, and those on their way to an end, go on."""
        self._taking = False

    def is_busy(self) -> bool:
        """Whether any job is at hand."""
        with self._guard:
            return bool(self._jobs)

    def drain(self) -> None:
        """Start nothing new, let go of what runs and finish the step at hand; drivers go on."""
        self._taking = False
        self._context.draining.set()
        self._wake_jobs()
        self._scrubbing.stop()
        self._consumer.stop()
        self._threads.shutdown(wait=True)
        logger.info("worker {} has let go of its jobs", self.name)

    def _hand_out(self, claim: Claim) -> None:
        job = HeldJob(claim, self._context)
        with self._guard:
            self._jobs[claim.id] = job
        self._threads.submit(self._follow, job)

    def _follow(self, job: HeldJob) -> None:
        try:
            self._loop.follow(job)
        finally:
            with self._guard:
                if self._jobs.get(job.id) is job:  # it may be at hand again already
                    del self._jobs[job.id]
            if not self._context.draining.is_set():
                self._consumer.look_again()

    def _room(self, queue: str) -> int:
        with self._guard:
            standing = [Queue(job.claim.queue) for job in self._jobs.values()]
        occupied = sum(1 for stands_in in standing if stands_in in _OCCUPYING)
        match Queue(queue):
            case Queue.ACCEPT:
                return self._slots - occupied if self._taking else 0
            case Queue.RUNNING:
                return self._slots + _MAX_ADOPTED - occupied
            case _:
                return _MAX_PASSING - (len(standing) - occupied)

    # ------------------------------------------------------------------ presence
    def _on_session_change(self) -> None:
        # On kazoo's thread: wake who waits, nothing more.
        self._wake_jobs()
        if self._announced_generation != self._set.session.generation:
            threading.Thread(target=self._announce, name="announce", daemon=True).start()

    def _wake_jobs(self) -> None:
        with self._guard:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.wake.set()

    def _announce(self) -> None:
        """Make the ephemeral that tells people which workers there are."""
        session, layout = self._set.session, self._set.layout
        if session.state is not SessionState.CONNECTED:
            return
        generation = session.generation
        document = {
            "host": os.uname().nodename,
            "boot": current_boot_id(),
            "pid": os.getpid(),
            "slots": self._slots,
            "since": timestamp(),
        }
        try:
            session.ensure_path(layout.workers)
            commit(session, [Create(f"{layout.workers}/{self.name}", encode(document), ephemeral=True)])
        except Conflict:
            logger.warning("another worker is announced as {}", self.name)
        except QueueError as error:
            logger.warning("worker {} is not announced: {}", self.name, error)
            return
        self._announced_generation = generation
