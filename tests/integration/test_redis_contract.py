"""Redis passes the suite of connectors on a real server."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from queues.embedded.ports import free_ports
from tests.contract.kit import COLUMNS, Can
from tests.contract.suite import *  # noqa: F403 - the tests of the suite
from tests.servers.redis import RedisServer

NAMES = ("id", "name", "amount")


class RedisKit:
    """Lists of JSON objects, or streams; with a key, a string or a hash for each row."""

    can = Can.READ | Can.APPEND | Can.UPSERT | Can.PROBE

    def __init__(self, server: RedisServer, prefix: str, commands: tuple[str, str]) -> None:
        self._server, self._prefix, self._made = server, prefix, 0
        self._append, self._upsert = commands

    def create(self) -> str:
        self._made += 1
        return f"{self._prefix}:{self._made}"

    def table(self, name: str, target: str, *, key: bool = False, deletes: bool = False) -> str:  # noqa: ARG002 - of Kit
        return self._table(name, target, self._server, key=key)

    def put(self, target: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._server.client() as client:
            for row in rows:
                given = dict(zip(NAMES, row, strict=True))
                if self._append == "XADD":
                    client.xadd(
                        target, {name: str(value) for name, value in given.items() if value is not None}
                    )
                else:
                    client.rpush(target, json.dumps(given))

    def rows(self, target: str) -> list[tuple[Any, ...]]:
        found = list[dict[str, Any]]()
        with self._server.client() as client:
            for key in client.scan_iter(f"{target}*"):
                match client.type(key):
                    case "list":
                        found += map(json.loads, client.lrange(key, 0, -1))
                    case "string":
                        found.append(json.loads(str(client.get(key))))
                    case "stream":
                        found += [fields for _, fields in client.xrange(key)]
                    case "hash":
                        found.append({"id": key.rpartition(":")[2], **client.hgetall(key)})
        return [(int(each["id"]), each.get("name"), _number(each.get("amount"))) for each in found]

    def unreachable(self, name: str) -> tuple[str, str]:
        (port,) = free_ports("127.0.0.1", 1)
        away = RedisServer("127.0.0.1", port)
        return self._table(name, "any", away), f"Redis at 127.0.0.1:{port} does not answer"

    def missing(self, name: str) -> tuple[str, str]:
        table = self._table(name, "any", self._server, database=9999)
        return table, f"Redis at {self._server.host}:{self._server.port} has no database 9999"

    def _table(
        self, name: str, target: str, server: RedisServer, *, key: bool = False, database: int = 0
    ) -> str:
        given = {"connector": "redis", **server.options, "database": str(database)}
        given |= {"command": self._upsert if key else self._append}
        given |= {"key": f"{target}:{{id}}" if key else target, "retry_timeout": "1"}
        listed = ", ".join(f"'{option}' = '{value}'" for option, value in given.items())
        return (
            f"CREATE TABLE {name} ({COLUMNS}{', PRIMARY KEY (id) NOT ENFORCED' if key else ''})"
            f" WITH ({listed});\n"
        )


def _number(text: str | float | None) -> float | None:
    return None if text is None else float(text)


@pytest.fixture(params=[("RPUSH", "SET"), ("XADD", "HSET")], ids="-".join)
def kit(
    request: pytest.FixtureRequest,
    redis_server: RedisServer,
    redis_keys: str,
    spark: SparkSession,  # noqa: ARG001 - the suite runs in it
) -> RedisKit:
    return RedisKit(redis_server, redis_keys, request.param)
