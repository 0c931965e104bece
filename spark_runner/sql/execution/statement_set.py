"""Runs the INSERTs of a statement set: each shared table or view is read once."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from spark_runner.connectors.files.inputs import file_read_below
from spark_runner.sql.execution.caching import CachedNames


class StatementSet:
    """The state of the set that is running: what it has cached and written."""

    def __init__(self, names: list[str], cached: CachedNames) -> None:
        self.names = [name for name in names if name not in cached]  # CACHE TABLE keeps the others
        self.written: list[str] = []  # locations
        self.catalogs: list[str] = []  # the tables of catalogs that it has written

    def add_written(self, location: str) -> None:
        """Remember a location whose readers see its new files behind the set."""
        if location not in self.written:
            self.written.append(location)

    def check_reads(
        self, frame: DataFrame, step: Mapping[str, Any], error: Callable[[str, Mapping[str, Any]], Exception]
    ) -> None:
        """Raise an error for a query that reads files of a target in a way that the compiler does not see."""
        for location in self.written:
            if found := file_read_below(frame, location):
                message = f"refused: this INSERT reads '{found}', which an INSERT of the same set has written"
                raise error(message, step)
