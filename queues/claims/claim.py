"""A held item and its transitions: each is one multi that fails once the claim is no longer valid."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from queues.claims.claim_attempt import Hold, change_operations, unlock_operations
from queues.model.codec import new_nonce
from queues.model.errors import ClaimLost, Conflict, CorruptRecord, QueueError
from queues.model.events import EventKind
from queues.model.names import Token
from queues.model.operations import Check, Create, Delete, Operation
from queues.model.record import NOTE_BYTES, Record
from queues.session import SessionState
from queues.store.commit import commit
from queues.store.root import Root

_MAX_SENDS = 3  # the target folder may be removed between two sends


class Claim:
    """One held item. Used by one thread at a time; only its own methods assign its attributes.

    The record's version is the fence, and its nonce identifies the author of the last change. Each multi
    checks both, with the lock and the token: a holder that lost its session, was paused or was cut off
    changes nothing.
    """

    __slots__ = ("_on_end", "has_left", "held", "hold", "record", "root", "version")

    def __init__(
        self, root: Root, record: Record, *, version: int, hold: Hold, on_end: Callable[["Claim"], None]
    ) -> None:
        self.root = root
        self._on_end = on_end
        self.hold = hold
        self.record = record
        self.version = version
        self.held = True
        self.has_left = False  # the token at which it was claimed no longer exists

    @property
    def id(self) -> str:
        """The item's id."""
        return self.record.id

    @property
    def queue(self) -> str:
        """The queue that contains the item."""
        return self.record.queue

    @property
    def payload(self) -> Mapping[str, Any]:
        """The payload as last read or written."""
        return self.record.payload

    @property
    def same_session(self) -> bool:
        """Whether the session in which the item was claimed still exists."""
        return self.hold.generation == self.hold.session.generation

    @property
    def session_has_ended(self) -> bool:
        """Whether its session has ended, or may have ended by the local clock."""
        return not self.same_session or self.hold.session.state is SessionState.LOST

    def check(self) -> None:
        """Raise ClaimLost if the session has ended, or may have ended by the local clock: then stop acting.

        Likewise when the item was claimed for a request to stop it and that request no longer exists.
        """
        session = self.hold.session
        if self.session_has_ended:
            raise self.lose("the session in which it was claimed has ended")
        if self.hold.for_stop and session.exists(self.root.layout.stop(self.record.pool, self.id)) is None:
            raise self.void()

    def commit(
        self,
        *,
        payload: Mapping[str, Any] | None = None,
        queue: str | None = None,
        pool: str | None = None,
        due: int | None = None,
        failures: int = 0,
        error: Mapping[str, Any] | None = None,
        extra: Sequence[Operation] = (),
        release: bool = False,
    ) -> None:
        """Change payload, queue, pool, due time, or several of them, in one multi.

        Id and seq do not change. `extra` operations are part of the same multi: if one of them is refused,
        nothing changes, Conflict is raised and the item is still held. Raises ClaimLost if the claim is lost.
        """
        self.transition(
            payload=payload,
            queue=queue,
            pool=pool,
            due=due,
            failures=failures,
            error=error,
            extra=extra,
            release=release,
        ).run()

    def release(self) -> None:
        """Release the item without a change."""
        self.releasing().run()

    def remove(self, extra: Sequence[Operation] = ()) -> None:
        """Remove the item. `extra` removes the children of its record, which is removed last."""
        self.removal(extra).run()

    def abandon(self) -> None:
        """Forget the claim. The lock ends with the session, or a rescan removes it."""
        self.end()

    def give_up(self) -> None:
        """Release the item, unchanged, if it is still held."""
        if self.held:
            try:
                self._put_back()
            except QueueError:
                self.abandon()

    def _put_back(self) -> None:
        # An orderly release proves that the item did not kill its worker: this claim is not counted.
        record = self.record
        claims = max(0, record.claims - 1)
        self.transition(failures=record.failures, error=record.error, claims=claims, release=True).run()

    # ------------------------------------------------------------------ transitions
    def transition(
        self,
        *,
        payload: Mapping[str, Any] | None = None,
        queue: str | None = None,
        pool: str | None = None,
        due: int | None = None,
        failures: int = 0,
        error: Mapping[str, Any] | None = None,
        claims: int = 0,
        extra: Sequence[Operation] = (),
        release: bool = False,
    ) -> "Transition":
        """The transition of `commit`, not yet sent: see `run_transitions`. `claims`: the new claim count."""
        old, root = self.record, self.root
        if queue is not None:
            root.check_queue(queue)
        if pool is not None and pool != old.pool:
            root.ensure_pool(pool)
        if due is None and self.hold.for_stop and queue not in {None, old.queue}:
            # It is due there at once, even if the holder dies and the request is gone.
            due = min(old.token.due, root.clock.now_ms())
        new = old.evolve(
            payload=old.payload if payload is None else payload,
            queue=queue or old.queue,
            pool=pool or old.pool,
            token=old.token if due is None else Token(id=old.id, due=due, seq=old.token.seq),
            nonce=new_nonce(),
            claims=claims,
            failures=failures,
            error=error,
        )
        if new.queue == root.dead != old.queue:
            kind = EventKind.DEAD
        elif (new.queue, new.pool) != (old.queue, old.pool):
            kind = EventKind.MOVE
        else:
            kind = EventKind.COMMIT if new.token == old.token else EventKind.REQUEUE
        data = new.encode(root.max_record_bytes + (NOTE_BYTES if payload is None else 0))
        operations = change_operations(
            root.layout, self.hold, old, new, data=data, version=self.version, release=release
        )
        return Transition(self, kind, operations, extra, record=new, release=release)

    def removal(self, extra: Sequence[Operation] = ()) -> "Transition":
        """The transition of `remove`, not yet sent."""
        operations = [*self._unlock(), Delete(self._token), Check(self._path, self.version)]
        last = Delete(self._path, self.version)
        return Transition(self, EventKind.REMOVE, operations, (*extra, last), record=None, release=True)

    def releasing(self) -> "Transition":
        """The transition of `release`, not yet sent."""
        operations = [*self._unlock(), Check(self._token), Check(self._path, self.version)]
        return Transition(self, EventKind.COMMIT, operations, (), record=None, release=True)

    def _unlock(self) -> list[Operation]:
        return unlock_operations(self.root.layout, self.hold, self.record)

    @property
    def _token(self) -> str:
        return self.root.layout.token(self.queue, self.record.pool, self.record.token)

    @property
    def _path(self) -> str:
        return self.root.layout.record(self.id)

    # ------------------------------------------------------------------ state
    def accept(self, kind: EventKind, record: Record | None, *, release: bool, seconds: float) -> None:
        """Take over the state that a committed transition has written; `record` is None if it wrote none."""
        before, version = self.record, self.version
        if record is not None:
            self.record = record
            version = self.version = version + 1
            if record.pool != before.pool:
                self.hold = replace(self.hold, slot=None)
            if self.hold.for_stop and record.queue != before.queue:
                self.hold = replace(self.hold, for_stop=False)  # it is due in its new queue
        self.has_left = release and kind is not EventKind.COMMIT
        self.root.notify(
            kind,
            before,
            self.record,
            version=version,
            released=release,
            seconds=seconds,
            detail=str((self.record.error or {}).get("reason", "")),
        )
        if release:
            self.end()

    def lose(self, reason: str) -> ClaimLost:
        """End a claim that was lost; returns the error to raise."""
        if self.held:
            self.root.notify(
                EventKind.LOST,
                self.record,
                version=self.version,
                same_session=self.same_session,
                detail=reason,
            )
        self.end()
        return ClaimLost(self.id, reason)

    def void(self) -> ClaimLost:
        """Release an item whose request to stop no longer exists; returns the error to raise."""
        self.give_up()
        return ClaimLost(self.id, "the request to stop it, for which it was claimed, is gone")

    def end(self) -> None:
        """Mark the item as no longer held."""
        if self.held:
            self.held = False
            self._on_end(self)


class Transition:
    """One change of a held item: the operations of its multi, and their meaning once they are committed."""

    __slots__ = ("_holding", "_kind", "_record", "_release", "claim", "operations")

    def __init__(
        self,
        claim: Claim,
        kind: EventKind,
        holding: Sequence[Operation],
        extra: Sequence[Operation],
        *,
        record: Record | None,
        release: bool,
    ) -> None:
        self.claim = claim
        self.operations = (*holding, *extra)
        self._kind = kind
        self._holding = len(holding)
        self._record = record  # the new record; None if it does not change or is removed
        self._release = release

    def run(self) -> None:
        """Commit it. Raises ClaimLost, or Conflict if only one of `extra` was refused."""
        claim = self.claim
        if not claim.held:
            raise ClaimLost(claim.id, "it was released before")
        started = time.monotonic()
        for _ in range(_MAX_SENDS):
            refused = None
            try:
                commit(claim.hold.session, self.operations)
            except Conflict as conflict:
                refused = conflict
            if not self.restores_folder(refused):
                break
        error = self.settle(refused, time.monotonic() - started)
        if error is not None:
            raise error from refused

    def restores_folder(self, refused: QueueError | None) -> bool:
        """Whether it was refused because its target folder is missing; the folder is then made again."""
        if not (isinstance(refused, Conflict) and refused.reason == "NoNode" and self._record is not None):
            return False
        if refused.index >= self._holding or not isinstance(self.operations[refused.index], Create):
            return False
        self.claim.root.forget_folders()
        self.claim.root.ensure_pool(self._record.pool)
        return True

    def settle(self, refused: QueueError | None, seconds: float) -> QueueError | None:
        """Apply the server's answer to the claim; returns the error, None if the transition is committed."""
        # A refusal after a lost reply may be the echo of our own success: the nonce decides.
        if isinstance(refused, Conflict) and not (refused.ambiguous and self._is_done()):
            return refused if refused.index >= self._holding else self.claim.lose(str(refused))
        if refused is not None and not isinstance(refused, Conflict):
            return refused
        self.claim.accept(self._kind, self._record, release=self._release, seconds=seconds)
        return None

    def _is_done(self) -> bool:
        claim, session = self.claim, self.claim.hold.session
        layout = claim.root.layout
        if self._record is None and self._kind is not EventKind.REMOVE:
            # A release is done when the lock is gone while its session still exists.
            return claim.same_session and session.exists(layout.lock(claim.record.pool, claim.id)) is None
        found = session.get(layout.record(claim.id))
        try:
            record = None if found is None else Record.decode(claim.id, found[0])
        except CorruptRecord:
            return False
        if self._record is None:
            # The record is gone, or the id belongs to another item. Only in the same session is it certain
            # that no other holder removed it.
            return claim.same_session and (record is None or record.run_key != claim.record.run_key)
        return record is not None and record.nonce == self._record.nonce
