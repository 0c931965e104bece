"""The context of a worker: the parts that all its handlers share, grouped by concern."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.admission.declined import Declined
from orchestrator.admission.guard import Guard
from orchestrator.admission.high_water import HighWater
from orchestrator.admission.hosts import Hosts
from orchestrator.admission.slots import Slots
from orchestrator.archive.base import Archive
from orchestrator.audit.documents import AuditLog
from orchestrator.callbacks.callback import Callbacks
from orchestrator.config.installations import Installations
from orchestrator.config.references import ReferenceSettings
from orchestrator.config.tuning import PoolTuning
from orchestrator.config.zookeeper import DriverAccess
from orchestrator.handlers.checkpoints import Checkpoints
from orchestrator.handlers.event_logs import EventLogs
from orchestrator.handlers.hooks import Hooks
from orchestrator.history.history import History
from orchestrator.history.successes import KnownSuccesses
from orchestrator.model.limits import Limits
from orchestrator.model.spark import Spark
from orchestrator.policy.policy import Policy
from orchestrator.tuning.store import KnownTunings
from queues import EnsembleClock, Layout, Session
from spark_runner.runners.packages.installer import Installer
from spark_runner.runners.registry import Runners


@dataclass(frozen=True, slots=True)
class DriverControl:
    """How drivers are submitted and ended."""

    runners: Runners
    kill_grace: float  # seconds between TERM and KILL
    access: DriverAccess = field(default_factory=DriverAccess.model_construct)  # of drivers to ZooKeeper
    installer: Installer | None = None  # of the Python packages of jobs; None: jobs cannot have any


@dataclass(frozen=True, slots=True)
class Admission:
    """The jobs that may start on this worker now."""

    slots: Slots
    high_water: HighWater
    declined: Declined  # jobs in accept that cannot start now
    elsewhere: Declined  # jobs in running that belong to the workers of another host
    hosts: Hosts
    guard: Guard | None = None  # of this host's memory and load; None: no limit


@dataclass(frozen=True, slots=True)
class JobRules:
    """The rules that apply to all jobs of this worker."""

    limits: Callable[[], Limits] = Limits
    spark_of: Callable[[str, Spark], Spark] = lambda _pool, own: own  # fills in the defaults of a pool
    policy: Policy = field(default_factory=Policy)  # the features that definitions may use
    references: ReferenceSettings = field(default_factory=ReferenceSettings)  # sources of their values
    # By connector: jars that replace its Maven packages.
    connector_jars: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quarantine: str = ""  # URL of a folder for rows that do not fit
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    event_logs: EventLogs = field(default_factory=EventLogs)
    functions: Mapping[str, str] = field(default_factory=dict)  # of the operator: name -> module:function
    installations: Installations = field(default_factory=Installations)  # the Spark of each pool
    tuning_of: Callable[[str], PoolTuning] = lambda _pool: PoolTuning()


@dataclass(frozen=True, slots=True)
class Reporting:
    """The receivers of a job's events and results."""

    hooks: Hooks = field(default_factory=Hooks)
    callbacks: Callbacks = field(default_factory=Callbacks)
    history: History | None = None
    successes: KnownSuccesses | None = None  # None: no schedule follows a job
    tunings: KnownTunings | None = None  # None: nothing is tuned
    audit: AuditLog | None = None  # None: without logs
    archive: Archive | None = None  # None: jobs are removed without being archived


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The shared parts of one worker's handlers.

    `leaving`: while set, no job starts here. `draining`: once set, no handler begins.
    """

    session: Session
    layout: Layout
    clock: EnsembleClock
    drivers: DriverControl
    admission: Admission
    rules: JobRules = field(default_factory=JobRules)
    reporting: Reporting = field(default_factory=Reporting)
    leaving: threading.Event = field(default_factory=threading.Event)
    adopted: set[str] = field(default_factory=set)  # runs that another worker has begun
    draining: threading.Event = field(default_factory=threading.Event)
