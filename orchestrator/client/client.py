"""The library API: enqueue jobs, look at them, wait for them, and administer them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.admin.admin import AdminOperations
from orchestrator.admin.queue_views import QueueViews
from orchestrator.admin.views import Views
from orchestrator.client.connect import build_queue_set, client_name, find_zookeeper, open_session
from orchestrator.client.jobs import Jobs
from orchestrator.config.settings import Settings, load_settings
from orchestrator.policy.policy import Policy
from queues import QueueSet, Session

if TYPE_CHECKING:
    from orchestrator.doctor.doctor import Doctor
    from orchestrator.doctor.status import ClusterStatus


class Client:
    """The jobs, queues, pools and limits of one orchestrator. Safe to use from several threads.

    Each method is that of a part: `help(client.move)` shows its signature, its documentation and the errors
    that it raises.
    """

    def __init__(self, queue_set: QueueSet, policy: Policy | None = None) -> None:
        self._set = queue_set
        # `job submit` builds this part alone: it loads in half the time.
        jobs = Jobs(queue_set.entrance, policy)
        self.submit = jobs.submit
        self.enqueue = jobs.enqueue
        self.get = jobs.get
        self.watch = jobs.watch
        self.wait = jobs.wait

        views = Views(queue_set)
        self.detail = views.detail
        self.list = views.list
        self.jobs = views.jobs
        self.attempt = views.attempt
        self.progress = views.progress

        queues = QueueViews(queue_set)
        self.queues = queues.load
        self.jobs_in_queue = queues.jobs_in_queue
        self.count = queues.count

        admin = AdminOperations(queue_set)
        self.kill = admin.stops.request
        self.adjust = admin.adjustments.change
        self.retry = admin.jobs.retry
        self.requeue = admin.jobs.requeue
        self.move = admin.jobs.move
        self.remove = admin.removal.remove
        self.replay = admin.dead.replay

        self.config = admin.config
        self.changes = admin.pools.changes
        self.pools = admin.pools.limits
        self.pool_loads = admin.pools.loads
        self.change_pool = admin.pools.change
        self.remove_pool = admin.pools.remove
        self.pause = admin.pools.pause
        self.resume = admin.pools.resume

        self.schedules = admin.schedules
        self.connections = admin.connections
        self.history = admin.history.read
        self.tunings = admin.tunings
        self.without_runs_of = admin.names.without_runs

    @staticmethod
    @contextmanager
    def connect(zookeeper: str | None = None, *, root: str | None = None) -> Iterator["Client"]:
        """A client with its own session, which ends with the context.

        `zookeeper` is host:port,host:port. `root` is the node below which the orchestrator keeps everything.
        Arguments that are not given, logins and TLS come from the environment and the settings file, as on
        the command line. Raises Unreachable, AccessDenied, NotRunning, SettingsError.
        """
        settings = find_zookeeper(load_settings(zookeeper_hosts=zookeeper, root=root))
        with open_session(settings, settings.zookeeper_hosts) as session:
            yield build_client(session, settings)

    @property
    def doctor(self) -> "Doctor":
        """Finds damage and misconfiguration of the cluster, and repairs what is safe to repair."""
        from orchestrator.doctor.doctor import Doctor  # noqa: PLC0415 - lazy: for few commands alone

        return Doctor(self._set)

    def status(self) -> "ClusterStatus":
        """The servers, the leader, the workers and the pools as they are now."""
        from orchestrator.doctor.status import read_status  # noqa: PLC0415 - lazy: likewise

        return read_status(self._set)


def build_client(session: Session, settings: Settings) -> Client:
    """The library API on a session of the caller."""
    return Client(build_queue_set(session, settings, owner=client_name()), Policy(settings.policy))
