"""New rows of a table of MySQL or MariaDB, each value as a text that the database makes."""

import contextlib
import re
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pymysql  # type: ignore[import-untyped]  # it publishes no types
from pymysql.cursors import SSCursor  # type: ignore[import-untyped]  # likewise

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc.address import MYSQL, Address, parse
from spark_runner.connectors.jdbc.failures import failure
from spark_runner.connectors.jdbc.names import quoted, table_name
from spark_runner.connectors.jdbc.values import INTEGERS, base_type
from spark_runner.connectors.jdbc.wire import CONNECT_SECONDS, keep_alive

PARAMETERS = frozenset({"sslMode", "serverSslCert", "connectTimeout"})
"""Those of a URL of MariaDB's driver that this client has, too."""

_SETTINGS = (
    "SET time_zone = '+00:00', net_write_timeout = 3600, "  # a slow target of the stream holds the server up
    # Standard SQL, whatever the server has: texts in quotes, escapes by a backslash, no zeros as errors.
    "sql_mode = ''"
)
_OF_CLIENTS = range(2000, 3000)  # numbers of errors that a client finds: the connection broke
_TLS_MODES = ("disable", "trust", "verify-ca", "verify-full")
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "uuid"})
_NUMBERS = INTEGERS | {"decimal"}
CURSOR_TYPES = _NUMBERS | _TEXTS | {"date", "datetime", "timestamp", "double"}
"""Types whose values are ordered as their texts say; that of a FLOAT has 6 digits."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)


class MySqlCursor:
    """A table, and its column that grows; `columns` has the type of each column."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._at = parse(str(options["url"]))
        self._user, self._password = str(options["username"]), str(options["password"])
        self._table = str(table_name(MYSQL, str(options["table"])))
        self._cursor = quoted(MYSQL, str(options["cursor_column"]))
        self._kind = str(options["cursor_type"])
        self._columns: Mapping[str, str] = options["columns"]
        self.place = f"{self._at.plain}/{self._table}.{self._cursor}"

    def highest(self, delay: int, reached: Sequence[str]) -> str | None:
        """The highest value, as text."""
        old = f" WHERE {self._cursor} <= NOW(6) - INTERVAL {delay} SECOND" if delay else ""
        with self._connected() as connection:
            values = [f"SELECT MAX({self._cursor}) AS value FROM {self._table}{old}"]
            values += [f"SELECT {literal(connection, self._kind, each)}" for each in reached]
            ((found,),) = _rows(connection, f"SELECT MAX(value) FROM ({' UNION ALL '.join(values)}) v")
        return None if found is None else str(found)

    def rows(self, low: str | None, high: str) -> Iterator[tuple[str | bytes | None, ...]]:
        """The rows of a range, with the columns in their order."""
        wanted = ", ".join(f"{_text_of(name, kind)}" for name, kind in self._columns.items())
        with self._connected() as connection:
            condition = f"{self._cursor} <= {literal(connection, self._kind, high)}"
            if low is not None:
                condition += f" AND {self._cursor} > {literal(connection, self._kind, low)}"
            yield from _rows(connection, f"SELECT {wanted} FROM {self._table} WHERE {condition}")

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        at, tls = self._at, _tls(self._at)
        seconds = float(at.parameters.get("connectTimeout") or CONNECT_SECONDS * 1000) / 1000
        connection = pymysql.Connection(
            host=at.host,
            database=at.database or None,
            user=self._user,
            password=self._password.encode(),  # of a text it takes the characters of Latin-1 alone
            charset="utf8mb4",
            conv={},  # numbers and times stay texts
            autocommit=True,
            init_command=_SETTINGS,
            program_name="orchestrator",
            ssl=tls,
            ssl_disabled=tls is None,
            read_timeout=seconds,
            defer_connect=True,
        )
        try:
            with contextlib.closing(connection):
                opened = socket.create_connection((at.host, at.port), timeout=seconds)
                keep_alive(opened)
                connection.connect(opened)
                # It has one limit for the login and for answers, for which a server may work long.
                connection._read_timeout = None  # noqa: SLF001 - it has no public way to change the limit
                yield connection
        except pymysql.Error as error:
            raise _failure(at, error) from error
        except OSError as error:
            raise failure(at, str(error), "08001") from error
        except RuntimeError as error:
            if "package is required" not in str(error):
                raise
            raise failure(at, f"{error}; or connect with TLS", "28000") from error


def literal(connection: Any, kind: str, text: str) -> str:
    """A value in SQL that is compared as the type of its column; raises ConnectorError.

    A number or a time as a text would be compared as a floating-point number.
    """
    match base_type(kind):
        case name if name in _NUMBERS:
            if _NUMBER.fullmatch(text):
                return text
        case "date" | "datetime" | "timestamp" as name:
            with contextlib.suppress(ValueError):
                return _time(name, datetime.fromisoformat(text))
        case _:
            return str(connection.escape(text))
    raise ConnectorError(f"'{text}' is no value of a column of type '{kind}'")


def _time(name: str, at: datetime) -> str:
    if name == "date":
        return f"DATE'{at.date()}'"
    if at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None)
    digits = at.isoformat(sep=" ", timespec="microseconds").rstrip("0")  # as many as the column may have
    return f"TIMESTAMP'{digits.rstrip('.')}'"


def _text_of(name: str, kind: str) -> str:
    """The column in SQL, so that its text has the whole value."""
    column = quoted(MYSQL, name)
    match base_type(kind):
        case "float":
            return f"{column} + 0e0"  # the text of a float has 6 digits
        case "bit":
            return f"{column} + 0"
        case "timestamp":
            return f"CONCAT({column}, '+00:00')"
    return column


def _rows(connection: Any, statement: str) -> Iterator[tuple[str | bytes | None, ...]]:
    """The rows of a query, as they come."""
    cursor = connection.cursor(SSCursor)
    try:
        cursor.execute(statement)
        yield from cursor
    finally:
        if (result := cursor._result) is not None:  # noqa: SLF001 - there is no public way
            result.unbuffered_active = False  # else it reads all rows to the last one before it closes
        cursor.close()


def _tls(at: Address) -> ssl.SSLContext | None:
    """What the URL asks of TLS, as MariaDB's driver has it; raises ConnectorError."""
    mode = at.parameters.get("sslMode", "disable").lower().replace("_", "-")
    if mode not in _TLS_MODES:
        raise ConnectorError(f"'sslMode' in option 'url' is '{mode}', not one of {', '.join(_TLS_MODES)}")
    if mode == "disable":
        return None
    context = ssl.create_default_context(cafile=at.parameters.get("serverSslCert") or None)
    context.check_hostname = mode == "verify-full"
    if mode == "trust":
        context.verify_mode = ssl.CERT_NONE
    return context


def _failure(at: Address, error: Any) -> ConnectorError:
    code, words = (*error.args, "", "")[:2]
    number = code if isinstance(code, int) else 0
    state = error.sqlstate or ("08006" if number in _OF_CLIENTS or not number else "HY000")
    return failure(at, str(words or code), state, number)
