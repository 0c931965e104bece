"""Errors of databases as errors of this connector: what is wrong, with which thing, what to do."""

import re

from spark_runner.connectors.errors import ConnectorError, TargetChanged, Unreachable
from spark_runner.connectors.jdbc.address import Address
from spark_runner.connectors.sql_errors import (
    BROKEN,
    causes,
    is_busy,
    is_of_a_row,
    state_of,
    why_it_passes,
)

_ADVICE = {
    "28P01": "check the options 'username' and 'password'",
    "28000": "check the options 'username' and 'password', and what the server accepts",
    "3D000": "check the database in the option 'url'",
    "42501": "grant it to the user of the option 'username'",
    "42000": "check the names in the options, and the rights of the user",
    "23505": "a row with this key is there; a PRIMARY KEY of the table lets rows replace each other",
    "23000": "correct the row, or the constraint of the table",
    "23502": "the column needs a value",
    "23503": "write the rows that it refers to before",
    "23514": "correct the row, or the constraint of the table",
}
EXISTS = frozenset({"23505", "42P07", "42S01"})  # another driver has just created the table
_CONNECTION = re.compile(r"\(conn=\d+\) ")  # before each message of the driver of MariaDB
_PACKET = "max_allowed_packet"  # in an error of the server, and in one of the driver without a number
_CLOSED = ("Connection is closed", "Socket error")  # what Spark may report instead, as its rollback fails
_LARGER_PACKET = f"set {_PACKET} of the server to more than twice the size of the largest row"
_COPY_PLACE = re.compile(r"COPY (\S+), line \d+, column (.+)", re.DOTALL)


class DatabaseFailed(ConnectorError):
    """The database refused a statement.

    `state` is its SQLSTATE, `code` the number of the vendor, and `words` are those of the database alone.
    """

    def __init__(self, message: str, state: str = "", code: int = 0, words: str = "") -> None:
        super().__init__(message)
        self.state, self.code, self.words = state, code, words

    @property
    def is_of_a_row(self) -> bool:
        """Whether the values of a row were refused."""
        return is_of_a_row(self.state, self.code)

    def with_advice(self, advice: str) -> "DatabaseFailed":
        """The same error, with what else to do."""
        return DatabaseFailed(f"{self}; {advice}", self.state, self.code, self.words)

    @property
    def reason(self) -> str:
        """Why a row is rejected: the class of the error, and the words of the database."""
        return refused_row(self.state, self.words)


class DatabaseBroke(Unreachable):
    """The database does not answer or accept writes at present, or the connection to it broke."""


class DatabaseBusy(TargetChanged):
    """Another transaction blocked this one."""


def failure(address: Address, words: str, state: str, code: int = 0) -> ConnectorError:
    """The error for a message of the database with its SQLSTATE, and the number of the vendor."""
    words = _plain(words)
    if is_busy(state, code):
        return DatabaseBusy(f"another transaction of {address.shown} was in the way: {words}")
    if _PACKET in words:
        return DatabaseFailed(f"{address.shown} refused: {words}; {_LARGER_PACKET}", state, code, words)
    if state.startswith(BROKEN):
        more = f"; if a row is large: {_LARGER_PACKET}" if words.startswith(_CLOSED) else ""
        return DatabaseBroke(
            f"{address.shown} does not answer: {words}; check the option 'url', and the server{more}"
        )
    if why := why_it_passes(state, code):
        return DatabaseBroke(f"{address.shown} refused: {words}; {why}")
    advice = _ADVICE.get(state)
    return DatabaseFailed(
        f"{address.shown} refused: {words}" + (f"; {advice}" if advice else ""), state, code, words
    )


def refused_row(state: str, words: str) -> str:
    """Why a row is rejected: the class of the error, and the words of the database."""
    return f"SQLSTATE {state}: {_plain(words)}"


def _plain(words: str) -> str:
    words = words.strip().removeprefix("ERROR: ").removeprefix("FATAL: ")
    words = _COPY_PLACE.sub(r"column \2", _CONNECTION.sub("", words))
    return re.sub(r"\s*\n\s*", "; ", words)


def of_java(address: Address, error: Exception) -> ConnectorError | None:
    """The error for one of Java that a database caused; None for another."""
    for cause in causes(error):
        if (state := state_of(cause)) is not None:
            return failure(address, str(cause.getMessage() or ""), state, int(cause.getErrorCode()))
    return None
