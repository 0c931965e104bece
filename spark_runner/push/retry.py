"""What follows a request: which records come again and when, and which are dead letters."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_runner.push.batch import Batch, DeadLetter, State
from spark_runner.push.errors import DeliveryError, Overloaded, Refused, Retryable, TimedOut

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
    """What follows a request: `rest` comes again, in this order, after `pause` seconds."""

    rest: list[Batch] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    pause: float = 0.0


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
    again, dead = dict[int, Retryable](), list[DeadLetter]()
    for index, error in sorted(results.items()):
        if isinstance(error, Retryable) and _may_come_again(batch, index, error, policy, is_up=is_up):
            again[index] = error
        else:
            number = batch.numbers[index]
            errors = (*batch.errors.get(number, ()), _words(error))
            dead.append(DeadLetter(batch.records[index], number, errors))
    if not again:
        return FollowUp(dead=dead)
    rest = _rest(batch, again, dead, is_ordered=is_ordered, is_up=is_up)
    pause = policy.pause(batch.tries, max(error.retry_after for error in again.values()))
    return FollowUp([rest], dead, pause)


def retryable(batch: Batch, results: Results) -> Retryable | None:
    """The error of a target that took no record of a batch; None if it took some, or will never take them."""
    errors = list(results.values()) if isinstance(results, Mapping) else [results] * len(batch)
    found = [error for error in errors if isinstance(error, Retryable)]
    return found[0] if len(found) == len(batch) else None


def _may_come_again(batch: Batch, index: int, error: Retryable, policy: RetryPolicy, *, is_up: bool) -> bool:
    number = batch.numbers[index]
    if not is_up:
        return True
    if _counts(error):
        return len(batch.errors.get(number, ())) + 1 < policy.attempts
    return batch.busy.get(number, 0) + 1 < policy.busy_attempts


def _rest(
    batch: Batch, again: Mapping[int, Retryable], dead: list[DeadLetter], *, is_ordered: bool, is_up: bool
) -> Batch:
    """The records that come again, with the errors that count."""
    indices, gone = list(again), {letter.number for letter in dead}
    if is_ordered:
        indices = [index for index in range(indices[0], len(batch)) if batch.numbers[index] not in gone]
    is_late = any(isinstance(error, TimedOut) for error in again.values())
    rest = batch.part(indices, State.TIMEOUT if is_late else State.ERROR)
    for index, error in again.items():
        number = batch.numbers[index]
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
