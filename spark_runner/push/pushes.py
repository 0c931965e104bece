"""The pushes of one driver: what shows them and steers them finds them here."""

import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from spark_runner.push.adjustment import Adjustment
from spark_runner.push.control.certificate import make_certificate
from spark_runner.push.control.client import Endpoint
from spark_runner.push.control.server import ControlServer
from spark_runner.push.errors import SettingError
from spark_runner.push.settings import Limits, Order, PushSettings
from spark_runner.push.task import PushTask
from spark_runner.push.tasks_total import TasksTotal

PORT = "spark.orchestrator.push.port"
"""The setting with the first port at which a driver listens for its tasks; by default any free one."""
_LOOPBACK = "127.0.0.1"
_LEASE_S = 10.0  # beyond the longest request


class Pushes:
    """The pushes of one driver, by the names of their targets; their methods may be called by any thread."""

    of_job: ClassVar["Pushes | None"] = None
    """Those of the job that this process runs."""

    def __init__(self) -> None:
        self._totals = dict[str, TasksTotal]()
        self._running = dict[str, ControlServer]()
        self._limits = dict[str, Limits]()  # before adjustments
        self._adjustment = Adjustment()
        self._tls: tuple[ssl.SSLContext, str] | None = None
        self._lock = threading.Lock()

    @contextmanager
    def start(
        self, session: SparkSession, target: str, settings: PushSettings, limits: Limits
    ) -> Iterator[PushTask]:
        """What the tasks of a push need, which ends with the context; raises OSError, PushError.

        A further push into the target continues its counts.
        """
        if settings.order is not Order.NONE and _setting(session, "spark.speculation", "false") == "true":
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
            yield PushTask(settings, Endpoint(host, port, token, lease, certificate))
        finally:
            self._end(target, server)

    def adjust(self, adjustment: Adjustment) -> None:
        """Change the limits of all pushes, also of those that start later."""
        with self._lock:
            is_rollback = adjustment.rollbacks > self._adjustment.rollbacks
            self._adjustment = adjustment
            for target, server in self._running.items():
                server.adjust(adjustment.applied(self._limits[target]))
                if is_rollback:
                    server.roll_back()

    def document(self) -> dict[str, Any]:
        """The numbers of each push, by its target, and its limits."""
        with self._lock:
            found = {}
            for target, total in self._totals.items():
                self._count(target)
                limits = self._adjustment.applied(self._limits[target])
                found[target] = {**total.document(time.monotonic()), "limits": limits.document()}
            return found

    def _begin(self, target: str, server: ControlServer, limits: Limits) -> None:
        with self._lock:
            self._limits[target] = limits
            self._running[target] = server
            self._totals.setdefault(target, TasksTotal(time.monotonic()))
            server.adjust(self._adjustment.applied(limits))

    def _end(self, target: str, server: ControlServer) -> None:
        server.close()
        with self._lock:
            self._count(target)
            if self._running.get(target) is server:
                del self._running[target]

    def _count(self, target: str) -> None:
        """Add what the tasks have reported since the last call; the lock is held."""
        if server := self._running.get(target):
            self._totals[target].add(server.take_ended(), server.tasks(), time.monotonic())

    def _secured(self, gateway: Any) -> tuple[ssl.SSLContext, str]:
        with self._lock:
            if self._tls is None:
                self._tls = make_certificate(gateway)
            return self._tls


def _started(server_at: Callable[[int], ControlServer], session: SparkSession) -> tuple[ControlServer, int]:
    """A server that listens, and its port: the first free one from that of the setting, as Spark has it."""
    first, tries = int(_setting(session, PORT, "0")), int(_setting(session, "spark.port.maxRetries", "16"))
    for number in range(tries + 1):
        server = server_at(first + number if first else 0)
        try:
            return server, server.start()
        except OSError:
            if number == tries:
                raise
    raise AssertionError


def _setting(session: SparkSession, name: str, default: str) -> str:
    return session.conf.get(name, default) or default
