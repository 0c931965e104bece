"""Spools with records of tests, and a shipper for them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.target import LogTarget, ShipperOptions
from orchestrator.logs.spool.writer import Spool
from tests.waiting import wait_until

NOW = datetime.now(UTC).replace(microsecond=0)
OPTIONS = ShipperOptions(max_actions=20, max_seconds=0.05, adopt_seconds=0.1, status_seconds=0.05)


def document(number: int, *, at: datetime = NOW, **fields: Any) -> dict[str, Any]:
    """A document as built by the sink; underscores in `fields` become dots."""
    time = at + timedelta(milliseconds=number)
    return {
        "@timestamp": time.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "log.level": "info",
        "message": f"record {number} with “quotes” and\nlines",
        "service.name": "worker",
        "host.name": "host-1",
        **{name.replace("_", "."): value for name, value in fields.items()},
    }


def record(identity: str, content: dict[str, Any]) -> bytes:
    """A record as in a spool."""
    action = json.dumps({"create": {"_index": "logs-2026-11-22", "_id": identity}})
    return f"{action}\n{json.dumps(content, ensure_ascii=False)}\n".encode()


def fill(spool: Spool, documents: Sequence[dict[str, Any]], prefix: str = "r") -> list[str]:
    """Append documents; returns their ids."""
    ids = [f"{prefix}-{number}" for number in range(len(documents))]
    for identity, content in zip(ids, documents, strict=True):
        assert spool.append(
            "logs-2026-11-22", json.dumps(content, ensure_ascii=False).encode(), identity=identity
        )
    return ids


@contextmanager
def shipping(root: Path, target: LogTarget, spool: Spool) -> Iterator[Shipper]:
    """A running shipper; at the end it has shipped all records."""
    shipper = Shipper(root, target, spool=spool, options=OPTIONS)
    shipper.start()
    try:
        yield shipper
    finally:
        drained = shipper.close(30)
        spool.close(remove=drained)
    assert drained


def wait_settled(shipper: Shipper, count: int) -> None:
    """Wait until this many records are accepted or dead letters."""
    counts = shipper.counts
    wait_until(lambda: counts.created + counts.dead >= count, 60, f"{count} records are settled")


def dead_letters(root: Path) -> list[dict[str, Any]]:
    """The dead letters of a root."""
    files = sorted((root.parent / "dead-letters").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
