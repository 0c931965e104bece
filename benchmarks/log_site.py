"""Support for benchmarks of logs: a real server, documents of typical size, full spools."""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the servers of the tests

from orchestrator.logs.shipping.http import Http
from orchestrator.logs.shipping.indices import DailyIndices
from orchestrator.logs.spool.limits import SpoolLimits
from orchestrator.logs.spool.writer import Spool

_BASE: dict[str, Any] = {
    "@timestamp": "2026-11-22T10:00:00.000000Z",
    "log.level": "info",
    "message": "flights-9c97db62 running -> success SUCCESS",
    "log.logger": "orchestrator.worker.event_log",
    "log.origin.function": "tell",
    "log.origin.file.name": "event_log.py",
    "log.origin.file.line": 31,
    "process.pid": 4711,
    "process.thread.name": "crew-7",
    "host.name": "node-1",
    "service.name": "orchestrator",
    "ecs.version": "9.0.0",
    "job.id": "flights-9c97db62",
}
DOCUMENT_BYTES = len(json.dumps(_BASE, separators=(",", ":")))


@contextmanager
def elasticsearch() -> Iterator[str]:
    """Yield the URL of a running server."""
    if url := os.environ.get("ELASTICSEARCH_URL"):
        yield url
        return
    from tests.servers.elasticsearch import local_elasticsearch  # noqa: PLC0415 - only without ELASTICSEARCH_URL

    with local_elasticsearch() as url:
        yield url


def documents(count: int) -> Iterator[dict[str, Any]]:
    """Documents as made by a program."""
    for number in range(count):
        yield {"event.sequence": number, **_BASE, "message": f"{_BASE['message']} {number}"}


def lines(count: int) -> Iterator[bytes]:
    """The same as JSON, without the sequence, which the spool adds."""
    head, tail = json.dumps(_BASE, separators=(",", ":")).split(_BASE["message"])
    start, end = (head + _BASE["message"]).encode(), tail.encode()
    for number in range(count):
        yield b"%b %d%b" % (start, number, end)


def bodies(alias: str, count: int, batch: int) -> list[bytes]:
    """Bodies of bulk requests, as sent."""
    made, part = list[bytes](), list[bytes]()
    for number, line in enumerate(lines(count)):
        action = b'{"create":{"_index":"%b-2026-11-22","_id":"0123456789abcdef-%x"}}\n' % (
            alias.encode(),
            number,
        )
        part.append(action + b'{"event.sequence":%d,%b\n' % (number, line[1:]))
        if len(part) == batch:
            made.append(b"".join(part))
            part.clear()
    return [*made, b"".join(part)] if part else made


def fill(root: Path, alias: str, count: int) -> None:
    """The spool of an ended process."""
    spool = Spool(root, SpoolLimits(max_bytes=8 * 1024**3))
    for line in lines(count):
        spool.append(f"{alias}-2026-11-22", line)
    spool.close()
    if spool.dropped:
        raise SystemExit(f"{spool.dropped} records were dropped")


def count(url: str, alias: str) -> int:
    """Number of documents found below an alias."""
    ask(f"{url}/{alias}-*/_refresh", "POST")
    return int(ask(f"{url}/{alias}/_count", "GET")["count"])


def remove_all(url: str, alias: str) -> None:
    """Remove the indices of an alias, and its template."""
    for index in DailyIndices(http := Http([url]), alias).all():
        DailyIndices(http, alias).remove(index)
    http.request("DELETE", f"/_index_template/{alias}")
    http.close()


def ask(url: str, method: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
    """Send a request; a missing index gives an empty answer."""
    data = None if document is None else json.dumps(document).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - our own server
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - likewise
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return {"count": 0}
