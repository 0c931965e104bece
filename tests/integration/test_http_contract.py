"""HTTP passes the suite of connectors: items of a server that keeps them by their id."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from queues.embedded.ports import free_ports
from tests.contract.kit import COLUMNS, Can
from tests.contract.suite import *  # noqa: F403 - the tests of the suite
from tests.servers.web import Received, Reply, WebServer, web_server

NAMES = ("id", "name", "amount")


class HttpKit:
    """Collections of items: a POST adds one, a PUT with an id replaces it, a GET returns all."""

    can = Can.READ | Can.APPEND | Can.UPSERT

    def __init__(self) -> None:
        self.items: dict[str, dict[Any, Any]] = {}
        self.server: WebServer

    def reply(self, received: Received) -> Reply:
        _, target, *number = received.path.split("/")
        if target not in self.items:
            return Reply(404, b"no such collection")
        items = self.items[target]
        if received.method == "GET":
            return Reply(body=json.dumps([*items.values()]).encode())
        items[number[0] if number else len(items)] = json.loads(received.body)
        return Reply(201)

    def create(self) -> str:
        target = f"t{len(self.items)}"
        self.items[target] = {}
        return target

    def table(self, name: str, target: str, *, key: bool = False, deletes: bool = False) -> str:
        assert not deletes
        path, more = (
            (f"{target}/{{id}}', method 'PUT", ", PRIMARY KEY (id) NOT ENFORCED") if key else (target, "")
        )
        return f"CREATE TABLE {name} ({COLUMNS}{more}) USING http OPTIONS (url '{self.server.url}/{path}');\n"

    def put(self, target: str, rows: Sequence[tuple[Any, ...]]) -> None:
        for row in rows:
            self.items[target][len(self.items[target])] = dict(zip(NAMES, row, strict=True))

    def rows(self, target: str) -> list[tuple[Any, ...]]:
        return [tuple(item[name] for name in NAMES) for item in self.items[target].values()]

    def unreachable(self, name: str) -> tuple[str, str]:
        (port,) = free_ports("127.0.0.1", 1)
        url = f"http://127.0.0.1:{port}"
        return f"CREATE TABLE {name} USING http OPTIONS (url '{url}/x');\n", f"{url} does not answer"

    def missing(self, name: str) -> tuple[str, str]:
        return self.table(name, "missing"), "refused: 404 no such collection; check 'url'"


@pytest.fixture
def kit() -> Iterator[HttpKit]:
    made = HttpKit()
    with web_server(made.reply) as made.server:
        yield made
