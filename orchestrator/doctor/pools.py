"""Pools: limits that cannot be read, pauses, full pools, and folders too long for ZooKeeper's tools."""

from collections.abc import Iterator
from dataclasses import fields

from orchestrator.admission.hosts import sparks_of
from orchestrator.config.live_limits import ClusterConfig
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.snapshot import ClusterSnapshot
from orchestrator.model.errors import ConfigUnreadable
from orchestrator.model.states import Queue
from queues import (
    LOW_LANE_SUFFIX,
    LS_LIMITS,
    USUAL_ID_CHARACTERS,
    InvalidLimit,
    PoolLimits,
    decode,
    fits_ls,
    ls_limit,
)


def check_limits(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """The limits of all workers, and those of each pool."""
    try:
        ClusterConfig(snapshot.session, snapshot.nodes).read()
    except ConfigUnreadable as error:
        remedy = f"`orchestrator zkcli set {snapshot.nodes.config} {{}}`, then set the limits again"
        yield Finding.of(FindingKind.UNREADABLE_LIMITS, snapshot.nodes.config, str(error), remedy)
    paths = {pool: snapshot.layout.pool(pool) for pool in snapshot.limits}
    nodes = snapshot.session.get_many(list(paths.values()))
    for (pool, path), node in zip(paths.items(), nodes, strict=True):
        reason = "" if node is None else _broken(node[0])
        if reason:
            what = f"the limits of pool {pool} cannot be read, workers use the last valid ones: {reason}"
            remedy = f"`orchestrator zkcli set {path} {{}}`, then set its limits again"
            yield Finding.of(FindingKind.UNREADABLE_LIMITS, path, what, remedy)


def _broken(data: bytes) -> str:
    """Why these bytes are not valid limits; empty when they are."""
    known = {field.name for field in fields(PoolLimits)}
    try:
        PoolLimits(**{name: value for name, value in decode(data or b"{}").items() if name in known})
    except (ValueError, InvalidLimit) as error:
        return str(error)
    return ""


_NEARLY_FULL = 0.9
_UNSERVED_MS = 60_000  # workers notice a new pool within seconds
_LARGE = 10_000  # names; ZooKeeper's own tools cannot list more than 1 MB of them


def check_service(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Pools with jobs due for more than a minute that no worker serves."""
    for pool in snapshot.limits:
        if not snapshot.workers or snapshot.consumers.get(pool):
            continue  # no worker at all is another finding
        late = dict[Queue, int]()
        for queue in Queue:
            tokens = () if queue is Queue.DEAD else snapshot.tokens.get((queue, pool), ())
            late[queue] = sum(
                snapshot.now - token.due > _UNSERVED_MS
                for token in tokens
                if snapshot.layout.lock(pool, token.id) not in snapshot.locks
            )
        if any(late.values()):
            counts = ", ".join(f"{number:,} in {queue}" for queue, number in late.items() if number)
            what = f"no worker serves pool {pool}, and jobs have been due for more than a minute: {counts}"
            main = pool.removesuffix(LOW_LANE_SUFFIX)
            remedy = f"start one for it: `orchestrator worker --pool {main}`, or one for all"
            yield Finding.of(FindingKind.UNSERVED_POOL, snapshot.layout.pool(pool), what, remedy)


def check_sparks(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Pools whose jobs run with one Spark or another, depending on the worker."""
    for pool in snapshot.limits:
        if pool.endswith(LOW_LANE_SUFFIX):
            continue
        by_version = sparks_of(snapshot.workers, pool)
        if len(by_version) > 1:
            listed = "; ".join(
                f"{version}: {', '.join(names)}" for version, names in sorted(by_version.items())
            )
            what = f"the workers of pool {pool} use several versions of Spark: {listed}"
            remedy = f"give them the same one: `spark_home` in [spark.{pool}], or SPARK_HOME of the workers"
            yield Finding.of(FindingKind.SPARKS_DIFFER, snapshot.layout.pool(pool), what, remedy)


def check_pools(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Paused pools, pools near their bound, bounds that are too large, and large folders."""
    layout = snapshot.layout
    for pool, limits in snapshot.limits.items():
        waiting = snapshot.sizes.get(layout.queue(Queue.ACCEPT, pool), 0)
        if limits.paused:
            lane = layout.queue(Queue.ACCEPT, f"{pool}{LOW_LANE_SUFFIX}")
            paused = waiting + snapshot.sizes.get(lane, 0)  # the pause applies to the low lane, too
            what = f"pool {pool} is paused; waiting in accept: {paused:,}"
            remedy = f"`orchestrator queue resume {pool}` once the reason is gone"
            yield Finding.of(FindingKind.PAUSED_POOL, layout.pool(pool), what, remedy)
        if waiting >= limits.bound * _NEARLY_FULL:
            what = f"accept of pool {pool} has {waiting:,} of at most {limits.bound:,} jobs"
            remedy = (
                "start more workers, submit less, or raise `bound` of the pool: `orchestrator config set`"
            )
            yield Finding.of(FindingKind.FULL_POOL, layout.queue(Queue.ACCEPT, pool), what, remedy)
        if limits.bound > ls_limit(USUAL_ID_CHARACTERS):
            what = f"pool {pool} allows {limits.bound:,} jobs in a queue, too many for `ls`: {LS_LIMITS}"
            remedy = "lower `bound` of the pool: `orchestrator config set`; spread the jobs over more pools"
            yield Finding.of(FindingKind.LARGE_BOUND, layout.pool(pool), what, remedy)
    too_long = {
        layout.queue(queue, pool)
        for (queue, pool), tokens in snapshot.tokens.items()
        if not fits_ls(token.name for token in tokens)
    }
    for path, size in snapshot.sizes.items():
        if size > _LARGE or path in too_long:
            what = f"{size:,} nodes in one folder: ZooKeeper's own tools may fail to list it"
            remedy = "spread the jobs over more pools; for finish, lower `retention_count` or `retention`"
            if path in {snapshot.nodes.histories, snapshot.nodes.tunings}:
                remedy = "name jobs by their purpose, not by the run: each name is kept for 90 days"
            yield Finding.of(FindingKind.LARGE_FOLDER, path, what, remedy)
