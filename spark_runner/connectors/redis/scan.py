"""Reads the values of one server, key by key, in pages."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_runner.connectors.errors import Unreachable
from spark_runner.connectors.patience import Patience
from spark_runner.connectors.redis.client import LOST, REFUSED, Servers, clear_errors, where
from spark_runner.connectors.redis.keys import pattern_of
from spark_runner.connectors.redis.kinds import TYPES

_AT_ONCE = {"string": "get", "hash": "hgetall", "set": "smembers"}  # types that one command reads as a whole
_PAGE = 1000  # members of one value that are read at once
Row = tuple[str, str | None, float | None, str | None]


@dataclass(frozen=True)
class Master(InputPartition):
    """One server whose keys are read."""

    name: str


class ValueReader(DataSourceReader):
    """The values of all keys that fit a pattern."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """A partition for each master."""
        servers = Servers(self._options)
        try:
            with clear_errors(self._options):
                return [Master(name) for name in servers.names()]
        finally:
            servers.forget()

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """The rows of one master: key, value, score and id.

        Redis may return a key twice while the table of its keys grows or shrinks.
        """
        assert isinstance(partition, Master)  # noqa: S101 - those of `partitions`
        pattern, kind = pattern_of(self._options["key"]), TYPES[self._options["command"]]
        server, cursor = _Server(self._options, partition.name), 0
        count = self._options["batch_size"]
        with clear_errors(self._options):
            while True:
                cursor, keys = server.ask("scan", cursor, match=pattern, count=count, _type=kind)
                if kind in _AT_ONCE:
                    for key, value in zip(keys, server.ask_of_each(_AT_ONCE[kind], keys), strict=True):
                        yield from _rows(key, value, kind)
                else:
                    for key in keys:
                        yield from _members(server, key, kind)
                if not cursor:
                    return


class _Server:
    """One master, which a task waits for at its begin."""

    def __init__(self, options: Mapping[str, Any], name: str) -> None:
        self._options, self._name = options, name
        self._servers, self._patience = Servers(options), Patience(options["retry_timeout"])
        self._has_answered = False

    def ask(self, command: str, *arguments: Any, **named: Any) -> Any:
        """The answer to a command of redis-py; raises Unreachable."""
        return self._answer(lambda client: getattr(client, command)(*arguments, **named))

    def ask_of_each(self, command: str, keys: Sequence[bytes]) -> list[Any]:
        """The answers to a command for each key, in one round trip; raises Unreachable."""

        def asked(client: Any) -> Any:
            pipeline = client.pipeline(transaction=False)
            for key in keys:
                getattr(pipeline, command)(key)
            return pipeline.execute()

        found: list[Any] = self._answer(asked)
        return found

    def _answer(self, ask: Callable[[Any], Any]) -> Any:
        while True:
            try:
                answer = ask(self._servers.client(self._name))
            except REFUSED:  # of which redis-py has one as a lost connection
                raise
            except LOST as error:
                self._servers.forget()
                # A restarted server, or another one, has its keys in another order: the task begins anew.
                if self._has_answered or not self._patience.wait():
                    raise Unreachable(f"{where(self._options)} does not answer: {error}") from error
            else:
                self._has_answered = True
                return answer


def _rows(key: bytes, value: Any, kind: str) -> Iterator[Row]:
    if kind == "string" and value is not None:
        yield _text(key), _text(value), None, None
    elif kind == "hash" and value:
        yield _text(key), _json(value), None, None
    elif kind == "set":
        yield from ((_text(key), _text(each), None, None) for each in sorted(value))


def _members(server: _Server, key: bytes, kind: str) -> Iterator[Row]:
    """The members of one list, sorted set or stream, in pages."""
    name, start, since = _text(key), 0, "-"
    while True:
        if kind == "stream":
            entries = server.ask("xrange", key, min=since, count=_PAGE)
            yield from ((name, _json(fields), None, _text(number)) for number, fields in entries)
            since = f"({_text(entries[-1][0])}" if entries else since
        elif kind == "zset":
            entries = server.ask("zrange", key, start, start + _PAGE - 1, withscores=True)
            yield from ((name, _text(each), score, None) for each, score in entries)
        else:
            entries = server.ask("lrange", key, start, start + _PAGE - 1)
            yield from ((name, _text(each), None, None) for each in entries)
        if len(entries) < _PAGE:
            return
        start += _PAGE


def _json(fields: Mapping[bytes, bytes]) -> str:
    return json.dumps({_text(name): _text(value) for name, value in fields.items()})


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
