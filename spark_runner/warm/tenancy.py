"""A driver in the JVM of a warm server of its host.

It connects as PySpark connects to any JVM that runs already: by Py4J, to a gateway with a secret. Spark
Connect was measured and rejected. Its client loads pandas, PyArrow and gRPC (0.95 s of processor time in each
driver against 0.25 s, and 207 MB to install), and gives no access to the file systems and plans that keep a
script from overwriting its own input. So the same code runs scripts in both kinds of JVM.
"""

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_runner.jvm import JvmGone
from spark_runner.warm.files import ServerFiles, mark_of


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
