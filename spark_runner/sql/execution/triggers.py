"""Reports the triggers of streaming queries, also those that found no new rows."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from spark_runner.sql.batch_limits.tuner import LimitTuner
from spark_runner.sql.execution.batch_writer import BatchWriter
from spark_runner.sql.execution.lags import lag_of, lag_of_none, rows_of

IDLE_INTERVAL = "spark.sql.streaming.noDataProgressEventInterval"
IDLE_MILLISECONDS = 1000  # at most one report of an idle trigger in this time


class Triggers(StreamingQueryListener):
    """Passes on the facts of each trigger of the queries that are added by their names, for each INSERT.

    Spark calls it in a thread of its own, and logs its errors. `connection` gives that of the calling thread,
    or None.
    """

    def __init__(
        self,
        triggered: Callable[[str, Mapping[str, Any]], None],
        connection: Callable[[], Any] = lambda: None,
    ) -> None:
        self._triggered, self._connection = triggered, connection
        self._connections: dict[str, Any] = {}  # of the threads of queries, by the id of the run
        self._guard = threading.Lock()  # of the fields below
        self._writers: dict[str, Mapping[str, BatchWriter]] = {}  # of its INSERTs, by the name of the query
        self._tuners: dict[str, LimitTuner] = {}  # of the queries whose limit may change, by their names
        self._names: dict[str, str] = {}  # by the id of the run of the query
        self._facts: dict[str, dict[str, Any]] = {}
        self._with_lag: set[str] = set()  # the names of queries of topics

    def add(self, name: str, writers: Mapping[str, BatchWriter], tuner: LimitTuner | None) -> None:
        """Report the INSERTs of the query of this name, which starts next, by the names that they show.

        The tuner, too, gets the times of its micro-batches.
        """
        with self._guard:
            if tuner is not None:
                self._tuners[name] = tuner
            self._writers[name] = writers
            self._facts[name] = {"triggers": 0}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - of Spark
        """Remember the run: an idle trigger does not name its query, which may start again and again."""
        name = event.name or ""
        with self._guard:
            others = {run: known for run, known in self._names.items() if known != name}
            self._names = {**others, str(event.runId): name}
        if (found := self._connection()) is not None:  # Spark calls it in the thread of the query
            self._connections[str(event.runId)] = found

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - of Spark
        """Report a trigger that ran a micro-batch."""
        progress = event.progress
        milliseconds = progress.durationMs.get("triggerExecution", 0)
        lag = lag_of(progress.sources)
        with self._guard:
            if lag:
                self._with_lag.add(progress.name or "")
            # Of a micro-batch that it had planned before a restart, Spark does not say what waits behind it.
            self._facts.get(progress.name or "", {}).pop("lag", None)
        if (tuner := self._tuners.get(progress.name or "")) is not None:
            rows = rows_of(progress.sources)
            rows = progress.numInputRows if rows is None else rows
            tuner.measured(progress.batchId, rows, milliseconds / 1000, lag.get("lag", {}).get("records"))
        self._report(
            progress.name or "",
            {
                "batch": progress.batchId,
                "at": progress.timestamp,
                "seconds": round(milliseconds / 1000, 3),
                "rows_per_second": round(progress.inputRowsPerSecond or 0.0, 1),
                **lag,
            },
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - of Spark
        """Report a trigger that found nothing to do."""
        with self._guard:
            name = self._names.get(str(event.runId), "")
            tuner, has_lag = self._tuners.get(name), name in self._with_lag
        if tuner is not None:
            tuner.resumed()
        lag = {"lag": lag_of_none()} if has_lag else {}
        self._report(name, {"at": event.timestamp, "rows_per_second": 0.0, **lag})

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - of Spark
        """Close the connection of its thread, which has ended: a query may start again and again."""
        if (found := self._connections.pop(str(event.runId), None)) is not None:
            found.shutdown()

    def _report(self, name: str, news: Mapping[str, Any]) -> None:
        with self._guard:
            writers = self._writers.get(name)
            if writers is None:
                return
            facts = self._facts[name]
            limit = self._tuners[name].shown() if name in self._tuners else {}
            shown = {"limit": limit} if limit else {}
            self._facts[name] = facts = {**facts, **news, **shown, "triggers": facts["triggers"] + 1}
        for target, writer in writers.items():
            self._triggered(target, {**facts, "rows": writer.last_rows, "total_rows": writer.rows})
