"""Sends the commands of many rows at once, and reads their replies."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from redis.exceptions import BusyLoadingError, RedisClusterException, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.sentinel import MasterNotFoundError

from spark_runner.connectors.redis.client import LOST, REFUSED, Servers, clear_errors, passes, where
from spark_runner.connectors.redis.commands import expiry_of
from spark_runner.connectors.redis.kinds import REPLACING
from spark_runner.connectors.redis.round_trips import round_trips
from spark_runner.push.batch import Batch, Record
from spark_runner.push.errors import Overloaded, Partial, Refused, Retryable, TimedOut
from spark_runner.push.retry import Results

_NO_KEY = "a column of its key is NULL"
_NO_VALUE = "a column of its value is NULL"
_NO_COMMAND = "unknown command"  # of a server that lacks it, or has it under another name
_NOWHERE = (*LOST, MasterNotFoundError, RedisClusterException)


class Row(NamedTuple):
    """What is sent for one row."""

    number: int  # among those of its batch
    key: bytes
    command: bytes  # or several of them
    replies: int  # the number of commands


class Part(NamedTuple):
    """Rows of one round trip to each server, and keys of rows that are written, which are to expire.

    They are columns until they are sent: many objects that live for long slow Python down. `texts` are those
    of all rows of the batch, by their numbers.
    """

    columns: Sequence[Sequence[Any]]  # those of `Row`
    texts: Any
    written: Sequence[bytes] = ()

    def rows(self) -> list[Row]:
        """The rows that are to be sent."""
        return list(map(Row, *self.columns))


_Refused = tuple[Row, ResponseError]


def longest_request(options: Mapping[str, Any]) -> float:
    """The seconds in which a request sends all that it sends, however many servers it needs."""
    trips = 2 if options["ttl"] else 1  # in the second one, keys expire
    return float(trips * (options["connect_timeout"] + options["timeout"]))


class Pipeline:
    """The connections of one task, which sends one part after the other."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._expires = bool(options["ttl"]) and options["command"] != "SET"  # which has it as an argument
        self._replaces = options["command"] in REPLACING
        self._servers = Servers(options)
        self._until = 0.0  # nothing of a request is sent after this time

    def records(
        self,
        keys: Sequence[bytes | None],
        commands: Sequence[bytes | None],
        replies: Sequence[int],
        texts: Any,
    ) -> tuple[list[Record], dict[int, str]]:
        """Rows as records of the push, and why others are rejected before they are sent, by their numbers.

        `replies` are the numbers of commands of each row.
        """
        numbers: Sequence[int] = range(len(keys))
        rejected = dict[int, str]()
        if None in keys or None in commands:
            pairs = enumerate(zip(keys, commands, strict=True))
            rejected = {
                number: _NO_KEY if key is None else _NO_VALUE
                for number, (key, command) in pairs
                if key is None or command is None
            }
            numbers = [number for number in numbers if number not in rejected]
            keys, commands, replies = ([each[n] for n in numbers] for each in (keys, commands, replies))  # type: ignore[assignment]  # mypy sees one type for all three
        sizes = [len(each or b"") for each in commands]
        records = [
            Record(
                Part([each[trip] for each in (numbers, keys, commands, replies)], texts),
                sum(sizes[trip]),
                rows=trip.stop - trip.start,
            )
            for trip in round_trips(sizes, self._options["batch_size"])
        ]
        return records, rejected

    def deliver(self, batch: Batch) -> Results:
        """Send a part; returns what is rejected, as reasons with numbers of rows, and what is left.

        Raises DeliveryError, and ConnectorError where the server refuses all.
        """
        (record,) = batch.records
        part: Part = record.value
        rows, refused, written = part.rows(), list[_Refused](), part.written
        self._until = time.monotonic() + longest_request(self._options)
        with clear_errors(self._options):
            later, reason = self._sent(rows, refused) if rows else ([], None)
            if self._expires:  # but for the key of a rejected row, which belongs to someone else
                kept = {row.number for row in later} | {row.number for row, _ in refused}
                done = [row.key for row in rows if row.number not in kept]
                written = list(dict.fromkeys([*written, *done]))
            if written and not later:
                written, reason = self._expired(written)
        error = None if reason is None else self._error(reason)
        if error is not None and len(later) == len(rows) > 0:
            raise error
        rejected = [(str(why), row.number) for row, why in refused]
        if not later and not written:
            return {0: Partial(rejected)} if rejected else None
        columns = tuple(zip(*later, strict=True)) or ((),) * len(Row._fields)
        left = Record(
            Part(columns, part.texts, written), sum(len(row.command) for row in later), rows=len(later)
        )
        return {0: Partial(rejected, left, error)}

    def close(self) -> None:
        """Close all connections."""
        self._servers.close()

    def _expired(self, keys: Sequence[bytes]) -> tuple[list[bytes], Exception | None]:
        """Let keys expire; returns those that are left, and why."""
        refused = list[_Refused]()
        rows = [Row(0, key, expiry_of(key, self._options["ttl"]), 1) for key in keys]
        later, reason = self._sent(rows, refused)
        for _, error in refused:
            raise error
        return [row.key for row in later], reason

    def _error(self, reason: Exception) -> Retryable:
        words = f"{where(self._options)} does not take rows: {reason}"
        if isinstance(reason, RedisTimeoutError | TimeoutError):
            return TimedOut(words)
        return (Overloaded if isinstance(reason, ResponseError | BusyLoadingError) else Refused)(words)

    def _sent(self, rows: Sequence[Row], refused: list[_Refused]) -> tuple[list[Row], Exception | None]:
        """Send rows to their servers; returns those that must be sent again, and why."""
        later: list[Row] = []
        reason: Exception | None = None
        try:
            shares = self._shares(rows)
        except REFUSED:  # of which redis-py has one as a lost connection
            raise
        except _NOWHERE as error:
            shares, later, reason = {}, list(rows), error
        for name, share in shares.items():
            failed = self._sent_to(name, share, refused)
            later += failed[0]
            reason = reason or failed[1]
        if later:
            self._servers.close()
        return later, reason

    def _shares(self, rows: Sequence[Row]) -> dict[str, list[Row]]:
        if self._options["mode"] != "cluster":
            return {"": list(rows)}
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
                if time.monotonic() > self._until:  # another attempt of the task may go on soon
                    raise RedisTimeoutError("other servers took the time of the request")
                connection.send_packed_command([b"".join([row.command for row in rows])])
                for row in rows:
                    error = self._reply(connection)
                    for _ in range(1, row.replies):
                        further = self._reply(connection)
                        error = error or further
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
