"""The way to ZooKeeper and to the client: all that a command needs that starts no worker."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from orchestrator.client import Client
from orchestrator.errors import NotRunning
from orchestrator.settings import Settings, load_settings
from orchestrator.states import Queue
from queues.names import Layout
from queues.queue import QueueSet
from queues.session import Session, SessionSettings


def find_hosts(settings: Settings) -> str:
    """The ZooKeeper to use: the configured one, else the one that `up` or `zookeeper` runs here."""
    if settings.zookeeper_hosts:
        return settings.zookeeper_hosts
    from queues.embedded import running_server  # noqa: PLC0415 - where an address is configured it is not needed

    server = running_server(settings.zookeeper_dir)
    if server is None:
        raise NotRunning(
            "no ZooKeeper to talk to: set ZOOKEEPER_HOSTS, or start one here with `orchestrator up`"
        )
    return server.address


def open_session(settings: Settings, hosts: str) -> AbstractContextManager[Session]:
    """A session that connects when entered; raises Unreachable or AccessDenied then."""
    tls, login = settings.zookeeper_tls, settings.zookeeper_login
    by_scheme = {} if login is None else {login.scheme: login.login()}
    return Session(
        SessionSettings(
            hosts=hosts,
            session_timeout=settings.session_timeout,
            connect_timeout=settings.connect_timeout,
            tls=None if tls is None else tls.tls(),
            sasl=by_scheme.get("sasl"),
            digest=by_scheme.get("digest"),
            acl=settings.zookeeper_acl,
        )
    )


def build_queue_set(session: Session, settings: Settings, owner: str) -> QueueSet:
    """The seven queues below the configured root; a pause keeps new jobs back and lets running ones end."""
    return QueueSet(
        session,
        Layout(settings.root),
        list(Queue),
        dead=Queue.DEAD,
        owner=owner,
        paused_queues=(Queue.ACCEPT,),
        caps=False,  # a cap is of running jobs, whoever holds them: see `orchestrator.slots`
    )


def build_client(session: Session, settings: Settings) -> Client:
    """The library API on a session of its own."""
    return Client(build_queue_set(session, settings, owner=f"client-{os.getpid()}"))


@contextmanager
def connected_client(*, zookeeper: str | None = None, root: str | None = None) -> Iterator[Client]:
    """The library API with a session that ends with the context; see `Client.connect`."""
    settings = load_settings(zookeeper_hosts=zookeeper, root=root)
    with open_session(settings, find_hosts(settings)) as session:
        yield build_client(session, settings)
