"""Whether a query of a script finds rows in its target that other queries of the script have written."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.base import Sink, Writer
from spark_runner.sql.execution.checkpoints import Checkpoint

_REPLAY = 2  # an attempt for which sinks look for rows of earlier ones


class SharedTarget:
    """The place that several INSERTs of a script write; `others` are the checkpoints of all but one.

    For use while no query writes there, before the first write since the start of the driver.
    """

    def __init__(self, session: SparkSession, others: Sequence[Checkpoint]) -> None:
        self._session, self._others = session, others

    def has_rows(self, sink: Sink, options: Mapping[str, Any]) -> bool:
        """Whether another INSERT has written there; removes what a dead driver has left of a first batch.

        Such a batch is not counted, so its query repeats it.
        """
        streams = [found for each in self._others if (found := each.stream())]
        if any(batches for _, batches in streams):
            return True
        for stream, _ in streams:
            sink.recover(self._session, options, Writer(f"{stream}-0", _REPLAY))
        return False
