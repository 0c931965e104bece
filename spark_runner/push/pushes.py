"""The pushes of one driver: what shows them and steers them finds them here."""

import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from spark_runner.push.adjustment import Adjustment
from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.certificate import make_certificate
from spark_runner.push.control.client import Endpoint
from spark_runner.push.control.server import ControlServer, Ended, TaskState
from spark_runner.push.errors import PushError, SettingError
from spark_runner.push.positions import OF_ATTEMPT, OF_NAME, KeptPositions, Positions
from spark_runner.push.settings import Limits, Order, PushSettings
from spark_runner.push.task import PushTask
from spark_runner.push.tasks_total import MAX_LANES, TasksTotal

PORT = "spark.orchestrator.push.port"
"""The setting with the first port at which a driver listens for its tasks; by default any free one."""
_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65_535
_MAX_LANES = 500  # of all targets that are shown: a node of ZooKeeper has at most a megabyte
_LEASE_S = 10.0  # beyond the longest request
_DISMISS_S = 2.0  # for tasks to end, in a process that must end, too


class NoPort(PushError):
    """The driver cannot listen for the tasks of a push."""


class Pushes:
    """The pushes of one driver, by the names of their targets; their methods may be called by any thread."""

    of_job: ClassVar["Pushes | None"] = None
    """Those of the job that this process runs."""

    def __init__(self) -> None:
        self._totals = dict[str, TasksTotal]()
        self._running = dict[ControlServer, tuple[str, Limits]]()  # limits before adjustments
        self._kept, self._positions_of = KeptPositions(), dict[ControlServer, Positions]()
        self._limits = dict[str, Limits]()  # those of the last push into each target
        self._adjustment = Adjustment()
        self._tls: tuple[ssl.SSLContext, str] | None = None
        self._lock = threading.Lock()

    @contextmanager
    def start(
        self,
        session: SparkSession,
        target: str,
        settings: PushSettings,
        limits: Limits,
        *,
        kept_as: str = "",
        is_of_name: bool = False,
    ) -> Iterator[PushTask]:
        """What the tasks of a push need, which ends with the context.

        A further push into the target continues its counts. Its positions are kept under a name, for a
        further attempt of the job, or for the next run of its name as well; without one, they are not. Raises
        SettingError, NoPort, NoCertificate.
        """
        speculation = _setting(session, "spark.speculation", "false").strip().lower()
        if settings.order is not Order.NONE and speculation == "true":
            words = "records are delivered in order, which a speculative task would break"
            raise SettingError(f"{words}; set spark.speculation to false, or deliver in no order")
        context = session.sparkContext
        is_local = str(context.master).partition("[")[0] == "local"
        tls, certificate = (None, "") if is_local else self._secured(context._gateway)  # noqa: SLF001 - it makes the certificate
        host = _LOOPBACK if is_local else _setting(session, "spark.driver.host", "")
        token, lease = secrets.token_urlsafe(32), settings.request_timeout + _LEASE_S

        def server_at(port: int) -> ControlServer:
            return ControlServer(
                limits,
                host=_LOOPBACK if is_local else _setting(session, "spark.driver.bindAddress", host),
                token=token,
                lease=lease,
                is_exclusive=settings.order is not Order.NONE,
                tls=tls,
                port=port,
            )

        server, port = _started(server_at, session)
        try:
            self._begin(target, server, limits)
            reached = self._positions(server, OF_NAME if is_of_name else OF_ATTEMPT, kept_as)
            yield PushTask(settings, Endpoint(host, port, token, lease, certificate), reached)
        finally:
            self._end(target, server)

    def adjust(self, adjustment: Adjustment) -> None:
        """Change the limits of all pushes, also of those that start later."""
        with self._lock:
            is_rollback = adjustment.rollbacks > self._adjustment.rollbacks
            self._adjustment = adjustment
            for server, (_, limits) in self._running.items():
                server.adjust(adjustment.applied(limits))
                if is_rollback:
                    server.roll_back()

    @property
    def adjustment(self) -> Adjustment:
        """What an operator has changed last."""
        with self._lock:
            return self._adjustment

    def dismiss(self) -> None:
        """Let the tasks of all pushes end before this process does, so that clients get an answer."""
        with self._lock:
            servers = list(self._running)
        for server in servers:
            server.dismiss()
        deadline = time.monotonic() + _DISMISS_S
        for server in servers:
            server.join(max(0.0, deadline - time.monotonic()))

    def document(self) -> dict[str, Any]:
        """The numbers of each push, by its target, and its limits."""
        with self._lock:
            found = {}
            most = max(1, min(MAX_LANES, _MAX_LANES // max(1, len(self._totals))))
            for target, total in self._totals.items():
                self._count(target)
                limits = self._adjustment.applied(self._limits[target])
                running = sum(of == target for of, _ in self._running.values())
                found[target] = total.document(limits, time.monotonic(), most, pushes=running)
            return found

    def follow(self, document: Mapping[str, Any]) -> None:
        """Go on after the positions in such a document: those of earlier attempts, and of earlier runs."""
        with self._lock:
            self._kept.follow(document)

    def positions(self, *, is_done: bool = False) -> dict[str, Any]:
        """How far the pushes have come, as a document; if the job is done, for the next one of its name."""
        with self._lock:
            for target in self._totals:
                self._count(target)
            return self._kept.document(is_done=is_done)

    def reached(self, name: str, position: Any) -> None:
        """A push that has ended, whose source was one partition, has delivered all before this position."""
        with self._lock:
            self._kept.reached(name, position)

    def forget(self, name: str) -> None:
        """Let the next push of this name begin with its first record."""
        with self._lock:
            self._kept.forget(name)

    def _positions(self, server: ControlServer, kind: str, kept_as: str) -> Mapping[int, Any]:
        if not kept_as:
            return {}
        with self._lock:
            found = self._positions_of[server] = self._kept.start(kind, kept_as)
            return found.reached

    def _begin(self, target: str, server: ControlServer, limits: Limits) -> None:
        with self._lock:
            self._limits[target] = limits
            self._running[server] = target, limits
            self._totals.setdefault(target, TasksTotal(time.monotonic()))
            server.adjust(self._adjustment.applied(limits))

    def _end(self, target: str, server: ControlServer) -> None:
        server.close()
        with self._lock:
            self._count(target)
            self._running.pop(server, None)
            self._positions_of.pop(server, None)

    def _count(self, target: str) -> None:
        """Add what the tasks have reported since the last call; the lock is held."""
        all_ended, all_tasks = list[Ended](), dict[TaskId, TaskState]()
        for server, (of, _) in self._running.items():
            if of == target:
                ended, tasks = server.take()
                if positions := self._positions_of.get(server):
                    positions.add([*ended, *((task, state.counts) for task, state in tasks.items())])
                all_ended += ended
                all_tasks |= tasks  # an attempt has a number of its own in the whole application
        self._totals[target].add(all_ended, all_tasks, time.monotonic())

    def _secured(self, gateway: Any) -> tuple[ssl.SSLContext, str]:
        with self._lock:
            if self._tls is None:
                self._tls = make_certificate(gateway)
            return self._tls


def _started(server_at: Callable[[int], ControlServer], session: SparkSession) -> tuple[ControlServer, int]:
    """A server that listens, and its port: the first free one from that of the setting, as Spark has it."""
    text = _setting(session, PORT, "0")
    if not (text.isdecimal() and int(text) <= _MAX_PORT):
        raise NoPort(f"{PORT} is '{text}'; it must be a port")
    first, tries = int(text), int(_setting(session, "spark.port.maxRetries", "16"))
    failure: OSError | None = None
    for port in range(first, min(first + tries, _MAX_PORT) + 1):
        server = server_at(port if first else 0)
        try:
            return server, server.start()
        except OSError as error:
            failure = error
    raise NoPort(f"the driver cannot listen for its tasks: {failure}; check {PORT}") from failure


def _setting(session: SparkSession, name: str, default: str) -> str:
    return session.conf.get(name, default) or default
