"""One worker's view of a running attempt: the answers of its backend, its signs of life, its warnings."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orchestrator.handlers.warnings import is_other_kind, recordable_text
from queues import boottime
from spark_runner.protocol.attempt import AttemptState
from spark_runner.runners.base import Runner, RunState, Submission

_PATIENCE_SECONDS = 30.0  # the usual start time of a driver on a cluster with free capacity


@dataclass(slots=True)
class BackendView:
    """The answers of the backend to polls. Written by the poller, read by handlers."""

    polls: int = 0
    unknown: int = 0  # polls in a row without a usable answer
    unknown_answers: int = 0  # all polls without a usable answer
    unknown_reason: str = ""
    last_seen: str | None = None  # time of the last usable answer
    waits_for: str = ""  # why a driver or its executors do not start, once that has lasted for a while
    _waits_since: float | None = None  # monotonic; since then a driver or its executors do not start
    _answer: tuple[tuple[str, RunState], ...] = ()  # sorted
    _last: Sequence[Submission] | None = None  # an answer without trouble

    def note_poll(
        self,
        submissions: Sequence[Submission] | None,
        *,
        at: str,
        reason: str,
        is_warned: bool,
        warn_after: int,
        waited_for: str,
    ) -> bool:
        """Record an answer at this time, None for none; True when a handler should look at the job.

        `waited_for` is the value of `waits_for` that a handler saw last.
        """
        self.polls += 1
        self._last = None
        unknown = [found for found in submissions or () if found.state is RunState.UNKNOWN]
        if submissions is None or unknown:
            self.unknown += 1
            self.unknown_answers += 1
            self.note_silence(reason or (unknown[0].detail if unknown else ""))
            return self.unknown == warn_after
        was_unknown, self.unknown = self.unknown, 0
        self.last_seen = at
        before = self._answer
        self._answer = tuple(sorted({(found.incarnation, found.state) for found in submissions}))
        self._note_wait(submissions)
        if not any(found.detail for found in submissions):
            self._last = submissions
        is_news = self._answer != before or is_other_kind(self.waits_for, waited_for)
        return is_news or (was_unknown > 0 and is_warned)

    @property
    def is_well(self) -> bool:
        """Whether the last answer means no trouble."""
        return not (self.unknown or self.waits_for)

    def note_same(self, submissions: Sequence[Submission], waited_for: str, at: str) -> bool:
        """Record an answer that is the same as the last one and means no trouble; False for any other."""
        if submissions != self._last or self.waits_for != waited_for:
            return False
        self.polls += 1
        self.last_seen = at
        return True

    def note_silence(self, reason: str) -> None:
        """Record why there is no usable answer."""
        self.unknown_reason = recordable_text(reason)

    def _note_wait(self, submissions: Sequence[Submission]) -> None:
        """A cluster gives a reason during each start; operators need only one that lasts."""
        now = time.monotonic()
        details = (found.detail for found in submissions if found.state is RunState.RUNNING)
        reason = recordable_text(next(filter(None, details), ""))
        if not reason:
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = now
        lasts = self._waits_since is not None and now - self._waits_since >= _PATIENCE_SECONDS
        self.waits_for = reason if lasts else ""


@dataclass(slots=True)
class DriverLife:
    """The node `alive` of the driver. All times by CLOCK_BOOTTIME."""

    application_id: str | None = None  # as `alive` reports it
    _absent_since: float | None = None
    _progress: int = -1  # the last write of `alive`, by the ensemble's clock
    _progress_since: float = field(default_factory=boottime)

    def note_alive(self, modified: int, application_id: str | None) -> None:
        """Record that the session of the driver keeps `alive`, which was written at `modified`."""
        self._absent_since = None
        self.application_id = application_id or self.application_id
        if modified != self._progress:
            self._progress, self._progress_since = modified, boottime()

    def note_absent(self) -> float:
        """Record that `alive` is missing; returns for how many seconds."""
        if self._absent_since is None:
            self._absent_since = boottime()
        return boottime() - self._absent_since

    def seconds_without_progress(self) -> float:
        """Seconds since the last observed change of `alive`."""
        return boottime() - self._progress_since


@dataclass(slots=True)
class StateAge:
    """How long the attempt has been in its present state, by CLOCK_BOOTTIME."""

    _state: AttemptState | None = None
    _since: float = 0.0

    def seconds(self, state: AttemptState, at_first_sight: Callable[[], float]) -> float:
        """The age of the state; `at_first_sight` returns it when this worker observes the state first."""
        now = boottime()
        if self._state is not state:  # not the version: a driver may write its attempt at any time
            self._state, self._since = state, now - at_first_sight()
        return now - self._since


@dataclass(slots=True)
class WarningState:
    """The warnings that this worker has written into the record. All times monotonic."""

    waited_for: str = ""  # `BackendView.waits_for` when a handler last decided about a warning
    _written_at: float = -math.inf
    _calm_until: float = 0.0  # until then a silent backend causes no new warning

    @property
    def is_calm(self) -> bool:
        """Whether a warning was withdrawn so recently that a silent backend causes no new one."""
        return time.monotonic() < self._calm_until

    def is_recent(self, seconds: float) -> bool:
        """Whether the last warning was written in the last `seconds`."""
        return time.monotonic() < self._written_at + seconds

    def note_decision(self, waits_for: str) -> None:
        """Record that a handler decides about a warning, given this reason of the backend."""
        self.waited_for = waits_for

    def note_written(self) -> None:
        """Record that a warning is written."""
        self._written_at = time.monotonic()

    def note_withdrawn(self, calm_seconds: float) -> None:
        """Record that the warning is removed; for `calm_seconds` a silent backend causes no new one."""
        self._calm_until = time.monotonic() + calm_seconds


@dataclass(slots=True)
class AttemptMonitor:
    """One worker's view of one attempt while it holds the job; no verdict rests on it."""

    attempt: int
    backend: BackendView = field(default_factory=BackendView)
    life: DriverLife = field(default_factory=DriverLife)
    age: StateAge = field(default_factory=StateAge)
    warnings: WarningState = field(default_factory=WarningState)
    runner: Runner | None = None  # polled in bulk while the job waits; None: the driver is out of reach
    run: str = ""
    submitted: int = 0  # submissions by this worker
    recorded_hours: int = 0  # the full hours of a stream up to which the history is written
    ends_driver: bool = False  # the next call of the handler ends the driver, which may take long
    _settling_since: float | None = None  # monotonic
    _name_until: float | None = None  # monotonic

    def seen(self) -> dict[str, object]:
        """The fields that go into the record with its next write."""
        seen: dict[str, object] = {
            "last_seen": self.backend.last_seen,
            "polls": self.backend.polls,
            "unknown_answers": self.backend.unknown_answers,
        }
        if self.life.application_id is not None:
            seen["application_id"] = self.life.application_id
        return seen

    @property
    def is_out_of_reach(self) -> bool:
        """Whether its driver was found on another host."""
        return bool(self.run) and self.runner is None

    def follow(self, run: str, runner: Runner | None) -> None:
        """Poll this run at this runner from now on."""
        self.runner, self.run = runner, run

    def note_submission(self) -> None:
        """Count one more submission by this worker."""
        self.submitted += 1

    def seconds_settling(self) -> float:
        """Seconds since the first call: the attempt has ended, its processes have not."""
        now = time.monotonic()
        if self._settling_since is None:
            self._settling_since = now
        return now - self._settling_since

    def ask_slow_thread(self) -> None:
        """Let the next call of the handler run on a thread for long work, to end the driver."""
        self.ends_driver = True

    def waits_for_name(self, limit_seconds: float) -> bool:
        """Whether less than the limit has passed since the first call.

        It limits the wait of an event for the name of Spark's application.
        """
        now = time.monotonic()
        if self._name_until is None:
            self._name_until = now + limit_seconds
        return now < self._name_until
