"""The protocols of a connector in the driver."""

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
    """The result of one write."""

    rows: int
    preview: list[list[str | None]]


@dataclass(frozen=True)
class Writer:
    """The identity of a writer: the attempts of one run share the key."""

    run_key: str
    attempt: int = 1

    @property
    def name(self) -> str:
        """Its name in file systems."""
        return f"{self.run_key}-{self.attempt}"


class Source(Protocol):
    """Reads one kind of system."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The table as a frame; `schema` is None if the script declares no columns."""


class Sink(Protocol):
    """Writes to one kind of system."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Remove the rows that earlier attempts of this run added; called before any write."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], mode: str, writer: Writer) -> Written:
        """Write all rows or none; `mode` is overwrite, append or error, and overrides the options.

        Raises ConnectorError before any write if the columns differ from the existing ones.
        """


def text_cells(frame: DataFrame, rows: int) -> list[list[str | None]]:
    """Up to `rows` rows with every value as Spark writes it as a STRING."""
    # Positions, not names: two columns of a query may have the same name.
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
