"""What follows a request: which records come again and when, and which are dead letters."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_runner.push.batch import Batch, DeadLetter, Record, State
from spark_runner.push.errors import DeliveryError, Overloaded, Partial, Refused, Retryable, TimedOut

_WORDS_CHARS = 500  # of an error that a dead letter keeps
_MAX_RETRY_AFTER_S = 3600.0  # a target that asks for more is asked again

Results = DeliveryError | Mapping[int, DeliveryError] | None
"""The error of a whole batch, or those of some of its records by their index; None: all are delivered."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a record is tried and how long to wait between: seconds, with full jitter.

    An attempt does not count if the target took no other request, either, was overloaded or refused the
    connection: another record would have failed, too. But a record that fails so `busy_attempts` times while
    others succeed is no accident.
    """

    attempts: int = 10
    busy_attempts: int = 100
    first_pause: float = 0.1
    max_pause: float = 10.0

    def pause(self, attempt: int, retry_after: float) -> float:
        """The seconds before the next attempt after this one, which counts from 1.

        A random part of `first_pause` doubled for each attempt, at most `max_pause` (AWS, "Exponential
        Backoff and Jitter"), and at least what the target asks for.
        """
        most = min(self.max_pause, self.first_pause * 2 ** min(attempt - 1, 30))
        jitter = random.uniform(0, most)  # noqa: S311 - so that retries spread
        return max(min(retry_after, _MAX_RETRY_AFTER_S), jitter)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What follows a request: `rest` comes again, in this order, after `pause` seconds.

    The pause may end as soon as the target takes another request if `is_busy`: it would have taken no other
    record, either, and did not say when to come again.
    """

    rest: list[Batch] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    pause: float = 0.0
    is_busy: bool = False


def follow_up(
    batch: Batch, results: Results, policy: RetryPolicy, *, is_ordered: bool, is_up: bool = True
) -> FollowUp:
    """What follows the results of a batch; `is_up` if the target took the request before.

    In order, all records after the first one that comes again come again, too.
    """
    if not results:
        return FollowUp()
    if isinstance(results, DeliveryError):
        if not isinstance(results, Retryable) and len(batch) > 1:
            half = len(batch) // 2
            parts = range(half), range(half, len(batch))
            return FollowUp([batch.part(each, State.ERROR) for each in parts])
        results = dict.fromkeys(range(len(batch)), results)
    again, left, dead = dict[int, Retryable | None](), dict[int, Record](), list[DeadLetter]()
    for index, error in sorted(results.items()):
        if isinstance(error, Partial) and error.left is not None:
            again[index], left[index] = error.error, error.left
        elif isinstance(error, Retryable) and _may_come_again(batch, index, error, policy, is_up=is_up):
            again[index] = error
        dead += _dead(batch, index, error) if index not in again or isinstance(error, Partial) else ()
    if not again:
        return FollowUp(dead=dead)
    indices = list(again)
    if is_ordered:
        gone = {letter.number for letter in dead} - {batch.numbers[index] for index in again}
        indices = [index for index in range(indices[0], len(batch)) if batch.numbers[index] not in gone]
    rest = _rest(batch, indices, again, left, is_up=is_up)
    errors = [error for error in again.values() if error is not None]
    if not errors:  # the target is well
        rest.tries = 1
        return FollowUp([rest], dead)
    wait = max(error.retry_after for error in errors)
    is_busy = not wait and not any(is_up and _counts(error) for error in errors)
    return FollowUp([rest], dead, policy.pause(batch.tries, wait), is_busy)


def retryable(batch: Batch, results: Results) -> Retryable | None:
    """The error of a target that took no record of a batch; None if it took some, or will never take them.

    It takes a record of many rows as a whole.
    """
    errors = list(results.values()) if isinstance(results, Mapping) else [results] * len(batch)
    errors = [error.error if isinstance(error, Partial) else error for error in errors]
    found = [error for error in errors if isinstance(error, Retryable)]
    return found[0] if len(found) == len(batch) else None


def _may_come_again(batch: Batch, index: int, error: Retryable, policy: RetryPolicy, *, is_up: bool) -> bool:
    number = batch.numbers[index]
    if not is_up:
        return True
    if _counts(error):
        return len(batch.errors.get(number, ())) + 1 < policy.attempts
    return batch.busy.get(number, 0) + 1 < policy.busy_attempts


def _dead(batch: Batch, index: int, error: DeliveryError) -> list[DeadLetter]:
    """What is not delivered any more of a record."""
    record, number = batch.records[index], batch.numbers[index]
    errors = (*batch.errors.get(number, ()), _words(error))
    if not isinstance(error, Partial):
        return [DeadLetter(record, number, errors)]
    return [DeadLetter(record, number, errors, error.rejected)] if error.rejected else []


def _rest(
    batch: Batch,
    indices: Sequence[int],
    again: Mapping[int, Retryable | None],
    left: Mapping[int, Record],
    *,
    is_up: bool,
) -> Batch:
    """The records that come again, with the errors that count, and what is `left` of some."""
    is_late = any(isinstance(error, TimedOut) for error in again.values())
    rest = batch.part(indices, State.TIMEOUT if is_late else State.ERROR, left)
    for index, error in again.items():
        number = batch.numbers[index]
        if error is None:
            continue
        if is_up and _counts(error):
            rest.errors[number] = (*rest.errors.get(number, ()), _words(error))
        elif is_up:
            rest.busy[number] = rest.busy.get(number, 0) + 1
    return rest


def _counts(error: DeliveryError) -> bool:
    return not isinstance(error, Overloaded | Refused)


def _words(error: DeliveryError) -> str:
    words = str(error) or type(error).__name__
    return words if len(words) <= _WORDS_CHARS else f"{words[: _WORDS_CHARS - 1]}…"
