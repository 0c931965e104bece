"""The composition root: the one place where parts are made and joined."""

import os
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from orchestrator.client import Client
from orchestrator.errors import NotRunning
from orchestrator.handlers.job import Context
from orchestrator.job_loop import JobLoop
from orchestrator.settings import Settings
from orchestrator.states import Queue
from orchestrator.worker import Worker
from queues.embedded import running_server
from queues.names import Layout
from queues.queue import QueueSet
from queues.session import Session, SessionSettings
from spark_runner.runners.base import Runner
from spark_runner.runners.local import LocalRunner

DRIVER_MAIN = Path(__file__).parent.parent / "spark_runner" / "driver_main.py"


def find_hosts(settings: Settings) -> str:
    """The ZooKeeper to use: the configured one, else the one that `up` or `zookeeper` runs here."""
    if settings.zookeeper_hosts:
        return settings.zookeeper_hosts
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
    """The seven queues below the configured root."""
    return QueueSet(session, Layout(settings.root), list(Queue), dead=Queue.DEAD, owner=owner)


def build_client(session: Session, settings: Settings) -> Client:
    """The library API on a session of its own."""
    return Client(build_queue_set(session, settings, owner=f"client-{os.getpid()}"))


def build_runners(settings: Settings, *, owned: bool = False) -> dict[str, Runner]:
    """The runner of each backend. `owned`: drivers end with this process, because its ZooKeeper does."""
    local = LocalRunner(settings.state_dir, driver_main=DRIVER_MAIN, owned=owned)
    return {local.backend: local}


def build_worker(
    session: Session,
    settings: Settings,
    *,
    owned: bool = False,
    accepts: Callable[[str], bool] = lambda _id: True,
) -> Worker:
    """A worker on a session of its own."""
    # Unique, so that the entry of a worker that was killed is never mistaken for the new one's.
    name = f"{os.uname().nodename.replace('.', '_')}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    queue_set = build_queue_set(session, settings, owner=name)
    context = Context(
        session=session,
        layout=queue_set.layout,
        runners=build_runners(settings, owned=owned),
        kill_grace=settings.kill_grace,
    )
    loop = JobLoop(context, queue_set.clock, retention=settings.retention)
    return Worker(
        queue_set,
        context,
        loop,
        name=name,
        slots=settings.slots,
        scrub_interval=settings.scrub_interval,
        accepts=accepts,
    )
