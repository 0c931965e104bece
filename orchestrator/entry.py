"""The way to ZooKeeper, and to the queues for who only enqueues."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from orchestrator.errors import ConfigUnreadable, NotRunning
from orchestrator.jobs import Jobs
from orchestrator.nodes import Nodes
from orchestrator.policy.policy import Policy
from orchestrator.settings import Settings
from orchestrator.states import Queue
from orchestrator.zookeeper_access import LoginFile
from queues.entrance import Entrance
from queues.names import Layout
from queues.pool_folders import MAX_POOLS
from queues.session import Acl, Session, SessionSettings

# A pause keeps new jobs back and lets running ones end. A cap is of running jobs, whoever holds them: see
# `orchestrator.admission.slots`.
KIND: dict[str, Any] = {"dead": Queue.DEAD, "paused_queues": (Queue.ACCEPT,), "caps": False}


def find_zookeeper(settings: Settings) -> Settings:
    """The settings with the ZooKeeper to use: as configured, else that which `up` or `zookeeper` runs here.

    Raises NotRunning, and UnsafeDirectory where another user may say which one runs here.
    """
    if settings.zookeeper_hosts:
        return settings
    # Where an address is configured they are not needed.
    from queues.embedded import running_server  # noqa: PLC0415
    from queues.private_directory import private_directory  # noqa: PLC0415

    private_directory(settings.zookeeper_dir, make=False)
    server = running_server(settings.zookeeper_dir)
    if server is None:
        raise NotRunning(
            "no ZooKeeper to talk to: set ZOOKEEPER_HOSTS, or start one here with `orchestrator up`"
        )
    return with_own_server(settings, server.address, settings.zookeeper_dir)


def with_own_server(settings: Settings, hosts: str, data_dir: Path) -> Settings:
    """The settings with a server of our own, and the login in its data directory."""
    from queues.embedded import login_of  # noqa: PLC0415 - as above
    from queues.embedded.login import USER  # noqa: PLC0415 - as above

    login = login_of(data_dir)
    if login is None:  # an earlier version runs it, open to everybody
        return settings.model_copy(update={"zookeeper_hosts": hosts})
    file = LoginFile(scheme="digest", user=USER, password_file=Path(login.password_file), own_server=True)
    update = {"zookeeper_hosts": hosts, "zookeeper_login": file, "zookeeper_acl": Acl.CREATOR}
    return settings.model_copy(update=update)


def open_session(settings: Settings, hosts: str) -> AbstractContextManager[Session]:
    """A session that connects when entered; raises Unreachable or AccessDenied then."""
    tls, login = settings.zookeeper_tls, settings.zookeeper_login
    by_scheme = {} if login is None else {login.scheme: login.login()}
    if settings.zookeeper_group is not None:
        by_scheme["digest"] = settings.zookeeper_group.login()
    return Session(
        SessionSettings(
            hosts=hosts,
            session_timeout=settings.session_timeout,
            connect_timeout=settings.connect_timeout,
            tls=None if tls is None else tls.tls(),
            sasl=by_scheme.get("sasl"),
            digest=by_scheme.get("digest"),
            acl=settings.acl,
        )
    )


def pool_limit(session: Session, settings: Settings) -> Callable[[], int]:
    """How many pools there may be, read when a job needs a new one."""

    def read() -> int:
        from orchestrator.cluster_config import ClusterConfig  # noqa: PLC0415 - most jobs need no new pool

        try:
            return ClusterConfig(session, Nodes(settings.root)).read().limits.max_pools
        except ConfigUnreadable:  # workers go by the last good ones, and say so
            return MAX_POOLS

    return read


def build_jobs(session: Session, settings: Settings) -> Jobs:
    """The part of the library API that enqueues and waits, on a session of its own."""
    layout, owner, bound = Layout(settings.root), f"client-{os.getpid()}", pool_limit(session, settings)
    entrance = Entrance(session, layout, list(Queue), owner=owner, max_pools=bound, **KIND)
    return Jobs(entrance, Policy(settings.policy))
