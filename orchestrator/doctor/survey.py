"""All that several examinations need, read once, in few requests and without writing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.models.job import JobState
from orchestrator.nodes import Nodes
from orchestrator.operating.queue_views import QueueViews
from orchestrator.operating.views import Place, decoded
from orchestrator.records import state_of
from orchestrator.states import Queue
from queues.errors import CorruptRecord
from queues.members import ConsumerAnnouncement
from queues.names import Layout, Token
from queues.pools import PoolLimits
from queues.queue import QueueSet
from queues.record import Record
from queues.session import Session
from queues.session.multi_read import Found


@dataclass(frozen=True, slots=True)
class Announced:
    """A worker, the leader, or who takes jobs of a pool, by its ephemeral; `created`: as of the ensemble."""

    name: str
    path: str
    document: Mapping[str, Any]
    created: int  # epoch milliseconds
    owner: int  # the session, 0 where none owns the node

    def number(self, key: str) -> int:
        """A number in the document, 0 where there is none."""
        value = self.document.get(key)
        return value if isinstance(value, int) else 0

    def text(self, key: str) -> str:
        """A text in the document, empty where there is none."""
        return str(self.document.get(key) or "")


@dataclass(frozen=True, slots=True)
class Lock:
    """Who holds an item; `since` by the holder's clock, `created` by the ensemble's."""

    path: str
    pool: str
    job_id: str
    worker: str
    since: str
    created: int
    owner: int  # the session


@dataclass(frozen=True, slots=True)
class Job:
    """A job that stands where its record says."""

    place: Place
    path: str  # of the record
    version: int
    modified: int
    record: Record
    state: JobState
    size: int  # of the record, in bytes


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is. `jobs` leaves out finish, where nobody waits for anything, and what cannot be read."""

    queue_set: QueueSet
    nodes: Nodes
    now: int  # epoch milliseconds of the ensemble
    workers: Sequence[Announced]
    leader: Announced | None
    limits: Mapping[str, PoolLimits]
    sizes: Mapping[str, int]  # folder -> how many nodes stand in it
    tokens: Mapping[tuple[Queue, str], Sequence[Token]]
    jobs: Sequence[Job]
    unreadable: Mapping[str, str]  # path of a record whose payload is no job's -> why
    consumers: Mapping[str, Sequence[Announced]]  # pool -> who takes its jobs, by the names of workers
    locks: Mapping[str, Lock]  # by path

    @property
    def session(self) -> Session:
        """For further reads."""
        return self.queue_set.session

    @property
    def layout(self) -> Layout:
        """Where everything stands."""
        return self.queue_set.layout

    def is_held(self, job: Job) -> bool:
        """Whether somebody holds a job."""
        return self.layout.lock(job.place.pool, job.place.token.id) in self.locks

    @classmethod
    def take(cls, queue_set: QueueSet) -> "Survey":
        """Look at everything; raises what reads raise. The node of the clock is written, and no other."""
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
            consumers=_consumers(queue_set, limits),
            # Last, so that a job that was claimed meanwhile counts as held.
            locks=_locks(queue_set, [pool for pool in limits if sizes.get(layout.locks(pool))]),
        )


def workers_of(session: Session, nodes: Nodes) -> list[Announced]:
    """The workers that are there, by name."""
    return [
        Announced(name, nodes.worker(name), decoded(node) or {}, node[1].created, node[1].owner)
        for name, node in _inside(session, nodes.workers)
        if node is not None
    ]


def leader_of(session: Session, nodes: Nodes) -> Announced | None:
    """The worker that leads."""
    node = session.get(nodes.leader)
    if node is None:
        return None
    document = decoded(node) or {}
    name = str(document.get("worker", ""))
    return Announced(name, nodes.leader, document, node[1].created, node[1].owner)


def _consumers(queue_set: QueueSet, pools: Iterable[str]) -> dict[str, list[Announced]]:
    folder = queue_set.layout.consumers
    consumers: dict[str, list[Announced]] = {pool: [] for pool in pools}
    for name, node in _inside(queue_set.session, folder):
        if node is None or (member := ConsumerAnnouncement.of(node)) is None:
            continue
        document, stat = decoded(node) or {}, node[1]
        worker = str(document.get("worker", ""))
        announced = Announced(worker, f"{folder}/{name}", document, stat.created, stat.owner)
        for pool, of_pool in consumers.items():
            if member.serves(pool):
                of_pool.append(announced)
    return consumers


def _inside(session: Session, folder: str) -> list[tuple[str, Found]]:
    names = sorted(session.children(folder) or ())
    return list(zip(names, session.get_many([f"{folder}/{name}" for name in names]), strict=True))


def _sizes(queue_set: QueueSet, pools: Iterable[str]) -> dict[str, int]:
    layout, session, nodes = queue_set.layout, queue_set.session, Nodes(queue_set.layout.root)
    folders = [layout.queue(queue, pool) for queue in Queue for pool in pools]
    by_pool = (layout.locks, layout.stops, nodes.slots)
    folders += [folder(pool) for pool in pools for folder in by_pool]
    folders += [f"{layout.buckets}/{name}" for name in session.children(layout.buckets) or ()]
    folders += [layout.receipts, layout.pools, layout.consumers]
    folders += [nodes.workers, nodes.named, nodes.schedules, nodes.histories]
    found = session.get_many(folders)
    return {path: node[1].children for path, node in zip(folders, found, strict=True) if node is not None}


def _jobs(
    queue_set: QueueSet, tokens: Mapping[tuple[Queue, str], Sequence[Token]]
) -> tuple[list[Job], dict[str, str]]:
    places = [
        Place(queue, pool, token)
        for (queue, pool), listed in tokens.items()
        if queue is not Queue.FINISH
        for token in listed
    ]
    paths = [queue_set.layout.record(place.token.id) for place in places]
    jobs, unreadable = list[Job](), dict[str, str]()
    for place, path, node in zip(places, paths, queue_set.session.get_many(paths), strict=True):
        if node is None:
            continue
        try:
            record = Record.decode(place.token.id, node[0])
        except CorruptRecord:
            continue  # the scrubber tells
        if (record.queue, record.pool, record.token) != (place.queue, place.pool, place.token):
            continue  # it has moved on meanwhile, or the scrubber tells
        try:
            state, stat = state_of(record), node[1]
            job = Job(place, path, stat.version, stat.modified, record, state, len(node[0]))
        except CorruptRecord as error:
            if place.queue is not Queue.DEAD:
                unreadable[path] = str(error)
            continue
        jobs.append(job)
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
            who, since = str(document.get("worker", "")), str(document.get("since", ""))
            locks[path] = Lock(path, *paths[path], who, since, stat.created, stat.owner)
    return locks
