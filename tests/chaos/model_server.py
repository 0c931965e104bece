"""The server of the model: records, tokens and locks, and the protections that can be taken out."""

from dataclasses import dataclass
from enum import StrEnum

from tests.chaos.snapshot import Record, Snapshot, Token

POOL = "p"

TokenKey = tuple[str, str, int]
"""A token: id, queue, due."""


class Broken(StrEnum):
    """A protection that is taken out."""

    NOTHING = "nothing"
    HOLDING = "a step is accepted without a check of the holder"
    REMOVAL = "a removal is accepted without a check of the holder"
    LOCK = "a claim does not check the lock"
    MOVED_ON = "a claim does not check that the token exists"
    DELETE = "a move does not delete the old token"
    CREATE = "a move does not create the new token"
    DUE = "a claim does not check the due time"
    GRAPH = "a step may lead to any queue"
    LIMIT = "attempts have no limit"
    COUNT = "attempts are not counted"
    TAKEN = "a put does not check that the id is free"
    STORED = "a put is acknowledged before it is done"
    UNLOCK = "a lock is never deleted"
    ROLLBACK = "a restart loses the last changes"


@dataclass(slots=True)
class Item:
    """A record."""

    run_key: str
    queue: str
    due: int
    nonce: str
    version: int = 0
    attempt: int = 1


@dataclass(slots=True)
class Held:
    """A claim, as the actor has it."""

    id: str
    run_key: str
    fence: int
    session: int


class Server:
    """Accepts or refuses each request as a whole."""

    def __init__(self, broken: Broken) -> None:
        self._broken = broken
        self.items: dict[str, Item] = {}
        self.tokens: set[TokenKey] = set()
        self.locks: dict[str, int] = {}  # id to session

    def put(self, item_id: str, item: Item) -> bool:
        """False when the id is taken."""
        if item_id in self.items and self._broken is not Broken.TAKEN:
            return False
        self._forget(item_id)
        self.items[item_id] = item
        self.tokens.add((item_id, item.queue, item.due))
        return True

    def claim(self, token: TokenKey, session: int, nonce: str) -> Item | None:
        """The claimed item, None when it is held, gone, or has moved on."""
        item_id, queue, due = token
        item = self.items.get(item_id)
        held = item_id in self.locks and self._broken is not Broken.LOCK
        gone = token not in self.tokens and self._broken is not Broken.MOVED_ON
        if item is None or held or gone:
            return None
        item.version, item.nonce, item.queue, item.due = item.version + 1, nonce, queue, due
        self.locks[item_id] = session
        return item

    def move(self, held: Held, to_queue: str, due: int, nonce: str, *, release: bool) -> bool:
        """False when the item is not held."""
        item = self._item_of(held, Broken.HOLDING)
        if item is None:
            return False
        if self._broken is not Broken.DELETE:
            self.tokens.discard((held.id, item.queue, item.due))
        if self._broken is not Broken.CREATE:
            self.tokens.add((held.id, to_queue, due))
        if to_queue == "accept" and self._broken is not Broken.COUNT:
            item.attempt += 1
        item.version, item.queue, item.due, item.nonce = item.version + 1, to_queue, due, nonce
        if release and self._broken is not Broken.UNLOCK:
            self.locks.pop(held.id, None)
        return True

    def remove(self, held: Held) -> bool:
        """False when the item is not held."""
        if self._item_of(held, Broken.REMOVAL) is None:
            return False
        self._forget(held.id)
        self.locks.pop(held.id, None)
        return True

    def end_session(self, session: int) -> None:
        """End a session and delete its locks."""
        if self._broken is not Broken.UNLOCK:
            self.locks = {item_id: owner for item_id, owner in self.locks.items() if owner != session}

    def snapshot(self) -> Snapshot:
        """All records, tokens and locks."""
        lost = 1 if self._broken is Broken.ROLLBACK else 0
        records = {
            item_id: Record(max(0, item.version - lost), item.run_key, item.queue, POOL, item.due, item.nonce)
            for item_id, item in self.items.items()
        }
        tokens = tuple(Token(queue, POOL, item_id, due) for item_id, queue, due in self.tokens)
        return Snapshot(records, tokens, tuple(self.locks))

    def _item_of(self, held: Held, unprotected: Broken) -> Item | None:
        item = self.items.get(held.id)
        if item is None or self._broken is unprotected:
            return item
        mine = (
            self.locks.get(held.id) == held.session
            and (item.run_key, item.version) == (held.run_key, held.fence)
            and (held.id, item.queue, item.due) in self.tokens
        )
        return item if mine else None

    def _forget(self, item_id: str) -> None:
        self.items.pop(item_id, None)
        self.tokens = {token for token in self.tokens if token[0] != item_id}
