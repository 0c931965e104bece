"""The queues of one orchestrator on an open session: all of them, or their entrance alone."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from orchestrator.client.jobs import Jobs
from orchestrator.config.settings import Settings
from orchestrator.model.errors import ConfigUnreadable
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from orchestrator.policy.policy import Policy
from queues import MAX_POOLS, Entrance, Layout, Session

if TYPE_CHECKING:
    from queues import QueueSet

# A paused pool starts no job, and its running jobs go on. Caps limit running jobs, held or not:
# `orchestrator.admission.slots` enforces them.
_KIND: dict[str, Any] = {"dead": Queue.DEAD, "paused_queues": (Queue.ACCEPT,), "caps": False}


def client_name() -> str:
    """The name under which this process puts and claims items as a client."""
    return f"client-{os.getpid()}"


def build_queue_set(session: Session, settings: Settings, owner: str) -> "QueueSet":
    """The seven queues below the configured root."""
    from queues import QueueSet  # noqa: PLC0415 - lazy: `job submit` claims nothing

    limit = _pool_limit(session, settings)
    return QueueSet(session, Layout(settings.root), list(Queue), owner=owner, max_pools=limit, **_KIND)


def build_jobs(session: Session, settings: Settings) -> Jobs:
    """The part of the library API that enqueues jobs and waits for them."""
    layout, limit = Layout(settings.root), _pool_limit(session, settings)
    entrance = Entrance(session, layout, list(Queue), owner=client_name(), max_pools=limit, **_KIND)
    return Jobs(entrance, Policy(settings.policy))


def _pool_limit(session: Session, settings: Settings) -> Callable[[], int]:
    """The largest number of pools, read when a job needs a new one."""

    def read() -> int:
        from orchestrator.config.live_limits import ClusterConfig  # noqa: PLC0415 - lazy: few jobs need a new pool

        try:
            return ClusterConfig(session, Nodes(settings.root)).read().limits.max_pools
        except ConfigUnreadable:  # workers keep the last good limits and log a warning
            return MAX_POOLS

    return read
