"""Live progress of one job on stderr: redrawn in place on a terminal, plain lines on a pipe."""

import sys
import time
from collections.abc import Iterator
from textwrap import wrap
from typing import Protocol, Self

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from orchestrator.admin.job_monitor import JobSnapshot
from orchestrator.cli.output import duration, elapsed, stderr_console
from orchestrator.cli.plain import PlainDisplay
from orchestrator.cli.states import blocked, end_of_attempt, states_of_attempt
from orchestrator.client.progress import describe_activity, one_line
from orchestrator.model.states import Queue, Status

_REFRESH_PER_SECOND = 8
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


class LiveDisplay:
    """Redraws a line per failed attempt and state in place, with the elapsed time and the activity.

    The cursor stays visible: no end of this process, not even by SIGKILL, leaves a terminal without one.
    """

    is_live = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._words: list[str] = []
        self._now: JobSnapshot | None = None
        self._driver_seen: tuple[str, int] | None = None  # the attempt whose driver has reported progress
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
        if now.progress is not None:
            self._driver_seen = (now.job.run_key, now.job.attempt)

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
            took = elapsed(attempt.get("started"), attempt.get("ended"))
            yield self._past(False, f"attempt {attempt['attempt']}", took, end_of_attempt(attempt))
        for queue, came, left in states_of_attempt(job):
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
        if (words := describe_activity(now.job, now.progress, blocked(now))) or (
            now.job.queue is not Queue.RUNNING
        ):
            return words
        is_seen = self._driver_seen == (now.job.run_key, now.job.attempt)
        return "the driver is shutting down" if is_seen else "spark-submit is starting the driver"

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
