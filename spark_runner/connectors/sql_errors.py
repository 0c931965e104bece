"""Errors of databases in Java, of whatever connector: their SQLSTATE, and whether they pass."""

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types

from spark_runner.connectors.errors import ConnectorError, TargetChanged, Unreachable

BROKEN = ("08", "57P")  # classes of SQLSTATE: connection, shutdown
_BUSY = frozenset({"40001", "40P01", "55P03"})  # serialization, deadlock, lock not available
_READ_ONLY = "it takes no writes, as after a failover; check that the option 'url' leads to the primary"
_CANCELED = "it canceled the statement; check {}, and its load"
_FULL, _KILLED = "its disk or the table is full", "someone or a limit ended the statement"
_PASSING = {  # states of a server that answers, which may be over at a further attempt
    "25006": _READ_ONLY,
    "25P03": "its driver was suspended within a transaction",
    "57014": _CANCELED.format("its statement_timeout"),
}
_PASSING_CLASSES = {
    "53": "its disk, memory or connections, or a limit of them, are used up",
    "58": "its operating system failed",
}
_MYSQL_STATES = frozenset({"HY000", "S1000", "70100"})  # of its errors that its numbers alone tell apart
_MYSQL_BUSY = frozenset({1205, 1213})  # lock wait timeout, deadlock
_MYSQL_LIMITS = frozenset({1203, 1226})  # connections of a user; their state is that of a syntax error
_CONNECTIONS = "its connections are used up; close some, or raise its limits of connections"
_MYSQL_PASSING = {
    **dict.fromkeys((1040, *_MYSQL_LIMITS), _CONNECTIONS),
    **dict.fromkeys((1290, 1836), _READ_ONLY),
    **dict.fromkeys((1021, 1114), _FULL),
    **dict.fromkeys((1317, 1927), _KILLED),
    **dict.fromkeys((1969, 3024), _CANCELED.format("its max_statement_time or max_execution_time")),
}
_OF_A_ROW = ("22", "23")  # classes of SQLSTATE: data, integrity constraint
_MYSQL_OF_A_ROW = frozenset({1265, 1366, 3819})  # truncated, incorrect value, a check of MySQL: other states
_LOST = ("ConnectionException", "SQLRecoverableException")  # of java.sql, which may have no state


def failure_that_passes(error: Exception) -> ConnectorError | None:
    """The error of a connector for one of Java that a database caused, if a further attempt may succeed."""
    for cause in causes(error):
        if (state := state_of(cause)) is not None:
            words = str(cause.getMessage() or "").strip()
            code = int(cause.getErrorCode())
            if is_busy(state, code):
                return TargetChanged(f"another transaction of a database was in the way: {words}")
            if state.startswith(BROKEN):
                return Unreachable(f"a database does not answer: {words}")
            why = why_it_passes(state, code)
            return Unreachable(f"a database refused: {words}; {why}") if why else None
    return None


def is_busy(state: str, code: int = 0) -> bool:
    """Whether another transaction was in the way; `code` is the number of the vendor."""
    return state in _BUSY or (state in _MYSQL_STATES and code in _MYSQL_BUSY)


def why_it_passes(state: str, code: int = 0) -> str | None:
    """What is wrong with a server that answers, if a further attempt may succeed."""
    if state in _MYSQL_STATES or code in _MYSQL_LIMITS:
        return _MYSQL_PASSING.get(code)
    return _PASSING.get(state) or _PASSING_CLASSES.get(state[:2])


def is_of_a_row(state: str, code: int = 0) -> bool:
    """Whether the values of a row were refused, and other rows may be accepted."""
    return state.startswith(_OF_A_ROW) or code in _MYSQL_OF_A_ROW


def causes(error: Exception) -> Iterator[Any]:
    """The exception of Java, and those that caused it."""
    # PySpark keeps the exception of Java where it has a class of its own for it.
    found = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while found is not None:
        yield found
        found = found.getCause()


def state_of(error: Any) -> str | None:
    """The SQLSTATE of an SQLException; None for another exception."""
    kind, otherwise = error.getClass(), ""
    while kind is not None:
        name = str(kind.getName())
        if name == "java.sql.SQLException":
            return str(error.getSQLState() or otherwise)
        if name.endswith(_LOST):
            otherwise = "08000"
        kind = kind.getSuperclass()
    return None
