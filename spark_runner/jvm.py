"""The JVM of a driver: its own, which ends with it, or a warm one that it shares with other drivers."""

import contextlib
import re
from typing import Any, Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark_runner.errors import RefusedAtStart, SparkRunnerError, StoppedAtStart

_STOPPED = "Cannot call methods on a stopped SparkContext"
# YARN's message about a queue, and its client's about memory that no node of the cluster has.
_REFUSED = re.compile(
    r"Failed to submit application_\w+ to YARN ?: *(?P<queue>.*)"
    r"|IllegalArgumentException: (?P<memory>Required .* memory .* above the max threshold.*)"
)


class JvmGone(SparkRunnerError):
    """The JVM that was to run a job, or ran it, has ended."""


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
        """The end of the JVM as the reason for a failed program; None while the JVM is there.

        Raises JvmEnds where the driver must not report an outcome.
        """

    def leave(self) -> None:
        """Release the JVM after the end of the program."""


class OwnJvm:
    """The JVM that spark-submit started for this driver."""

    job_group = None

    def enter(self) -> None:
        """Do nothing: the JVM started this process."""

    def session(self) -> SparkSession:
        """Start Spark and return its first session; raises StoppedAtStart or RefusedAtStart."""
        try:
            return SparkSession.builder.getOrCreate()
        except Exception as error:
            if refused := _REFUSED.search(str(error)):
                why = refused["queue"] or refused["memory"]
                raise RefusedAtStart(f"YARN refused the application: {why}") from error
            if _STOPPED not in str(error):
                raise
            # Spark reports no more than this of a master that refused it, or did not answer for a minute.
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
