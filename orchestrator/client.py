"""The library API: enqueue jobs, look at them, wait for them, stop them, and what operators do by hand."""

import threading
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from orchestrator.by_hand import ByHand
from orchestrator.cluster_config import ClusterConfig
from orchestrator.errors import NoSuchPool, WaitTimeout
from orchestrator.models.definition import Definition, build_definition
from orchestrator.models.job import JobState, JobView
from orchestrator.nodes import Nodes
from orchestrator.operations import Operations
from orchestrator.plan import compile_program
from orchestrator.queue_views import QueueLoad, QueueViews
from orchestrator.removal import Removal
from orchestrator.replay import Replay, Replayed
from orchestrator.schedules.book import Book
from orchestrator.states import Queue, Status
from orchestrator.views import JobDetail, Views, view_of
from queues.documents import encode
from queues.names import DEFAULT_POOL, check_id
from queues.operations import Create, Operation
from queues.pools import PoolLimits
from queues.queue import QueueSet
from spark_runner.attempt import Attempt

if TYPE_CHECKING:
    from orchestrator.doctor.doctor import Doctor
    from orchestrator.status import ClusterStatus

__all__ = ["Client", "JobDetail", "QueueLoad", "Replayed"]

_RESCAN_SECONDS = 5.0  # how long a lost watch can hide a change


class Client:
    """What people and programs do with jobs. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._session = queue_set.session
        self._layout = queue_set.layout
        self._views = Views(queue_set)
        self._queue_views = QueueViews(queue_set)
        self._by_hand = ByHand(queue_set)
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

    @property
    def doctor(self) -> "Doctor":
        """What is wrong with the cluster: `look`, and `mend` what is safe to mend."""
        from orchestrator.doctor.doctor import Doctor  # noqa: PLC0415 - for few commands alone

        return Doctor(self._set)

    def status(self) -> "ClusterStatus":
        """Servers, leader, workers and pools as they are now."""
        from orchestrator.status import read_status  # noqa: PLC0415 - likewise

        return read_status(self._set)

    def submit(
        self,
        definition: Definition,
        *,
        job_id: str | None = None,
        pool: str | None = None,
        delay: float = 0.0,
        riders: Sequence[Operation] = (),
    ) -> JobView:
        """Enqueue a job, due after `delay` seconds; exactly once by id. `pool`: not that of the definition.

        `riders` are done in the same multi, or nothing is: Conflict. Raises SqlError for a script that cannot
        be run, DefinitionError, InvalidName, IdTaken, QueueFull; nothing is enqueued then.
        """
        compile_program(definition)
        if pool is not None:
            definition = build_definition(
                definition.model_dump(exclude_defaults=True) | {"pool": pool}, "pool"
            )
        job_id = str(uuid.uuid4()) if job_id is None else check_id(job_id)
        document = encode(definition.model_dump(mode="json", exclude_defaults=True))
        state = JobState.enqueued(definition.name, queued_limit=definition.timeout.queued)
        record = self._set.put(
            Queue.ACCEPT,
            job_id,
            state.model_dump(mode="json", exclude_defaults=True),
            pool=definition.pool,
            delay_ms=round(delay * 1000),
            extra=lambda path: [Create(f"{path}/definition", document), *riders],
        )
        return view_of(record)

    # ------------------------------------------------------------------ look
    def get(self, job_id: str) -> JobView:
        """One job; raises ItemNotFound, CorruptRecord."""
        return view_of(self._set.get(job_id))

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

        One whose record cannot be read stands in `dead` and is left out: `standing` names it.
        """
        return self._views.list(pools=pools, names=names, statuses=statuses, queues=queues, limit=limit)

    def jobs(self, queues: Collection[Queue] = tuple(Queue)) -> Iterator[JobView]:
        """All jobs in these queues of all pools, each once, in the order of the queues.

        A job that moves while this looks is seen where it was first met; one whose record cannot be read
        is left out.
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
        """What stands in a queue, in the order in which it is due: id, pool, status, due, held_by, reason."""
        return self._queue_views.standing(queue, pool)

    def count(self, queue: Queue, pool: str | None = None) -> int:
        """How many stand in a queue, of all pools unless one is named."""
        return self._queue_views.count(queue, pool)

    # ------------------------------------------------------------------ wait
    def watch(self, job_id: str, wake: threading.Event) -> JobView:
        """One job; `wake` is set when its record changes next."""
        self._session.get(self._layout.record(job_id), wake.set)
        return self.get(job_id)

    def wait(self, job_id: str, timeout: float | None = None) -> JobView:
        """Wait until a job has ended; raises WaitTimeout, ItemNotFound."""
        wake = threading.Event()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (view := self.watch(job_id, wake)).is_final:
            left = _RESCAN_SECONDS if deadline is None else min(_RESCAN_SECONDS, deadline - time.monotonic())
            if left <= 0:
                raise WaitTimeout(f"job {job_id!r} is still {view.status} after {timeout:g} s")
            wake.wait(left)
            wake.clear()
        return view

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
        """Bring a job to another queue, by force from whoever holds it; see `orchestrator.moves`.

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
        return self._set.pools.change(pool, **limits)

    def pause(self, pool: str) -> PoolLimits:
        """Start no job of a pool and of its low lane; those that run go on. Raises NoSuchPool."""
        return self.change_pool(pool, paused=True)

    def resume(self, pool: str) -> PoolLimits:
        """Start jobs of a pool again; raises NoSuchPool."""
        return self.change_pool(pool, paused=False)
