"""Rows of bulk requests to Elasticsearch, written as a task of Spark does."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from spark_runner.connectors.elasticsearch.bulk import Bulk, Rejected
from spark_runner.connectors.elasticsearch.part import Lines
from tests.elasticsearch_support import options
from tests.log_proxy import Said
from tests.push_support import push_parts

Write = Callable[[Sequence[bytes]], list[Rejected]]


def row(index: str, number: object, *, action: str = "index", **fields: Any) -> bytes:
    """The lines of a row in a bulk request."""
    head = {action: {"_index": index, "_id": str(number)}}
    return f"{json.dumps(head)}\n{json.dumps({'n': number, **fields})}\n".encode()


@contextmanager
def writer(url: str, *, keyed: bool = True, **more: Any) -> Iterator[Write]:
    """Writes rows as one task does; returns those that are rejected."""
    given = options(url, **more)
    with closing(Bulk(given, keyed=keyed)) as bulk:
        yield lambda rows: push_parts(bulk.records(Lines.of(rows)), bulk.deliver, given, is_ordered=keyed)


def write(url: str, rows: list[bytes], **more: Any) -> list[Rejected]:
    """Likewise, by a task of its own."""
    with writer(url, **more) as found:
        return found(rows)


def changed(said: Said, item: int, status: int, kind: str, reason: str = "by the test") -> Said:
    """The answer to a bulk request, with another result of one row."""
    document = json.loads(said.body)
    ((action, _),) = document["items"][item].items()
    document["items"][item][action] = {"status": status, "error": {"type": kind, "reason": reason}}
    return Said.document(200, document | {"errors": True})
