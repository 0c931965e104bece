"""The way to ZooKeeper: which servers, with which login, over which connection."""

from contextlib import AbstractContextManager
from pathlib import Path

import queues
from orchestrator.config.settings import Settings
from orchestrator.config.zookeeper import LoginFile
from orchestrator.model.errors import NotRunning
from queues import Acl, Session, SessionSettings


def find_zookeeper(settings: Settings) -> Settings:
    """The settings with the ZooKeeper to use: the configured one, else the one that this user runs here.

    Raises NotRunning. Raises UnsafeDirectory where another user could name the server that runs here.
    """
    if settings.zookeeper_hosts:
        return settings
    # `queues` loads both when they are used: a configured address needs neither.
    queues.private_directory(settings.zookeeper_dir, make=False)
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
        scheme="digest", user=queues.USER, password_file=Path(login.password_file), own_server=True
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
        )
    )
