"""New rows of a table of MySQL or MariaDB, each value as a text that the database makes."""

import contextlib
import re
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

import pymysql  # type: ignore[import-untyped]  # it publishes no types
from pymysql.cursors import SSCursor  # type: ignore[import-untyped]  # likewise

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc.address import MYSQL, Address, parse
from spark_runner.connectors.jdbc.failures import failure
from spark_runner.connectors.jdbc.names import quoted, table_name
from spark_runner.connectors.jdbc.sockets import CONNECT_SECONDS, keep_alive, tls_context
from spark_runner.connectors.jdbc.values import INTEGERS, base_type

PARAMETERS = frozenset({"sslMode", "serverSslCert", "connectTimeout"})
"""Those of a URL of MariaDB's driver that this client has, too."""

_SETTINGS = (
    # Whatever the server has: texts in quotes with escapes, zeros in dates, all rows, committed ones alone.
    "SET time_zone = '+00:00', sql_mode = '', sql_select_limit = 18446744073709551615",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    # In seconds: a slow target of the stream holds the server up; a lock of the table ends the query.
    "SET net_write_timeout = 3600, lock_wait_timeout = 300",
)
_OF_CLIENTS = range(2000, 3000)  # numbers of errors that a client finds: the connection broke
_NO_LOGIN = frozenset({2059, 2061})  # of these, those for a login that this client does not have
_TLS_MODES = {
    **{name: name for name in ("disable", "trust", "verify-ca", "verify-full")},
    "required": "trust",
    "verify-identity": "verify-full",
}
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_NUMBERS = INTEGERS | {"decimal"}
_TIMES = frozenset({"date", "datetime", "timestamp"})
ONE_BIT = "bit(1)"  # a number; more bits are bytes
CURSOR_TYPES = _NUMBERS | _TEXTS | _TIMES
"""Types whose values are ordered as their texts say; those of FLOAT and DOUBLE would have to be rounded."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(?:\.(\d{1,6}))?)?", re.ASCII)


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
            values += [f"SELECT {_literal(connection, self._kind, each)}" for each in reached]
            ((found,),) = _rows(connection, f"SELECT MAX(value) FROM ({' UNION ALL '.join(values)}) v")
        return None if found is None else str(found)

    def rows(self, low: str | None, high: str) -> Iterator[tuple[str | bytes | None, ...]]:
        """The rows of a range, with the columns in their order."""
        wanted = ", ".join(_text_of(name, kind) for name, kind in self._columns.items())
        with self._connected() as connection:
            condition = f"{self._cursor} <= {_literal(connection, self._kind, high)}"
            if low is not None:
                condition += f" AND {self._cursor} > {_literal(connection, self._kind, low)}"
            yield from _rows(connection, f"SELECT {wanted} FROM {self._table} WHERE {condition}")

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        at, tls, seconds = self._at, _tls(self._at), _connect_seconds(self._at)
        connection = pymysql.Connection(
            host=at.host,
            database=at.database or None,
            user=self._user,
            password=self._password.encode(),  # of a text it takes the characters of Latin-1 alone
            charset="utf8mb4",
            conv={},  # numbers and times stay texts
            autocommit=None,
            program_name="orchestrator",
            ssl=tls,
            ssl_disabled=tls is None,
            auth_plugin_map=dict.fromkeys(_BARE_LOGINS, _BareLogin) if tls is None else {},
            read_timeout=seconds,
            defer_connect=True,
        )
        try:
            with contextlib.closing(connection):
                opened = socket.create_connection((at.host, at.port), timeout=seconds)
                keep_alive(opened)
                connection.connect(opened)
                for statement in _SETTINGS:
                    connection.query(statement)
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
            advice = "; connect with TLS: 'sslMode' in option 'url'" if "cryptography" in str(error) else ""
            raise ConnectorError(f"{at.shown} asks for a login that needs more: {error}{advice}") from error


class _BareLogin:
    """Refuses to send a password as it is over a connection that others may read."""

    def __init__(self, _: object) -> None:
        pass

    def authenticate(self, _: object) -> NoReturn:
        """Raise an error, whatever the server asks for."""
        raise ConnectorError(
            "the server asks for the password as it is, without TLS; set 'sslMode' in option 'url'"
        )


_BARE_LOGINS = ("mysql_clear_password", "dialog", "mysql_old_password")


def position_of(kind: str, text: str) -> str:
    """A position that a user gives, as the text that the database has for it; raises ConnectorError."""
    name = base_type(kind)
    try:
        if name in _TIMES:
            at = datetime.fromisoformat(text)
            if at.tzinfo is not None and name != "date":
                at = at.astimezone(UTC).replace(tzinfo=None)
            return str(at.date() if name == "date" else at)
    except (ValueError, OverflowError) as error:
        raise ConnectorError("it is no time; write it as '2026-01-31 12:00:00'") from error
    if name in INTEGERS and "." in text:
        raise ConnectorError("it is no whole number")
    if name in _NUMBERS and not _NUMBER.fullmatch(text):
        raise ConnectorError("it is no number")
    return text


def _literal(connection: Any, kind: str, text: str) -> str:
    """A value in SQL that is compared as the type of its column.

    A number or a time as a text would be compared as a floating-point number, or as a text.
    """
    name = base_type(kind)
    if name in _NUMBERS and _NUMBER.fullmatch(text):
        return text
    if name in _TIMES and (found := _TIME.fullmatch(text)):
        precise = "DATE" if name == "date" else f"DATETIME({len(found[2] or '')})"
        return f"CAST('{text}' AS {precise})"  # a literal could have no zeros
    if name not in _TEXTS:
        raise ConnectorError(f"the checkpoint has '{text}', which is no value of type '{kind}'")
    return str(connection.escape(text))


def _text_of(name: str, kind: str) -> str:
    """The column in SQL, so that its text has the whole value."""
    column = quoted(MYSQL, name)
    if kind == ONE_BIT:
        return f"{column} + 0"
    match base_type(kind):
        case "float":
            return f"{column} + 0e0"  # the text of a float has 6 digits
        case "year":
            return f"CONCAT({column}, '-01-01')"  # a date, as the driver has it
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


def _connect_seconds(at: Address) -> float:
    given = at.parameters.get("connectTimeout", "")
    if given and not given.isdecimal():
        raise ConnectorError(f"'connectTimeout' in option 'url' is '{given}', no number of milliseconds")
    return int(given or 0) / 1000 or CONNECT_SECONDS


def _tls(at: Address) -> ssl.SSLContext | None:
    """What the URL asks of TLS, as MariaDB's driver has it; raises ConnectorError."""
    given = at.parameters.get("sslMode", "disable")
    mode = _TLS_MODES.get(given.lower().replace("_", "-"))
    if mode is None:
        raise ConnectorError(f"'sslMode' in option 'url' is '{given}', not one of {', '.join(_TLS_MODES)}")
    if mode == "disable":
        return None
    context = tls_context(at.parameters.get("serverSslCert", ""))
    context.check_hostname = mode == "verify-full"
    if mode == "trust":
        context.verify_mode = ssl.CERT_NONE
    return context


def _failure(at: Address, error: Any) -> ConnectorError:
    code, words = (*error.args, "", "")[:2]
    number = code if isinstance(code, int) else 0
    if number in _NO_LOGIN:
        return failure(at, str(words), "28000", number)
    state = error.sqlstate or ("08006" if number in _OF_CLIENTS or not number else "HY000")
    return failure(at, str(words or code), state, number)
