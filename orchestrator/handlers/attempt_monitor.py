"""What a worker sees of a running attempt: the answers of its backend, and signs of life."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.handlers.warnings import is_other_kind, recordable
from queues.documents import timestamp
from queues.session import boottime
from spark_runner.attempt import AttemptState
from spark_runner.runners.base import Runner, RunState, Submission

_PATIENCE_SECONDS = 30.0  # a driver takes so long to start on a cluster that has room


@dataclass(slots=True)
class AttemptMonitor:
    """What a worker sees of a running attempt while it holds the job; no verdict rests on it."""

    attempt: int
    runner: Runner | None = None  # asked in bulk while the job waits
    run: str = ""
    submitted: int = 0  # times, by this worker
    application_id: str | None = None  # as `alive` reports it
    polls: int = 0
    unknown: int = 0  # polls in a row without a usable answer
    unknown_answers: int = 0  # polls without a usable answer, of all
    unknown_reason: str = ""
    waits_since: float | None = None  # monotonic; since then a driver or its executors do not start
    waits_for: str = ""  # the reason, once it has lasted for a while
    waited_for: str = ""  # the reason that a handler saw last
    warned_at: float = -math.inf  # monotonic; when this worker last wrote a warning
    last_seen: str | None = None  # when the backend answered last
    answer: frozenset[tuple[str, RunState]] = frozenset()
    absent_since: float | None = None  # CLOCK_BOOTTIME; `alive` has been away since then
    progress: int = -1  # when `alive` was last written, by the ensemble's clock
    progress_since: float = field(default_factory=boottime)  # CLOCK_BOOTTIME
    aged: AttemptState | None = None  # the state of the attempt, and since when it is that: see `age`
    aged_since: float = 0.0  # CLOCK_BOOTTIME
    settling_since: float | None = None  # monotonic; the attempt has ended, its processes have not
    calm_until: float = 0.0  # monotonic; until then a silent backend causes no new warning
    ends_driver: bool = False  # its next look ends the driver, which may take long
    name_until: float | None = None  # monotonic; until then an event waits for the name of the application

    def seen(self) -> dict[str, object]:
        """The fields that go into the record with its next write."""
        seen: dict[str, object] = {
            "last_seen": self.last_seen,
            "polls": self.polls,
            "unknown_answers": self.unknown_answers,
        }
        if self.application_id is not None:
            seen["application_id"] = self.application_id
        return seen

    @property
    def is_out_of_reach(self) -> bool:
        """Whether its driver was found to be on another host."""
        return bool(self.run) and self.runner is None

    def note_poll(
        self, submissions: Sequence[Submission] | None, reason: str, *, is_warned: bool, warn_after: int
    ) -> bool:
        """Record what the backend reported, None when it did not answer; whether that is news."""
        self.polls += 1
        unknown = [found for found in submissions or () if found.state is RunState.UNKNOWN]
        if submissions is None or unknown:
            self.unknown += 1
            self.unknown_answers += 1
            self.unknown_reason = recordable(reason or (unknown[0].detail if unknown else ""))
            return self.unknown == warn_after
        was_unknown, self.unknown = self.unknown, 0
        self.last_seen = timestamp()
        before = self.answer
        self.answer = frozenset((found.incarnation, found.state) for found in submissions)
        self._note_wait(submissions)
        is_news = self.answer != before or is_other_kind(self.waits_for, self.waited_for)
        return is_news or (was_unknown > 0 and is_warned)

    def _note_wait(self, submissions: Sequence[Submission]) -> None:
        """A cluster always gives a reason while it starts a driver; operators want one that lasts."""
        now = time.monotonic()
        details = (found.detail for found in submissions if found.state is RunState.RUNNING)
        words = recordable(next(filter(None, details), ""))
        if not words:
            self.waits_since = None
        elif self.waits_since is None:
            self.waits_since = now
        lasts = self.waits_since is not None and now - self.waits_since >= _PATIENCE_SECONDS
        self.waits_for = words if lasts else ""
