"""Counts what the queues of a process report: claims, commits, claims that were lost, sessions."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from orchestrator.states import Queue
from queues.events import Event, EventKind
from queues.session import SessionState

_COMMITS = (EventKind.COMMIT, EventKind.REQUEUE, EventKind.MOVE, EventKind.REMOVE, EventKind.DEAD)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class QueueEvents:
    """A listener of a `QueueSet`; each series is there from the beginning, so that its rise is seen."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, words: str, label: str, values: tuple[str, ...]) -> Counter:
            made = Counter(f"orchestrator_{name}", words, (label,), registry=registry)
            for value in values:
                made.labels(value)
            return made

        self._puts = Counter("orchestrator_puts", "Jobs that this process has enqueued", registry=registry)
        queues = tuple(queue.value for queue in Queue)
        self._claims = counter("claims", "Jobs that were claimed, by queue", "queue", queues)
        words = "Changes of claimed jobs that were committed, by what they did"
        self._commits = counter("commits", words, "kind", tuple(kind.value for kind in _COMMITS))
        words = "Claims that were lost: the session had ended, or somebody took the job by force"
        self._lost = counter("claims_lost", words, "reason", ("session", "taken"))
        words = "Changes of the connection with ZooKeeper, by the state since then"
        states = tuple(state.value for state in SessionState)
        self._sessions = counter("zookeeper_session_changes", words, "state", states)
        self._seconds = Histogram(
            "orchestrator_zookeeper_multi_seconds",
            "From the first send of a multi that claims or commits to its answer",
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
