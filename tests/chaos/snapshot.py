"""The state of ZooKeeper after a run, read without the code under test."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

_AT_ONCE = 500
"""Pipelined requests: enough to fill the connection, few enough that none waits for long."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `readable` False: its bytes are no record, and only `version` is known."""

    version: int
    run_key: str = ""
    queue: str = ""
    pool: str = ""
    due: int | None = None
    nonce: str = ""
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Token:
    """A node in a queue; the id of a foreign node is its whole name."""

    queue: str
    pool: str
    id: str
    due: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All records by id, all tokens, all locks as `pool/id`."""

    records: Mapping[str, Record] = field(default_factory=dict)
    tokens: tuple[Token, ...] = ()
    locks: tuple[str, ...] = ()


def take_snapshot(client: KazooClient, root: str, only: Callable[[str], bool] = lambda _id: True) -> Snapshot:
    """Read records, tokens and locks below `root`; the actors must have been stopped.

    `client` talks to a server directly. `only` picks items by id; locks are given always.
    """
    client.sync(root)
    ids = [
        (f"{root}/jobs/{bucket}/{item_id}", item_id)
        for bucket in _children(client, f"{root}/jobs")
        for item_id in _children(client, f"{root}/jobs/{bucket}")
        if only(item_id)
    ]
    found = _get_many(client, [path for path, _ in ids])
    records = {
        item_id: _record(data, version) for (_, item_id), (data, version) in zip(ids, found, strict=True)
    }
    tokens = tuple(token for token in _tokens(client, f"{root}/queues") if only(token.id))
    locks = tuple(
        f"{pool}/{name}"
        for folder in ("locks", "holds")
        for pool in _children(client, f"{root}/{folder}")
        for name in _children(client, f"{root}/{folder}/{pool}")
    )
    return Snapshot(records, tokens, locks)


def _children(client: KazooClient, path: str) -> list[str]:
    try:
        names: list[str] = sorted(client.get_children(path))
    except NoNodeError:
        return []
    return names


def _get_many(client: KazooClient, paths: list[str]) -> Iterator[tuple[bytes, int]]:
    for start in range(0, len(paths), _AT_ONCE):
        for reply in [client.get_async(path) for path in paths[start : start + _AT_ONCE]]:
            data, stat = reply.get(timeout=30)
            yield data, stat.version


def _tokens(client: KazooClient, path: str) -> Iterable[Token]:
    for queue in _children(client, path):
        for pool in _children(client, f"{path}/{queue}"):
            for name in _children(client, f"{path}/{queue}/{pool}"):
                item_id, due = parse_token(name)
                yield Token(queue, pool, item_id, due)


def parse_token(name: str) -> tuple[str, int | None]:
    """Id and due time of a token `queue-|<id>|<due, hex>|<seq>`; the name itself for a foreign node."""
    parts = name.split("|")
    try:
        prefix, item_id, due, seq = parts
        int(seq, 16)
        return (item_id, int(due, 16)) if prefix == "queue-" else (name, None)
    except ValueError:
        return name, None


def _record(data: bytes, version: int) -> Record:
    try:
        document: dict[str, Any] = json.loads(data)
        return Record(
            version=version,
            run_key=document["run_key"],
            queue=document["queue"],
            pool=document["pool"],
            due=parse_token(document["token"])[1],
            nonce=document["nonce"],
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Record(version, readable=False)
