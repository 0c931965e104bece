"""A held item: every change of it is one multi that fails when the item is no longer ours."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from queues.errors import ClaimLost, Conflict, CorruptRecord
from queues.names import Layout, Token
from queues.operations import Check, Create, Delete, Operation, Set
from queues.record import Record
from queues.session import Session, SessionState
from queues.transaction import commit


class Claim:
    """What a holder has in hand. Used by one thread at a time.

    The record's version is the fence and its nonce tells whose change it was. Both are checked, with the lock
    and the token, in each multi: a holder that lost its session, was paused or cut off changes nothing.
    """

    def __init__(
        self,
        session: Session,
        layout: Layout,
        record: Record,
        *,
        version: int,
        generation: int,
        on_end: Callable[["Claim"], None],
    ) -> None:
        self._session = session
        self._layout = layout
        self._generation = generation
        self._on_end = on_end
        self.record = record
        self.version = version
        self.held = True

    @property
    def id(self) -> str:
        """The item's id."""
        return self.record.id

    @property
    def queue(self) -> str:
        """The queue in which the item stands."""
        return self.record.queue

    def check(self) -> None:
        """Raise ClaimLost when the session has ended, or may have by our own clock: then stop acting."""
        if self._generation != self._session.generation or self._session.state is SessionState.LOST:
            raise self._lost("the session in which it was claimed has ended")

    def commit(
        self,
        *,
        payload: Mapping[str, Any] | None = None,
        queue: str | None = None,
        due: int | None = None,
        extra: Sequence[Operation] = (),
        release: bool = False,
    ) -> None:
        """Change payload, queue, due time, or several of them, in one multi.

        Id and seq stay. `extra` operations of the caller ride along: when one of them is refused, nothing
        is changed, Conflict is raised and the item is still held. Raises ClaimLost when the item is not ours.
        """
        old = self.record
        token = old.token if due is None else Token(id=old.id, due=due, seq=old.token.seq)
        new = old.evolve(
            payload=old.payload if payload is None else payload,
            queue=queue or old.queue,
            token=token,
            nonce=uuid.uuid4().hex,
        )
        before = self._layout.token(old.queue, old.pool, old.token)
        after = self._layout.token(new.queue, new.pool, new.token)
        holding: list[Operation] = [
            self._lock_operation(release=release),
            Check(before) if before == after else Delete(before),
            Set(self._layout.record(self.id), new.encode(), self.version),
        ]
        if before != after:
            holding.append(Create(after))
        self._commit(holding, extra, nonce=new.nonce)
        self.record = new
        self.version += 1
        if release:
            self._end()

    def release(self) -> None:
        """Let go without a change; who comes next finds the item as it is."""
        self._commit(
            [self._lock_operation(release=True), Check(self._layout.record(self.id), self.version)],
            (),
            nonce=None,
        )
        self._end()

    def remove(self, extra: Sequence[Operation] = ()) -> None:
        """Remove the item; `extra` removes what hangs below its record, which goes last."""
        holding: list[Operation] = [
            self._lock_operation(release=True),
            Delete(self._layout.token(self.queue, self.record.pool, self.record.token)),
            Check(self._layout.record(self.id), self.version),
        ]
        self._commit(
            holding, [*extra, Delete(self._layout.record(self.id), self.version)], nonce=None, removal=True
        )
        self._end()

    def abandon(self) -> None:
        """Forget the claim; the lock goes with the session, or a rescan removes it."""
        self._end()

    def _lock_operation(self, *, release: bool) -> Operation:
        lock = self._layout.lock(self.record.pool, self.id)
        return Delete(lock) if release else Check(lock)

    def _commit(
        self,
        holding: Sequence[Operation],
        extra: Sequence[Operation],
        nonce: str | None,
        *,
        removal: bool = False,
    ) -> None:
        if not self.held:
            raise ClaimLost(self.id, "it was let go before")
        try:
            commit(self._session, [*holding, *extra])
        except Conflict as conflict:
            # A refusal after a lost reply may be the echo of our own success: the nonce tells.
            if conflict.ambiguous and self._is_done(nonce, removal=removal):
                return
            if conflict.index >= len(holding):
                raise
            raise self._lost(str(conflict)) from conflict

    def _is_done(self, nonce: str | None, *, removal: bool) -> bool:
        found = self._session.get(self._layout.record(self.id))
        if removal:  # done when the item is gone, or another has its id
            return found is None or found[1].version < self.version
        if nonce is None:  # release: done when our lock is no longer there
            return found is None or self._session.exists(self._layout.lock(self.record.pool, self.id)) is None
        if found is None:
            return False
        try:
            return Record.decode(self.id, found[0]).nonce == nonce
        except CorruptRecord:
            return False

    def _lost(self, reason: str) -> ClaimLost:
        self._end()
        return ClaimLost(self.id, reason)

    def _end(self) -> None:
        if self.held:
            self.held = False
            self._on_end(self)
