"""One change of a held item, made before it is sent, so that many can travel together."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from queues.bundle import commit_many
from queues.errors import ClaimLost, Conflict, CorruptRecord, QueueError
from queues.events import EventKind
from queues.operations import Create, Operation
from queues.record import Record
from queues.transaction import commit

_MAX_SENDS = 3  # a folder into which it goes was removed just then

if TYPE_CHECKING:  # a claim makes its steps, and a step tells its claim what became of it
    from queues.claim import Claim


class Step:
    """One change of a held item: the operations of its multi, and what they mean when they are done."""

    def __init__(
        self,
        claim: "Claim",
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
        self._record = record  # as it will be; None when it stays or goes
        self._release = release

    def run(self) -> None:
        """Do it; raises ClaimLost, or Conflict when only `extra` was refused."""
        claim = self.claim
        if not claim.held:
            raise ClaimLost(claim.id, "it was let go before")
        started = time.monotonic()
        for _ in range(_MAX_SENDS):
            refused = None
            try:
                commit(claim.how.session, self.operations)
            except Conflict as conflict:
                refused = conflict
            if not self.makes_folder(refused):
                break
        error = self.settle(refused, time.monotonic() - started)
        if error is not None:
            raise error from refused

    def makes_folder(self, refused: QueueError | None) -> bool:
        """Whether it was refused because the folder into which it goes is gone, which is made again then."""
        if not (isinstance(refused, Conflict) and refused.reason == "NoNode" and self._record is not None):
            return False
        if refused.index >= self._holding or not isinstance(self.operations[refused.index], Create):
            return False
        self.claim.root.forget_folders()
        self.claim.root.ensure_pool(self._record.pool)
        return True

    def settle(self, refused: QueueError | None, seconds: float) -> QueueError | None:
        """Take note of the answer to the multi; returns the error of this step, None when it was done."""
        claim = self.claim
        # A refusal after a lost reply may be the echo of our own success: the nonce tells.
        if isinstance(refused, Conflict) and not (refused.ambiguous and self._is_done()):
            return refused if refused.index >= self._holding else claim.lose(str(refused))
        if refused is not None and not isinstance(refused, Conflict):
            return refused
        before, version = claim.record, claim.version
        if self._record is not None:
            claim.record = self._record
            version = claim.version = claim.version + 1
            if self._record.pool != before.pool:
                claim.how = replace(claim.how, place=None)
            if claim.how.for_stop and self._record.queue != before.queue:
                claim.how = replace(claim.how, for_stop=False)  # it is due where it stands now
        claim.has_left = self._release and self._kind is not EventKind.COMMIT
        claim.root.notify(
            self._kind,
            before,
            claim.record,
            version=version,
            released=self._release,
            seconds=seconds,
            detail=str((claim.record.error or {}).get("reason", "")),
        )
        if self._release:
            claim.end()
        return None

    def _is_done(self) -> bool:
        claim, session = self.claim, self.claim.how.session
        layout, same_session = claim.root.layout, claim.how.generation == session.generation
        if self._record is None and self._kind is not EventKind.REMOVE:
            # A release is done when our lock is no longer there, and went by our doing.
            return same_session and session.exists(layout.lock(claim.record.pool, claim.id)) is None
        found = session.get(layout.record(claim.id))
        try:
            record = None if found is None else Record.decode(claim.id, found[0])
        except CorruptRecord:
            return False
        if self._record is None:
            # Gone, or another has its id: by us, if nobody can have held it since; else nobody can tell.
            return same_session and (record is None or record.run_key != claim.record.run_key)
        return record is not None and record.nonce == self._record.nonce


def run_steps(steps: Iterable[Step]) -> list[tuple[Step, QueueError | None]]:
    """Do steps of different items, together where that is possible; returns each with its error, or None.

    They are made while those before them are on their way. Those of one session are to follow each other.
    """
    outcomes: list[tuple[Step, QueueError | None]] = []

    def sent(group: Iterable[Step], mine: list[Step]) -> Iterator[Sequence[Operation]]:
        for step in group:
            if step.claim.held:
                mine.append(step)
                yield step.operations
            else:
                outcomes.append((step, ClaimLost(step.claim.id, "it was let go before")))

    for session, group in groupby(steps, lambda step: step.claim.how.session):
        mine: list[Step] = []
        started = time.monotonic()
        refusals = commit_many(session, sent(group, mine))
        seconds = time.monotonic() - started
        for step, refused in zip(mine, refusals, strict=True):
            try:
                if step.makes_folder(refused):
                    step.run()
                    outcomes.append((step, None))
                else:
                    outcomes.append((step, step.settle(refused, seconds)))
            except QueueError as error:  # the look at what became of it failed
                outcomes.append((step, error))
    return outcomes
