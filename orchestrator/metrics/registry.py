"""Counts the events of a process's queues: puts, claims, commits, lost claims, and sessions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from orchestrator.model.states import Queue
from queues import Event, EventKind, SessionState

_COMMITS = (EventKind.COMMIT, EventKind.REQUEUE, EventKind.MOVE, EventKind.REMOVE, EventKind.DEAD)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class QueueEvents:
    """A listener of a `QueueSet`. Each series exists from the start, so that its first rise is visible."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, words: str, label: str, values: tuple[str, ...]) -> Counter:
            made = Counter(f"orchestrator_{name}", words, (label,), registry=registry)
            for value in values:
                made.labels(value)
            return made

        self._puts = Counter("orchestrator_puts", "Jobs that this process has enqueued", registry=registry)
        queues = tuple(queue.value for queue in Queue)
        self._claims = counter("claims", "Jobs claimed, by queue", "queue", queues)
        words = "Committed transitions of claimed jobs, by kind"
        self._commits = counter("commits", words, "kind", tuple(kind.value for kind in _COMMITS))
        words = "Claims lost because the session had ended, or because the job was taken by force"
        self._lost = counter("claims_lost", words, "reason", ("session", "taken"))
        words = "Changes of the connection to ZooKeeper, by the new state"
        states = tuple(state.value for state in SessionState)
        self._sessions = counter("zookeeper_session_changes", words, "state", states)
        self._seconds = Histogram(
            "orchestrator_zookeeper_multi_seconds",
            "Time from the first send of a claim or commit to its response",
            ("kind",),
            registry=registry,
            buckets=_SECONDS,
        )

    def note(self, event: Event) -> None:
        """Count an event."""
        match event.kind:
            case EventKind.PUT:
                self._puts.inc()
            case EventKind.CLAIM:
                self._claims.labels(event.queue).inc()
                self._seconds.labels("claim").observe(event.seconds)
            case EventKind.LOST:
                self._lost.labels("taken" if event.same_session else "session").inc()
            case EventKind.SESSION:
                self._sessions.labels(event.detail).inc()
            case _:
                self._commits.labels(event.kind.value).inc()
                self._seconds.labels("commit").observe(event.seconds)


# Each pool creates eight series, and each series costs Prometheus memory for weeks.
_MAX_POOLS = 200
_OUTCOMES = (
    "spooled",
    "dropped",
    "created",
    "duplicates",
    "diverted",
    "retried",
    "dead",
)  # the counters of a shipper
_OTHER_POOLS = "(others)"  # no pool can have this name


@dataclass(frozen=True, slots=True)
class Depths:
    """By queue and pool: the number of jobs, and the seconds for which the first one has been due."""

    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    oldest_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)


class Metrics(Collector):
    """The metrics of one process, in its own registry.

    Only the leader shows depths, so that a sum over all workers is correct. A removed pool is not shown,
    because each look replaces the one before.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._depths = Depths()
        self._leads: Callable[[], bool] = lambda: False
        self._logs: Callable[[], Mapping[str, Any] | None] = lambda: None
        self._spool: Callable[[], tuple[int, int] | None] = lambda: None
        self.registry.register(self)
        ProcessCollector(registry=self.registry)  # process_resident_memory_bytes and the like

    def ask_leader(self, leads: Callable[[], bool]) -> None:
        """At each reading, call this for whether the process leads."""
        self._leads = leads

    def ask_logs(self, status: Callable[[], Mapping[str, Any] | None]) -> None:
        """At each reading, call this for the counters of this process's log records; None if not shipped."""
        self._logs = status

    def ask_spool(self, usage: Callable[[], tuple[int, int] | None]) -> None:
        """At each reading, call this for the bytes of the log spools of this host, and their limit."""
        self._spool = usage

    def show_depths(self, depths: Depths) -> None:
        """Replace the depths."""
        self._depths = depths

    def collect(self) -> Iterable[Metric]:
        """The metrics of one reading; the registry calls it."""
        if (logs := self._logs()) is not None:
            yield from _of_logs(logs)
        if (usage := self._spool()) is not None:
            used, limit = usage
            yield GaugeMetricFamily("orchestrator_spool_bytes", "Size of the log spools here", value=used)
            words = "Size at which the log spools here are full"
            yield GaugeMetricFamily("orchestrator_spool_limit_bytes", words, value=limit)
        leads = self._leads()
        yield GaugeMetricFamily("orchestrator_leader", "1 on the worker that leads", value=float(leads))
        depths = self._depths if leads else Depths()
        yield _family("orchestrator_queue_depth", "Jobs in a queue", _bounded(depths.counts, sum))
        words = "Seconds since the first job of a queue was due, 0 if none is"
        yield _family("orchestrator_queue_oldest_seconds", words, _bounded(depths.oldest_seconds, max))


def _of_logs(status: Mapping[str, Any]) -> Iterator[Metric]:
    words = "Log records of this process, by outcome"
    records = CounterMetricFamily("orchestrator_log_records", words, labels=("outcome",))
    for outcome in _OUTCOMES:
        records.add_metric((outcome,), status[outcome])
    yield records
    words = "1 while log records wait because they cannot be shipped"
    yield GaugeMetricFamily("orchestrator_logs_waiting", words, value=float(bool(status["trouble"])))


def _family(name: str, words: str, values: Iterable[tuple[tuple[str, str], float]]) -> Metric:
    family = GaugeMetricFamily(name, words, labels=("queue", "pool"))
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _bounded(
    values: Mapping[tuple[str, str], float], together: Callable[[Iterable[float]], float]
) -> Iterator[tuple[tuple[str, str], float]]:
    named = set(sorted({pool for _, pool in values})[:_MAX_POOLS])
    others: dict[str, list[float]] = {}
    for (queue, pool), value in values.items():
        if pool in named:
            yield (queue, pool), value
        else:
            others.setdefault(queue, []).append(value)
    for queue, rest in others.items():
        yield (queue, _OTHER_POOLS), together(rest)
