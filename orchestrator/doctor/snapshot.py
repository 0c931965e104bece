"""A snapshot of the cluster: what several checks need, read once, in few requests and without writing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.admin.queue_views import QueueViews
from orchestrator.admin.views import TokenLocation, decoded
from orchestrator.admission.hosts import WorkerAnnouncement, consumers_of, leader_of, workers_of
from orchestrator.model.job import JobState, decode_job
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from queues import Layout, PoolLimits, QueueSet, Record, Session, Token


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a held job; `since` by the holder's clock, `created` by the ensemble's."""

    path: str
    pool: str
    job_id: str
    worker: str
    since: str
    created: int
    owner: int  # the session


@dataclass(frozen=True, slots=True)
class Job:
    """A job whose token is the one that its record names."""

    place: TokenLocation
    path: str  # of the record
    version: int
    modified: int
    record: Record
    state: JobState
    size: int  # of the record, in bytes


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The state of a cluster. `jobs` leaves out finish, where nothing is pending, and unreadable jobs."""

    queue_set: QueueSet
    nodes: Nodes
    now: int  # epoch milliseconds of the ensemble
    workers: Sequence[WorkerAnnouncement]
    leader: WorkerAnnouncement | None
    limits: Mapping[str, PoolLimits]
    sizes: Mapping[str, int]  # folder -> number of its children
    tokens: Mapping[tuple[Queue, str], Sequence[Token]]
    jobs: Sequence[Job]
    unreadable: Mapping[str, str]  # path of a record whose payload is no job's -> why
    consumers: Mapping[str, Sequence[WorkerAnnouncement]]  # pool -> the workers that take its jobs
    locks: Mapping[str, Lock]  # by path

    @property
    def session(self) -> Session:
        """The session, for further reads."""
        return self.queue_set.session

    @property
    def layout(self) -> Layout:
        """The paths of the queues."""
        return self.queue_set.layout

    def is_held(self, job: Job) -> bool:
        """Whether a worker or an operator holds a job."""
        return self.layout.lock(job.place.pool, job.place.token.id) in self.locks

    @classmethod
    def take(cls, queue_set: QueueSet) -> "ClusterSnapshot":
        """Read the cluster; raises the errors of reads. Only the node of the clock is written."""
        layout, nodes = queue_set.layout, Nodes(queue_set.layout.root)
        limits = QueueViews(queue_set).limits()
        sizes = _sizes(queue_set, limits)
        tokens = {
            (queue, pool): queue_set.tokens(queue, pool)
            for queue in Queue
            for pool in limits
            if sizes.get(layout.queue(queue, pool))
        }
        jobs, unreadable = _jobs(queue_set, tokens)
        return cls(
            queue_set=queue_set,
            nodes=nodes,
            now=queue_set.clock.now_ms(),
            workers=workers_of(queue_set.session, nodes),
            leader=leader_of(queue_set.session, nodes),
            limits=limits,
            sizes=sizes,
            tokens=tokens,
            jobs=jobs,
            unreadable=unreadable,
            consumers=consumers_of(queue_set.session, layout.consumers, limits),
            # Read last, so that a job that was claimed during the other reads counts as held.
            locks=_locks(queue_set, [pool for pool in limits if sizes.get(layout.locks(pool))]),
        )


def _sizes(queue_set: QueueSet, pools: Iterable[str]) -> dict[str, int]:
    layout, session, nodes = queue_set.layout, queue_set.session, Nodes(queue_set.layout.root)
    folders = [layout.queue(queue, pool) for queue in Queue for pool in pools]
    by_pool = (layout.locks, layout.stops, nodes.slots)
    folders += [folder(pool) for pool in pools for folder in by_pool]
    folders += [f"{layout.buckets}/{name}" for name in session.children(layout.buckets) or ()]
    folders += [layout.receipts, layout.pools, layout.consumers]
    folders += [nodes.workers, nodes.named, nodes.schedules, nodes.successes, nodes.histories, nodes.tunings]
    found = session.get_many(folders)
    return {path: node[1].children for path, node in zip(folders, found, strict=True) if node is not None}


def _jobs(
    queue_set: QueueSet, tokens: Mapping[tuple[Queue, str], Sequence[Token]]
) -> tuple[list[Job], dict[str, str]]:
    places = [
        TokenLocation(queue, pool, token)
        for (queue, pool), listed in tokens.items()
        if queue is not Queue.FINISH
        for token in listed
    ]
    paths = [queue_set.layout.record(place.token.id) for place in places]
    jobs, unreadable = list[Job](), dict[str, str]()
    for place, path, node in zip(places, paths, queue_set.session.get_many(paths), strict=True):
        if node is None or (decoded_job := decode_job(place.token.id, node[0])) is None:
            continue  # the scrubber reports it
        record, state = decoded_job
        if (record.queue, record.pool, record.token) != (place.queue, place.pool, place.token):
            continue  # it has moved on since, or the scrubber reports it
        if isinstance(state, JobState):
            stat = node[1]
            jobs.append(Job(place, path, stat.version, stat.modified, record, state, len(node[0])))
        elif place.queue is not Queue.DEAD:
            unreadable[path] = state
    return jobs, unreadable


def _locks(queue_set: QueueSet, pools: Iterable[str]) -> dict[str, Lock]:
    layout, session = queue_set.layout, queue_set.session
    paths = {
        layout.lock(pool, job_id): (pool, job_id)
        for pool in pools
        for job_id in session.children(layout.locks(pool)) or ()
    }
    locks = dict[str, Lock]()
    for path, node in zip(paths, session.get_many(list(paths)), strict=True):
        if node is not None:
            document, stat = decoded(node) or {}, node[1]
            worker, since = str(document.get("worker", "")), str(document.get("since", ""))
            locks[path] = Lock(path, *paths[path], worker, since, stat.created, stat.owner)
    return locks
