"""Data on stdout, a table for people and JSON for programs; the end of a job as message and exit code."""

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from orchestrator.cli.documents import print_json
from orchestrator.cli.exits import Exit
from orchestrator.cli.options import OutputFormat
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.visible import visible
from orchestrator.model.job import JobView
from orchestrator.model.states import Status
from orchestrator.model.times import seconds_between

T = TypeVar("T")

_MAX_PLAIN_WIDTH = 400  # a pipe has no width; this is wide enough that no cell is folded


class _SafeConsole(Console):
    """The console for all tables and messages: it masks secrets and escapes terminal control sequences.

    Table cells are masked when the table is built.
    """

    def print(self, *objects: Any, **named: Any) -> None:
        """Print with secrets masked in texts."""
        super().print(*(REDACTOR.mask(each) if isinstance(each, str) else each for each in objects), **named)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable, text escaped; the control segments of rich stay as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def stdout_console() -> Console:
    """A console on stdout; colours and folding only on a terminal."""
    width = None if sys.stdout.isatty() else _MAX_PLAIN_WIDTH
    return _SafeConsole(width=width, highlight=False, emoji=False)


def stderr_console() -> Console:
    """A console on stderr."""
    return _SafeConsole(stderr=True, soft_wrap=True, highlight=False, emoji=False)


def exit_as(job: JobView, *, quiet: bool) -> None:
    """Report the final status of a job, and exit with 1 unless it is SUCCESS."""
    if not quiet:
        error = f": {job.error.message}" if job.error is not None and job.status is not Status.SUCCESS else ""
        stderr_console().print(f"{job.id}: {job.status}{error}", markup=False)
    if job.status is not Status.SUCCESS:
        raise typer.Exit(Exit.FAILED)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table with numbers aligned to the right."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=False)
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        made.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*[Text(_cell(value)) for value in row])  # data is never read as markup
    return made


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return visible(REDACTOR.mask(str(value)))  # before rich measures the columns


def show_rows(rows: Sequence[dict[str, Any]], columns: dict[str, str], output: OutputFormat) -> None:
    """Write documents as a JSON array, as JSON lines, or as a table of `columns` (key -> heading)."""
    match output:
        case OutputFormat.JSON:
            print_json(list(rows))
        case OutputFormat.JSONL:
            for row in rows:
                print_json(row, output)
        case OutputFormat.TABLE:
            cells = [[row[key] for key in columns] for row in rows]
            stdout_console().print(table(list(columns.values()), cells))


def show_page(
    look: Callable[[], T],
    page: Callable[[T], None],
    document: Callable[[T], object],
    output: OutputFormat,
    watch: float | None,
) -> None:
    """Write the result of `look` as a page or as JSON, and repeat it every `watch` seconds."""

    def show_once() -> None:
        found = look()
        if output is OutputFormat.TABLE:
            page(found)
        else:
            print_json(document(found), output)

    repeat(show_once, watch)


def repeat(show: Callable[[], None], seconds: float | None) -> None:
    """Show once, or every `seconds` until interrupted."""
    while True:
        if seconds is not None and sys.stdout.isatty():
            _show_anew(show)
        else:
            show()
        if seconds is None:
            return
        sys.stdout.flush()
        time.sleep(seconds)


class _Page(io.StringIO):
    """What a terminal shows next."""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # that of the terminal, which may have no lines for tables
        return sys.__stdout__.encoding if sys.__stdout__ else "utf-8"

    def isatty(self) -> bool:
        return True


def _show_anew(show: Callable[[], None]) -> None:
    """Replace what the terminal shows, at once: it is not empty while ZooKeeper is asked."""
    page = _Page()
    with contextlib.redirect_stdout(page):
        show()
    stdout_console().clear()
    sys.stdout.write(page.getvalue())


def short_path(location: str) -> str:
    """A location, relative if it is below the working directory."""
    path = Path(location)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else location


def elapsed(start: object, end: object) -> str:
    """The time between two stored times, as `12.3 s` or `4 min 05 s`; empty if one is not a time."""
    seconds = seconds_between(start, end)
    return "" if seconds is None else duration(seconds)


def duration(seconds: float) -> str:
    """Seconds as `12.3 s`, `4 min 05 s` or `2 h 10 min`."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
