"""A worker: claims jobs, passes them to its dispatcher, and drains when it stops."""

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from loguru import logger

from orchestrator.config.live_limits import ClusterConfig
from orchestrator.handlers.worker_context import WorkerContext
from orchestrator.leader.leadership import Leadership
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.metrics.pages import Check, Probe
from orchestrator.metrics.registry import Metrics
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from orchestrator.model.waiting import Reason, Waiting
from orchestrator.worker.announcement import Announcement, Load
from orchestrator.worker.dispatcher import JobDispatcher
from orchestrator.worker.drain_request import DrainRequest
from orchestrator.worker.log_pages import LogPages
from orchestrator.worker.polling import LogCopies, Polling
from orchestrator.worker.water_lines import WaterLines
from queues import Consumer, QueueSet, SessionState, check_pool

# Ending jobs come first: they are short and free slots. Then running jobs, then new ones.
SERVED_QUEUES = (Queue.KILL, Queue.SUCCESS, Queue.FAIL, Queue.RUNNING, Queue.ACCEPT, Queue.FINISH)
_MAX_RUNNING = 20_000  # drivers run without a worker too: adopted ones are watched beyond the slots
_MAX_PASSING = 200  # jobs in flight in each of the short queues
# For handlers that run; the process must end within 10 s, and closing the session may take two.
_DRAIN_SECONDS = 6.0
_SETTLE_SECONDS = 10.0  # two scans of all queues
_CONSUMER_SECONDS = 1.0  # later claims are released, or end with the session


class Worker:
    """Serves the queues with `slots` jobs running at once.

    `pools`: the pools it serves, with weights that override those of the pools; None = all.
    `accepts`: whether it takes the job with this id; None = all. `drains`: whether operators may drain it.
    `logs`: the pipeline of this process; with it, the logs of drivers on clusters are copied to this host.
    `state_dir`: the directory with the runs of this host.
    """

    def __init__(
        self,
        queue_set: QueueSet,
        context: WorkerContext,
        *,
        name: str,
        slots: int,
        leadership: Leadership,
        config: ClusterConfig,
        pools: Mapping[str, int] | None = None,
        accepts: Callable[[str], bool] | None = None,
        drains: bool = True,
        logs: LogPipeline | None = None,
        state_dir: Path,
        metrics: Metrics,
    ) -> None:
        self.name = check_pool(name)
        self._set = queue_set
        self._context = context
        self.slots = slots
        self._config = config
        self._kept: frozenset[str] = frozenset()  # jobs that it claims again in a drain, after a lost session
        self._connection_changed_at = -math.inf  # monotonic
        self._has_lost = False  # the session, until the next connection
        self.refused: Waiting | None = None  # why the last scan accepted no new job
        self.sessions = queue_set.claimer.sessions
        self.dispatcher = JobDispatcher(context, on_end=self.look_again)
        self._consumer = Consumer(
            queue_set,
            [queue.value for queue in SERVED_QUEUES],
            hand_out=self.dispatcher.take,
            capacity=self._capacity,
            pools=pools,
            accepts=(lambda _id: True) if accepts is None else accepts,
            declines=self._declines,
            pool_capacity=self._pool_capacity,
            on_stop=self._on_stop,
        )
        self._polling = Polling(self.dispatcher.timers.parked)
        self._copies = None if logs is None else LogCopies(self.dispatcher.timers.parked)
        self._log_checks = {} if logs is None else logs.checks
        nodes = Nodes(queue_set.layout.root)
        self.water = WaterLines(
            queue_set.session, nodes, queue_set.pools, name, self.dispatcher.in_flight.in_running
        )
        places = context.drivers.runners.places()
        self._log_pages = LogPages(queue_set, nodes, context.drivers.runners, places, state_dir)
        self._sparks = context.rules.installations.versions()
        served = pools
        if accepts is not None:  # no other job may wait for this worker
            served = {}
        self._drains = drains
        self.drain_request = DrainRequest(queue_set.session, nodes, name, on_change=self._on_drain_request)
        self._announcement = Announcement(
            queue_set.session,
            nodes,
            name,
            slots=slots,
            pools=served,
            places=places,
            sparks=self._sparks,
            load=self._load,
            draining=(lambda: self.drain_request.act) if drains else None,
            refused=lambda: self.refused,
            log_trouble=lambda: "" if logs is None else logs.trouble,
        )
        self._leadership = leadership
        self.metrics = metrics

    def start(self) -> None:
        """Announce the worker, then start to claim jobs; raises Unreachable."""
        self._config.start()
        self._announcement.start()
        self._set.claimer.sessions.on_change(self._on_session_change)  # of all sessions that own locks
        self.dispatcher.start()
        self._polling.start()
        self.water.start()
        if self._copies is not None:
            self._copies.start()
        self._log_pages.start()
        if self._drains:
            self.drain_request.start()
        self._consumer.start()
        self._leadership.start()
        self._context.drivers.runners.start()
        slots = "1 slot" if self.slots == 1 else f"{self.slots:,} slots"
        logger.info("worker {} serves {} with {}", self.name, self._set.layout.root, slots)
        sparks = ", ".join(f"{pool} {version or 'unknown'}" for pool, version in self._sparks.items())
        logger.info("versions of Spark by pool: {}", sparks)

    @property
    def probes(self) -> tuple[Probe, Probe]:
        """The probes: whether all parts make progress, and whether the worker can accept a job now."""
        return Probe("livez", self._live_checks()), Probe("readyz", self._ready_checks())

    def _live_checks(self) -> dict[str, Check]:
        copies = {} if self._copies is None else {"log-copies": self._copies.trouble, **self._log_checks}
        return {
            "consumer": self._consumer.trouble,
            **self.dispatcher.checks,
            "polling": self._polling.trouble,
            "water-lines": self.water.trouble,
            "log-pages": self._log_pages.trouble,
            "announcement": self._announcement.trouble,
            "drain-request": self.drain_request.trouble,
            "config": self._config.trouble,
            "leadership": self._leadership.trouble,
            **copies,
        }

    def _ready_checks(self) -> dict[str, Check]:
        return {
            "zookeeper": self._session_trouble,
            "draining": lambda: "it accepts no new jobs any more" if self._context.leaving.is_set() else "",
            "announced": self._announcement.missing,
            "claims": self._consumer.failing,
        }

    def stop_accepting(self) -> None:
        """Start no new job from now on; jobs that run or end continue."""
        self._context.leaving.set()

    @property
    def is_drained(self) -> bool:
        """Whether an operator has asked for a drain, and all jobs have left this worker."""
        # After a lost session no job is in flight until the scans have found those that it still monitors.
        is_settled = time.monotonic() - self._connection_changed_at > _SETTLE_SECONDS
        is_connected = self._set.session.state is SessionState.CONNECTED
        return self.drain_request.act is not None and is_connected and is_settled and not self.is_busy()

    def is_busy(self) -> bool:
        """Whether any job is in flight."""
        return len(self.dispatcher.in_flight) > 0

    def look_again(self) -> None:
        """Scan the queues now: slots may have become free."""
        self._consumer.look_again()

    def drain(self) -> bool:
        """Start nothing new, finish the handlers that run, and release all jobs; drivers continue.

        False when some jobs are still in flight after some seconds: the end of the session releases them.
        """
        deadline = time.monotonic() + _DRAIN_SECONDS
        was_drained = self.is_drained
        self._context.leaving.set()
        self.drain_request.stop()
        self._context.draining.set()
        self._leadership.stop()
        self._context.drivers.runners.stop()
        self._polling.stop()
        self.water.stop()
        if self._copies is not None:
            self._copies.stop(0)
        self._consumer.stop(_CONSUMER_SECONDS)
        self._announcement.stop()
        self._log_pages.stop()
        if was_drained:  # otherwise the request stays, and shows that drivers are left
            self.drain_request.remove()
        drained = self.dispatcher.drain(max(0.0, deadline - time.monotonic()))
        self._config.stop()
        left = len(self.dispatcher.in_flight)
        if drained:
            logger.info("worker {} has released its jobs", self.name)
        else:
            logger.warning(
                "worker {} ends with {} jobs in flight; other workers take them over", self.name, left
            )
        return drained

    # ------------------------------------------------------------------ capacity
    def _capacity(self, queue: str) -> int:
        in_flight = self.dispatcher.in_flight
        match Queue(queue):
            case Queue.ACCEPT:
                free = self.slots - self._used()
                self.refused = self._why_full(free)
                return 0 if self.refused else free
            case Queue.RUNNING:
                return _MAX_RUNNING - in_flight.count(Queue.RUNNING)
            case other:
                return _MAX_PASSING - in_flight.count(other)

    def _used(self) -> int:
        """The slots in use: a driver on another host is only watched, and uses no slot of this one."""
        in_flight = self.dispatcher.in_flight
        return in_flight.count(Queue.ACCEPT, Queue.RUNNING) - in_flight.count_out_of_reach()

    def _load(self) -> Load:
        in_flight = self.dispatcher.in_flight
        adopted = sum(job.is_adopted for job in in_flight.in_running())
        return Load(self._used(), len(in_flight), in_flight.running(), adopted)

    def _why_full(self, free: int) -> Waiting | None:
        guard = self._context.admission.guard
        message = guard.refusal() if guard else None
        if self.drain_request.act is not None:
            words = "it drains, as an operator has asked, and ends after its drivers"
            return Waiting(reason=Reason.DRAINING, message=words)
        if self._context.leaving.is_set():
            return Waiting(reason=Reason.DRAINING, message="it is about to end")
        if free <= 0:
            return Waiting(reason=Reason.SLOTS, message=f"its slots are taken, all {self.slots}")
        return Waiting(reason=Reason.PRESSURE, message=message) if message else None

    def _declines(self, queue: str, job_id: str) -> bool:
        if self.drain_request.act is not None:
            return job_id not in self._kept
        # One set per queue: another worker may have started a job that was declined here.
        match Queue(queue):
            case Queue.ACCEPT:
                return not self._context.admission.declined.accepts(job_id)
            case Queue.RUNNING:
                return not self._context.admission.elsewhere.accepts(job_id)
            case _:
                return False

    def _pool_capacity(self, queue: str, pool: str) -> int | None:
        if Queue(queue) is not Queue.ACCEPT:
            return None
        if self._context.admission.high_water.report(pool) is not None:
            return 0
        free = self._context.admission.slots.free(pool)
        return None if free is None else free - self.dispatcher.in_flight.count_in(Queue.ACCEPT, pool)

    # ------------------------------------------------------------------ events
    def _on_drain_request(self) -> None:
        if self.drain_request.act is None:
            self._context.leaving.clear()
            self._kept = frozenset()
        elif not self._context.leaving.is_set():
            self._context.leaving.set()
            self._kept = self.dispatcher.in_flight.ids()
        self.refused = self._why_full(self.slots - self._used())  # announced at once, before the next scan
        self._consumer.look_again()
        self._announcement.look()

    def _session_trouble(self) -> str:
        state = self._set.session.state
        return "" if state is SessionState.CONNECTED else f"its session is {state}"

    def _on_stop(self, job_id: str) -> None:
        job = self.dispatcher.in_flight.get(job_id)
        if job is not None:
            job.wake()

    def _on_session_change(self) -> None:
        # Watches are lost with the connection, claims with the session: each job needs its handler. Without a
        # connection no handler could read anything.
        self._connection_changed_at = time.monotonic()
        self._report_loss()
        if self._set.session.state is not SessionState.SUSPENDED:
            self.dispatcher.timers.wake_all()

    def _report_loss(self) -> None:
        """Log once how many jobs a lost session has cost, instead of each of them."""
        is_lost = self._set.session.state is SessionState.LOST
        held = len(self.dispatcher.in_flight)
        if is_lost and not self._has_lost and held:
            words = "claims lost with the session: {}; the jobs are claimed again when ZooKeeper is back"
            logger.warning(words, held)
        self._has_lost = is_lost
