"""The metrics of a worker: its own state, and the jobs that it has handled."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from orchestrator.handlers.hooks import Hook
from orchestrator.model.definition_parts import ErrorClass
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import seconds_between
from orchestrator.model.waiting import Reason, Waiting
from orchestrator.worker.worker import Worker
from queues import SessionState

_STATE_SECONDS = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
_END_OF = {Status.SUCCESS: "success", Status.KILL: "kill", Status.CANCEL: "kill"}
# Drivers can report any error class: unknown ones share one label, so that the number of series is bounded.
_CLASSES = (*get_args(ErrorClass), "definition", "handler")  # the last two are never retried
_OTHER = "other"
_DECLINES = (Reason.CAP, Reason.HIGH_WATER, Reason.CONCURRENCY, Reason.MEMORY, Reason.PACKAGES)
_MAX_POOLS = 200  # as of the depth of queues
_REFUSALS = (Reason.SLOTS, Reason.PRESSURE, Reason.DRAINING)


class JobMeasures(Hook):
    """Counts ended attempts and jobs, and measures how long jobs stay in each queue."""

    def __init__(self, registry: CollectorRegistry) -> None:
        description = "Attempts that have ended: success, kill, or the class of the error"
        self._attempts = Counter("orchestrator_attempts", description, ("end",), registry=registry)
        description = "Jobs that have reached finish, by status"
        self._finished = Counter("orchestrator_jobs_finished", description, ("status",), registry=registry)
        description = "Jobs that were claimed in accept and released, by the missing resource"
        self._declined = Counter("orchestrator_jobs_declined", description, ("reason",), registry=registry)
        description = "Errors of handlers"
        self._errors = Counter("orchestrator_handler_errors", description, registry=registry)
        self._seconds = Histogram(
            "orchestrator_state_seconds",
            "Time that jobs spent in a queue, recorded when they leave it",
            ("queue",),
            registry=registry,
            buckets=_STATE_SECONDS,
        )
        for end in (*_END_OF.values(), *_CLASSES, _OTHER):
            self._attempts.labels(end)
        for status in (Status.SUCCESS, Status.ERROR_FAIL, Status.KILL, Status.CANCEL):
            self._finished.labels(status.value)
        for reason in _DECLINES:
            self._declined.labels(reason.value)

    def after_outcome(self, job_id: str, state: JobState) -> None:  # noqa: ARG002 - the signature of all hooks
        """Count an ended attempt."""
        error_class = "" if state.error is None else state.error.error_class
        end = _END_OF.get(state.status) or (error_class if error_class in _CLASSES else _OTHER)
        self._attempts.labels(end).inc()

    def after_transition(
        self,
        job_id: str,  # noqa: ARG002 - the signature of all hooks
        before: JobState,
        after: JobState,
        queue: Queue,
    ) -> None:
        """Measure the time in the queue that the job has left, and count a finished job."""
        left = before.status.queue
        if left is queue:
            return
        if queue is Queue.FINISH:
            self._finished.labels(after.status.value).inc()
        seconds = seconds_between(before.times.get(left.value), after.times.get(queue.value))
        if seconds is not None:
            # Two workers may have written the times, and their clocks may differ.
            self._seconds.labels(left.value).observe(max(0.0, seconds))

    def after_decline(self, job_id: str, waiting: Waiting) -> None:  # noqa: ARG002 - the signature of all hooks
        """Count a job that could not start here."""
        self._declined.labels(waiting.reason if waiting.reason in _DECLINES else _OTHER).inc()

    def after_error(self, job_id: str, error: Exception) -> None:  # noqa: ARG002 - the signature of all hooks
        """Count an error of a handler."""
        self._errors.inc()


class WorkerMeasures(Collector):
    """The jobs in flight, the refusals and the checks of a worker, read at each scrape."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def collect(self) -> Iterable[Metric]:
        """The metrics at this moment."""
        yield from self._jobs()
        yield from self._connection()
        description = "1 for a check of /livez and /readyz that passes, 0 for one that fails"
        checks = GaugeMetricFamily("orchestrator_check", description, labels=("probe", "check"))
        for probe in self._worker.probes:
            for name, check in probe.checks.items():
                checks.add_metric((probe.name, name), float(not check()))
        yield checks

    def _jobs(self) -> Iterator[Metric]:
        in_flight, refused = self._worker.dispatcher.in_flight, self._worker.refused
        yield GaugeMetricFamily("orchestrator_slots", "Jobs that may run at once", value=self._worker.slots)
        held = GaugeMetricFamily("orchestrator_jobs_held", "Jobs in flight, by queue", labels=("queue",))
        for queue in Queue:
            held.add_metric((queue.value,), in_flight.count(queue))
        yield held
        description = (
            "Drivers of the jobs in flight; of those beyond reach, this worker sees only the attempts"
        )
        drivers = GaugeMetricFamily("orchestrator_drivers", description, labels=("reach",))
        beyond = in_flight.count_out_of_reach()
        drivers.add_metric(("within",), max(0, in_flight.count(Queue.RUNNING) - beyond))
        drivers.add_metric(("beyond",), beyond)
        yield drivers
        description = "1 for the reason why no new job is accepted"
        refuses = GaugeMetricFamily("orchestrator_refuses", description, labels=("reason",))
        for reason in _REFUSALS:
            refuses.add_metric((reason.value,), float(refused is not None and refused.reason == reason))
        yield refuses
        description = "Largest water line of the pushes of held jobs, by pool with high_water"
        lines = GaugeMetricFamily("orchestrator_water_line", description, labels=("pool",))
        for pool, line in islice(sorted(self._worker.water.lines.items()), _MAX_POOLS):
            lines.add_metric((pool,), line)
        yield lines

    def _connection(self) -> Iterator[Metric]:
        sessions = self._worker.sessions
        first = sessions.first
        description = "1 while ZooKeeper is connected"
        connected = float(first.state is SessionState.CONNECTED)
        yield GaugeMetricFamily("orchestrator_zookeeper_connected", description, value=connected)
        description = "Seconds without a connection to ZooKeeper"
        away = first.seconds_without_contact()
        yield GaugeMetricFamily("orchestrator_zookeeper_away_seconds", description, value=away)
        description = "Sessions with ZooKeeper; all but the first own locks"
        yield GaugeMetricFamily("orchestrator_zookeeper_sessions", description, value=len(sessions))
        description = "Sessions that have expired, with the locks in them"
        yield CounterMetricFamily("orchestrator_zookeeper_sessions_lost", description, value=first.generation)
