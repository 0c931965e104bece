"""The JVM of a driver: its own, which ends with it, or a warm one that it shares with others.

It connects as PySpark connects to any running JVM: by Py4J, to a gateway with a secret. Spark
Connect was measured and rejected. Its client loads pandas, PyArrow and gRPC (0.95 s of processor time in each
driver against 0.25 s, and 207 MB to install), and gives no access to the file systems and plans that keep a
script from overwriting its own input. So the same code runs scripts in both kinds of JVM.
"""

import contextlib
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_runner.protocol.errors import RefusedAtStart, SparkRunnerError, StoppedAtStart
from spark_runner.protocol.warm_files import ServerFiles, mark_of

_STOPPED = "Cannot call methods on a stopped SparkContext"
# YARN's message about a queue, and the message of its client about memory that no node of the cluster has.
_REFUSED = re.compile(
    r"Failed to submit application_\w+ to YARN ?: *(?P<queue>.*)"
    r"|IllegalArgumentException: (?P<memory>Required .* memory .* above the max threshold.*)"
)


class JvmGone(SparkRunnerError):
    """The JVM that ran a job, or was to run it, has exited."""


class JvmEnds(SparkRunnerError):
    """The JVM that started this driver is shutting down: its exit decides the outcome."""


class Jvm(Protocol):
    """The JVM that gives a driver its session."""

    @property
    def job_group(self) -> str | None:
        """The job group of this driver; None where no other driver uses the JVM."""

    def enter(self) -> None:
        """Connect to the JVM before the attempt is taken; raises JvmGone."""

    def session(self) -> SparkSession:
        """The session for the program."""

    def gone(self) -> JvmGone | None:
        """The end of the JVM as the reason for a failed program; None while the JVM runs.

        Raises JvmEnds where the driver must not report an outcome.
        """

    def leave(self) -> None:
        """Release the JVM after the end of the program."""


class OwnJvm:
    """The JVM that spark-submit started for this driver."""

    job_group = None

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """Take settings of Spark for the session, beside those of the submission."""
        self._settings: dict[str, bool | float | int | str | None] = {**(settings or {})}

    def enter(self) -> None:
        """Do nothing: the JVM started this process."""

    def session(self) -> SparkSession:
        """Start Spark and return its first session; raises StoppedAtStart or RefusedAtStart."""
        try:
            return SparkSession.builder.config(map=self._settings).getOrCreate()
        except Exception as error:
            if refused := _REFUSED.search(str(error)):
                why = refused["queue"] or refused["memory"]
                raise RefusedAtStart(f"YARN refused the application: {why}") from error
            if _STOPPED not in str(error):
                raise
            # Spark reports only this for a master that refused it, or did not answer for a minute.
            master = SparkConf().get("spark.master", "its master")
            message = (
                f"Spark was stopped while it started: {master} did not answer, or refused the application; "
                "check that it runs, that `master` of the definition is right, and that the driver reaches it"
            )
            raise StoppedAtStart(message) from error

    def gone(self) -> None:
        """Raise JvmEnds when the JVM is shutting down: then its Spark is stopped, and every job fails."""
        jvm: Any = SparkContext._jvm  # noqa: SLF001 - PySpark has no public access to the JVM
        if jvm is None:
            return
        try:
            if not jvm.org.apache.spark.util.ShutdownHookManager.inShutdown():
                return
        except (OSError, Py4JError):  # it has ended already
            pass
        message = "its JVM is being ended"
        raise JvmEnds(message)

    def leave(self) -> None:
        """Stop Spark unless the program did."""
        with contextlib.suppress(Exception):  # the outcome is recorded; a failure to stop does not change it
            active = SparkSession.getActiveSession()
            if active is not None:
                active.stop()


class WarmJvm:
    """The JVM of the server in this run directory; all jobs of the main thread are one job group."""

    def __init__(self, server: Path, incarnation: str) -> None:
        self.job_group = mark_of(incarnation)
        self._files, self._incarnation = ServerFiles(server), incarnation
        self._session: SparkSession | None = None
        self._scala: Any = None

    def enter(self) -> None:
        """Open a session in the JVM; raises JvmGone, before any work was done."""
        try:
            gateway = self._files.gateway()
            self._files.enter(
                self._incarnation
            )  # from now on the server checks whether this process is alive
            os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.port)
            os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.secret
            self._connect()
        except (OSError, ValueError, KeyError, Py4JError) as error:
            raise JvmGone(f"{self._files.run} cannot be used: {type(error).__name__}: {error}") from error

    def _connect(self) -> None:
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]  # PySpark gives it no types
        java: Any = gateway.jvm
        java.java.lang.Thread.currentThread().setName(
            self.job_group
        )  # it serves the main thread of this process alone
        self._scala = java.org.apache.spark.SparkContext.getOrCreate()
        wrapped = java.org.apache.spark.api.java.JavaSparkContext(self._scala)
        interrupt = signal.getsignal(signal.SIGINT)
        context = SparkContext(gateway=gateway, jsc=wrapped, conf=SparkConf(_jconf=wrapped.getConf()))
        signal.signal(signal.SIGINT, interrupt)  # PySpark's handler would cancel the jobs of all drivers
        context.setJobGroup(self.job_group, self.job_group, interruptOnCancel=True)
        self._session = SparkSession(context)

    def session(self) -> SparkSession:
        """A session that shares its Spark with those of other drivers."""
        assert self._session is not None  # noqa: S101 - entered before
        return self._session

    def gone(self) -> JvmGone | None:
        """The end of the server; None while it runs."""
        with contextlib.suppress(OSError, Py4JError):
            if not self._scala.isStopped():
                return None
        return JvmGone(f"{self._files.run} has ended while the job ran there: see its logs on this host")

    def leave(self) -> None:
        """Cancel the remaining jobs of this driver there."""
        with contextlib.suppress(OSError, Py4JError):  # it has ended, or evicts this driver after its end
            self._scala.cancelJobGroupAndFutureJobs(self.job_group)
            self._files.leave(self._incarnation)
