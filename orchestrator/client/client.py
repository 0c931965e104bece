"""The library API: enqueue jobs, look at them, wait for them, and administer them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Self

from orchestrator.admin.admin import AdminOperations
from orchestrator.admin.job_monitor import JobMonitor
from orchestrator.admin.queue_views import QueueViews
from orchestrator.admin.views import Views
from orchestrator.client.connect import build_queue_set, client_name, find_zookeeper, open_session
from orchestrator.client.jobs import Jobs
from orchestrator.client.notebook import live_line
from orchestrator.client.progress import describe_activity
from orchestrator.client.updates import JobUpdate, updates
from orchestrator.config.settings import Settings, load_settings
from orchestrator.model.errors import DefinitionError, WaitTimeout
from orchestrator.model.job_view import JobView
from orchestrator.model.paths import Nodes
from orchestrator.policy.policy import Policy
from orchestrator.schedules.schedules import Schedules
from queues import Error, QueueSet, Session

if TYPE_CHECKING:
    from orchestrator.doctor.doctor import Doctor
    from orchestrator.doctor.status import ClusterStatus, WorkerStatus
    from orchestrator.logs.reading.query import LogRecord


class Client:
    """The jobs, queues, pools and limits of one orchestrator. Safe to use from several threads.

    `with Client.connect() as client:` closes the client at its end; `close` does the same.
    Each method is that of a part: `help(client.move)` shows its signature, its documentation and the errors
    that it raises.
    """

    def __init__(
        self, queue_set: QueueSet, policy: Policy | None = None, settings: Settings | None = None
    ) -> None:
        self._set, self._settings = queue_set, settings
        self._ending = ExitStack()
        # `job submit` builds this part alone: it loads in half the time.
        jobs = Jobs(queue_set.entrance, policy)
        self.submit = jobs.submit
        self.enqueue = jobs.enqueue
        self.get = jobs.get
        self.rule_applied = jobs.rule_applied
        self.run_here = jobs.run_here
        self._jobs = jobs

        views = Views(queue_set)
        self.detail = views.detail
        self.list = views.list
        self.jobs = views.jobs
        self.attempt = views.attempt
        self.progress = views.progress
        self.progress_of = views.progress_of

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

        self.drains = admin.drains
        nodes = Nodes(queue_set.layout.root)
        self.schedules = Schedules(queue_set.session, nodes, queue_set.clock.now_ms, jobs.enqueue)
        self.connections = admin.connections
        self.history = admin.history.read
        self.tunings = admin.tunings
        self.without_runs_of = admin.names.without_runs

    @classmethod
    def connect(cls, zookeeper: str | None = None, *, root: str | None = None) -> Self:
        """A client with its own session, which ends with `close`, or with the context of the client.

        `zookeeper` is host:port,host:port. `root` is the node below which the orchestrator keeps everything.
        Arguments that are not given, logins and TLS come from the environment and the settings file, as on
        the command line. Raises Unreachable, AccessDenied, NotRunning, SettingsError.
        """
        settings = find_zookeeper(load_settings(zookeeper_hosts=zookeeper, root=root))
        with ExitStack() as stack:
            session = stack.enter_context(open_session(settings, settings.zookeeper_hosts))
            client = cls(
                build_queue_set(session, settings, owner=client_name()), Policy(settings.policy), settings
            )
            client._ending = stack.pop_all()
        return client

    def close(self) -> None:
        """End the session of `connect`; later calls raise SessionLost. That of a caller stays open."""
        self._ending.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def watch(self, job_id: str, timeout: float | None = None) -> Iterator[JobUpdate]:
        """An update now and at each change of a job, until it has ended; see `JobUpdate`.

        Raises WaitTimeout after `timeout` seconds, ItemNotFound, CorruptRecord, Unreachable.
        """
        return updates(self.monitor(job_id), job_id, timeout)

    def wait(self, job_id: str, timeout: float | None = None) -> JobView:
        """Wait until a job has ended, at most `timeout` seconds; in a notebook a line shows what it does.

        Raises WaitTimeout, ItemNotFound, CorruptRecord, Unreachable.
        """
        if (show := live_line()) is None:
            try:
                return self._jobs.wait(job_id, timeout)
            except WaitTimeout as error:
                try:
                    update = next(self.watch(job_id))
                except Error:  # ZooKeeper is away, or the job was removed meanwhile
                    raise error from None
                if update.job.is_final:
                    return update.job
                words = describe_activity(update.job, update.progress, update.waiting)
                raise WaitTimeout(f"{error}: {words}".removesuffix(": ")) from None
        for update in self.watch(job_id, timeout):
            show(update)
        return update.job

    def monitor(self, job_id: str) -> JobMonitor:
        """Follows one job: its state, the activity of its driver, its failed attempts, what it waits for."""
        return JobMonitor(self._set, job_id)

    def logs(
        self,
        job_id: str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        streams: Collection[str] = (),
        level: str = "",
        spark: bool = False,
        since: datetime | None = None,
        grep: str | None = None,
        executor: str = "driver",
        report: Callable[[str], None] | None = None,
    ) -> "Iterator[LogRecord]":
        """The log records of a job, in the order of time; with `follow` until the job and its retries end.

        They are what the program prints, and warnings of Spark; with `spark` all that Spark logs. They come
        from the files of this host or of a cluster, through a worker of another host, or from the
        Elasticsearch of `logs.url`. `streams` are among stdout, stderr and spark, `level` is the lowest level
        of all records, `grep` an expression of RE2, `executor` a number of Spark or "all". `report` gets a
        message while a source cannot be read. Raises ItemNotFound, NoSuchAttempt, LogsElsewhere, and
        DefinitionError for an argument that cannot be used.
        """
        # Lazy: it loads all runners.
        from orchestrator.client.logs import JobLogs  # noqa: PLC0415
        from orchestrator.logs.reading.query import Grep, query_of, time_of  # noqa: PLC0415

        try:
            query = query_of(
                streams=streams,
                level=level,
                spark=spark,
                since="" if since is None else time_of(since),
                grep=None if grep is None else Grep(grep),
                executor=executor,
            )
        except (ValueError, OverflowError) as error:
            raise DefinitionError(f"no logs are read: {error}") from error
        logs = JobLogs(self._set, self._settings or load_settings(), report or (lambda _message: None))
        return logs.records(job_id, query, attempt=attempt, executor=executor, follow=follow)

    @property
    def doctor(self) -> "Doctor":
        """Finds damage and misconfiguration of the cluster, and repairs what is safe to repair."""
        from orchestrator.doctor.doctor import Doctor  # noqa: PLC0415 - lazy: for few commands alone

        return Doctor(self._set)

    def workers(self) -> "Sequence[WorkerStatus]":
        """The announced workers as they are now."""
        from orchestrator.doctor.status import read_workers  # noqa: PLC0415 - lazy: likewise

        return read_workers(self._set.session, Nodes(self._set.layout.root))

    def status(self) -> "ClusterStatus":
        """The servers, the leader, the workers and the pools as they are now."""
        from orchestrator.doctor.status import read_status  # noqa: PLC0415 - lazy: likewise

        return read_status(self._set)


def build_client(session: Session, settings: Settings) -> Client:
    """The library API on a session of the caller."""
    return Client(build_queue_set(session, settings, owner=client_name()), Policy(settings.policy), settings)
