"""New rows of a table, found by a column that grows: a data source in Python.

The offset of a micro-batch is the highest value of the column so far, as text; Spark keeps it in the
checkpoint. It never goes back, also if the rows with that value are deleted meanwhile: other rows would be
read twice. The database makes the texts of all values, and Spark parses them: no value is parsed in Python.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import BinaryType, StructType

from spark_runner.connectors.jdbc.address import POSTGRESQL, parse
from spark_runner.connectors.jdbc.cursor_mysql import MySqlCursor
from spark_runner.connectors.jdbc.cursor_postgres import PostgresCursor
from spark_runner.connectors.python_source import TableSource

_CURSOR, _PLACE = "cursor", "column"  # keys of an offset
_MIN_WIDTH = 10_000  # values of a cursor of whole numbers that one task reads
_ROWS, _BYTES = 2_000, 4 << 20  # of one record batch; a larger row is alone

Row = Sequence[str | bytes | None]


class Cursor(Protocol):
    """A table of a database, and its column that grows."""

    place: str
    """The column, equal for each script that reads it."""

    def highest(self, delay: int, reached: Sequence[str]) -> str | None:
        """The highest value, of rows that are `delay` seconds old, and of those that were reached before."""

    def rows(self, low: str | None, high: str) -> Iterator[Row]:
        """The cells of the rows with a value above `low`, if there is one, up to `high`."""


@dataclass
class Range(InputPartition):
    """Rows with a value above `low`, up to `high`; `low` is None from the first row on."""

    low: str | None
    high: str

    def __post_init__(self) -> None:
        super().__init__(None)


class CursorSource(TableSource):
    """The stream of one table; `table` has its options, and what `new_rows` found out about its columns."""

    def streamReader(self, schema: StructType) -> "CursorReader":  # noqa: N802 - of DataSource
        """The reader of the stream."""
        return CursorReader(self.table, schema)


class CursorReader(DataSourceStreamReader):
    """Finds the offsets in a process of the driver, and reads in tasks.

    `reached` are the offsets of the last micro-batch of its query, of all that it reads.
    """

    def __init__(self, options: Mapping[str, Any], schema: StructType) -> None:
        family = parse(str(options["url"])).family
        self._table: Cursor = PostgresCursor(options) if family == POSTGRESQL else MySqlCursor(options)
        self._schema = schema
        self._delay, self._parts = int(options["cursor_delay"]), int(options["partitions"]) or 4
        self._is_whole = bool(options["is_whole"])
        self._start: str | None = options["start"]
        place = self._table.place
        found = [*map(json.loads, options["reached"]), {_CURSOR: self._start, _PLACE: place}]
        mine = [each[_CURSOR] for each in found if isinstance(each, dict) and each.get(_PLACE) == place]
        self._reached = [value for value in mine if value is not None]

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - of DataSourceStreamReader
        """Before the first row, or where the user wants the stream to begin."""
        return self._offset(self._start)

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - likewise
        """The highest value that is old enough, or was there before."""
        value = self._table.highest(self._delay, self._reached)
        if value is not None:
            self._reached = [value]
        return self._offset(value)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """The range between two offsets, divided if the values are whole numbers."""
        low, high = start[_CURSOR], end[_CURSOR]
        if high is None:
            return []
        if low is None or not (self._is_whole and _is_whole(low) and _is_whole(high)):
            return [Range(low, high)]
        first, last = int(low), int(high)
        parts = max(1, min(self._parts, (last - first) // _MIN_WIDTH))
        ends = [first + (last - first) * part // parts for part in range(parts + 1)]
        return [Range(str(one), str(other)) for one, other in itertools.pairwise(ends)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a range."""
        assert isinstance(partition, Range)  # noqa: S101 - `partitions` makes no other ones
        return _batches(self._table.rows(partition.low, partition.high), self._schema)

    def _offset(self, value: str | None) -> dict[str, Any]:
        return {_CURSOR: value, _PLACE: self._table.place}


def _is_whole(text: str) -> bool:
    """Also a column that has whole numbers now may have had others."""
    return text.removeprefix("-").isdecimal()


def _batches(rows: Iterable[Row], schema: StructType) -> Iterator[Any]:
    """Record batches of these rows, whose memory is bounded."""
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - of executors; it publishes no types

    fields = [
        pa.field(each.name, pa.binary() if isinstance(each.dataType, BinaryType) else pa.string())
        for each in schema
    ]

    def batch() -> Any:
        columns = zip(*found, strict=True) if found else ([] for _ in fields)
        cells = [pa.array(each, field.type) for each, field in zip(columns, fields, strict=True)]
        return pa.RecordBatch.from_arrays(cells, schema=pa.schema(fields))

    found, size = list[Row](), 0
    for row in rows:
        found.append(row)
        size += sum(map(len, filter(None, row)))
        if len(found) == _ROWS or size >= _BYTES:
            yield batch()
            found, size = [], 0
    yield batch()
