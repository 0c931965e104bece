"""The record of an item: where it stands, who holds it, and the payload of its owner."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from queues.documents import decode, encode
from queues.errors import CorruptRecord, TooLarge
from queues.names import Token

# An item is state, not data: everything in ZooKeeper lives in memory, on every server.
MAX_RECORD_BYTES = 64 * 1024


def timestamp() -> str:
    """The time now as people and other programs read it: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Record:
    """One item. `run_key` names this put for ever; `nonce` names the last accepted change."""

    id: str
    run_key: str
    queue: str
    pool: str
    token: Token
    nonce: str
    claims: int = 0
    payload: Mapping[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The bytes of the node; raises TooLarge beyond 64 KiB."""
        data = encode(
            {
                "id": self.id,
                "run_key": self.run_key,
                "queue": self.queue,
                "pool": self.pool,
                "token": self.token.name,
                "nonce": self.nonce,
                "claims": self.claims,
                "payload": dict(self.payload),
            }
        )
        if len(data) > MAX_RECORD_BYTES:
            raise TooLarge(f"the record of {self.id!r}", len(data), MAX_RECORD_BYTES)
        return data

    @classmethod
    def decode(cls, item_id: str, data: bytes) -> "Record":
        """The record in these bytes; raises CorruptRecord."""
        try:
            document = decode(data)
            token = Token.parse(document["token"])
            if token is None or document["id"] != item_id or token.id != item_id:
                raise CorruptRecord(item_id, "it names another item or no token")
            return cls(
                id=item_id,
                run_key=str(document["run_key"]),
                queue=str(document["queue"]),
                pool=str(document["pool"]),
                token=token,
                nonce=str(document["nonce"]),
                claims=int(document["claims"]),
                payload=dict(document["payload"]),
            )
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise CorruptRecord(item_id, f"{type(error).__name__}: {error}") from error

    def evolve(self, **changes: Any) -> "Record":
        """A copy with these fields changed."""
        return replace(self, **changes)
