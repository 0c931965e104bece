"""New rows of a table of PostgreSQL, each as a JSON text that the database makes."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_runner.connectors.jdbc.address import POSTGRESQL, parse
from spark_runner.connectors.jdbc.failures import failure
from spark_runner.connectors.jdbc.names import quoted, table_name
from spark_runner.connectors.jdbc.wire import Login, Wire, WireError

_QUOTE, _DELIMITER = "\x01", "\x02"  # JSON has both escaped
_FORMAT = f"FORMAT csv, QUOTE '{_QUOTE}', DELIMITER '{_DELIMITER}'"
_SETTINGS = "SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'"


class PostgresCursor:
    """A table, and its column that grows."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._at, self._login = parse(str(options["url"])), Login.of(options)
        self._table = str(table_name(POSTGRESQL, str(options["table"])))
        self._cursor = quoted(POSTGRESQL, str(options["cursor_column"]))
        self._columns: Mapping[str, str] = options["columns"]
        self.place = f"{self._at.plain}/{self._table}.{self._cursor}"

    def highest(self, delay: int, reached: Sequence[str]) -> str | None:
        """The highest value, as text."""
        old = f"{self._cursor} <= now() - interval '{delay} seconds'" if delay else "true"
        values = ", ".join([f"max({self._cursor})", *map(_literal, reached)])
        highest = f"SELECT greatest({values})::text FROM {self._table} WHERE {old}"
        with self._connected() as wire:
            (found,) = wire.copy_out(f"COPY ({highest}) TO STDOUT ({_FORMAT})")
        return _text(found) or None

    def rows(self, low: str | None, high: str) -> Iterator[tuple[str]]:
        """The rows of a range, each as a JSON text."""
        condition = f"{self._cursor} <= {_literal(high)}"
        if low is not None:
            condition += f" AND {self._cursor} > {_literal(low)}"
        rows = f"SELECT {', '.join(map(self._selected, self._columns))} FROM {self._table} WHERE {condition}"
        made = f"COPY (SELECT row_to_json(r) FROM ({rows}) r) TO STDOUT"
        with self._connected() as wire:
            for line in wire.copy_out(f"{made} ({_FORMAT})"):
                yield (_text(line),)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Wire]:
        try:
            with Wire(self._login) as wire, wire.transaction(_SETTINGS):
                yield wire
        except WireError as error:
            raise failure(self._at, str(error), error.state) from error

    def _selected(self, name: str) -> str:
        column = quoted(POSTGRESQL, name)
        if self._columns[name] == "bytea":
            return f"translate(encode({column}, 'base64'), E'\\n', '') AS {column}"
        return column


def _text(line: bytes) -> str:
    """The only cell of a line."""
    return line.decode().rstrip("\n").strip(_QUOTE)


def _literal(text: str) -> str:
    """A value that PostgreSQL reads as one of the type of the column."""
    return "'" + text.replace("'", "''") + "'"
