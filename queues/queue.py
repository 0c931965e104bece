"""The queues of one root: put, look, claim."""

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from queues.claim import Claim
from queues.clock import EnsembleClock
from queues.documents import encode
from queues.errors import Conflict, CorruptRecord, IdTaken, ItemNotFound, QueueError, TooLarge
from queues.names import DEFAULT_POOL, Layout, Token, check_id, check_pool
from queues.operations import Check, Create, Delete, Operation, Set
from queues.record import Record, timestamp
from queues.session import Session
from queues.transaction import commit


class QueueSet:
    """Several queues over one set of items: an id is in exactly one queue, always."""

    def __init__(
        self, session: Session, layout: Layout, queues: Sequence[str], *, dead: str, owner: str
    ) -> None:
        self.session = session
        self.layout = layout
        self.queues = tuple(queues)
        self.dead = dead
        self.owner = owner  # for people who look at a lock: who holds it
        self.clock = EnsembleClock(session, layout)
        self._ensured: set[str] = set()
        self._last_seq = 0
        self._guard = threading.Lock()
        self._held_nonces: dict[str, str] = {}  # id -> nonce of the claim, from before it is sent

    # ------------------------------------------------------------------ folders
    def ensure_pool(self, pool: str = DEFAULT_POOL) -> None:
        """Make the folders of a pool in every queue."""
        check_pool(pool)
        paths = [self.layout.queue(queue, pool) for queue in self.queues]
        for path in (*paths, self.layout.locks(pool), self.layout.stops(pool), self.layout.pool(pool)):
            self._ensure(path)

    def _ensure(self, path: str) -> None:
        if path not in self._ensured:
            self.session.ensure_path(path)
            self._ensured.add(path)

    # ------------------------------------------------------------------ put
    def put(
        self,
        queue: str,
        item_id: str,
        payload: Mapping[str, Any],
        *,
        pool: str = DEFAULT_POOL,
        delay_ms: int = 0,
        run_key: str = "",
        extra: Callable[[str], Iterable[Operation]] = lambda _record: (),
    ) -> Record:
        """Put a new item, exactly once; raises IdTaken when another put has the id.

        `extra` gets the path of the record and returns operations that ride in the same multi.
        """
        check_id(item_id)
        self.ensure_pool(pool)
        now = self.clock.now_ms()
        record = Record(
            id=item_id,
            run_key=run_key or str(uuid.uuid4()),
            queue=queue,
            pool=pool,
            token=Token(id=item_id, due=now + delay_ms, seq=self._next_seq(now)),
            nonce=uuid.uuid4().hex,
            payload=payload,
        )
        path = self.layout.record(item_id)
        self._ensure(path.rpartition("/")[0])
        try:
            commit(
                self.session,
                [
                    Create(path, record.encode()),
                    Create(self.layout.token(queue, pool, record.token)),
                    *extra(path),
                ],
            )
        except Conflict as conflict:
            if conflict.index != 0 or conflict.reason != "NodeExists":
                self._ensured.clear()  # a folder that was there is gone
                raise
            # The id is there: by our own lost reply, or by somebody else's put.
            if not (conflict.ambiguous and self._run_key(item_id) == record.run_key):
                raise IdTaken(item_id) from conflict
        return record

    def _run_key(self, item_id: str) -> str | None:
        try:
            return self.read(item_id)[0].run_key
        except (ItemNotFound, CorruptRecord):
            return None

    def _next_seq(self, now_ms: int) -> int:
        # Microseconds of the ensemble's time, and never twice from one process.
        with self._guard:
            self._last_seq = max(self._last_seq + 1, now_ms * 1000 + time.time_ns() // 1000 % 1000)
            return self._last_seq

    # ------------------------------------------------------------------ look
    def read(self, item_id: str) -> tuple[Record, int]:
        """The record of an item and its version; raises ItemNotFound, CorruptRecord."""
        found = self.session.get(self.layout.record(check_id(item_id)))
        if found is None:
            raise ItemNotFound(item_id)
        return Record.decode(item_id, found[0]), found[1].version

    def tokens(self, queue: str, pool: str = DEFAULT_POOL) -> list[Token]:
        """The tokens of a queue in the order in which they are due; foreign nodes are left out."""
        names = self.session.children(self.layout.queue(queue, pool)) or []
        return sorted(token for name in names if (token := Token.parse(name)) is not None)

    def count(self, queue: str, pool: str = DEFAULT_POOL) -> int:
        """How many nodes stand in a queue, without listing them."""
        stat = self.session.exists(self.layout.queue(queue, pool))
        return 0 if stat is None else stat.children

    # ------------------------------------------------------------------ claim
    def claim(
        self, queue: str, pool: str, token: Token, pool_version: int = -1, *, stopped: bool = False
    ) -> Claim | None:
        """Take an item that nobody holds; None when somebody was faster or it has moved on.

        Raises CorruptRecord and ItemNotFound for a token whose item cannot be read: see `bury`. `stopped`:
        only if the request to stop it is still there, which is why it is taken before it is due.
        """
        record, version = self.read(token.id)
        nonce = uuid.uuid4().hex
        claimed = record.evolve(queue=queue, pool=pool, token=token, nonce=nonce, claims=record.claims + 1)
        try:  # before anything is registered
            data = claimed.encode()
        except (TooLarge, ValueError) as error:  # ValueError: text that UTF-8 cannot carry
            raise CorruptRecord(token.id, f"it cannot be written: {error}") from error
        generation = self.session.generation
        with self._guard:
            if token.id in self._held_nonces:
                return None
            self._held_nonces[token.id] = nonce
        claim = None
        try:
            done = self._commit_claim(claimed, data, version, pool_version, stopped)
            if done and generation == self.session.generation:
                claim = Claim(
                    self.session,
                    self.layout,
                    claimed,
                    version=version + 1,
                    generation=generation,
                    on_end=self._forget,
                )
        finally:
            if claim is None:
                self._forget_nonce(token.id, nonce)
        return claim

    def _commit_claim(
        self, claimed: Record, data: bytes, version: int, pool_version: int, stopped: bool
    ) -> bool:
        layout, pool = self.layout, claimed.pool
        lock = encode({"worker": self.owner, "nonce": claimed.nonce, "since": timestamp()})
        try:
            commit(
                self.session,
                [
                    # A worker with a stale listing would lock an item that has moved on.
                    Check(layout.token(claimed.queue, pool, claimed.token)),
                    Check(layout.pool(pool), pool_version),
                    Create(layout.lock(pool, claimed.id), lock, ephemeral=True),
                    Set(layout.record(claimed.id), data, version),
                    *([Check(layout.stop(pool, claimed.id))] if stopped else []),
                ],
            )
        except Conflict as conflict:
            if not conflict.ambiguous:
                return False
            record, _ = self.read(claimed.id)
            return record.nonce == claimed.nonce
        return True

    def _forget(self, claim: Claim) -> None:
        self._forget_nonce(claim.id, None)

    def _forget_nonce(self, item_id: str, nonce: str | None) -> None:
        with self._guard:
            if nonce is None or self._held_nonces.get(item_id) == nonce:
                self._held_nonces.pop(item_id, None)

    def holds(self, item_id: str) -> bool:
        """Whether this QueueSet holds the item, or is about to."""
        with self._guard:
            return item_id in self._held_nonces

    def release_strays(self, pool: str, locked: Iterable[str]) -> list[str]:
        """Remove locks of our own session that we hold no claim for: the left-overs of lost replies."""
        strays = []
        for item_id in locked:
            if self.holds(item_id):
                continue
            path = self.layout.lock(pool, item_id)
            if not self._is_mine(path):
                continue
            # The record's version makes it succeed only once: the lock of who claims the item next stays.
            found = self.session.get(self.layout.record(item_id))
            fence = [] if found is None else [Check(self.layout.record(item_id), found[1].version)]
            if not self._is_mine(path) or self.holds(item_id):  # still ours at that version
                continue
            try:
                commit(self.session, [*fence, Delete(path)])
                strays.append(item_id)
            except Conflict:
                pass  # gone meanwhile: that is what was wanted
        return strays

    def _is_mine(self, lock: str) -> bool:
        stat = self.session.exists(lock)
        return stat is not None and stat.owner == self.session.id

    # ------------------------------------------------------------------ dead
    def bury(self, queue: str, pool: str, token: Token, error: QueueError) -> bool:
        """Move the token of an item that cannot be read to `dead`, its bytes unchanged, with the reason.

        Refused (False) while somebody holds the item, when it has moved on, or when the record has changed.
        """
        layout = self.layout
        found = self.session.get(layout.record(token.id))
        lock = layout.lock(pool, token.id)
        reason = encode({"reason": str(error), "queue": queue, "since": timestamp()})
        operations: list[Operation] = [
            Create(lock, ephemeral=True),  # made and removed in one multi: proves that nobody holds the item
            Delete(layout.token(queue, pool, token)),
            Create(layout.token(self.dead, pool, token), reason),
            Delete(lock),
        ]
        if found is not None:
            operations.append(Check(layout.record(token.id), found[1].version))
        try:
            commit(self.session, operations)
        except Conflict as conflict:
            return (
                conflict.ambiguous and self.session.exists(layout.token(self.dead, pool, token)) is not None
            )
        return True
