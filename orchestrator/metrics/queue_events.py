"""Counts the events of a process's queues: puts, claims, commits, lost claims, and sessions."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from orchestrator.states import Queue
from queues.events import Event, EventKind
from queues.session import SessionState

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
