"""A worker: claims jobs, hands them to its crew, drains when told to stop."""

import time
from collections.abc import Callable, Mapping

from loguru import logger

from orchestrator.cluster_config import ClusterConfig
from orchestrator.handlers.context import Context
from orchestrator.leader.leadership import Leadership
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.metrics.health import Check, Probe
from orchestrator.metrics.registry import Metrics
from orchestrator.models.waiting import Reason, Waiting
from orchestrator.nodes import Nodes
from orchestrator.states import Queue
from orchestrator.worker.crew import Crew
from orchestrator.worker.log_copies import LogCopies
from orchestrator.worker.polling import Polling
from orchestrator.worker.presence import Presence
from queues.consumer import Consumer
from queues.names import check_pool
from queues.queue import QueueSet
from queues.session import SessionState

# Jobs on their way to an end come first: they free slots and are short. Then those that run, then new ones.
SERVED_QUEUES = (Queue.KILL, Queue.SUCCESS, Queue.FAIL, Queue.RUNNING, Queue.ACCEPT, Queue.FINISH)
_MAX_RUNNING = 20_000  # drivers run whether watched or not: adopted ones are watched beyond the slots
_MAX_PASSING = 200  # jobs in each of the short queues, at once
# For looks that are under way; the process is to end within 10 s, and the session's goodbye may take two.
_DRAIN_SECONDS = 6.0
_CONSUMER_SECONDS = 1.0  # what it claims after that is let go, or goes with the session


class Worker:
    """Serves the queues with `slots` jobs running at once.

    `pools`: those it serves, with weights that go before those of the pools themselves; None = all.
    `accepts`: the jobs that it takes; None = all.
    `logs`: those of this process; with them, logs of drivers elsewhere are brought here.
    """

    def __init__(
        self,
        queue_set: QueueSet,
        context: Context,
        *,
        name: str,
        slots: int,
        leadership: Leadership,
        config: ClusterConfig,
        pools: Mapping[str, int] | None = None,
        accepts: Callable[[str], bool] | None = None,
        logs: LogPipeline | None = None,
        metrics: Metrics,
    ) -> None:
        self.name = check_pool(name)
        self._set = queue_set
        self._context = context
        self.slots = slots
        self._config = config
        self._taking = True
        self.refused: Waiting | None = None  # why no new job was taken at the last look
        self.sessions = queue_set.claimer.sessions
        self.crew = Crew(context, on_end=self.look_again)
        self._consumer = Consumer(
            queue_set,
            [queue.value for queue in SERVED_QUEUES],
            hand_out=self.crew.take,
            room=self._room,
            pools=pools,
            accepts=(lambda _id: True) if accepts is None else accepts,
            declines=self._declines,
            pool_room=self._pool_room,
            on_stop=self._on_stop,
        )
        self._polling = Polling(self.crew.room.parked)
        self._copies = None if logs is None else LogCopies(self.crew.room.parked)
        self._log_checks = {} if logs is None else logs.checks
        nodes = Nodes(queue_set.layout.root)
        served = None if pools is None else sorted(pools)
        if accepts is not None:  # whoever waits for a worker of this host waits in vain for this one
            served = []
        self._presence = Presence(
            queue_set.session,
            nodes,
            name,
            slots=slots,
            pools=served,
            places=context.runners.places(),
            running=self.crew.tally.running,
            refused=lambda: self.refused,
            log_trouble=lambda: "" if logs is None else logs.trouble,
        )
        self._leadership = leadership
        self.metrics = metrics

    def start(self) -> None:
        """Announce the worker and start to claim jobs; raises Unreachable."""
        self._config.start()
        self._presence.start()
        self._set.claimer.sessions.on_change(self._on_session_change)  # of all that own locks
        self.crew.start()
        self._polling.start()
        if self._copies is not None:
            self._copies.start()
        self._consumer.start()
        self._leadership.start()
        self._context.runners.start()
        logger.info("worker {} serves {} with {} slots", self.name, self._set.layout.root, self.slots)

    @property
    def probes(self) -> tuple[Probe, Probe]:
        """Whether all parts get on, and whether the worker could take a job now."""
        return Probe("livez", self._live_checks()), Probe("readyz", self._ready_checks())

    def _live_checks(self) -> dict[str, Check]:
        copies = {} if self._copies is None else {"log-copies": self._copies.trouble, **self._log_checks}
        return {
            "consumer": self._consumer.trouble,
            **self.crew.checks,
            "polling": self._polling.trouble,
            "announcement": self._presence.trouble,
            "config": self._config.trouble,
            "leadership": self._leadership.trouble,
            **copies,
        }

    def _ready_checks(self) -> dict[str, Check]:
        return {
            "zookeeper": self._session_trouble,
            "draining": lambda: "" if self._taking else "it takes no new jobs any more",
            "announced": self._presence.missing,
            "claims": self._consumer.failing,
        }

    def stop_taking(self) -> None:
        """Start no new job from now on; those at hand, and those on their way to an end, go on."""
        self._taking = False

    def is_busy(self) -> bool:
        """Whether any job is at hand."""
        return len(self.crew.tally) > 0

    def look_again(self) -> None:
        """There may be room for jobs."""
        self._consumer.look_again()

    def drain(self) -> bool:
        """Start nothing new, let go of what runs and finish the looks at hand; drivers go on.

        False when some jobs are still in hand after some seconds: they are let go with the session.
        """
        deadline = time.monotonic() + _DRAIN_SECONDS
        self._taking = False
        self._context.draining.set()
        self._leadership.stop()
        self._context.runners.stop()
        self._polling.stop()
        if self._copies is not None:
            self._copies.stop(0)
        self._consumer.stop(_CONSUMER_SECONDS)
        self._presence.stop()
        drained = self.crew.drain(max(0.0, deadline - time.monotonic()))
        self._config.stop()
        left = len(self.crew.tally)
        if drained:
            logger.info("worker {} has let go of its jobs", self.name)
        else:
            logger.warning("worker {} ends with {} jobs in hand; others take them over", self.name, left)
        return drained

    # ------------------------------------------------------------------ room
    def _room(self, queue: str) -> int:
        tally = self.crew.tally
        match Queue(queue):
            case Queue.ACCEPT:
                # What runs on another host is only watched: it takes nothing of this one.
                here = tally.count(Queue.ACCEPT, Queue.RUNNING) - tally.count_out_of_reach()
                self.refused = self._why_full(self.slots - here)
                return 0 if self.refused else self.slots - here
            case Queue.RUNNING:
                return _MAX_RUNNING - tally.count(Queue.RUNNING)
            case other:
                return _MAX_PASSING - tally.count(other)

    def _why_full(self, free: int) -> Waiting | None:
        guard = self._context.guard
        words = guard.refusal() if guard else None
        if not self._taking:
            return Waiting(reason=Reason.DRAINING, message="it is about to end")
        if free <= 0:
            return Waiting(reason=Reason.SLOTS, message=f"its slots are taken, all {self.slots}")
        return Waiting(reason=Reason.PRESSURE, message=words) if words else None

    def _declines(self, queue: str, job_id: str) -> bool:
        # Each queue has its own: what was declined before it ran may have been started by another worker.
        match Queue(queue):
            case Queue.ACCEPT:
                return not self._context.declined.accepts(job_id)
            case Queue.RUNNING:
                return not self._context.elsewhere.accepts(job_id)
            case _:
                return False

    def _pool_room(self, queue: str, pool: str) -> int | None:
        if Queue(queue) is not Queue.ACCEPT:
            return None
        room = self._context.slots.free(pool)
        return None if room is None else room - self.crew.tally.count_in(Queue.ACCEPT, pool)

    # ------------------------------------------------------------------ events
    def _session_trouble(self) -> str:
        state = self._set.session.state
        return "" if state is SessionState.CONNECTED else f"its session is {state}"

    def _on_stop(self, job_id: str) -> None:
        job = self.crew.tally.get(job_id)
        if job is not None:
            job.wake()

    def _on_session_change(self) -> None:
        # Watches went with the connection, claims with the session: every job has to be looked at. While the
        # connection is away there is nothing to be seen.
        if self._set.session.state is not SessionState.SUSPENDED:
            self.crew.room.wake_all()
