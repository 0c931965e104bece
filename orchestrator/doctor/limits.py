"""Checks of limits: while a node cannot be read, its last valid limits apply, or the defaults."""

from collections.abc import Iterator
from dataclasses import fields

from orchestrator.cluster_config import ClusterConfig
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.survey import ClusterSnapshot
from orchestrator.errors import ConfigUnreadable
from queues.documents import decode
from queues.errors import InvalidLimit
from queues.pools import PoolLimits


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
