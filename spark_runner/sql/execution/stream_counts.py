"""Keeps the numbers of rows that do not fit beside the progress of a stream, for further attempts of its run.

A file for each micro-batch has the totals of the run after it: a repeated batch begins again with those of
the batch before.
"""

import json
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError

Numbers = dict[str, int]  # rows, quarantined, dropped
NOTHING: Numbers = {"rows": 0, "quarantined": 0, "dropped": 0}


class StreamCounts:
    """The totals of one run, in a folder that outlives its attempts."""

    def __init__(self, session: SparkSession, place: str, run_key: str) -> None:
        java: Any = session._jsparkSession  # noqa: SLF001 - PySpark has no public access to a file system
        jvm: Any = session._jvm  # noqa: SLF001 - likewise
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._io: Any = jvm.org.apache.commons.io.IOUtils
        self._place, self._run = place, run_key
        self._files: Any = self._path(place).getFileSystem(java.sessionState().newHadoopConf())

    def before(self, source: str, batch: int) -> Numbers:
        """The totals of this run before a batch."""
        found = self._file(source, batch - 1)
        return self._read(found) if batch and self._files.exists(found) else NOTHING

    def keep(self, source: str, batch: int, numbers: Numbers) -> None:
        """Store the totals after a batch; those of the batch before stay until the next one."""
        # A torn file is never read: its batch is repeated.
        out = self._files.create(self._file(source, batch), True)
        try:
            out.write(json.dumps(numbers).encode())
        finally:
            out.close()
        self._files.delete(self._file(source, batch - 2), False)

    def last(self, source: str) -> Numbers:
        """The totals of this run so far; nothing for a run that begins."""
        folder = self._path(f"{self._place}/{source}")
        if not self._files.exists(folder):
            return NOTHING
        names = [status.getPath().getName() for status in self._files.listStatus(folder)]
        batches = [int(name.rpartition("-")[2]) for name in names if name.startswith(f"{self._run}-")]
        for batch in sorted(batches, reverse=True):
            try:
                return self._read(self._file(source, batch))
            except ConnectorError:  # torn; there is one before
                continue
        return NOTHING

    def _file(self, source: str, batch: int) -> Any:
        return self._path(f"{self._place}/{source}/{self._run}-{batch}")

    def _read(self, file: Any) -> Numbers:
        stream = self._files.open(file)
        try:
            found = json.loads(self._io.toString(stream, "UTF-8"))
            return {name: int(found[name]) for name in NOTHING}
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectorError(f"'{file.toString()}' is damaged") from error
        finally:
            stream.close()
