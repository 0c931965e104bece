"""Invariants of one item history: its accepted changes form a chain, each made by the holder of the item."""

from collections.abc import Iterator
from itertools import groupby, pairwise

from tests.chaos.events import Event, Kind
from tests.chaos.item_history import ItemHistory, location_after
from tests.chaos.report import Invariant, Violation
from tests.chaos.rules import Rules

_HOLDERS = (Kind.STEP_ACKED, Kind.DEAD, Kind.REMOVED_ACKED)
"""Events that only a holder can cause."""


def check_chain(history: ItemHistory, rules: Rules) -> Iterator[Violation]:
    """I4, I4b, I5, I6, I7, I8."""
    for invariant, what in (
        *_one_change_per_version(history),
        *_steps_of_holders(history),
        *_after_removal(history, rules),
        *_claims_in_place(history),
        *_transitions(history, rules),
        *_early(history, rules),
        *_attempts(history, rules),
    ):
        yield Violation(invariant, history.id, history.run_key, what)


Found = Iterator[tuple[Invariant, str]]


def _one_change_per_version(history: ItemHistory) -> Found:
    for version, same in groupby(history.changes, key=lambda change: change.version):
        changes = list(same)
        if len(changes) > 1:
            them = "; ".join(map(str, changes))
            yield Invariant.STALE_FENCE, f"version {version} was made {len(changes)} times: {them}"


def _steps_of_holders(history: ItemHistory) -> Found:
    for step in history.of(*_HOLDERS):
        if step.version is None:
            continue
        removal = step.kind is Kind.REMOVED_ACKED
        fence = step.version if removal else step.version - 1
        claim = history.governing_claim(fence + 1)
        if claim is not None and claim.who != step.who and _claimed_before(history, step, claim):
            yield Invariant.OVERLAP, f"{step} was accepted after another's claim: {claim}"
        elif not any(_holds(change, step, fence) for change in history.changes):
            yield (
                Invariant.STALE_FENCE,
                f"{step} does not follow a change of its own claim at version {fence}",
            )
        elif (later := _known_before_it_was_sent(history, step, fence)) is not None:
            yield Invariant.STALE_FENCE, f"{step} was sent after {later}, and accepted below it"
    for lost in history.of(Kind.LOST, Kind.STEP_REFUSED):
        if lost.extra.get("same_session") and not history.is_spoiled and _sent_a_step(history, lost):
            yield from _claimed_from_under(history, lost)


def _claimed_before(history: ItemHistory, step: Event, claim: Event) -> bool:
    return any(
        change.who == step.who and (change.version or 0) < (claim.version or 0)
        for change in history.changes
        if change.kind is Kind.CLAIM_ACKED
    )


def _holds(change: Event, step: Event, fence: int) -> bool:
    return (
        change.version == fence
        and change.who == step.who
        and change.kind is not Kind.CORRUPTED
        and not change.released
    )


def _known_before_it_was_sent(history: ItemHistory, step: Event, fence: int) -> Event | None:
    sent = history.sent_at(step)
    if sent is None:
        return None
    # Two changes that made the same version are reported by _one_change_per_version.
    return next((it for it in history.changes if (it.version or 0) > fence + 1 and it.t < sent), None)


def _sent_a_step(history: ItemHistory, lost: Event) -> bool:
    # A release alone makes no version, and its reply may have been lost.
    sent = history.of(Kind.STEP_SENT, Kind.REMOVED_SENT)
    return any(step.who == lost.who and step.version == lost.version for step in sent)


def _claimed_from_under(history: ItemHistory, lost: Event) -> Found:
    """A holder whose session is alive has its lock; only an operator may remove it, by force."""
    fence = -1 if lost.version is None else lost.version
    # A later claim may follow a step of this holder whose reply was lost.
    for claim in history.changes:
        if claim.version == fence + 1 and claim.kind is Kind.CLAIM_ACKED and not claim.extra.get("forced"):
            yield Invariant.OVERLAP, f"{claim} was accepted while the session of the holder lived: {lost}"


def _after_removal(history: ItemHistory, rules: Rules) -> Found:
    removals = sorted(history.of(Kind.REMOVED_ACKED), key=lambda removal: removal.version or 0)
    if len(removals) > 1 and not rules.gone_is_removed:
        yield Invariant.STALE_FENCE, "it was removed twice: " + "; ".join(map(str, removals))
    for removal in removals[-1:]:
        for change in history.changes:
            if removal.version is not None and (change.version or 0) > removal.version:
                yield Invariant.STALE_FENCE, f"{change} was accepted although it was removed: {removal}"
                return  # later violations have the same cause


def _claims_in_place(history: ItemHistory) -> Found:
    for claim in history.changes:
        if claim.kind is not Kind.CLAIM_ACKED or claim.version is None or history.is_spoiled:
            continue
        locations = history.possible_locations(claim.version - 1)
        if locations and not any(location_after(claim).agrees(location) for location in locations):
            stood = " or ".join(f"{it.queue}/{it.pool} due {it.due}" for it in locations)
            yield Invariant.STALE_CLAIM, f"{claim} due {claim.due}, but its token was in {stood}"


def _transitions(history: ItemHistory, rules: Rules) -> Found:
    for step in history.of(Kind.STEP_ACKED, Kind.DEAD):
        way = (step.queue, step.to_queue)
        if step.to_queue and step.queue != step.to_queue and way not in rules.transitions:
            yield Invariant.TRANSITION, f"{step}"


def _early(history: ItemHistory, rules: Rules) -> Found:
    for start in history.of(Kind.HANDLER_STARTED):
        offset = rules.ensemble_offset_ms
        now = start.wall_ms if offset is None else start.t // 1_000_000 + offset
        due = _due(history, start)
        if now is None or due is None or start.extra.get("stopped"):
            continue  # a request to stop an item overrides its due time
        if now < due - rules.early_ms:
            yield Invariant.EARLY, f"{start} ran {due - now} ms before its due time"


def _due(history: ItemHistory, start: Event) -> int | None:
    """The due time from the history of changes; that of the handler only where the changes have none."""
    if start.version is not None:
        own = [it for it in history.changes if it.version == start.version and it.who == start.who]
        if own and own[0].due is not None:
            return own[0].due
    return start.due


def _attempts(history: ItemHistory, rules: Rules) -> Found:
    starts = [
        (start.queue, start.version, start.attempt, start)
        for start in history.of(Kind.HANDLER_STARTED)
        if start.attempt is not None and start.version is not None
    ]
    starts.sort(key=lambda start: start[:3])
    for _, _, attempt, start in starts:
        if attempt > rules.max_attempts:
            yield Invariant.ATTEMPTS, f"{start}: attempt {attempt} of {rules.max_attempts}"
    for (queue, version, attempt, _), (next_queue, next_version, next_attempt, start) in pairwise(starts):
        if queue != next_queue or version == next_version:
            continue
        # A holder killed during the work may have changed nothing: the next holder then repeats the attempt.
        finished = any(
            version < (step.version or 0) <= next_version
            and (step.released or location_after(step).queue != step.queue)
            and not step.extra.get("let_go")  # before any handler had begun
            for step in history.of(Kind.STEP_ACKED)
        )
        if next_attempt < attempt or (finished and next_attempt == attempt):
            yield Invariant.ATTEMPTS, f"{start}: attempt {next_attempt} came after attempt {attempt}"
