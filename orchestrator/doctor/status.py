"""The status of a cluster: its servers, workers and pools."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from orchestrator.admin.queue_views import QueueViews
from orchestrator.admission.hosts import WorkerAnnouncement, leader_of, sparks_of, workers_of
from orchestrator.config.live_limits import ClusterConfig
from orchestrator.doctor.ensemble import ServerStatus, latencies, servers
from orchestrator.model.errors import ConfigUnreadable
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from queues import QueueSet, Session


class _StatusPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkerStatus(_StatusPart):
    """A worker, as it announces itself."""

    name: str
    host: str
    pid: int
    pools: Mapping[str, int] | None  # with the weights that it overrides, 0 = that of the pool; None = all
    slots: int
    used: int  # slots
    running: int
    adopted: int  # of the running jobs: drivers that another worker has started
    draining: bool
    held: int  # jobs; a worker that drains ends when none is left
    refuses: str  # why it accepts no new job
    since: str
    version: str
    session: str  # of the worker's announcement
    leads: bool


class PoolStatus(_StatusPart):
    """A pool or a low lane; weight and cap of a low lane are None: those of its pool apply."""

    pool: str
    weight: int | None
    cap: int | None  # 0 = no limit
    running: int  # jobs in running, without those of the low lane
    paused: bool
    spark: Sequence[str]  # the versions of Spark that the workers of the pool use: more than one is a finding
    queues: Mapping[Queue, int]


class ClusterStatus(_StatusPart):
    """The content of `cluster status`; the latency is the median of some reads, in milliseconds."""

    zookeeper: str
    servers: Sequence[ServerStatus]
    session: str  # of this client
    root: str
    latency_ms: float
    leader: str | None
    workers: Sequence[WorkerStatus]
    pools: Sequence[PoolStatus]
    config: Mapping[str, Any]  # the limits that are set for all workers
    config_error: str = ""  # why the limits cannot be read


def read_status(queue_set: QueueSet) -> ClusterStatus:
    """Read the status of a cluster, without a write; raises what reads raise."""
    session, root = queue_set.session, queue_set.layout.root
    nodes = Nodes(root)
    leader = leader_of(session, nodes)
    workers = workers_of(session, nodes)
    config, config_error = dict[str, Any](), ""
    try:
        config = dict(ClusterConfig(session, nodes).read().values)
    except ConfigUnreadable as error:
        config_error = str(error)
    return ClusterStatus(
        zookeeper=session.settings.hosts,
        servers=servers(session.settings),
        session=f"{session.id:#x}",
        root=root,
        latency_ms=round(statistics.median(latencies(session, root)), 2),
        leader=None if leader is None else leader.name,
        workers=[_worker(worker, leader) for worker in workers],
        pools=_pools(queue_set, workers),
        config=config,
        config_error=config_error,
    )


def read_workers(session: Session, nodes: Nodes) -> list[WorkerStatus]:
    """The announced workers, by name."""
    leader = leader_of(session, nodes)
    return [_worker(worker, leader) for worker in workers_of(session, nodes)]


def _worker(worker: WorkerAnnouncement, leader: WorkerAnnouncement | None) -> WorkerStatus:
    return WorkerStatus(
        name=worker.name,
        host=worker.text("host"),
        pid=worker.number("pid"),
        pools=worker.pools,
        slots=worker.number("slots"),
        # Workers of earlier versions announce only the number of their running jobs.
        used=worker.number("used" if "used" in worker.document else "running"),
        running=worker.number("running"),
        adopted=worker.number("adopted"),
        draining=worker.is_draining,
        held=worker.number("held"),
        refuses=worker.refusal,
        since=worker.text("since"),
        version=worker.text("version"),
        session=f"{worker.owner:#x}",
        leads=leader is not None and leader.name == worker.name,
    )


def _pools(queue_set: QueueSet, workers: Sequence[WorkerAnnouncement]) -> list[PoolStatus]:
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
            spark=sorted(sparks_of(workers, load.pool)),
            queues=dict(of_pool),
        )
    return list(by_pool.values())
