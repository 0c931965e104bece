"""The way to the client: all that a command needs that starts no worker."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.client import Client
from orchestrator.entry import KIND, find_zookeeper, open_session, pool_limit
from orchestrator.policy.policy import Policy
from orchestrator.settings import Settings, load_settings
from orchestrator.states import Queue
from queues.names import Layout
from queues.queue import QueueSet
from queues.session import Session


def build_queue_set(session: Session, settings: Settings, owner: str) -> QueueSet:
    """The seven queues below the configured root; a pause keeps new jobs back and lets running ones end."""
    layout, bound = Layout(settings.root), pool_limit(session, settings)
    return QueueSet(session, layout, list(Queue), owner=owner, max_pools=bound, **KIND)


def build_client(session: Session, settings: Settings) -> Client:
    """The library API on a session of its own."""
    return Client(build_queue_set(session, settings, owner=f"client-{os.getpid()}"), Policy(settings.policy))


@contextmanager
def connected_client(*, zookeeper: str | None = None, root: str | None = None) -> Iterator[Client]:
    """The library API with a session that ends with the context; see `Client.connect`."""
    settings = find_zookeeper(load_settings(zookeeper_hosts=zookeeper, root=root))
    with open_session(settings, settings.zookeeper_hosts) as session:
        yield build_client(session, settings)
