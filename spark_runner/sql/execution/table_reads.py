"""Counts the rows of the tables that a streaming query reads, before its micro-batches are written."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.batch_rows import rows_of_batch
from spark_runner.sql.execution.batch_writer import REPLAY
from spark_runner.sql.execution.quarantine import Origin
from spark_runner.sql.execution.stream_quarantine import StreamQuarantine


class TableReads:
    """Counts the rows of the tables that a query reads, batch after batch; `tables` are by their marks."""

    def __init__(
        self, quarantine: StreamQuarantine, reader: str, stream: str, tables: Mapping[str, Origin]
    ) -> None:
        self._quarantine, self._reader, self._tables = quarantine, reader, tables
        # The key of rows that its INSERTs set aside has the stream alone, or the mark of one of them.
        self._stream = f"{stream}r"
        self._has_counted = False
        quarantine.begin(reader, tables.values())

    def count(self, frame: DataFrame, batch: int) -> None:
        """Count the rows of a batch, which replace those of an earlier try; raises TooManyBadRows."""
        writer = Writer(f"{self._stream}-{batch}", REPLAY)
        if not self._has_counted:
            for table in self._tables.values():
                self._quarantine.recover(frame.sparkSession, table, writer)
        found = rows_of_batch(self._quarantine.session, frame, self._tables) if self._tables else {}
        for mark, table in self._tables.items():
            self._quarantine.take_read(found[mark], table, self._reader, writer)
        self._has_counted = True
