"""The JVM in which a driver works: its own, which ends with it, or a warm one that it shares with others."""

import contextlib
import re
from typing import Any, Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark_runner.errors import RefusedAtStart, SparkRunnerError, StoppedAtStart

_STOPPED = "Cannot call methods on a stopped SparkContext"
# What YARN says of a queue, and what its client says of memory that no node of the cluster has.
_REFUSED = re.compile(
    r"Failed to submit application_\w+ to YARN ?: *(?P<queue>.*)"
    r"|IllegalArgumentException: (?P<memory>Required .* memory .* above the max threshold.*)"
)


class JvmGone(SparkRunnerError):
    """The JVM in which a job was to run, or did run, is not there any more."""


class JvmEnds(SparkRunnerError):
    """The JVM that has started this driver is being ended: how it ends is what became of the driver."""


class Jvm(Protocol):
    """Where a driver gets its session."""

    @property
    def job_group(self) -> str | None:
        """Of all that this driver runs there; None where nobody else runs anything."""

    def enter(self) -> None:
        """Make sure of it before the attempt is taken; raises JvmGone."""

    def session(self) -> SparkSession:
        """The session for the program."""

    def gone(self) -> JvmGone | None:
        """Why a program has failed through no fault of its own; None while the JVM is there.

        Raises JvmEnds where nothing is to be said of the program.
        """

    def leave(self) -> None:
        """Let go of it; the program has ended."""


class OwnJvm:
    """The one that spark-submit has started for this driver."""

    job_group = None

    def enter(self) -> None:
        """It is there: it has started this process."""

    def session(self) -> SparkSession:
        """The first session of its Spark, which is started by this; raises StoppedAtStart, RefusedAtStart."""
        try:
            return SparkSession.builder.getOrCreate()
        except Exception as error:
            if refused := _REFUSED.search(str(error)):
                why = refused["queue"] or refused["memory"]
                raise RefusedAtStart(f"YARN refused the application: {why}") from error
            if _STOPPED not in str(error):
                raise
            # All that Spark says of a master that it tried to reach for a minute, or that turned it away.
            master = SparkConf().get("spark.master", "its master")
            message = (
                f"Spark was stopped while it started: {master} did not answer, or refused the application; "
                "see that it runs, that `master` of the definition is right, and that the driver reaches it"
            )
            raise StoppedAtStart(message) from error

    def gone(self) -> None:
        """Raise JvmEnds where somebody ends it: its Spark is stopped then, and whatever runs there fails."""
        jvm: Any = SparkContext._jvm  # noqa: SLF001 - the way into the JVM
        if jvm is None:
            return
        try:
            if not jvm.org.apache.spark.util.ShutdownHookManager.inShutdown():
                return
        except (OSError, Py4JError):  # there already
            pass
        message = "its JVM is being ended"
        raise JvmEnds(message)

    def leave(self) -> None:
        """Stop Spark as far as the program has not done so."""
        with contextlib.suppress(Exception):  # its outcome stands; Spark may stop as it likes
            active = SparkSession.getActiveSession()
            if active is not None:
                active.stop()
