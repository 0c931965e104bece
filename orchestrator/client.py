"""The library API: enqueue jobs, look at them, wait for them, stop them, and what operators do by hand."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from orchestrator.cluster_config import Change, ClusterConfig
from orchestrator.errors import NoSuchPool
from orchestrator.history.history import History
from orchestrator.jobs import Jobs
from orchestrator.models.job import JobView
from orchestrator.nodes import Nodes
from orchestrator.operating.by_hand import ByHand
from orchestrator.operating.operations import Operations
from orchestrator.operating.queue_views import PoolLoad, QueueLoad, QueueViews
from orchestrator.operating.removal import Removal
from orchestrator.operating.replay import Replay, Replayed
from orchestrator.operating.views import JobDetail, Views
from orchestrator.policy.policy import Policy
from orchestrator.schedules.book import Book
from orchestrator.states import Queue, Status
from queues.names import DEFAULT_POOL
from queues.operations import Operation
from queues.pools import Note, PoolLimits
from queues.queue import QueueSet
from spark_runner.attempt import Attempt

if TYPE_CHECKING:
    from orchestrator.doctor.doctor import Doctor
    from orchestrator.status import ClusterStatus

__all__ = ["Client", "JobDetail", "PoolLoad", "QueueLoad", "Replayed"]


class Client(Jobs):
    """What people and programs do with jobs. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet, policy: Policy | None = None) -> None:
        super().__init__(queue_set.entrance, policy)
        self._set = queue_set
        self._views = Views(queue_set)
        self._queue_views = QueueViews(queue_set)
        self._by_hand = ByHand(queue_set)
        self._history = History(self._session, Nodes(self._layout.root))
        self._operations = Operations(self._by_hand)

    @staticmethod
    def connect(zookeeper: str | None = None, *, root: str | None = None) -> AbstractContextManager["Client"]:
        """A client with a session of its own for the time of the context.

        `zookeeper` is host:port,host:port; `root` the node below which all stands. What is not given, and
        logins and TLS, come from environment and file as on the command line. Raises Unreachable,
        AccessDenied, NotRunning, SettingsError.
        """
        from orchestrator.access import connected_client  # noqa: PLC0415 - it imports this module

        return connected_client(zookeeper=zookeeper, root=root)

    @property
    def schedules(self) -> Book:
        """The periodic jobs: list, get, put, pause, resume, remove, by name."""
        return Book(self._session, Nodes(self._layout.root), self._set.clock.now_ms)

    @property
    def config(self) -> ClusterConfig:
        """The limits that hold for all workers: `read` and `change` them."""
        return ClusterConfig(self._session, Nodes(self._layout.root))

    def history(self, name: str) -> "Sequence[Mapping[str, Any]]":
        """What the last runs of a name took, the latest last; raises HistoryNotFound, CorruptHistory."""
        return self._history.read(name)

    @property
    def doctor(self) -> "Doctor":
        """What is wrong with the cluster: `look`, and `mend` what is safe to mend."""
        from orchestrator.doctor.doctor import Doctor  # noqa: PLC0415 - for few commands alone

        return Doctor(self._set)

    def status(self) -> "ClusterStatus":
        """Servers, leader, workers and pools as they are now."""
        from orchestrator.status import read_status  # noqa: PLC0415 - likewise

        return read_status(self._set)

    # ------------------------------------------------------------------ look
    def detail(self, job_id: str) -> JobDetail:
        """All that is known of one job; raises ItemNotFound, CorruptRecord."""
        return self._views.detail(job_id)

    def list(
        self,
        *,
        pools: Collection[str] = (),
        names: Collection[str] = (),
        statuses: Collection[Status] = (),
        queues: Collection[Queue] = (),
        limit: int | None = None,
    ) -> Sequence[JobView]:
        """The jobs that fit, the newest first, at most `limit`; what is empty excludes nothing.

        One whose record cannot be read is among them as `JobView.unreadable`, unless names or statuses are
        asked for.
        """
        return self._views.list(pools=pools, names=names, statuses=statuses, queues=queues, limit=limit)

    def jobs(self, queues: Collection[Queue] = tuple(Queue)) -> Iterator[JobView]:
        """All jobs in these queues of all pools, each once, in the order of the queues.

        A job that moves while this looks is seen where it was first met; one whose record cannot be read is
        among them as `JobView.unreadable`.
        """
        return self._views.jobs(queues)

    def attempt(self, view: JobView) -> Attempt | None:
        """The last attempt of a job."""
        return self._views.attempt(view)

    def progress(self, view: JobView) -> dict[str, Any] | None:
        """What the driver shows of itself while it runs; None when none does."""
        return self._views.progress(view)

    def queues(self) -> Sequence[QueueLoad]:
        """How many jobs stand in each queue of each pool, and what binds the pools."""
        return self._queue_views.load()

    def standing(self, queue: Queue, pool: str | None = None) -> Sequence[dict[str, Any]]:
        """What stands in a queue, in the order in which it is due: id, pool, status, due, held_by, reason.

        And `waiting`, why it does not run yet, where it waits for that.
        """
        return self._queue_views.standing(queue, pool)

    def count(self, queue: Queue, pool: str | None = None) -> int:
        """How many stand in a queue, of all pools unless one is named."""
        return self._queue_views.count(queue, pool)

    # ------------------------------------------------------------------ act
    def kill(self, job_id: str) -> JobView:
        """Ask to stop a job, whoever holds it; `wait` tells the result. Raises AlreadyEnded, ItemNotFound."""
        return self._by_hand.stops.request(job_id)

    def retry(self, job_id: str, *, force: bool = False) -> JobView:
        """Bring a job that has ended back to accept, with all its tries; a success only by force.

        Raises NotEnded, AlreadyEnded, AttemptOpen, JobHeld, ItemNotFound, CorruptRecord.
        """
        return self._operations.retry(job_id, force=force)

    def remove(self, job_id: str) -> None:
        """Remove a job of which no attempt is open; files of its runs stay on the hosts where it ran.

        Raises AttemptOpen, JobHeld, ItemNotFound, CorruptRecord.
        """
        Removal(self._by_hand).remove(job_id)

    def requeue(self, job_id: str, *, delay: float = 0.0) -> JobView:
        """Make a job due after `delay` seconds where it stands; in finish, that is when it is removed.

        Raises MoveRefused, AttemptOpen, JobHeld, ItemNotFound, CorruptRecord.
        """
        return self._operations.requeue(job_id, delay=delay)

    def move(self, job_id: str, queue: Queue, *, force: bool = False) -> JobView:
        """Bring a job to another queue, by force from whoever holds it; see `orchestrator.operating.moves`.

        Raises MoveRefused, AttemptOpen, JobHeld, ItemNotFound, CorruptRecord.
        """
        return self._operations.move(
            job_id, queue, force=force, retention=lambda: self.config.read().limits.retention
        )

    def replay(self, ids: Iterable[str] | None = None) -> Sequence[Replayed]:
        """Bring these jobs, or all, back from dead to where they came from; the error of each that stays."""
        return Replay(self._by_hand).replay(ids)

    # ------------------------------------------------------------------ pools
    def pools(self) -> dict[str, PoolLimits]:
        """The limits of every pool, low lanes among them."""
        pools = self._set.pools
        return {name: pools.read(name)[0] for name in pools.names(low=True)}

    def change_pool(self, pool: str, **limits: Any) -> PoolLimits:
        """Change limits of a pool: weight, bound, cap, paused, low_share.

        Raises InvalidLimit, NoSuchPool; nothing is changed then.
        """
        if pool == DEFAULT_POOL:  # it is there from the beginning, also when nobody has used it yet
            self._set.ensure_pool()
        elif pool not in (known := self._set.pools.names(low=True)):
            raise NoSuchPool(pool, known)
        return self._set.pools.change(pool, self._noted(pool), **limits)

    def _noted(self, pool: str) -> Note:
        trail = self._by_hand.trail

        def note(
            before: Mapping[str, Any], after: Mapping[str, Any]
        ) -> tuple[dict[str, Any], Sequence[Operation]]:
            act = trail.act("set")
            kept = {"at": act.at, "by": act.by, "host": act.host, "before": before, "after": after}
            return kept, [trail.entry(act, "pool", pool, pool=pool, before=before, after=after)]

        return note

    def changes(self) -> Sequence[Change]:
        """Who has changed which limit, of all workers and of the pools that there are, oldest first.

        Of each node the last ones, 20 and 10; raises ConfigUnreadable.
        """
        changes = list(self.config.read().changes)
        for pool in self._set.pools.names(low=True):
            for kept in self._set.pools.changed(pool):
                with suppress(ValueError):  # what somebody has written there by hand
                    changes.append(Change.model_validate({"version": 0, **kept, "pool": pool}))
        return sorted(changes, key=lambda change: change.at)

    def pool_loads(self) -> Sequence[PoolLoad]:
        """Every pool with its jobs, the workers that serve it, and its limits."""
        return self._queue_views.pools()

    def remove_pool(self, pool: str) -> None:
        """Remove an empty pool that no worker serves by name, and its low lane.

        Raises NoSuchPool, PoolInUse; nothing is changed then. A job that comes meanwhile makes it again.
        """
        trail = self._by_hand.trail
        if not self._set.remove_pool(
            pool, lambda: [trail.entry(trail.act("remove"), "pool", pool, pool=pool)]
        ):
            raise NoSuchPool(pool, self._set.pools.names(low=True))

    def pause(self, pool: str) -> PoolLimits:
        """Start no job of a pool and of its low lane; those that run go on. Raises NoSuchPool."""
        return self.change_pool(pool, paused=True)

    def resume(self, pool: str) -> PoolLimits:
        """Start jobs of a pool again; raises NoSuchPool."""
        return self.change_pool(pool, paused=False)
