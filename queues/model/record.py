"""The record of an item: its queue, its holder and its payload; and the item before it is put."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from sys import intern
from typing import Any

from queues.model.codec import decode, encode
from queues.model.errors import CorruptRecord, InvalidPayload, TooLarge
from queues.model.names import DEFAULT_POOL, Token
from queues.model.operations import Operation


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to put; `id` None makes a UUID.

    It is due after `delay_ms`, or at `due_ms` of the ensemble's epoch time when that is given.
    """

    payload: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    pool: str = DEFAULT_POOL
    delay_ms: int = 0
    due_ms: int | None = None
    run_key: str = ""
    extra_operations: Callable[[str], Iterable[Operation]] = lambda _record: ()
    """Gets the path of the record and returns operations for the same multi."""


# An item is state, not data: ZooKeeper keeps everything in memory, on every server.
MAX_RECORD_BYTES = 64 * 1024
# Facts beside the payload (counts, the last error, a longer queue name) must not prevent a claim, a move, or
# a move to dead.
NOTE_BYTES = 16 * 1024
_RUN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # part of the names of nodes and directories


@dataclass(frozen=True, slots=True)
class Record:
    """One item. `run_key` identifies this put permanently; `nonce` identifies the last accepted change.

    `claims` counts the claims since its last transition, `failures` the failed handler runs in its queue;
    `error` is the last failure: reason, traceback, queue, since.
    """

    id: str
    run_key: str
    queue: str
    pool: str
    token: Token
    nonce: str
    claims: int = 0
    payload: Mapping[str, Any] = field(default_factory=dict)
    failures: int = 0
    error: Mapping[str, Any] | None = None

    def encode(self, limit: int = MAX_RECORD_BYTES) -> bytes:
        """The bytes of the node; raises TooLarge beyond `limit` bytes, InvalidPayload."""
        document = {
            "id": self.id,
            "run_key": self.run_key,
            "queue": self.queue,
            "pool": self.pool,
            "token": self.token.name,
            "nonce": self.nonce,
            "claims": self.claims,
            "payload": self.payload if isinstance(self.payload, dict) else dict(self.payload),
        }
        if self.failures:
            document["failures"] = self.failures
        if self.error is not None:
            document["error"] = dict(self.error)
        try:
            data = encode(document)
        except (
            TypeError,
            ValueError,
            RecursionError,
        ) as error:  # ValueError: also text that is not valid Unicode
            raise InvalidPayload(self.id, error) from error
        if len(data) > limit:
            raise TooLarge(f"the record of {self.id!r}", len(data), limit)
        return data

    @classmethod
    def decode(cls, item_id: str, data: bytes) -> "Record":
        """The record in these bytes; raises CorruptRecord."""
        try:
            document = decode(data)
            token = Token.parse(document["token"])
            if token is None or document["id"] != item_id or token.id != item_id:
                raise CorruptRecord(item_id, "it names another item or no token")
            run_key, queue, pool = (str(document[name]) for name in ("run_key", "queue", "pool"))
            if not _RUN_KEY.fullmatch(run_key) or _is_relative(queue) or _is_relative(pool):
                raise CorruptRecord(item_id, "its run key, queue or pool cannot be the name of a node")
            return cls(
                id=item_id,
                run_key=run_key,
                queue=intern(queue),  # one text for the thousands of records that a worker holds
                pool=intern(pool),
                token=token,
                nonce=str(document["nonce"]),
                claims=int(document["claims"]),
                payload=dict(document["payload"]),
                failures=int(document.get("failures", 0)),
                error=dict(document["error"]) if document.get("error") is not None else None,
            )
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise CorruptRecord(item_id, f"{type(error).__name__}: {error}") from error

    def evolve(self, **changes: Any) -> "Record":
        """A copy with these fields changed."""
        # `dataclasses.replace` costs five times as much, twice for each item that is moved.
        new = object.__new__(Record)
        for name in _FIELDS:
            object.__setattr__(new, name, changes[name] if name in changes else getattr(self, name))
        return new


def _is_relative(name: str) -> bool:
    """Whether a path with this name would be resolved to another path, or be invalid."""
    return any(part in {"", ".", ".."} for part in name.split("/"))


_FIELDS = tuple(field.name for field in fields(Record))
