"""Change events in the shape in which Debezium's connector of MySQL writes them."""

import json
from collections.abc import Mapping
from typing import Any

from tests.servers.kafka_client import Record

AT_MS = 1_793_491_200_000  # 2026-11-01T00:00:00Z
Row = Mapping[str, Any]


def event(
    op: str, before: Row | None, after: Row | None, *, with_schema: bool = False, **more: Any
) -> dict[str, Any]:
    """The value of an event; `more` replaces parts of its envelope."""
    source = {
        "version": "3.3.1.Final",
        "connector": "mysql",
        "name": "shop",
        "ts_ms": AT_MS,
        "snapshot": "true" if op == "r" else "false",
        "db": "inventory",
        "sequence": None,
        "table": "customers",
        "server_id": 223344,
        "gtid": None,
        "file": "binlog.000003",
        "pos": 484,
        "row": 0,
        "thread": 7,
        "query": None,
    }
    envelope = {"before": before, "after": after, "source": source, "op": op, "ts_ms": AT_MS + 7}
    envelope |= {"transaction": None, **more}
    return _with_schema("Envelope", envelope) if with_schema else envelope


def records(
    op: str,
    before: Row | None,
    after: Row | None,
    *,
    with_schema: bool = False,
    partition: int | None = None,
) -> list[Record]:
    """The records of a change of a row: a delete has a tombstone behind it."""
    row = before if after is None else after
    assert row is not None
    key: dict[str, Any] = {"id": row["id"]}
    text = json.dumps(_with_schema("Key", key) if with_schema else key).encode()
    value = json.dumps(event(op, before, after, with_schema=with_schema)).encode()
    found = [Record(value, text, partition=partition)]
    return [*found, Record(None, text, partition=partition)] if op == "d" else found


def _with_schema(name: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    fields = [{"type": "string", "optional": True, "field": each} for each in payload]
    schema = {
        "type": "struct",
        "fields": fields,
        "optional": False,
        "name": f"shop.inventory.customers.{name}",
    }
    return {"schema": schema, "payload": dict(payload)}
