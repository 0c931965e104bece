"""The way to ZooKeeper, and to the queues for who only enqueues."""

import os
from contextlib import AbstractContextManager
from typing import Any

from orchestrator.errors import NotRunning
from orchestrator.jobs import Jobs
from orchestrator.settings import Settings
from orchestrator.states import Queue
from queues.entrance import Entrance
from queues.names import Layout
from queues.session import Session, SessionSettings

# A pause keeps new jobs back and lets running ones end. A cap is of running jobs, whoever holds them: see
# `orchestrator.admission.slots`.
KIND: dict[str, Any] = {"dead": Queue.DEAD, "paused_queues": (Queue.ACCEPT,), "caps": False}


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


def build_jobs(session: Session, settings: Settings) -> Jobs:
    """The part of the library API that enqueues and waits, on a session of its own."""
    layout = Layout(settings.root)
    return Jobs(Entrance(session, layout, list(Queue), owner=f"client-{os.getpid()}", **KIND))
