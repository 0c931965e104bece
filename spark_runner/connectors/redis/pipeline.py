"""Sends the commands of many rows at once, and reads their replies."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from redis.exceptions import RedisClusterException, ResponseError
from redis.sentinel import MasterNotFoundError

from spark_runner.connectors.errors import Unreachable
from spark_runner.connectors.patience import Patience
from spark_runner.connectors.redis.client import LOST, REFUSED, Servers, clear_errors, passes, where
from spark_runner.connectors.redis.commands import expiry_of
from spark_runner.connectors.redis.kinds import REPLACING

_NO_KEY = "a column of its key is NULL"
_NO_VALUE = "a column of its value is NULL"
_NO_COMMAND = "unknown command"  # of a server that lacks it, or has it under another name
_NOWHERE = (*LOST, MasterNotFoundError, RedisClusterException)


class Row(NamedTuple):
    """What is sent for one row."""

    number: int  # among those of its round trip
    key: bytes
    command: bytes  # or several of them
    replies: int = 1  # the number of commands


_Refused = tuple[Row, ResponseError]


class Pipeline:
    """The connections of one task."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._expires = bool(options["ttl"]) and options["command"] != "SET"  # which has it as an argument
        self._replaces = options["command"] in REPLACING
        self._servers = Servers(options)
        self._patience = Patience(options["retry_timeout"])

    def write(
        self,
        keys: Sequence[bytes | None],
        commands: Sequence[bytes | None],
        replies: Sequence[int] | None = None,
    ) -> dict[int, str]:
        """Write rows in one round trip for each server; returns why some are rejected, by their index.

        `replies` are the numbers of commands of each row, by default one. Rows without a reply are sent
        again. Raises Unreachable when the time for that is over, and ConnectorError where the server refuses
        all.
        """
        rejected, rows = dict[int, str](), list[Row]()
        for index, (key, command) in enumerate(zip(keys, commands, strict=True)):
            if key is None or command is None:
                rejected[index] = _NO_KEY if key is None else _NO_VALUE
            else:
                rows.append(Row(index, key, command, replies[index] if replies else 1))
        with clear_errors(self._options):
            rejected |= {row.number: str(error) for row, error in self._deliver(rows)}
            if self._expires:  # the key of a rejected row belongs to someone else
                written = dict.fromkeys(row.key for row in rows if row.number not in rejected)
                for _, error in self._deliver(
                    [Row(0, key, expiry_of(key, self._options["ttl"])) for key in written]
                ):
                    raise error
        return rejected

    def close(self) -> None:
        """Close all connections."""
        self._servers.close()

    def _deliver(self, rows: list[Row]) -> list[_Refused]:
        """Send rows until each has an answer; returns those that are refused."""
        refused = list[_Refused]()
        while rows:
            rows, reason = self._sent(rows, refused)
            if not rows:
                self._patience.succeeded()
            elif not self._patience.wait():
                raise Unreachable(f"{where(self._options)} does not take rows: {reason}")
        return refused

    def _sent(self, rows: list[Row], refused: list[_Refused]) -> tuple[list[Row], Exception | None]:
        """Send rows to their servers; returns those that must be sent again, and why."""
        later: list[Row] = []
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
            self._servers.close()
        return later, reason

    def _shares(self, rows: list[Row]) -> dict[str, list[Row]]:
        shares = defaultdict[str, list[Row]](list)
        for row in rows:
            shares[self._servers.of_key(row.key)].append(row)
        return shares

    def _sent_to(
        self, name: str, rows: list[Row], refused: list[_Refused]
    ) -> tuple[list[Row], Exception | None]:
        """Likewise, for the rows of one server."""
        later, reason, done = list[Row](), None, 0
        waiting = set[bytes]()  # keys of those rows
        try:
            pool = self._servers.client(name).connection_pool
            connection = pool.get_connection()
            try:
                connection.send_packed_command([b"".join([row.command for row in rows])])
                for row in rows:
                    errors = [self._reply(connection) for _ in range(row.replies)]
                    error = next(filter(None, errors), None)
                    done += 1
                    # A row that replaces another one must follow it again.
                    if (error and passes(error)) or (self._replaces and not error and row.key in waiting):
                        later.append(row)
                        waiting.add(row.key)
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
            if str(error).startswith(_NO_COMMAND):
                connection.disconnect()  # likewise
                raise
            return error
        return None
