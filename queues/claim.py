"""A held item: every change of it is one multi that fails when the item is no longer ours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queues.documents import new_nonce
from queues.errors import ClaimLost, QueueError
from queues.events import EventKind
from queues.names import Token
from queues.operations import Check, Create, Delete, Operation, Set
from queues.record import NOTE_BYTES, Record
from queues.root import Root
from queues.session import Session, SessionState
from queues.step import Step


@dataclass(frozen=True, slots=True)
class Held:
    """How an item is held: the session that owns its lock, its place in a capped pool, and why."""

    session: Session
    generation: int
    place: int | None
    weight: int  # bytes of paths of that session
    nonce: str  # the name of this claim for its life; the record's changes with each step
    for_stop: bool  # somebody asked to stop it: neither due time, pause nor room counted


class Claim:
    """What a holder has in hand. Used by one thread at a time.

    The record's version is the fence and its nonce tells whose change it was. Both are checked, with the lock
    and the token, in each multi: a holder that lost its session, was paused or cut off changes nothing.
    """

    def __init__(
        self, root: Root, record: Record, *, version: int, held: Held, on_end: Callable[["Claim"], None]
    ) -> None:
        self.root = root
        self._on_end = on_end
        self.how = held
        self.record = record
        self.version = version
        self.held = True
        self.has_left = False  # the token at which it was claimed is not there any more

    @property
    def id(self) -> str:
        """The item's id."""
        return self.record.id

    @property
    def queue(self) -> str:
        """The queue in which the item stands."""
        return self.record.queue

    @property
    def payload(self) -> Mapping[str, Any]:
        """The payload as it was read or written last."""
        return self.record.payload

    def check(self) -> None:
        """Raise ClaimLost when the session has ended, or may have by our own clock: then stop acting.

        Likewise when the item was claimed for a request to stop it, and that is gone.
        """
        session = self.how.session
        if self.how.generation != session.generation or session.state is SessionState.LOST:
            raise self.lose("the session in which it was claimed has ended")
        if self.how.for_stop and session.exists(self.root.layout.stop(self.record.pool, self.id)) is None:
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

        Id and seq stay. `extra` operations of the caller ride along: when one of them is refused, nothing
        is changed, Conflict is raised and the item is still held. Raises ClaimLost when the item is not ours.
        """
        self.step(
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
        """Let go without a change; who comes next finds the item as it is."""
        self.letting_go().run()

    def remove(self, extra: Sequence[Operation] = ()) -> None:
        """Remove the item; `extra` removes what hangs below its record, which goes last."""
        self.removal(extra).run()

    def abandon(self) -> None:
        """Forget the claim; the lock goes with the session, or a rescan removes it."""
        self.end()

    def give_up(self) -> None:
        """Let go if it is still held: what was wanted of it could not be done."""
        if self.held:
            try:
                self._put_back()
            except QueueError:
                self.abandon()

    def _put_back(self) -> None:
        """Let go of it as it was: who does so in order has not been killed by it, and does not count."""
        record = self.record
        claims = max(0, record.claims - 1)
        self.step(failures=record.failures, error=record.error, claims=claims, release=True).run()

    # ------------------------------------------------------------------ steps
    def step(
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
    ) -> Step:
        """What `commit` does, made but not sent: see `run_steps`. `claims`: as many count from now on."""
        old, root = self.record, self.root
        if queue is not None:
            root.check_queue(queue)
        if pool is not None and pool != old.pool:
            root.ensure_pool(pool)
        if due is None and self.how.for_stop and queue not in {None, old.queue}:
            # What its request has begun goes on at once, also when its holder dies and the request is gone.
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
        before = root.layout.token(old.queue, old.pool, old.token)
        after = root.layout.token(new.queue, new.pool, new.token)
        holding: list[Operation] = [
            *self._lock_operations(release=release, pool=new.pool),
            Check(before) if before == after else Delete(before),
            Set(
                self._path,
                new.encode(root.max_record_bytes + (NOTE_BYTES if payload is None else 0)),
                self.version,
            ),
        ]
        if before != after:
            holding.append(Create(after))
        if new.queue == root.dead != old.queue:
            kind = EventKind.DEAD
        elif (new.queue, new.pool) != (old.queue, old.pool):
            kind = EventKind.MOVE
        else:
            kind = EventKind.COMMIT if before == after else EventKind.REQUEUE
        return Step(self, kind, holding, extra, record=new, release=release)

    def removal(self, extra: Sequence[Operation] = ()) -> Step:
        """What `remove` does, made but not sent."""
        token = self.root.layout.token(self.queue, self.record.pool, self.record.token)
        holding = [*self._lock_operations(release=True), Delete(token), Check(self._path, self.version)]
        last = Delete(self._path, self.version)
        return Step(self, EventKind.REMOVE, holding, (*extra, last), record=None, release=True)

    def letting_go(self) -> Step:
        """What `release` does, made but not sent."""
        token = self.root.layout.token(self.queue, self.record.pool, self.record.token)
        holding = [*self._lock_operations(release=True), Check(token), Check(self._path, self.version)]
        return Step(self, EventKind.COMMIT, holding, (), record=None, release=True)

    @property
    def _path(self) -> str:
        return self.root.layout.record(self.id)

    def _lock_operations(self, *, release: bool, pool: str | None = None) -> list[Operation]:
        layout, old = self.root.layout, self.record.pool
        lock = layout.lock(old, self.id)
        swapped = pool is not None and pool != old
        if not release and not swapped:
            return [Check(lock)]
        operations: list[Operation] = [Delete(lock)]
        if swapped and pool is not None and not release:
            found = self.how.session.get(lock)
            operations.append(
                Create(layout.lock(pool, self.id), b"" if found is None else found[0], ephemeral=True)
            )
        if self.how.place is not None:
            operations.append(Delete(layout.hold(old, self.how.place)))
        return operations

    def lose(self, reason: str) -> ClaimLost:
        """The claim is at its end without our doing; the error to raise."""
        if self.held:
            self.root.notify(
                EventKind.LOST,
                self.record,
                version=self.version,
                same_session=self.how.generation == self.how.session.generation,
                detail=reason,
            )
        self.end()
        return ClaimLost(self.id, reason)

    def void(self) -> ClaimLost:
        """The request to stop it, for which it was claimed, is gone: let go of it; the error to raise."""
        self.give_up()
        return ClaimLost(self.id, "the request to stop it, for which it was claimed, is gone")

    def end(self) -> None:
        """The item is not in hand any more."""
        if self.held:
            self.held = False
            self._on_end(self)
