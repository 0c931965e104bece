"""The way to ZooKeeper and its queues: servers, login, session, and the jobs or client on it."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import queues
from orchestrator.config.settings import Settings, hosts_origin
from orchestrator.config.zookeeper import LoginFile
from orchestrator.model.errors import ConfigUnreadable, NotRunning
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from queues import MAX_POOLS, Acl, Entrance, Layout, Session, SessionSettings

if TYPE_CHECKING:
    from orchestrator.client.jobs import Jobs
    from queues import QueueSet


_START_SECONDS = 20.0  # a start takes two seconds, and ten times that on a machine with too much to do
_LOOK_SECONDS = 0.05


def find_zookeeper(settings: Settings) -> Settings:
    """The settings with the ZooKeeper to use: the configured one, else the one that this user runs here.

    One that starts is waited for. Raises NotRunning. Raises UnsafeDirectory where another user could name the
    server that runs here.
    """
    if settings.zookeeper_hosts:
        return settings
    # `queues` loads both when they are used: a configured address needs neither.
    queues.private_directory(settings.zookeeper_dir, make=False)
    server, deadline = queues.running_server(settings.zookeeper_dir), time.monotonic() + _START_SECONDS
    while server is None and queues.is_server_starting(settings.zookeeper_dir):
        if time.monotonic() > deadline:
            raise NotRunning(
                "ZooKeeper starts here, or ends, and does not serve yet: try again when `orchestrator up` "
                "has printed that it runs"
            )
        time.sleep(_LOOK_SECONDS)
        server = queues.running_server(settings.zookeeper_dir)
    if server is None:
        raise NotRunning(
            "no ZooKeeper to talk to: set ZOOKEEPER_HOSTS, or start one here with `orchestrator up`"
        )
    return with_own_server(settings, server.address, settings.zookeeper_dir)


def with_own_server(settings: Settings, hosts: str, data_dir: Path) -> Settings:
    """The settings with an embedded server and the login in its data directory."""
    login = queues.login_of(data_dir)
    if login is None:  # an earlier version runs the server: its tree is open to every user
        return settings.model_copy(update={"zookeeper_hosts": hosts})
    file = LoginFile(
        scheme="digest", user=queues.EMBEDDED_USER, password_file=Path(login.password_file), own_server=True
    )
    update = {"zookeeper_hosts": hosts, "zookeeper_login": file, "zookeeper_acl": Acl.CREATOR}
    return settings.model_copy(update=update)


def open_session(settings: Settings, hosts: str) -> AbstractContextManager[Session]:
    """A session that connects when its context is entered; that raises Unreachable or AccessDenied."""
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
        ),
        origin=lambda: hosts_origin(settings),  # it reads the file again
    )


# A paused pool starts no job, and its running jobs continue. Caps limit running jobs, held or not:
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


def build_jobs(session: Session, settings: Settings) -> "Jobs":
    """The part of the library API that enqueues jobs and waits for them."""
    from orchestrator.client.jobs import Jobs  # noqa: PLC0415 - lazy: only submissions compile scripts
    from orchestrator.policy.policy import Policy  # noqa: PLC0415 - likewise

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
