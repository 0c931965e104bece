"""The limit of one streaming query while it runs: pinned by an operator, tuned, or that of its table."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from spark_runner.push.adjustment import Adjustment
from spark_runner.sql.batch_limits.limit_law import Batch, Decision, Target, next_limit

MIN_TARGET_S = 5.0
"""The target without a setting is the interval of triggers, but not less: a batch has a fixed cost."""
LEAST_ROWS, MOST_ROWS = 10, 10_000_000
"""The bounds of a limit without settings."""
_RECENT = 8  # batches that the law sees, and
_SIZES = 16  # the last batch of each further limit, which tell the fixed cost
_RETRY_S = 30.0  # after a change that failed
_MOST_CHARACTERS = 300  # of a reason: the progress is stored in ZooKeeper
_PLANNED_BEFORE = 1.01  # of the limit: partitions have whole numbers of rows
_PAUSE_SHARE = 10  # a limit rises again after as many pauses of a change, and
_LONGEST_WAIT_S = 600.0  # at the latest: brokers may have been away at the change


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the script asks for."""

    is_on: bool
    target: Target

    @classmethod
    def of(cls, plan: Any) -> "Tuning":
        """The tuning of a plan of mode `streaming`."""
        given = plan.get("batch_tuning") or {}
        seconds = given.get("target_ms", max(plan["trigger_ms"], MIN_TARGET_S * 1000)) / 1000
        least = given.get("least", min(LEAST_ROWS, given.get("most", LEAST_ROWS)))
        most = given.get("most", max(MOST_ROWS, least))
        return cls("batch_tuning" in plan, Target(seconds, least, most))


class LimitTuner:
    """Decides the limit of one query; `begin` is that of its table, `kept` that of an earlier attempt.

    Its methods may be called by any thread.
    """

    def __init__(
        self,
        tuning: Tuning,
        begin: int,
        kept: int | None,
        adjustment: Adjustment,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tuning, self._begin, self._adjustment, self._clock = tuning, begin, adjustment, clock
        self._lock = threading.Lock()
        self._batches: list[Batch] = []
        self._is_new = False  # a batch was measured since the last decision
        self._first = 0  # the number of the first batch after the last change
        self._changed_at, self._pause, self._changes = -math.inf, 0.0, 0
        self._is_paused = False  # since the last change, until the query reads again
        self._retry_at = -math.inf
        self.limit = begin
        self._before = begin
        if self._is_tuned and kept is not None:
            self.limit = self._target.clamped(kept)
        self._reason = "an earlier attempt had this limit" if self.limit != begin else "of the table"
        if (decision := self._decided()) is not None:
            self.limit, self._reason = decision.limit, decision.reason

    def steer(self, adjustment: Adjustment) -> None:
        """Follow what an operator has changed."""
        with self._lock:
            self._adjustment = adjustment

    def measured(self, number: int, rows: int, seconds: float, lag: int | None) -> None:
        """Take a finished micro-batch; `number` is that of Spark."""
        with self._lock:
            is_before = number < self._first
            # Where the stream is behind, Spark has planned the first batch with the limit before.
            is_earlier = is_before or (number == self._first and rows > _PLANNED_BEFORE * self.limit)
            self._batches.append(Batch(rows, seconds, lag, self._before if is_earlier else self.limit))
            self._is_new |= not is_before
            self._batches = remembered(self._batches)

    def wanted(self) -> int | None:
        """The limit to change to now; None if the one in force stays."""
        with self._lock:
            if self._clock() < self._retry_at or (decision := self._decided()) is None:
                return None
            self._reason = decision.reason
            return decision.limit if decision.limit != self.limit else None

    def change(self, limit: int, first: int) -> None:
        """The query goes on with this limit from the micro-batch of the number `first`."""
        with self._lock:
            self._before, self.limit, self._first = self.limit, limit, first
            self._is_new, self._changed_at, self._is_paused = False, self._clock(), True
            self._changes += 1

    def resumed(self) -> None:
        """The query reads again: a micro-batch has begun, or it has found no rows. The first call counts."""
        with self._lock:
            if self._is_paused:
                self._pause, self._is_paused = self._clock() - self._changed_at, False

    def failed(self, reason: str) -> None:
        """A change has failed, and the query goes on as it was."""
        with self._lock:
            self._reason = f"the limit cannot change now: {reason}"[:_MOST_CHARACTERS]
            self._retry_at = self._clock() + _RETRY_S

    def shown(self) -> dict[str, Any]:
        """The part `limit` of the progress of the query; empty if it is that of its table."""
        with self._lock:
            pin = self._adjustment.batch_rows
            by = "operator" if pin else "tuning" if self._is_tuned else "table"
            if by == "table" and not self._changes:
                return {}
            found: dict[str, Any] = {"rows": self.limit, "by": by, "reason": self._reason}
            if by == "tuning":
                found["target_seconds"] = self._target.seconds
            if self._changes:
                found |= {"changes": self._changes, "pause_seconds": round(self._pause, 3)}
            return found

    @property
    def _is_tuned(self) -> bool:
        return self._tuning.is_on or self._adjustment.is_tuned

    @property
    def _target(self) -> Target:
        seconds = self._adjustment.batch_seconds
        return replace(self._tuning.target, seconds=seconds) if seconds else self._tuning.target

    def _decided(self) -> Decision | None:
        """The decision by what is known now; None if nothing is new. The lock is held."""
        if pin := self._adjustment.batch_rows:
            return Decision(pin, "an operator has set it")
        if not self._is_tuned:
            return Decision(self._begin, "of the table")
        target = self._target
        if not self._is_new and target.clamped(self.limit) == self.limit:
            return None
        self._is_new = False
        decision = next_limit(self._batches, self.limit, target)
        waits = min(self._pause * _PAUSE_SHARE, _LONGEST_WAIT_S) - (self._clock() - self._changed_at)
        if decision.limit > self.limit >= target.least and waits > 0:
            reason = (
                f"the limit rises again in {waits:.0f} s: a change pauses the stream for {self._pause:.1f} s"
            )
            return Decision(self.limit, reason)
        return decision


def remembered(batches: list[Batch]) -> list[Batch]:
    """The last batches, and the last one of each limit before them."""
    earlier = {each.limit: each for each in batches[:-_RECENT]}
    older = [each for each in batches[:-_RECENT] if earlier[each.limit] is each]
    return [*older[-_SIZES:], *batches[-_RECENT:]]
