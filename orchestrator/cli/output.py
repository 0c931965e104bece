"""Data on stdout, a table for people and JSON for programs; the end of a job as message and exit code."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from orchestrator.cli.documents import print_json, print_json_rows
from orchestrator.cli.exits import Exit
from orchestrator.cli.folding import folded
from orchestrator.cli.grid import Cell, Grid
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.page import repeat
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.visible import visible
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Status
from orchestrator.model.times import seconds_between

T = TypeVar("T")

_FACT_INDENT = 10
_MAX_PLAIN_WIDTH = 400  # a pipe has no width; this is wide enough that no cell is folded


class SafeConsole(Console):
    """The console for all tables and messages: it masks secrets and escapes terminal control sequences.

    Table cells are masked when the table is built.
    """

    def print(self, *objects: Any, **named: Any) -> None:
        """Print with secrets masked in texts; a pipe gets lines of any length.

        Texts on stderr are prose, unless the caller says otherwise by `soft_wrap`.
        """
        if not self.file.isatty():
            named.setdefault("crop", False)
        masked = [REDACTOR.mask(each) if isinstance(each, str) else each for each in objects]
        if self.soft_wrap and "soft_wrap" not in named:
            masked = [
                folded(visible(each), self._columns) if isinstance(each, str) else each for each in masked
            ]
        super().print(*masked, **named)

    def prose(
        self, words: str, *, style: str | None = None, indent: int = 0, hang: int | None = None
    ) -> None:
        """Print words without markup; a terminal gets them as `folded` returns them."""
        text = folded(visible(REDACTOR.mask(words)), self._columns, indent=indent, hang=hang)
        self.print(text, markup=False, soft_wrap=True, style=style)

    @property
    def _columns(self) -> int | None:
        return self.width if self.file.isatty() else None

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002 - the signature of rich
        """Leave the cursor as it is: rich would hide it, and a killed process cannot show it again."""
        return False

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable, text escaped; the control segments of rich stay as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def stdout_console() -> SafeConsole:
    """A console on stdout; colours and folding only on a terminal."""
    width = None if sys.stdout.isatty() else _MAX_PLAIN_WIDTH
    return SafeConsole(width=width, highlight=False, emoji=False)


def stderr_console() -> SafeConsole:
    """A console on stderr, for prose."""
    return SafeConsole(stderr=True, soft_wrap=True, highlight=False, emoji=False)


def exit_as(job: JobView, *, quiet: bool) -> None:
    """Report the final status of a job, and exit with 1 unless it is SUCCESS."""
    if not quiet:
        error = f": {job.error.message}" if job.error is not None and job.status is not Status.SUCCESS else ""
        stderr_console().print(f"{job.id}: {job.status}{error}", markup=False)
    if job.status is not Status.SUCCESS:
        raise typer.Exit(Exit.FAILED)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], drop: Sequence[str] | None = None
) -> Grid:
    """A table with numbers aligned to the right, which fits the terminal.

    `drop` has the headings of the columns that a narrow terminal leaves out, the least important one first;
    without it these are all but the first, from the right. The others are cut.
    """
    numeric = [
        bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        for index in range(len(columns))
    ]
    known = dict[str, Cell]()  # most texts of ten thousand rows repeat others

    def cell(value: object) -> Cell:
        if type(value) is not str:
            return _cell(value)
        found = known.get(value)
        if found is None:
            found = known[value] = _cell(value)
        return found

    return Grid(
        [_cell(column).text for column in columns],
        [[cell(value) for value in row] for row in rows],
        right=numeric,
        drop=range(len(columns) - 1, 0, -1) if drop is None else [columns.index(each) for each in drop],
    )


def _cell(value: object) -> Cell:
    if value is None:
        return Cell("")
    if isinstance(value, int) and not isinstance(value, bool):
        return Cell(f"{value:,}")
    text, style = REDACTOR.mask(str(value)), str(value.style) if isinstance(value, Text) else ""
    if text.isascii() and text.isprintable():  # most of ten thousand rows
        return Cell(text, style)
    # Before the columns are measured.
    return Cell(visible(text).replace("\r", "").replace("\n", r"\n").expandtabs(1), style)


def show_rows(
    rows: Sequence[dict[str, Any]],
    columns: dict[str, str],
    output: OutputFormat,
    drop: Sequence[str] | None = None,
    *,
    none: str = "",
) -> None:
    """Write documents as a JSON array, as JSON lines, or as a table of `columns` (key -> heading).

    `none`: the words on stderr for a table without rows.
    """
    match output:
        case OutputFormat.JSON | OutputFormat.JSONL:
            print_json_rows(rows, output)
        case OutputFormat.TABLE:
            cells = [[row[key] for key in columns] for row in rows]
            stdout_console().print(table(list(columns.values()), cells, drop))
            if none and not rows:
                stderr_console().print(none, markup=False)


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


_STATUS_STYLES = {  # each can be read on a dark and on a light terminal
    Status.RUNNING: "bold",
    Status.RUNNING_WARN: "bold magenta",
    Status.SUCCESS: "green",
    Status.ERROR_FAIL: "red",
    Status.KILL: "magenta",
    Status.CANCEL: "magenta",
    Status.DEAD: "bold red",
}


def shown_status(status: Status) -> Text:
    """A status in its colour."""
    return Text(status, style=_STATUS_STYLES.get(status, ""))


def show_fact(name: str, value: str, indent: int = _FACT_INDENT) -> None:
    """Write `name: value` to stdout; a terminal gets lines that are folded between words, below the value."""
    stdout_console().prose(f"{name + ':':<{indent}}{value}", hang=indent)


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
