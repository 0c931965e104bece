"""What there is: servers, workers, pools, at a glance."""

import statistics
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from orchestrator.doctor.ensemble import latencies
from orchestrator.doctor.survey import Announced, leader_of, workers_of
from orchestrator.nodes import Nodes
from orchestrator.queue_views import QueueViews
from orchestrator.states import Queue
from queues.queue import QueueSet


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkerStatus(_Part):
    """A worker as it says of itself."""

    name: str
    host: str
    pid: int
    slots: int
    running: int
    since: str
    version: str
    leads: bool


class PoolStatus(_Part):
    """A pool or a low lane; weight and cap are None for a low lane, as those of its pool hold."""

    pool: str
    weight: int | None
    cap: int | None  # 0 = no limit
    running: int  # jobs in running, low lane apart
    paused: bool
    queues: Mapping[Queue, int]


class ClusterStatus(_Part):
    """Everything that `cluster status` shows; latency in milliseconds, the median of some reads."""

    zookeeper: str
    root: str
    latency_ms: float
    leader: str | None
    workers: Sequence[WorkerStatus]
    pools: Sequence[PoolStatus]


def read_status(queue_set: QueueSet) -> ClusterStatus:
    """Look at a cluster; raises what reads raise, and writes nothing."""
    session, root = queue_set.session, queue_set.layout.root
    nodes = Nodes(root)
    leader = leader_of(session, nodes)
    return ClusterStatus(
        zookeeper=session.settings.hosts,
        root=root,
        latency_ms=round(statistics.median(latencies(session, root)), 2),
        leader=None if leader is None else leader.name,
        workers=[_worker(worker, leader) for worker in workers_of(session, nodes)],
        pools=_pools(queue_set),
    )


def _worker(worker: Announced, leader: Announced | None) -> WorkerStatus:
    return WorkerStatus(
        name=worker.name,
        host=worker.text("host"),
        pid=worker.number("pid"),
        slots=worker.number("slots"),
        running=worker.number("running"),
        since=worker.text("since"),
        version=worker.text("version"),
        leads=leader is not None and leader.name == worker.name,
    )


def _pools(queue_set: QueueSet) -> list[PoolStatus]:
    by_pool = dict[str, PoolStatus]()
    counts = dict[str, dict[Queue, int]]()
    for load in QueueViews(queue_set).load():
        of_pool = counts.setdefault(load.pool, {})
        of_pool[load.queue] = load.jobs
        by_pool[load.pool] = PoolStatus(
            pool=load.pool,
            weight=load.weight,
            cap=load.cap,
            running=of_pool.get(Queue.RUNNING, 0),
            paused=load.paused,
            queues=dict(of_pool),
        )
    return list(by_pool.values())
