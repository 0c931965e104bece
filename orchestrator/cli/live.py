"""Live progress of one job: one updated line per state on a terminal, plain lines on a pipe."""

import time
from typing import Any, Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from orchestrator.cli.output import duration, stderr_console
from orchestrator.model.job import JobView
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import moment

_ORDER = (Queue.ACCEPT, Queue.RUNNING, Queue.SUCCESS, Queue.FAIL, Queue.KILL, Queue.FINISH, Queue.DEAD)
_REFRESH_PER_SECOND = 8


class Display(Protocol):
    """Shows the progress of a job."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def say(self, words: str) -> None:
        """Show a message that is not about a state of the job."""

    def show(self, job: JobView, progress: dict[str, Any] | None) -> None:
        """Show the current state of the job."""


def display(*, quiet: bool) -> Display:
    """A display for stderr: live on a terminal, else plain; silent when quiet."""
    console = stderr_console()
    console.quiet = quiet
    return LiveDisplay(console) if console.is_terminal and not quiet else PlainDisplay(console)


def states(job: JobView) -> list[tuple[Queue, float, float | None]]:
    """The states of the job so far: queue, time of entry, time of exit or None (epoch seconds)."""
    times = [(Queue(queue), moment(at)) for queue, at in job.times.items() if queue in set(Queue)]
    came = sorted(
        ((queue, at.timestamp()) for queue, at in times if at is not None),
        key=lambda item: (item[1], _ORDER.index(item[0])),
    )
    leaving = [at for _, at in came[1:]]
    return [(queue, at, leaving[i] if i < len(leaving) else None) for i, (queue, at) in enumerate(came)]


def describe_progress(progress: dict[str, Any] | None) -> str:
    """The current activity of the driver, in one line."""
    if progress is None:
        return ""
    parts, stages = [str(progress.get("phase") or "")], progress.get("stages")
    if progress.get("stopping") is True:
        parts.append("ends after the current micro-batch")
    parts += [
        f"stage {stage.get('stage')}: {stage.get('done')}/{stage.get('tasks')} tasks"
        for stage in (stages if isinstance(stages, list) else ())
        if isinstance(stage, dict)
    ]
    for done in ("read", "written"):
        moved = progress.get(done)
        if isinstance(moved, dict) and isinstance(rows := moved.get("rows"), int) and rows:
            parts.append(f"{rows:,} rows {done}")
    return " · ".join(part for part in parts if part)


class PlainDisplay:
    """Prints a line for each change, for pipes and files."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = time.monotonic()
        self._shown: set[tuple[Queue, float]] = set()
        self._phase = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, words: str) -> None:
        """Show a message that is not about a state of the job."""
        self._console.print(f"{time.monotonic() - self._start:6.1f} s  {words}", markup=False)

    def show(self, job: JobView, progress: dict[str, Any] | None) -> None:
        """Print new states, and a new phase of the driver."""
        for queue, came, _ in states(job):
            if (queue, came) not in self._shown:
                self._shown.add((queue, came))
                self.say(f"{queue:<8} {job.status}" if queue is job.queue else f"{queue:<8}")
        phase = str((progress or {}).get("phase") or "")
        if phase and phase != self._phase and job.queue is Queue.RUNNING:
            self._phase = phase
            self.say(f"{'':<8} {phase}")


class LiveDisplay:
    """Redraws one line per state in place, with the elapsed time and Spark's stages."""

    def __init__(self, console: Console) -> None:
        self._words: list[str] = []
        self._job: JobView | None = None
        self._progress: dict[str, Any] | None = None
        self._driver_seen = False
        self._spinner = Spinner("dots")
        self._live = Live(
            console=console, get_renderable=self._render, refresh_per_second=_REFRESH_PER_SECOND
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, words: str) -> None:
        """Show a message that is not about a state of the job."""
        self._words.append(words)

    def show(self, job: JobView, progress: dict[str, Any] | None) -> None:
        """Draw the current state of the job."""
        self._job, self._progress = job, progress
        self._driver_seen = self._driver_seen or progress is not None

    def _doing(self, queue: Queue) -> str:
        if queue is not Queue.RUNNING or self._progress is not None:
            return describe_progress(self._progress)
        return "the driver is shutting down" if self._driver_seen else "spark-submit is starting the driver"

    def _render(self) -> RenderableType:
        lines: list[RenderableType] = [Text(words, style="dim") for words in self._words]
        job = self._job
        if job is not None:
            for queue, came, left in states(job):
                spent = duration(max(0.0, (left or time.time()) - came))
                if left is None and not job.is_final:
                    line = f"{queue:<8} {spent:>12}  {self._doing(queue)}"
                    self._spinner.update(text=Text(line, style="bold"))
                    lines.append(self._spinner)
                else:
                    lines.append(_past_line(queue, "" if left is None else spent, job))
        return Group(*lines)


def _past_line(queue: Queue, spent: str, job: JobView) -> Text:
    bad = queue in {Queue.FAIL, Queue.KILL, Queue.DEAD}
    style, mark = ("red", "✗") if bad else ("green", "✓")
    if queue in {Queue.FINISH, Queue.DEAD} and job.status is not Status.SUCCESS:
        style, mark = "red", "✗"
    return Text(f"{mark} {queue:<8} {spent or str(job.status):>12}", style=style)
