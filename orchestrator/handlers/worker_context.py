"""What the handlers of one worker share."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.admission.declined import Declined
from orchestrator.admission.guard import Guard
from orchestrator.admission.hosts import Hosts
from orchestrator.admission.slots import Slots
from orchestrator.archive.base import Archive
from orchestrator.audit.documents import AuditLog
from orchestrator.callbacks.callback import Callbacks
from orchestrator.history.history import History
from orchestrator.hooks import Hooks
from orchestrator.models.limits import Limits
from orchestrator.models.spark import Spark
from orchestrator.policy.policy import Policy
from orchestrator.zookeeper_access import DriverAccess
from queues.clock import EnsembleClock
from queues.names import Layout
from queues.session import Session
from spark_runner.runners.registry import Runners


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What all handlers of one worker share."""

    session: Session
    layout: Layout
    clock: EnsembleClock
    runners: Runners
    kill_grace: float  # seconds between TERM and KILL
    slots: Slots
    declined: Declined  # jobs in accept that cannot be begun now
    elsewhere: Declined  # jobs in running that are for the workers of another host
    hosts: Hosts
    limits: Callable[[], Limits] = Limits
    guard: Guard | None = None  # of this host; None: whatever it can bear
    spark_of: Callable[[str, Spark], Spark] = lambda _pool, own: own  # with what is empty as for the pool
    policy: Policy = field(default_factory=Policy)  # what definitions may use
    hooks: Hooks = field(default_factory=Hooks)
    callbacks: Callbacks = field(default_factory=Callbacks)
    draining: threading.Event = field(default_factory=threading.Event)
    history: History | None = None
    audit: AuditLog | None = None  # None: without logs
    driver_access: DriverAccess = field(default_factory=DriverAccess.model_construct)
    archive: Archive | None = None  # None: jobs are removed without being archived
