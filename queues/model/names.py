"""Names of nodes: the one place that builds or parses them."""

import re
import zlib
from dataclasses import dataclass, field
from functools import lru_cache

from queues.model.errors import InvalidName

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_POOL = re.compile(r"[A-Za-z0-9_-]{1,64}(\.low)?")
_TOKEN = re.compile(r"queue-\|(?P<id>[A-Za-z0-9._-]{1,128})\|(?P<due>[0-9a-f]{11})\|(?P<seq>[0-9a-f]{13})")

DEFAULT_POOL = "default"
LOW_LANE_SUFFIX = ".low"
"""The suffix of a pool's low lane: `P.low` is served when P has nothing due."""
MAX_DUE = 0xFFFFFFFFFFF


def check_id(item_id: str) -> str:
    """The id unchanged; raises InvalidName if it cannot be a node name. Ids are never rewritten."""
    if not _ID.fullmatch(item_id) or item_id in {".", ".."}:
        message = f"id {item_id!r} is not valid: 1 to 128 of A-Z a-z 0-9 . _ - and not '.' or '..'"
        raise InvalidName(message)
    return item_id


def check_pool(pool: str) -> str:
    """The pool name unchanged; raises InvalidName if it cannot be a node name."""
    if not _POOL.fullmatch(pool):
        message = f"pool {pool!r} is not valid: 1 to 64 of A-Z a-z 0-9 _ -, then .low for its low lane"
        raise InvalidName(message)
    return pool


def is_pool(name: str) -> bool:
    """Whether a node name is a valid name of a pool or low lane."""
    return _POOL.fullmatch(name) is not None


def is_token(name: str) -> bool:
    """Whether a node name looks like a token, without parsing it."""
    return name.startswith("queue-|") and name[-14:-13] == "|" == name[-26:-25]


def order_of(name: str) -> str:
    """The sort key of a token's name: due time and sequence have a fixed width."""
    return name[-25:]


def due_of(name: str) -> str:
    """The due time in a token's name, as eleven hex digits that compare like numbers."""
    return name[-25:-14]


def seq_of(name: str) -> str:
    """The sequence in a token's name, as thirteen hex digits that compare like numbers."""
    return name[-13:]


def id_of(name: str) -> str:
    """The id in a token's name."""
    return name[7:-26]


@dataclass(frozen=True, slots=True, order=True)
class Token:
    """The position of an item in its queue: by due time, then by the order in which items were put.

    `due` is epoch milliseconds of the ensemble's clock; `seq` is allocated once, when the item is put, and
    never changes, so that a token's name is known before the multi that makes it.
    """

    due: int
    seq: int
    id: str
    name: str = field(init=False, repr=False, compare=False)
    """The node name, for example `queue-|flights|019a0c5e1f2|6441f0b3c2a10`."""

    def __post_init__(self) -> None:
        # Eleven hex digits end in the year 2527: a later due time means never.
        due = min(max(self.due, 0), MAX_DUE)
        object.__setattr__(self, "due", due)
        object.__setattr__(self, "name", f"queue-|{self.id}|{due:011x}|{self.seq:013x}")

    @staticmethod
    @lru_cache(maxsize=1024)  # a name is parsed when listed, and again when its record is read
    def parse(name: str) -> "Token | None":
        """The token with this node name; None for a foreign node."""
        match = _TOKEN.fullmatch(name)
        if match is None:
            return None
        return Token(id=match["id"], due=int(match["due"], 16), seq=int(match["seq"], 16))


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below the root of one orchestrator."""

    root: str

    def __post_init__(self) -> None:
        if not self.root.startswith("/") or self.root.endswith("/"):
            message = f"root {self.root!r} is not valid: it starts with / and does not end with it"
            raise InvalidName(message)

    def record(self, item_id: str) -> str:
        """The record of an item, from the put to its removal; 256 buckets keep every listing short.

        JSON: id, run key, queue, pool, token, nonce of the holder, claims, and the payload. `<xx>` is the
        first byte of the CRC-32 of the id.
        """
        # Half of a surrogate pair in an id without a check: the session refuses the path.
        bucket = zlib.crc32(item_id.encode(errors="surrogatepass")) >> 24
        return f"{self.root}/jobs/{bucket:02x}/{item_id}"

    @property
    def buckets(self) -> str:
        """The folder of the buckets of records."""
        return f"{self.root}/jobs"

    def queue(self, queue: str, pool: str) -> str:
        """The folder of the tokens of one pool in one queue."""
        return f"{self.root}/queues/{queue}/{pool}"

    def token(self, queue: str, pool: str, token: Token) -> str:
        """The position of an item in a queue: its due time, then its sequence; it has no data.

        The due time is in epoch milliseconds, both numbers in hexadecimal.
        """
        return f"{self.queue(queue, pool)}/{token.name}"

    def locks(self, pool: str) -> str:
        """The folder of the locks of one pool, for all queues."""
        return f"{self.root}/locks/{pool}"

    def lock(self, pool: str, item_id: str) -> str:
        """The lock of an item: an ephemeral node of the session that holds it.

        JSON: holder, nonce of the claim, and the time of the claim.
        """
        return f"{self.locks(pool)}/{item_id}"

    def holds(self, pool: str) -> str:
        """The folder of the numbered slots of a capped pool."""
        return f"{self.root}/holds/{pool}"

    def hold(self, pool: str, slot: int) -> str:
        """One held item of a capped pool: an ephemeral node of its holder's session; its data is the id."""
        return f"{self.holds(pool)}/{slot}"

    @property
    def consumers(self) -> str:
        """The folder of the announcements of all consumers."""
        return f"{self.root}/consumers"

    def consumer(self, name: str) -> str:
        """The announcement of a consumer: an ephemeral node of its session.

        JSON: the queues and pools that it takes; null means all.
        """
        return f"{self.consumers}/{name}"

    def stops(self, pool: str) -> str:
        """The folder of the requests to stop an item."""
        return f"{self.root}/stops/{pool}"

    def stop(self, pool: str, item_id: str) -> str:
        """The request to stop an item; it needs no lock, and overrides the due time.

        JSON: run key, who asked for it and when, and whether it is graceful.
        """
        return f"{self.stops(pool)}/{item_id}"

    @property
    def pools(self) -> str:
        """The folder of the limits of all pools."""
        return f"{self.root}/config/pools"

    def pool(self, pool: str) -> str:
        """The limits of a pool; the node exists while the pool does.

        JSON: cap, weight, bound, paused and the like, without those that have their default.
        """
        return f"{self.pools}/{pool}"

    @property
    def receipts(self) -> str:
        """The folder of the receipts of the producers."""
        return f"{self.root}/receipts"

    def receipt(self, name: str) -> str:
        """The proof of which multis of a client were committed; it has no data, its version counts them."""
        return f"{self.receipts}/{name}"

    @property
    def clock(self) -> str:
        """The node whose mtime, after a write, is the ensemble's time; its data is that time."""
        return f"{self.root}/config/clock"

    @property
    def clock_jump(self) -> str:
        """The offset of the ensemble's clock: an ephemeral node of a client that saw the clock jump."""
        return f"{self.clock}-jump"
