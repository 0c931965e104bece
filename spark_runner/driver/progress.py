"""The monitor of a Spark session: its progress while it runs, and its metrics at the end."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.driver.run_metrics import RunMetrics, first_line
from spark_runner.driver.spark_status import SparkStatus

_LOOK_SECONDS = 2.0  # the shortest interval at which progress is shown
_SAMPLE_SECONDS = 300.0  # a stream has an entry in the history for each hour
_FINISH_SECONDS = 10.0  # a JVM that no longer answers must not block the record of the outcome


class SparkMonitor:
    """Reads a session every two seconds in its own thread, so that it never delays a look for orders.

    It calls `on_news` when the progress changes. With a `job_group` it reads only the jobs of that group, and
    nothing of executors and the JVM, which other drivers share. A failed measurement does not affect the job.
    """

    def __init__(
        self,
        spark: SparkSession,
        on_news: Callable[[], None] = lambda: None,
        job_group: str | None = None,
    ) -> None:
        context: Any = spark.sparkContext
        self.application: dict[str, str] = {"application_id": context.applicationId}
        if ui := getattr(context, "uiWebUrl", None):
            self.application["ui"] = ui
        self._spark, self._on_news, self._job_group = spark, on_news, job_group
        self._metrics: RunMetrics | None = None
        self._shown: dict[str, Any] = {}
        self._sample: dict[str, Any] = {}
        self._sample_due = time.monotonic() + _SAMPLE_SECONDS
        self._complaints: set[str] = set()
        self._ending = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark-watch", daemon=True)
        self._stop_context = getattr(context, "stop", None)

    def start(self) -> None:
        """Start the thread."""
        if self._stop_context is not None:
            # Most programs stop Spark at their end; after that nothing can be measured.
            self._spark.sparkContext.stop = self._before_stop  # type: ignore[method-assign]
        self._thread.start()

    def shown(self) -> dict[str, Any]:
        """The application, its active stages, rows, bytes and executors at the last look.

        A run of minutes also has `sample`: metrics and settings so far, for the history of a stream.
        """
        return {**self.application, **self._shown, **self._sample}

    def finish(self) -> dict[str, Any]:
        """Look for the last time; returns the metrics, the last known ones if Spark does not answer."""
        self._ending.set()
        self._ended.wait(_FINISH_SECONDS)
        return self.measured()

    def measured(self) -> dict[str, Any]:
        """The metrics so far, without asking Spark; empty without any."""
        if self._metrics is None:
            return {}
        with contextlib.suppress(RuntimeError):  # a dict changed during the copy
            return self._metrics.document()
        return {}

    def _before_stop(self) -> None:
        self.finish()
        assert self._stop_context is not None  # noqa: S101 - for the type checker
        self._stop_context()

    def _run(self) -> None:
        try:
            self._metrics = RunMetrics(SparkStatus(self._spark, self._job_group), self._complain)
        except Exception as error:  # noqa: BLE001 - a failed measurement must not fail the job
            self._complain(f"Spark cannot be measured: {first_line(error)}")
            self._ended.set()
            return
        while not self._ending.is_set():
            try:
                found = self._metrics.look()
                is_sampled = time.monotonic() >= self._sample_due
                if is_sampled:
                    self._sample = {"sample": self._metrics.sample()}
                    self._sample_due = time.monotonic() + _SAMPLE_SECONDS
                if found != self._shown or is_sampled:
                    self._shown = found
                    self._on_news()
            except Exception as error:  # noqa: BLE001 - likewise; the program may have stopped Spark
                self._complain(f"the progress of Spark cannot be read: {first_line(error)}")
            self._ending.wait(_LOOK_SECONDS)
        self._metrics.finish()
        self._ended.set()

    def _complain(self, words: str) -> None:
        if words not in self._complaints:  # once only: it fails every two seconds
            self._complaints.add(words)
            print(words, file=sys.stderr, flush=True)  # noqa: T201 - the driver's log
