"""Whether an INSERT of a stream finds rows in its target that other INSERTs of the script have written."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.base import Sink, Writer
from spark_runner.sql.execution.batch_writer import REPLAY
from spark_runner.sql.execution.checkpoints import Checkpoint


class SharedTarget:
    """The place that several INSERTs of a script write.

    `others` are all but one: the checkpoint of the query of each, and its mark within a statement set. For
    use while no INSERT writes there, before the first write since the start of the driver.
    """

    def __init__(self, session: SparkSession, others: Sequence[tuple[Checkpoint, str]]) -> None:
        self._session, self._others = session, others

    def has_rows(self, sink: Sink, options: Mapping[str, Any]) -> bool:
        """Whether another INSERT has written there; removes what a dead driver has left of a first batch.

        Such a batch is not counted, so its query repeats it.
        """
        streams = list[str]()
        for checkpoint, mark in self._others:
            if found := checkpoint.stream():
                stream, batches = found
                if batches:
                    return True
                streams.append(stream + mark)
        for stream in streams:
            sink.recover(self._session, options, Writer(f"{stream}-0", REPLAY))
        return False
