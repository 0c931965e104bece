"""The progress of one job as plain lines on stderr, for pipes and files."""

import time
from datetime import datetime
from typing import Self

from rich.console import Console

from orchestrator.admin.job_monitor import JobSnapshot
from orchestrator.cli.output import duration
from orchestrator.cli.states import blocked, end_of_attempt, error_of_attempt, states, states_of_attempt
from orchestrator.client.progress import describe_activity, one_line
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue
from orchestrator.model.times import moment
from orchestrator.model.waiting import Reason, Waiting

_HEARTBEAT_SECONDS = 30.0  # the longest silence of a pipe; CI services end a job without output after minutes
_PASSING = {Reason.HELD, Reason.STARTING, Reason.TURN}  # nothing blocks the job
_WITH_TIME = {Reason.BACKOFF, Reason.DUE, Reason.SUBMISSION}
_SAME_CHARACTERS = 100  # of an error: a reason that quotes it may cut it after some more


class PlainDisplay:
    """Prints a line for each change, and one at least every 30 s.

    The time of a line counts from the start of this display, or from the entry of the job into accept if that
    was earlier: a job that has ended shows how long it waited and ran.
    """

    is_live = False

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = self._said_at = time.monotonic()
        self._shown: set[tuple[str, float]] = set()
        self._last = dict[str, str]()
        self._last_words = ""
        self._last_time = 0.0  # the times of the lines never fall, whatever the clocks of the hosts say
        self._last_error = ""
        self._attempt = ("", 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, words: str) -> None:
        """Show a message that is not about a state of the job."""
        self._say_at(time.time(), words)

    def print(self, words: str) -> None:
        """Write lines of others."""
        self._console.print(words, markup=False, soft_wrap=True)
        self._last_words = ""

    def show(self, now: JobSnapshot) -> None:
        """Print failed attempts, new states, a new activity of the driver, and what blocks the job."""
        job, waiting = now.job, blocked(now)
        passed = list(states_of_attempt(job))
        if passed:
            self._start = min(self._start, _monotonic(passed[0][1]))
        if (attempt := (job.run_key, job.attempt)) != self._attempt:
            self._attempt = attempt
            self._last.pop("phase", None)  # the next attempt may begin as the last one has ended
        if self._last.pop("outage", ""):
            self._say_below("ZooKeeper answers again")
        self._show_failed(now)
        for queue, came, _ in passed:
            if self._is_new(queue, came):
                words = f"{queue:<8} {job.status}" if queue is job.queue else f"{queue:<8}"
                self._say_at(came, words)
        self._say_new("warning", f"warning: {one_line(job.warning)}" if job.warning else "")
        if waiting is not None and waiting.reason not in _PASSING:
            # The time of a report changes all the time, that of the next try does not.
            key = f"{waiting.reason} {waiting.until if waiting.reason in _WITH_TIME else ''}"
            self._say_new("wait", self._reason(job, waiting), key)
        if now.progress is not None and job.queue is Queue.RUNNING:
            self._say_new("phase", one_line(now.progress.get("phase") or ""))
        if not job.is_final and time.monotonic() - self._said_at >= _HEARTBEAT_SECONDS:
            self._show_heartbeat(now, waiting)

    def show_outage(self, seconds: float) -> None:
        """Print that the connection is lost, once for each outage."""
        self._say_new(
            "outage", f"ZooKeeper has not answered for {duration(seconds)}; the wait goes on", "lost"
        )

    def _show_failed(self, now: JobSnapshot) -> None:
        for attempt in now.failed:
            name = f"attempt {attempt['attempt']}"
            if not self._is_new(name, 0.0):
                continue
            self._last_error = one_line(error_of_attempt(attempt))
            self._say_below(f"{name} has ended: {end_of_attempt(attempt)}", moment(attempt.get("ended")))

    def _show_heartbeat(self, now: JobSnapshot, waiting: Waiting | None) -> None:
        if waiting is not None:
            words, short = self._reason(now.job, waiting), "still waiting"
        else:
            activity = describe_activity(now.job, now.progress)
            words, short = f"still running: {activity}".removesuffix(": "), "still running"
        if not self._is_last(words):
            self._say_below(words)
            return
        passed = states(now.job)
        spent = f" after {duration(max(0.0, time.time() - passed[-1][1]))}" if passed else ""
        self._say_below(f"{short}{spent}")
        self._last_words = _below(words)  # until there is news

    def _reason(self, job: JobView, waiting: Waiting) -> str:
        """What the job waits for, without the error that the line of its last attempt has."""
        words = describe_activity(job, None, waiting)
        said = f": {self._last_error[:_SAME_CHARACTERS]}"
        return words.partition(said)[0] if self._last_error else words

    def _is_new(self, name: str, came: float) -> bool:
        is_new = (name, came) not in self._shown
        self._shown.add((name, came))
        return is_new

    def _say_new(self, kind: str, words: str, key: str | None = None) -> None:
        """Print words unless the last ones of this kind had the same key."""
        key = words if key is None else key
        if words and key != self._last.get(kind) and not self._is_last(words):
            self._say_below(words)
        self._last[kind] = key

    def _is_last(self, words: str) -> bool:
        return self._last_words == _below(words)

    def _say_below(self, words: str, at: datetime | None = None) -> None:
        self._say_at(time.time() if at is None else at.timestamp(), _below(words))

    def _say_at(self, at: float, words: str) -> None:
        """Print words with the time at which this came to be (epoch seconds)."""
        self._said_at, self._last_words = time.monotonic(), words
        self._last_time = max(self._last_time, min(self._said_at, _monotonic(at)) - self._start)
        self._console.print(f"{self._last_time:6.1f} s  {words}".rstrip(), markup=False)


def _below(words: str) -> str:
    return f"{'':<8} {words}"


def _monotonic(at: float) -> float:
    """The value of the monotonic clock at a time in epoch seconds."""
    return time.monotonic() - (time.time() - at)
