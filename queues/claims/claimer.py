"""Claims free items."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate, ClaimAttempt, Hold, PoolSlots, claim_attempt
from queues.claims.lock_sessions import LockSessions
from queues.model.codec import encode, new_nonce, timestamp
from queues.model.errors import (
    Conflict,
    CorruptRecord,
    InvalidPayload,
    ItemNotFound,
    NotClaimed,
    QueueError,
    Refusal,
    TooLarge,
)
from queues.model.events import EventKind
from queues.model.names import LOW_LANE_SUFFIX
from queues.model.operations import Check
from queues.model.record import NOTE_BYTES, Record
from queues.session import Session
from queues.session.wire import NodeData
from queues.store.batch import commit_many
from queues.store.commit import Transaction
from queues.store.root import Root

log = logging.getLogger(__name__)

_Outcomes = dict[int, Claim | QueueError]
"""By the index of the candidate."""


class Claimer:
    """Claims items and keeps the set of those it holds. Safe to use from several threads."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self.sessions = LockSessions(root.session)
        self._guard = threading.Lock()
        self._who = (
            encode({"worker": root.owner}).decode().removesuffix("}")
        )  # start of the JSON in each lock
        self._on_return: list[Callable[[str, str], None]] = []
        self._nonces: dict[str, str] = {}  # id -> nonce of the claim, from before it is sent
        self._on_end = self._ended  # one bound method for all claims

    def holds(self, item_id: str) -> bool:
        """Whether an item is held by this claimer, or is being claimed."""
        with self._guard:
            return item_id in self._nonces

    # ------------------------------------------------------------------ claim
    def claim(self, candidates: Sequence[Candidate], *, capped: bool = True) -> list[Claim | QueueError]:
        """Claim these items independently; returns a claim or an error for each.

        `capped`: within the caps of their pools, which do not apply to operators.
        NotClaimed: another claimer was faster. CorruptRecord, ItemNotFound: the token has no readable
        record, see `move_to_dead`.
        """
        layout = self._root.layout
        found = self._root.session.get_many([layout.record(c.token.id) for c in candidates])
        outcomes: _Outcomes = {}
        prepared: list[tuple[int, ClaimAttempt]] = []

        def attempts() -> Iterator[tuple[int, ClaimAttempt]]:
            for numbered in self._attempts(candidates, found, outcomes, capped=capped):
                prepared.append(numbered)
                yield numbered

        try:
            for session, group in groupby(attempts(), lambda numbered: numbered[1].hold.session):
                self._send(session, group, outcomes)
        finally:
            for index, attempt in prepared:
                if not isinstance(outcomes.get(index), Claim):
                    self._forget(attempt.record, attempt.hold)
        return [outcomes[index] for index in range(len(candidates))]

    def _attempts(
        self,
        candidates: Sequence[Candidate],
        found: Sequence[NodeData | None],
        outcomes: _Outcomes,
        *,
        capped: bool,
    ) -> Iterator[tuple[int, ClaimAttempt]]:
        """The attempts to send, with their indexes; the other candidates get their outcome here."""
        gone = self._gone(candidates, found)
        slots = PoolSlots(self._root) if capped and self._root.caps else None
        for index, (candidate, node) in enumerate(zip(candidates, found, strict=True)):
            if index in gone:
                outcomes[index] = NotClaimed(candidate.token.id, Refusal.MOVED_ON)
                continue
            try:
                attempt = self._prepare(candidate, node, slots, bound=capped)
            except QueueError as error:
                outcomes[index] = error
            except Exception:  # one item must not block the others
                log.exception("%s in %s cannot be claimed", candidate.token.id, candidate.queue)
                outcomes[index] = NotClaimed(candidate.token.id, Refusal.CHANGED)
            else:
                yield index, attempt

    def _send(self, session: Session, group: Iterable[tuple[int, ClaimAttempt]], outcomes: _Outcomes) -> None:
        """Send the attempts of one session; later ones are prepared while earlier ones are in flight."""
        sent: list[tuple[int, ClaimAttempt]] = []

        def transactions() -> Iterator[Transaction]:
            for numbered in group:
                sent.append(numbered)
                yield numbered[1].operations

        started = time.monotonic()
        refusals = commit_many(session, transactions())
        seconds = time.monotonic() - started
        for (index, attempt), refused in zip(sent, refusals, strict=True):
            outcomes[index] = self._outcome(attempt, refused, seconds)

    def _gone(self, candidates: Sequence[Candidate], found: Sequence[NodeData | None]) -> set[int]:
        """The indexes of tokens that no longer exist according to their records.

        Their claims would be refused, and one refusal rejects its whole multi: a stale listing has many.
        """
        layout, unconfirmed = self._root.layout, []
        for index, (candidate, node) in enumerate(zip(candidates, found, strict=True)):
            names = (candidate.token.name, f'"queue": "{candidate.queue}"')
            if node is not None and not all(name.encode() in node[0] for name in names):
                unconfirmed.append(index)
        if not unconfirmed:
            return set()
        # The record alone is not conclusive: the token of a dead item may be elsewhere.
        paths = [layout.token(c.queue, c.pool, c.token) for c in (candidates[index] for index in unconfirmed)]
        nodes = self._root.session.get_many(paths)
        return {index for index, node in zip(unconfirmed, nodes, strict=True) if node is None}

    def seize(self, record: Record) -> Claim | None:
        """Take an item from its holder: one multi replaces the lock and invalidates the old fence.

        Returns None if the item was released or has moved meanwhile.
        """
        node = self._root.session.get(self._root.layout.record(record.id))
        candidate = Candidate(record.queue, record.pool, record.token)
        attempt = self._prepare(candidate, node, None, seize=True)
        claim: Claim | QueueError | None = None
        try:
            started = time.monotonic()
            (refused,) = commit_many(attempt.hold.session, [attempt.operations])
            claim = self._outcome(attempt, refused, time.monotonic() - started)
        finally:
            if not isinstance(claim, Claim):
                self._forget(attempt.record, attempt.hold)
        if isinstance(claim, NotClaimed):
            return None
        if isinstance(claim, QueueError):
            raise claim
        return claim

    def _prepare(
        self,
        candidate: Candidate,
        node: NodeData | None,
        slots: PoolSlots | None,
        *,
        bound: bool = False,
        seize: bool = False,
    ) -> ClaimAttempt:
        root, token, pool = self._root, candidate.token, candidate.pool
        layout = root.layout
        if node is None:
            raise ItemNotFound(token.id)
        record = Record.decode(token.id, node[0])
        nonce = new_nonce()
        claimed = record.evolve(
            queue=candidate.queue, pool=pool, token=token, nonce=nonce, claims=record.claims + 1
        )
        try:  # before anything is registered
            data = claimed.encode(root.max_record_bytes + NOTE_BYTES)
        except (TooLarge, InvalidPayload) as error:
            raise CorruptRecord(token.id, f"it cannot be written: {error}") from error
        if self.holds(token.id) and not seize:
            raise NotClaimed(token.id, Refusal.HELD)
        cap, limits = self._limits(candidate, binding=bound)
        slot = None if slots is None else slots.take(pool, cap, token.id)
        weight = 2 * len(layout.lock(pool, token.id))  # of the lock and of its slot in a capped pool
        session = self.sessions.reserve(weight)
        note = f'{self._who}, "nonce": "{nonce}", "since": "{timestamp()}"}}'
        attempt = claim_attempt(
            layout,
            candidate,
            claimed,
            node[1].version,
            Hold(session, session.generation, slot, weight, nonce, candidate.stopped),
            data=data,
            note=note.encode(),
            limits=limits,
            seize=seize,
        )
        with self._guard:
            taken = not seize and token.id in self._nonces
            if not taken:
                self._nonces[token.id] = nonce
        if taken:
            self.sessions.give_back(session, weight)
            raise NotClaimed(token.id, Refusal.HELD)
        return attempt

    def _limits(self, candidate: Candidate, *, binding: bool) -> tuple[int, list[Check]]:
        """The cap of a candidate's pool, and checks that its limits have not changed since they were read."""
        # A pause of a pool includes its low lane.
        pools = dict.fromkeys((candidate.pool, candidate.pool.removesuffix(LOW_LANE_SUFFIX)))
        seen = [(pool, *self._root.pools.limits(pool)) for pool in pools]
        binding = binding and candidate.queue in self._root.paused_queues and not candidate.stopped
        if any(version < 0 for *_, version in seen):  # ZooKeeper reads -1 as any version
            raise NotClaimed(candidate.token.id, Refusal.POOL_CHANGED)
        if binding and any(limits.paused for _, limits, _ in seen):
            for pool in pools:  # the pause may have ended: its watch fires later, so the next try reads again
                self._root.pools.forget(pool)
            raise NotClaimed(candidate.token.id, Refusal.POOL_CHANGED)
        checks = [Check(self._root.layout.pool(pool), version) for pool, _, version in seen]
        return seen[0][1].cap, checks

    def _outcome(
        self, attempt: ClaimAttempt, refused: QueueError | None, seconds: float
    ) -> Claim | QueueError:
        root, record = self._root, attempt.record
        if isinstance(refused, Conflict):
            reason = attempt.refusals[refused.index]
            if reason is Refusal.POOL_CHANGED:
                root.pools.forget()
            try:
                if not (refused.ambiguous and self._is_mine(record)):
                    return NotClaimed(record.id, reason)
            except QueueError as error:
                return error
        elif refused is not None:
            return refused
        if attempt.hold.generation != attempt.hold.session.generation:
            return NotClaimed(
                record.id, Refusal.CHANGED
            )  # claimed by a session that has ended, or by its successor
        claim = Claim(root, record, version=attempt.version + 1, hold=attempt.hold, on_end=self._on_end)
        root.notify(EventKind.CLAIM, record, version=claim.version, seconds=seconds)
        return claim

    def _is_mine(self, record: Record) -> bool:
        # A refusal after a lost reply may be the echo of our own success: the nonce decides.
        return self._root.read(record.id)[0].nonce == record.nonce

    def on_return(self, listener: Callable[[str, str], None]) -> None:
        """Call `listener` with queue and pool when an item is released without a move."""
        self._on_return.append(listener)

    def _ended(self, claim: Claim) -> None:
        self._forget(claim.record, claim.hold)
        if not claim.has_left:
            for listener in self._on_return:
                listener(claim.queue, claim.record.pool)

    def _forget(self, record: Record, hold: Hold) -> None:
        self.sessions.give_back(hold.session, hold.weight)
        with self._guard:
            if self._nonces.get(record.id) == hold.nonce:
                del self._nonces[record.id]
