"""What follows a request: which records come again and when, and which are dead letters."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_runner.push.batch import Batch, DeadLetter, State
from spark_runner.push.errors import DeliveryError, Overloaded, Permanent, Refused, Retryable, TimedOut

_WORDS_CHARS = 500  # of an error that a dead letter keeps

Results = DeliveryError | Mapping[int, DeliveryError] | None
"""The error of a whole batch, or those of some of its records by their index; None: all are delivered."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a record is tried and how long to wait between: seconds, with full jitter.

    An attempt does not count if the target was overloaded or refused the connection: another record would
    have failed, too. But a record that fails so `busy_attempts` times while others succeed is no accident.
    """

    attempts: int = 10
    busy_attempts: int = 100
    first_pause: float = 0.1
    max_pause: float = 10.0

    def pause(self, attempt: int, error: Retryable) -> float:
        """The seconds before the next attempt after this one, which counts from 1.

        A random part of `first_pause` doubled for each attempt, at most `max_pause` (AWS, "Exponential
        Backoff and Jitter"), and at least what the target asks for.
        """
        most = min(self.max_pause, self.first_pause * 2 ** min(attempt - 1, 30))
        return max(error.retry_after, random.uniform(0, most))  # noqa: S311 - so that retries spread


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
    if isinstance(results, Permanent) and len(batch) > 1:
        half = len(batch) // 2
        parts = range(half), range(half, len(batch))
        return FollowUp([batch.part(each, state=State.ERROR) for each in parts])
    errors = dict.fromkeys(range(len(batch)), results) if isinstance(results, DeliveryError) else results
    return _of_records(batch, errors, policy, is_ordered=is_ordered, is_up=is_up)


def _of_records(
    batch: Batch, errors: Mapping[int, DeliveryError], policy: RetryPolicy, *, is_ordered: bool, is_up: bool
) -> FollowUp:
    again, dead, pause = list[int](), list[DeadLetter](), 0.0
    for index, error in sorted(errors.items()):
        words = (*batch.errors, _words(error))
        left = policy.attempts - len(words) if _counts(error) else policy.busy_attempts - batch.busy - is_up
        if isinstance(error, Retryable) and left > 0:
            again.append(index)
            pause = max(pause, error.retry_after)
        else:
            dead.append(DeadLetter(batch.records[index], batch.numbers[index], words))
    if not again:
        return FollowUp(dead=dead)
    first = errors[again[0]]
    assert isinstance(first, Retryable)  # noqa: S101 - for mypy: only these come again
    counted = (*batch.errors, _words(first)) if _counts(first) else batch.errors
    if is_ordered:
        lost = {letter.number for letter in dead}
        again = [index for index in range(again[0], len(batch)) if batch.numbers[index] not in lost]
    state = State.TIMEOUT if isinstance(first, TimedOut) else State.ERROR
    wait = max(pause, policy.pause(batch.tries, first))
    rest = batch.part(again, state=state, errors=counted)
    rest.busy += is_up and not _counts(first)
    return FollowUp([rest], dead, wait)


def _counts(error: DeliveryError) -> bool:
    return not isinstance(error, Overloaded | Refused)


def _words(error: DeliveryError) -> str:
    words = str(error) or type(error).__name__
    return words if len(words) <= _WORDS_CHARS else f"{words[: _WORDS_CHARS - 1]}…"
