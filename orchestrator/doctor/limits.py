"""Limits that cannot be read: until they can, the last good ones hold, or the defaults."""

from collections.abc import Iterator
from dataclasses import fields

from orchestrator.cluster_config import ClusterConfig
from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey
from orchestrator.errors import ConfigUnreadable
from queues.documents import decode
from queues.errors import InvalidLimit
from queues.pools import PoolLimits


def look_at_limits(survey: Survey) -> Iterator[Finding]:
    """The node for all workers, and that of each pool."""
    try:
        ClusterConfig(survey.session, survey.nodes).read()
    except ConfigUnreadable as error:
        remedy = f"`orchestrator zkcli set {survey.nodes.config} {{}}`, then set the limits again"
        yield Finding.of(Kind.UNREADABLE_LIMITS, survey.nodes.config, str(error), remedy)
    paths = {pool: survey.layout.pool(pool) for pool in survey.limits}
    nodes = survey.session.get_many(list(paths.values()))
    for (pool, path), node in zip(paths.items(), nodes, strict=True):
        reason = "" if node is None else _broken(node[0])
        if reason:
            what = f"the limits of pool {pool} cannot be read, workers go by the last good ones: {reason}"
            remedy = f"`orchestrator zkcli set {path} {{}}`, then set its limits again"
            yield Finding.of(Kind.UNREADABLE_LIMITS, path, what, remedy)


def _broken(data: bytes) -> str:
    """Why these bytes are no limits; empty when they are."""
    known = {field.name for field in fields(PoolLimits)}
    try:
        PoolLimits(**{name: value for name, value in decode(data or b"{}").items() if name in known})
    except (ValueError, InvalidLimit) as error:
        return str(error)
    return ""
