"""Senders of the HTTP connector, and rows for them."""

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from spark_runner.connectors.http.client import Client
from spark_runner.connectors.http.sender import Row, Sender
from spark_runner.connectors.options import to_plan, validate
from tests.servers.web import Reply

ROWS = [Row("/items", f'{{"n":{n}}}', f'{{"n":{n}}}', f"key-{n}") for n in range(4)]


def plan(url: str, **options: str) -> dict[str, Any]:
    return to_plan(validate("http", {"url": url, **options}))


@contextmanager
def sender(url: str, **options: str) -> Iterator[Sender]:
    tasks = int(options.pop("tasks", "1"))
    given = plan(url, **options)
    with closing(Client(given, tasks)) as client:
        yield Sender(client, given)


def in_turn(*replies: Reply) -> Any:
    """The replies one after the other, the last one again and again."""
    turns = itertools.chain(replies, itertools.repeat(replies[-1]))
    return lambda _: next(turns)
