"""New rows of a table of PostgreSQL, found by a column that grows: a data source in Python.

The offset of a micro-batch is the highest value of the column so far, as text; Spark keeps it in the
checkpoint. It never goes back, also if the rows with that value are deleted meanwhile: other rows would be
read twice. The database makes one JSON text of each row, and Spark parses it, so that no value is parsed in
Python.
"""

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from spark_runner.connectors.jdbc.address import POSTGRESQL, parse
from spark_runner.connectors.jdbc.failures import failure
from spark_runner.connectors.jdbc.names import quoted, table_name
from spark_runner.connectors.jdbc.wire import Login, Wire, WireError
from spark_runner.connectors.python_source import TableSource

COLUMN = "orchestrator_json"
_CURSOR, _PLACE = "cursor", "column"  # keys of an offset
_MIN_WIDTH = 10_000  # values of a cursor of whole numbers that one task reads
_ROWS = 2_000  # of one record batch
_QUOTE, _DELIMITER = "\x01", "\x02"  # JSON has both escaped
_FORMAT = f"FORMAT csv, QUOTE '{_QUOTE}', DELIMITER '{_DELIMITER}'"
_SETTINGS = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO'"


@dataclass
class Range(InputPartition):
    """Rows with a value above `low`, up to `high`; `low` is None from the first row on."""

    low: str | None
    high: str

    def __post_init__(self) -> None:
        super().__init__(None)


class CursorSource(TableSource):
    """The stream of one table; `table` has its options, `columns` and `binary`, and perhaps `start`.

    `reached` are the offsets of the last micro-batch of its query, of all that it reads.
    """

    def streamReader(self, schema: StructType) -> "CursorReader":  # noqa: ARG002, N802 - of DataSource
        """The reader of the stream."""
        return CursorReader(self.table)


class CursorReader(DataSourceStreamReader):
    """Finds the offsets in a process of the driver, and reads in tasks."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        at = parse(str(options["url"]))
        user, password = str(options["username"]), str(options["password"])
        self._at = at
        self._login = Login(at.host, at.port, at.database, user, password, dict(at.parameters))
        self._table = str(table_name(POSTGRESQL, str(options["table"])))
        self._cursor = quoted(POSTGRESQL, str(options["cursor_column"]))
        self._delay, self._parts = int(options["cursor_delay"]), int(options["partitions"]) or 4
        self._columns: Sequence[str] = options["columns"]
        self._binary: Sequence[str] = options["binary"]
        self._start: str | None = options.get("start")
        self._place = f"{at.plain}/{self._table}.{self._cursor}"
        found = [*map(json.loads, options.get("reached", ())), {_CURSOR: self._start, _PLACE: self._place}]
        mine = [each[_CURSOR] for each in found if isinstance(each, dict) and each.get(_PLACE) == self._place]
        self._reached = [value for value in mine if value is not None]

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - of DataSourceStreamReader
        """Before the first row, or where the user wants the stream to begin."""
        return self._offset(self._start)

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - likewise
        """The highest value that is old enough, or was there before."""
        old = f"{self._cursor} <= now() - interval '{self._delay} seconds'" if self._delay else "true"
        values = ", ".join([f"max({self._cursor})", *map(_literal, self._reached)])
        highest = f"SELECT greatest({values})::text FROM {self._table} WHERE {old}"
        with self._connected() as wire:
            (found,) = wire.copy_out(f"COPY ({highest}) TO STDOUT ({_FORMAT})")
        if value := _text(found):
            self._reached = [value]
        return self._offset(value or None)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """The range between two offsets, divided if the values are whole numbers."""
        low, high = start[_CURSOR], end[_CURSOR]
        if high is None:
            return []
        if low is None or not (_is_whole(low) and _is_whole(high)):
            return [Range(low, high)]
        first, last = int(low), int(high)
        parts = max(1, min(self._parts, (last - first) // _MIN_WIDTH))
        ends = [first + (last - first) * part // parts for part in range(parts + 1)]
        return [Range(str(one), str(other)) for one, other in itertools.pairwise(ends)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a range, each as a JSON text."""
        assert isinstance(partition, Range)  # noqa: S101 - `partitions` makes no other ones
        condition = f"{self._cursor} <= {_literal(partition.high)}"
        if partition.low is not None:
            condition += f" AND {self._cursor} > {_literal(partition.low)}"
        rows = f"SELECT {', '.join(map(self._selected, self._columns))} FROM {self._table} WHERE {condition}"
        made = f"COPY (SELECT row_to_json(r) FROM ({rows}) r) TO STDOUT"
        with self._connected() as wire:
            texts = list[str]()
            for line in wire.copy_out(f"{made} ({_FORMAT})"):
                texts.append(_text(line))
                if len(texts) == _ROWS:
                    yield _batch(texts)
                    texts = []
        yield _batch(texts)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Wire]:
        try:
            with Wire(self._login) as wire:
                wire.run(_SETTINGS)
                yield wire
        except WireError as error:
            raise failure(self._at, str(error), error.state) from error

    def _offset(self, value: str | None) -> dict[str, Any]:
        return {_CURSOR: value, _PLACE: self._place}

    def _selected(self, name: str) -> str:
        column = quoted(POSTGRESQL, name)
        if name in self._binary:
            return f"translate(encode({column}, 'base64'), E'\\n', '') AS {column}"
        return column


def _batch(texts: Sequence[str]) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - of executors; it publishes no types

    return pa.RecordBatch.from_pydict({COLUMN: pa.array(texts, pa.string())})


def _text(line: bytes) -> str:
    """The only cell of a line."""
    return line.decode().rstrip("\n").strip(_QUOTE)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _literal(text: str) -> str:
    """A value that PostgreSQL reads as one of the type of the column."""
    return "'" + text.replace("'", "''") + "'"
