"""Sends the commands of many rows at once, and reads their replies."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    ResponseError,
    TryAgainError,
)
from redis.sentinel import MasterNotFoundError

from spark_runner.connectors.errors import Unreachable
from spark_runner.connectors.patience import Patience
from spark_runner.connectors.redis.client import LOST, REFUSED, Servers, clear_errors, where
from spark_runner.connectors.redis.commands import expiry_of
from spark_runner.connectors.redis.kinds import REPLACING
from spark_runner.connectors.written_rows import Rejected

_NO_KEY = "a column of its key is NULL"
_NO_VALUE = "a column of its value is NULL"
# The server, or another one, may accept the same command later.
_LATER = (
    *(MovedError, AskError, TryAgainError, ClusterDownError, MasterDownError),
    *(ReadOnlyError, OutOfMemoryError),
)
_NOWHERE = (*LOST, MasterNotFoundError, RedisClusterException)
_SHOWN_BYTES = 10_000  # of a row that Redis rejects
_MAX_BYTES = 8 * 1024 * 1024  # of the commands of one round trip, if they are several


_Row = tuple[bytes, bytes]  # a key and the command
_Refused = tuple[_Row, ResponseError]


def round_trips(sizes: Sequence[int], rows: int) -> Iterator[slice]:
    """The parts of rows with these sizes in bytes: at most `rows` of them, and at most 8 MiB."""
    start = total = 0
    for index, size in enumerate(sizes):
        if index > start and (index - start == rows or total + size > _MAX_BYTES):
            yield slice(start, index)
            start, total = index, 0
        total += size
    if sizes:
        yield slice(start, len(sizes))


class Pipeline:
    """The connections of one task."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._expires = bool(options["ttl"]) and options["command"] != "SET"  # which has it as an argument
        self._replaces = options["command"] in REPLACING
        self._servers = Servers(options)
        self._patience = Patience(options["retry_timeout"])

    def write(self, keys: Sequence[bytes | None], commands: Sequence[bytes | None]) -> list[Rejected]:
        """Write rows in one round trip for each server; returns those that are rejected.

        Rows without a reply are sent again. Raises Unreachable when the time for that is over, and
        ConnectorError where the server refuses all.
        """
        rejected, rows = list[Rejected](), list[_Row]()
        for key, command in zip(keys, commands, strict=True):
            if key is None or command is None:
                rejected.append((_NO_KEY if key is None else _NO_VALUE, _text(key or b"")))
            else:
                rows.append((key, command))
        with clear_errors(self._options):
            refused = self._deliver(rows)
            if self._expires:  # the key of a rejected row belongs to someone else
                of_others = {id(row) for row, _ in refused}
                written = dict.fromkeys(row[0] for row in rows if id(row) not in of_others)
                self._deliver([(key, expiry_of(key, self._options["ttl"])) for key in written])
        return rejected + [(str(error), _text(command)) for (_, command), error in refused]

    def close(self) -> None:
        """Close all connections."""
        self._servers.forget()

    def _deliver(self, rows: list[_Row]) -> list[_Refused]:
        """Send rows until each has an answer; returns those that are refused."""
        refused = list[_Refused]()
        while rows:
            rows, reason = self._sent(rows, refused)
            if not rows:
                self._patience.succeeded()
            elif not self._patience.wait():
                raise Unreachable(f"{where(self._options)} does not take rows: {reason}")
        return refused

    def _sent(self, rows: list[_Row], refused: list[_Refused]) -> tuple[list[_Row], Exception | None]:
        """Send rows to their servers; returns those that must be sent again, and why."""
        later: list[_Row] = []
        reason: Exception | None = None
        try:
            shares = self._shares(rows)
        except REFUSED:  # of which redis-py has one as a lost connection
            raise
        except _NOWHERE as error:
            shares, later, reason = {}, rows, error
        for name, share in shares.items():
            failed = self._sent_to(name, share, refused)
            later += failed[0]
            reason = failed[1] or reason
        if later:
            self._servers.forget()
        return later, reason

    def _shares(self, rows: list[_Row]) -> dict[str, list[_Row]]:
        shares = defaultdict[str, list[_Row]](list)
        for row in rows:
            shares[self._servers.of_key(row[0])].append(row)
        return shares

    def _sent_to(
        self, name: str, rows: list[_Row], refused: list[_Refused]
    ) -> tuple[list[_Row], Exception | None]:
        """Likewise, for the rows of one server."""
        later, reason, done = list[_Row](), None, 0
        waiting = set[bytes]()  # keys of those rows
        try:
            pool = self._servers.client(name).connection_pool
            connection = pool.get_connection()
            try:
                connection.send_packed_command([b"".join([command for _, command in rows])])
                for row in rows:
                    error = self._reply(connection)
                    done += 1
                    # A row that replaces another one must follow it again.
                    if isinstance(error, _LATER) or (self._replaces and not error and row[0] in waiting):
                        later.append(row)
                        waiting.add(row[0])
                        reason = error or reason
                    elif error is not None:
                        refused.append((row, error))
            finally:
                pool.release(connection)
        except REFUSED:  # as above
            raise
        except _NOWHERE as error:
            return later + rows[done:], error
        return later, reason

    def _reply(self, connection: Any) -> ResponseError | None:
        """The error in the reply to one row; raises an error that holds for all rows."""
        try:
            connection.read_response(disconnect_on_error=False)
        except REFUSED:
            connection.disconnect()  # further replies are on their way
            raise
        except ResponseError as error:
            return error
        return None


def _text(data: bytes) -> str:
    return data[:_SHOWN_BYTES].decode("utf-8", "replace")
