"""The composition root: the one place where parts are made and joined."""

import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from orchestrator.client import Client
from orchestrator.cluster_config import ClusterConfig
from orchestrator.declined import Declined
from orchestrator.errors import NotRunning
from orchestrator.guard import Guard
from orchestrator.handlers.job import Context
from orchestrator.hooks import Hook, Hooks, installed_hooks
from orchestrator.models.limits import Limits
from orchestrator.nodes import Nodes
from orchestrator.settings import Settings
from orchestrator.slots import Slots
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


def build_runners(settings: Settings, *, owned: bool = False) -> dict[str, Runner]:
    """The runner of each backend. `owned`: drivers end with this process, because its ZooKeeper does."""
    local = LocalRunner(settings.state_dir, driver_main=DRIVER_MAIN, owned=owned)
    return {local.backend: local}


def build_worker(
    session: Session,
    settings: Settings,
    *,
    owned: bool = False,
    runners: Mapping[str, Runner] | None = None,
    hooks: Iterable[Hook] = (),
    pools: Mapping[str, int] | None = None,
    limits: Callable[[], Limits] | None = None,
    guarded: bool = True,
    accepts: Callable[[str], bool] = lambda _id: True,
) -> Worker:
    """A worker on a session of its own; without a guard it takes jobs however busy its host is."""
    # Unique, so that the entry of a worker that was killed is never mistaken for the new one's.
    name = f"{os.uname().nodename.replace('.', '_')}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    queue_set = build_queue_set(session, settings, owner=name)
    nodes = Nodes(settings.root)
    slots = Slots(session, nodes, queue_set.pools)
    config = ClusterConfig(
        session,
        nodes,
        Limits(
            retention=settings.retention,
            load_limit=settings.load_limit,
            memory_guard=settings.memory_guard,
        ),
    )
    in_force = (lambda: config.limits) if limits is None else limits
    guard = Guard(in_force) if guarded else None
    context = Context(
        session=session,
        layout=queue_set.layout,
        clock=queue_set.clock,
        runners=build_runners(settings, owned=owned) if runners is None else runners,
        kill_grace=settings.kill_grace,
        slots=slots,
        declined=Declined(slots.name_room),
        limits=in_force,
        fits=(lambda _job: None) if guard is None else guard.fits,
        hooks=Hooks([*hooks, *installed_hooks()]),
    )
    worker = Worker(
        queue_set,
        context,
        name=name,
        slots=settings.slots,
        scrub_interval=settings.scrub_interval,
        pools=pools,
        accepts=accepts,
        config=config,
        refusal=(lambda: None) if guard is None else guard.refusal,
    )
    slots.on_change(worker.look_again)
    config.on_change(worker.look_again)
    return worker
