"""What a connector does in the driver."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

PREVIEW_ROWS = 5
PREVIEW_CHARS = 60  # of one cell; a preview is for a terminal


@dataclass(frozen=True)
class Written:
    """What one write left at its target."""

    rows: int
    preview: list[list[str | None]]


@dataclass(frozen=True)
class Writer:
    """Who writes: the attempts of one run have the key in common."""

    run_key: str
    attempt: int = 1

    @property
    def name(self) -> str:
        """Its name in file systems."""
        return f"{self.run_key}-{self.attempt}"


class Source(Protocol):
    """Reads one kind of system."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The table as a frame; `schema` is None where the script declares no columns."""


class Sink(Protocol):
    """Writes to one kind of system."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Before anything is written: remove what earlier attempts of this run have added."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], mode: str, writer: Writer) -> Written:
        """Write all rows or none; `mode` is overwrite, append or error, whatever the options say.

        Raises ConnectorError for columns that are not those of what is there, before anything is written.
        """


def text_cells(frame: DataFrame, rows: int) -> list[list[str | None]]:
    """Up to `rows` rows with every value as Spark writes it as a STRING."""
    # Positions, not names: a query may call two columns the same.
    positional = frame.toDF(*[f"c{index}" for index in range(len(frame.columns))])
    strings = positional.limit(rows).select(*[sql.col(name).cast("string") for name in positional.columns])
    return [list(row) for row in strings.collect()]


def preview(cells: list[list[str | None]]) -> list[list[str | None]]:
    """The first rows, with long values cut."""
    return [
        [
            cell if cell is None or len(cell) <= PREVIEW_CHARS else f"{cell[: PREVIEW_CHARS - 1]}…"
            for cell in row
        ]
        for row in cells[:PREVIEW_ROWS]
    ]
