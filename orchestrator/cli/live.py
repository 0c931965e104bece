"""Live progress of one job on stderr: redrawn in place on a terminal, plain lines on a pipe."""

import sys
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from textwrap import wrap
from typing import Any, Protocol, Self

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from orchestrator.admin.job_monitor import JobSnapshot
from orchestrator.cli.output import duration, elapsed, stderr_console
from orchestrator.client.progress import describe_activity, one_line
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import moment
from orchestrator.model.waiting import Reason, Waiting

_ORDER = (Queue.ACCEPT, Queue.RUNNING, Queue.SUCCESS, Queue.FAIL, Queue.KILL, Queue.FINISH, Queue.DEAD)
_REFRESH_PER_SECOND = 8
_HEARTBEAT_SECONDS = 30.0  # the longest silence of a pipe; CI services end a job without output after minutes
_PATIENCE_SECONDS = 1.0  # a job that starts at once shows no reason for a wait
_PASSING = {Reason.HELD, Reason.STARTING, Reason.TURN}  # nothing blocks the job
_WITH_TIME = {Reason.BACKOFF, Reason.DUE, Reason.SUBMISSION}
_BAD = {Queue.FAIL, Queue.KILL, Queue.DEAD}
_INDENT, _MOST_LINES = 4, 3  # of an activity that does not fit beside its state


class Display(Protocol):
    """Shows the progress of a job. `is_live`: it redraws its lines, so all other lines go through it."""

    is_live: bool

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def say(self, words: str) -> None:
        """Show a message that is not about a state of the job."""

    def print(self, words: str) -> None:
        """Write lines of others, such as those of the program."""

    def show(self, now: JobSnapshot) -> None:
        """Show the current state of the job."""

    def show_outage(self, seconds: float) -> None:
        """Show that ZooKeeper has been out of reach for this time; the next state ends that."""


def display(*, quiet: bool) -> Display:
    """A display for stderr: live on a terminal that can move its cursor, else plain; silent when quiet."""
    console = stderr_console()
    console.quiet = quiet
    is_live = sys.stderr.isatty() and console.is_terminal and not console.is_dumb_terminal
    return LiveDisplay(console) if is_live and not quiet else PlainDisplay(console)


def states(job: JobView) -> list[tuple[Queue, float, float | None]]:
    """The states of the job so far: queue, time of entry, time of exit or None (epoch seconds)."""
    times = [(Queue(queue), moment(at)) for queue, at in job.times.items() if queue in set(Queue)]
    came = sorted(
        ((queue, at.timestamp()) for queue, at in times if at is not None),
        key=lambda item: (item[1], _ORDER.index(item[0])),
    )
    leaving = [at for _, at in came[1:]]
    return [(queue, at, leaving[i] if i < len(leaving) else None) for i, (queue, at) in enumerate(came)]


def _states_of_attempt(job: JobView) -> Iterator[tuple[Queue, float, float | None]]:
    """The states since the job last entered accept: earlier ones are those of failed attempts."""
    passed = states(job)
    first = max((index for index, (queue, _, _) in enumerate(passed) if queue is Queue.ACCEPT), default=0)
    return islice(passed, first, None)


def _attempt(document: Mapping[str, Any]) -> tuple[str, str, str]:
    """The name of an ended attempt, how long it ran, and how it ended."""
    error = document.get("error")
    reason = one_line(error.get("message") or "") if isinstance(error, Mapping) else ""
    words = reason or one_line(document.get("state") or "it cannot be read")
    return f"attempt {document['attempt']}", elapsed(document.get("started"), document.get("ended")), words


def _blocked(now: JobSnapshot) -> Waiting | None:
    """What a job waits for, if it has waited for longer than a moment."""
    passed = states(now.job)
    has_waited = bool(passed) and time.time() - passed[-1][1] >= _PATIENCE_SECONDS
    return now.waiting if has_waited else None


class PlainDisplay:
    """Prints a line for each change, and one at least every 30 s, for pipes and files."""

    is_live = False

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = self._said_at = time.monotonic()
        self._shown: set[tuple[str, float]] = set()
        self._last = dict[str, str]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, words: str) -> None:
        """Show a message that is not about a state of the job."""
        self._said_at = time.monotonic()
        self._console.print(f"{self._said_at - self._start:6.1f} s  {words}".rstrip(), markup=False)

    def print(self, words: str) -> None:
        """Write lines of others."""
        self._console.print(words, markup=False, soft_wrap=True)

    def show(self, now: JobSnapshot) -> None:
        """Print failed attempts, new states, a new activity of the driver, and what blocks the job."""
        job, waiting = now.job, _blocked(now)
        if self._last.pop("outage", ""):
            self._say_below("ZooKeeper answers again")
        for attempt in now.failed:
            name, _, words = _attempt(attempt)
            if self._is_new(name, 0.0):
                self._say_below(f"{name} has ended: {words}")
        for queue, came, _ in _states_of_attempt(job):
            if self._is_new(queue, came):
                self.say(f"{queue:<8} {job.status}" if queue is job.queue else f"{queue:<8}")
        self._say_new("warning", f"warning: {one_line(job.warning)}" if job.warning else "")
        if waiting is not None and waiting.reason not in _PASSING:
            # The time of a report changes all the time, that of the next try does not.
            key = f"{waiting.reason} {waiting.until if waiting.reason in _WITH_TIME else ''}"
            self._say_new("wait", describe_activity(job, None, waiting), key)
        if now.progress is not None and job.queue is Queue.RUNNING:
            self._say_new("phase", one_line(now.progress.get("phase") or ""))
        if not job.is_final and time.monotonic() - self._said_at >= _HEARTBEAT_SECONDS:
            words = describe_activity(job, now.progress, waiting)
            self._say_below(words if waiting is not None else f"still running: {words}".removesuffix(": "))

    def show_outage(self, seconds: float) -> None:
        """Print that the connection is lost, once for each outage."""
        self._say_new(
            "outage", f"ZooKeeper has not answered for {duration(seconds)}; the wait goes on", "lost"
        )

    def _is_new(self, name: str, came: float) -> bool:
        is_new = (name, came) not in self._shown
        self._shown.add((name, came))
        return is_new

    def _say_new(self, kind: str, words: str, key: str | None = None) -> None:
        """Print words unless the last ones of this kind had the same key."""
        key = words if key is None else key
        if words and key != self._last.get(kind):
            self._say_below(words)
        self._last[kind] = key

    def _say_below(self, words: str) -> None:
        self.say(f"{'':<8} {words}")


class LiveDisplay:
    """Redraws a line per failed attempt and state in place, with the elapsed time and the activity.

    The cursor stays visible: no end of this process, not even by SIGKILL, leaves a terminal without one.
    """

    is_live = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._words: list[str] = []
        self._now: JobSnapshot | None = None
        self._driver_seen = False
        self._out_since: float | None = None
        # Letters that the encoding of the terminal has.
        self._is_plain = console.options.ascii_only
        self._spinner = Spinner("line" if self._is_plain else "dots")
        self._live = Live(
            console=console,
            get_renderable=self._render,
            refresh_per_second=_REFRESH_PER_SECOND,
            redirect_stdout=False,  # which may be a pipe
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, words: str) -> None:
        """Show a message that is not about a state of the job."""
        self._words.append(words)

    def print(self, words: str) -> None:
        """Write lines of others above those that are redrawn."""
        self._console.print(words, markup=False, soft_wrap=True)

    def show(self, now: JobSnapshot) -> None:
        """Draw the current state of the job."""
        self._now, self._out_since = now, None
        self._driver_seen = self._driver_seen or now.progress is not None

    def show_outage(self, seconds: float) -> None:
        """Draw the time of the outage below the last known state."""
        self._out_since = time.monotonic() - seconds

    def _render(self) -> Group:
        width, height = self._console.size
        lines = [Text(words) for words in self._words]
        if self._now is not None:
            lines += self._lines(self._now, width)
        if self._out_since is not None:
            spent = duration(time.monotonic() - self._out_since)
            words = f"ZooKeeper has not answered for {spent}; the wait goes on"
            lines += [Text(line, style="bold magenta") for line in wrap(words, width)]
        # rich would cut the last lines, which have the news.
        lines = lines[-max(1, height - 1) :]
        for line in lines:  # a folded line would break the next redraw
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def _lines(self, now: JobSnapshot, width: int) -> Iterator[Text]:
        job = now.job
        for attempt in now.failed:
            name, took, words = _attempt(attempt)
            yield self._past(False, name, took, words)
        for queue, came, left in _states_of_attempt(job):
            spent = duration(max(0.0, (left or time.time()) - came))
            if left is None and not job.is_final:
                yield from self._current(queue, spent, self._activity(now), width)
            else:
                is_end = queue in {Queue.FINISH, Queue.DEAD}
                is_good = queue not in _BAD and not (is_end and job.status is not Status.SUCCESS)
                yield self._past(is_good, queue, str(job.status) if left is None else spent)
        if job.warning and not job.is_final:
            yield Text(f"  warning: {one_line(job.warning)}", style="magenta")

    def _activity(self, now: JobSnapshot) -> str:
        if (words := describe_activity(now.job, now.progress, _blocked(now))) or (
            now.job.queue is not Queue.RUNNING
        ):
            return words
        return "the driver is shutting down" if self._driver_seen else "spark-submit is starting the driver"

    def _past(self, is_good: bool, name: str, spent: str, words: str = "") -> Text:
        mark = ("+" if is_good else "x") if self._is_plain else ("✓" if is_good else "✗")
        return Text(f"{mark} {_row(name, spent, words)}", style="green" if is_good else "red")

    def _current(self, name: str, spent: str, words: str, width: int) -> Iterator[Text]:
        frame = self._spinner.render(time.monotonic())
        assert isinstance(frame, Text)  # noqa: S101 - for the type checker: this spinner has no text
        row = _row(name, spent, words)
        fits = cell_len(row) + 2 <= width
        yield Text.assemble(frame, " ", row if fits else _row(name, spent), style="bold")
        if not fits:
            indent = " " * _INDENT
            below = wrap(
                words,
                max(_INDENT + 1, width),
                initial_indent=indent,
                subsequent_indent=indent,
                max_lines=_MOST_LINES,
                placeholder=" …",
                break_long_words=False,
                break_on_hyphens=False,
            )
            yield from (Text(line, style="bold") for line in below)


def _row(name: str, spent: str, words: str = "") -> str:
    return f"{name:<9} {spent:>11}  {words}".rstrip()
