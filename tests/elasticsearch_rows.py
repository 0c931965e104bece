"""Rows of bulk requests to Elasticsearch, written as a task of Spark does."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spark_runner.connectors.elasticsearch.bulk import Bulk, Lines, Rejected
from spark_runner.connectors.elasticsearch.client import Client
from tests.elasticsearch_support import options
from tests.log_proxy import Said


def row(index: str, number: object, *, action: str = "index", **fields: Any) -> bytes:
    """The lines of a row in a bulk request."""
    head = {action: {"_index": index, "_id": str(number)}}
    return f"{json.dumps(head)}\n{json.dumps({'n': number, **fields})}\n".encode()


@contextmanager
def bulk(url: str, *, keyed: bool = True, **more: Any) -> Iterator[Bulk]:
    """The requests of one task."""
    given = options(url, **more)
    with Client(given) as client:
        yield Bulk(client, given, keyed=keyed)


def write(url: str, rows: list[bytes], **more: Any) -> list[Rejected]:
    """Write rows as a task does; returns those that are rejected."""
    with bulk(url, **more) as found:
        return found.write(Lines.of(rows))


def changed(said: Said, item: int, status: int, kind: str, reason: str = "by the test") -> Said:
    """The answer to a bulk request, with another result of one row."""
    document = json.loads(said.body)
    ((action, _),) = document["items"][item].items()
    document["items"][item][action] = {"status": status, "error": {"type": kind, "reason": reason}}
    return Said.document(200, document | {"errors": True})
