"""Errors of databases in Java, of whatever connector: their SQLSTATE, and whether they pass."""

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types

from spark_runner.connectors.errors import ConnectorError, TargetChanged, Unreachable

BROKEN = ("08", "57P", "53", "58")  # classes of SQLSTATE: connection, shutdown, resources, system
BUSY = frozenset({"40001", "40P01", "55P03"})  # serialization, deadlock, lock not available
_LOST = ("ConnectionException", "SQLRecoverableException")  # of java.sql, which may have no state


def failure_that_passes(error: Exception) -> ConnectorError | None:
    """The error of a connector for one of Java that a database caused, if a further attempt may succeed."""
    for cause in causes(error):
        if (state := state_of(cause)) is not None:
            words = str(cause.getMessage() or "").strip()
            if state in BUSY:
                return TargetChanged(f"another transaction of a database was in the way: {words}")
            return Unreachable(f"a database does not answer: {words}") if state.startswith(BROKEN) else None
    return None


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
