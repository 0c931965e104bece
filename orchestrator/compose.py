"""The composition root: the one place that builds the parts of a worker and connects them."""

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from loguru import logger

from orchestrator.admission.declined import Declined
from orchestrator.admission.guard import Guard
from orchestrator.admission.high_water import HighWater
from orchestrator.admission.host import Host
from orchestrator.admission.hosts import Hosts
from orchestrator.admission.slots import Slots
from orchestrator.admission.starts import Starts
from orchestrator.archive.archive import open_archive
from orchestrator.audit.documents import AuditLog
from orchestrator.callbacks.callback import Callbacks
from orchestrator.client.client import Client, build_client
from orchestrator.client.connect import build_queue_set, find_zookeeper, open_session
from orchestrator.config.cautions import cautions
from orchestrator.config.installations import pool_installations
from orchestrator.config.live_limits import ClusterConfig
from orchestrator.config.runners import DRIVER_MAIN, build_runners, users_of_drivers
from orchestrator.config.settings import Settings
from orchestrator.config.spark_defaults import pool_confs, pool_spark
from orchestrator.config.tuning import pool_tuning
from orchestrator.driver_logs.collector import DriverLogs
from orchestrator.handlers.checkpoints import Checkpoints
from orchestrator.handlers.event_logs import EventLogs
from orchestrator.handlers.hooks import Hook, Hooks, installed_hooks
from orchestrator.handlers.worker_context import Admission, DriverControl, JobRules, Reporting, WorkerContext
from orchestrator.history.history import History
from orchestrator.history.hours import HOUR_SECONDS
from orchestrator.history.successes import KnownSuccesses
from orchestrator.leader.audit_trail import AuditTrail
from orchestrator.leader.duty import Duty
from orchestrator.leader.election import Election
from orchestrator.leader.leadership import Leadership
from orchestrator.leader.old_event_logs import OldEventLogs
from orchestrator.leader.old_successes import OldSuccesses
from orchestrator.leader.queued_timeout import QueuedTimeout
from orchestrator.leader.queues import Depth, Scrub
from orchestrator.leader.retention import OldHistories, OldLogs, OldTunings, RetentionCount
from orchestrator.leader.stale_drains import StaleDrains
from orchestrator.leader.stale_log_requests import StaleLogRequests
from orchestrator.leader.stale_slots import StaleSlots
from orchestrator.leader.stale_stops import StaleStops
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.record.document import Days
from orchestrator.logs.record.redaction import REDACTOR, secrets_in
from orchestrator.logs.settings import LogSettings
from orchestrator.metrics.registry import Metrics, QueueEvents
from orchestrator.model.errors import SettingsError
from orchestrator.model.limits import Limits
from orchestrator.model.paths import Nodes
from orchestrator.policy.policy import Policy
from orchestrator.schedules.planner import Planner
from orchestrator.tuning.store import KnownTunings, TuningStore
from orchestrator.worker.measures import JobMeasures, WorkerMeasures
from orchestrator.worker.worker import Worker
from queues import QueueSet, Scrubber, Session
from spark_runner.runners.packages.installer import Installer
from spark_runner.runners.packages.store import EnvironmentStore
from spark_runner.runners.registry import Runners

if TYPE_CHECKING:
    from orchestrator.logs.shipping.indices import DailyIndices

__all__ = [
    "DRIVER_MAIN",
    "build_client",
    "build_queue_set",
    "build_runners",
    "build_worker",
    "find_zookeeper",
    "open_logs",
    "open_session",
]


@contextmanager
def open_logs(settings: Settings) -> Iterator[LogPipeline]:
    """Send the logs of this process and of the host's drivers to the spool, and on to log servers if set."""
    logins = (settings.zookeeper_login, settings.zookeeper_group, settings.zookeeper_drivers.login)
    try:
        REDACTOR.add([login.login().secret().strip() for login in logins if login is not None])
    except OSError as error:
        raise SettingsError(f"the file of a login cannot be read: {error}") from error
    for conf in pool_confs(settings.spark):
        REDACTOR.add(secrets_in(conf))
    with LogPipeline(settings.logs, settings.logs_dir, "orchestrator") as pipeline:
        for caution in cautions(settings):
            logger.warning(f"{caution.what}; {caution.remedy}")
        if pipeline.spool is None:
            yield pipeline
            return
        days = Days(settings.logs.alias, settings.logs.timezone)
        drivers = DriverLogs(settings.state_dir, pipeline.spool, days, REDACTOR)
        drivers.start()
        pipeline.checks["driver-logs"] = drivers.trouble
        try:
            yield pipeline
        finally:
            drivers.stop()


def _daily_indices(settings: LogSettings) -> "DailyIndices":
    # Lazy: the transport and what it loads take 14 MiB, which only workers with Elasticsearch need.
    from orchestrator.logs.shipping.indices import daily_indices  # noqa: PLC0415 - see above

    return daily_indices(settings)


def build_leadership(
    queue_set: QueueSet, context: WorkerContext, settings: Settings, name: str, metrics: Metrics
) -> Leadership:
    """A candidate for leader with all duties; `metrics` shows the counts of the leader."""
    nodes, client = Nodes(settings.root), Client(queue_set, context.rules.policy)
    election = Election(queue_set.session, nodes, name)
    duties: list[Duty] = [
        QueuedTimeout(queue_set, context.reporting.hooks, election.fence, context.reporting.audit),
        Planner(client.schedules, submit=client.enqueue, get=client.get, fence=election.fence),
        RetentionCount(queue_set, lambda: context.rules.limits().retention_count, election.fence),
        StaleStops(queue_set, election.fence),
        StaleSlots(queue_set, nodes, election.fence),
        StaleLogRequests(queue_set, nodes, election.fence),
        StaleDrains(queue_set, nodes, election.fence),
        OldHistories(queue_set, nodes, election.fence),
        OldTunings(queue_set, nodes, election.fence),
        OldSuccesses(queue_set, nodes, client.schedules, election.fence),
        OldEventLogs(settings.event_logs.values(), queue_set.clock.confirmed_ms),
        Depth(queue_set, metrics),
        *(
            []
            if context.reporting.audit is None
            else [AuditTrail(queue_set, nodes, election.fence, context.reporting.audit)]
        ),
        Scrub(Scrubber(queue_set.root, queue_set.claimer), settings.scrub_interval),
        *(
            [OldLogs(partial(_daily_indices, settings.logs), settings.logs.retention_days)]
            if settings.logs.has_search
            else []
        ),
    ]
    leadership = Leadership(election, duties)
    metrics.ask_leader(lambda: leadership.is_leader)
    return leadership


def build_worker(
    session: Session,
    settings: Settings,
    *,
    owned: bool = False,
    runners: Runners | None = None,
    hooks: Iterable[Hook] = (),
    pools: Mapping[str, int] | None = None,
    limits: Callable[[], Limits] | None = None,
    guarded: bool = True,
    accepts: Callable[[str], bool] | None = None,
    logs: LogPipeline | None = None,
    hour_seconds: float = HOUR_SECONDS,
) -> Worker:
    """A worker with its own session; without `guarded` it claims jobs however busy its host is.

    `logs`: the pipeline of this process; the worker announces its trouble. `hour_seconds`: the time that an
    entry of a running stream in the history covers.
    """
    # Unique: nodes of a killed worker are never mistaken for those of its successor.
    name = f"{os.uname().nodename.replace('.', '_')}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    queue_set = build_queue_set(session, settings, owner=name)
    nodes = Nodes(settings.root)
    slots = Slots(session, nodes, queue_set.pools)
    high_water = HighWater(session, nodes, queue_set.pools)
    config = ClusterConfig(
        session,
        nodes,
        Limits(
            retention=settings.retention,
            cpu_pressure_limit=settings.cpu_pressure_limit,
            memory_pressure_limit=settings.memory_pressure_limit,
            memory_guard=settings.memory_guard,
        ),
    )
    tls = settings.zookeeper_tls
    if tls is not None and tls.certificate_file and not settings.zookeeper_drivers.certificate_file:
        logger.warning(
            "this worker presents a certificate to ZooKeeper, its drivers do not: if the servers require one "
            "(ssl.clientAuth=need), set certificate_file and key_file of zookeeper_drivers"
        )
    in_force = (lambda: config.limits) if limits is None else limits
    metrics = Metrics()
    queue_set.listen(QueueEvents(metrics.registry).note)
    starts = Starts(settings.state_dir / "starts", name)  # of all workers with this state directory
    policy = Policy(settings.policy, settings.drivers.run_as)
    installations = pool_installations(settings.spark)
    users = users_of_drivers(settings) if runners is None else None
    if runners is None:
        runners = build_runners(
            settings,
            owned=owned,
            warm=accepts is None,
            users=users,
            installations=installations,
        )
    cache_dir = settings.cache_dir if users is None else users.folder  # which all drivers can read
    installer = Installer(EnvironmentStore(cache_dir / "packages"))
    context = WorkerContext(
        session=session,
        layout=queue_set.layout,
        clock=queue_set.clock,
        drivers=DriverControl(runners, settings.kill_grace, settings.zookeeper_drivers, installer),
        admission=Admission(
            slots=slots,
            high_water=high_water,
            declined=Declined(slots.name_capacity),
            elsewhere=Declined(slots.name_capacity),
            hosts=Hosts(session, nodes),
            guard=Guard(in_force, starts, Host()) if guarded else None,
        ),
        rules=JobRules(
            in_force,
            pool_spark(settings.spark),
            policy,
            settings.references,
            settings.connector_jars,
            settings.quarantine,
            Checkpoints(settings.checkpoints, settings.own_checkpoints),
            EventLogs(settings.event_logs, settings.drivers.run_as),
            settings.functions,
            installations,
            partial(pool_tuning, settings.tuning),
        ),
        reporting=Reporting(
            hooks=Hooks([JobMeasures(metrics.registry), *hooks, *installed_hooks()]),
            callbacks=Callbacks(check=policy.check_callback),
            history=History(session, nodes, hour_seconds=hour_seconds),
            successes=KnownSuccesses(session, nodes),
            tunings=KnownTunings(TuningStore(session, nodes), session, nodes),
            audit=None if logs is None else AuditLog(logs, Days(settings.logs.alias, settings.logs.timezone)),
            archive=open_archive(settings.archive, settings.state_dir),
        ),
    )
    if logs is not None:
        metrics.ask_logs(logs.status)
        metrics.ask_spool(logs.usage)
    worker = Worker(
        queue_set,
        context,
        name=name,
        slots=settings.slots,
        leadership=build_leadership(queue_set, context, settings, name, metrics),
        pools=pools,
        accepts=accepts,
        drains=not owned and accepts is None,  # otherwise it ends with its command
        config=config,
        logs=logs,
        state_dir=settings.state_dir,
        metrics=metrics,
    )
    metrics.registry.register(WorkerMeasures(worker))
    slots.on_change(worker.look_again)
    installer.on_change(worker.look_again)
    high_water.on_change(worker.look_again)
    config.on_change(worker.look_again)
    return worker
