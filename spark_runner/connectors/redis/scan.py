"""Reads the values of one server: a page of keys, then the values of some of them at a time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_runner.connectors.errors import Unreachable
from spark_runner.connectors.redis.client import Servers, clear_errors, where
from spark_runner.connectors.redis.keys import pattern_of
from spark_runner.connectors.redis.kinds import TYPES
from spark_runner.connectors.redis.replies import Replies
from spark_runner.connectors.redis.round_trips import round_trips
from spark_runner.connectors.redis.row_batches import RowBatch

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

# Of types that one command reads as a whole: this command, and the one for the size of a value in bytes.
_WHOLE = {
    "string": (("GET",), ("STRLEN",)),
    "hash": (("HGETALL",), ("MEMORY", "USAGE")),
    "set": (("SMEMBERS",), ("MEMORY", "USAGE")),
}
_PAGE_BYTES, _PAGE = 4 * 1024 * 1024, 1000  # of the members of other values that are asked for at once


@dataclass(frozen=True)
class Master(InputPartition):
    """One server whose keys are read, and its slots if it is of a cluster."""

    name: str
    slots: tuple[str, ...]


class ValueReader(DataSourceReader):
    """The values of all keys that fit a pattern."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """A partition for each master."""
        with closing(Servers(self._options)) as servers, clear_errors(self._options):
            return [Master(name, servers.slots(name)) for name in servers.names()]

    def read(self, partition: InputPartition) -> "Iterator[RecordBatch]":
        """The rows of one master; raises Unreachable if its slots are others at the end.

        Redis may return a key twice while the table of its keys grows or shrinks.
        """
        assert isinstance(partition, Master)  # noqa: S101 - those of `partitions`
        rows = RowBatch()
        with clear_errors(self._options), closing(Replies(self._options, partition.name)) as replies:
            values = _Values(replies, TYPES[self._options["command"]], rows)
            for keys in self._pages(replies):
                for _ in values.read(keys):
                    if rows.is_full:
                        yield rows.taken()
            yield rows.taken()
        with closing(Servers(self._options)) as servers, clear_errors(self._options):
            if servers.slots(partition.name) != partition.slots:
                raise Unreachable(f"{where(self._options)} has moved slots while they were read")

    def _pages(self, replies: Replies) -> Iterator[list[bytes]]:
        pattern, cursor = pattern_of(self._options["key"]), b"0"
        asked = (
            "MATCH",
            pattern,
            "COUNT",
            self._options["batch_size"],
            "TYPE",
            TYPES[self._options["command"]],
        )
        while True:
            cursor, keys = replies.to("SCAN", cursor, *asked)
            yield keys
            if cursor == b"0":
                return


class _Values:
    """The values of keys of one type."""

    def __init__(self, replies: Replies, kind: str, rows: RowBatch) -> None:
        self._replies, self._kind, self._rows = replies, kind, rows
        self._count = 1  # members that are asked for at once: few large ones, or many

    def read(self, keys: Sequence[bytes]) -> Iterator[None]:
        """Add the rows of these keys; yields from time to time, so that full batches are taken."""
        if self._kind not in _WHOLE:
            for key in keys:
                yield from self._members(key)
            return
        get, size = _WHOLE[self._kind]
        sizes = [found or 0 for found in self._replies.to_each(size, keys)]
        for part in round_trips(sizes, len(keys)):
            for key, reply in zip(keys[part], self._replies.to_each(get, keys[part]), strict=True):
                yield from self._add_whole(key, reply)

    def _add_whole(self, key: bytes, reply: Any) -> Iterator[None]:
        """Add the rows of a value; one that was deleted meanwhile has none."""
        match self._kind:
            case "set":
                for member in sorted(reply):
                    self._rows.add(key, member)
                    yield
            case "hash" if reply:
                self._rows.add(key, fields=dict(_pairs(reply)))
            case "string" if reply is not None:
                self._rows.add(key, reply)
        yield

    def _members(self, key: bytes) -> Iterator[None]:
        """Add the members of one list, sorted set or stream, in pages."""
        start, since = 0, b"-"
        while True:
            count, before = self._count, self._rows.read_bytes
            if self._kind == "stream":
                entries = self._replies.to("XRANGE", key, since, "+", "COUNT", count)
                for entry, fields in entries:
                    self._rows.add(key, entry=entry, fields=dict(_pairs(fields)))
                since = b"(" + entries[-1][0] if entries else since
            elif self._kind == "zset":
                found = self._replies.to("ZRANGE", key, start, start + count - 1, "WITHSCORES")
                entries = list(_pairs(found))
                for member, score in entries:
                    self._rows.add(key, member, score=float(score))
            else:
                entries = self._replies.to("LRANGE", key, start, start + count - 1)
                for member in entries:
                    self._rows.add(key, member)
            self._note(before)
            yield
            if len(entries) < count:
                return
            start += count

    def _note(self, before: int) -> None:
        """Choose the next number of members by the bytes that were read since `before`."""
        read = max(1, self._rows.read_bytes - before)
        self._count = max(1, min(self._count * _PAGE_BYTES // read, 2 * self._count, _PAGE))


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)
