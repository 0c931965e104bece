"""`orchestrator logs tail`, the records of one job, and the options that select records."""

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.documents import print_json
from orchestrator.cli.logs.places import reader_of
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, parse_seconds_of
from orchestrator.config.settings import load_settings
from orchestrator.logs.reading.query import LEVELS, LogQuery, LogRecord
from orchestrator.logs.reading.query import Grep as Expression
from orchestrator.logs.visible import visible
from orchestrator.model.errors import DefinitionError, NoSuchAttempt
from spark_runner.protocol.text import shortened

if TYPE_CHECKING:
    from orchestrator.logs.reading.reader import LogReader

Level = Annotated[str | None, typer.Option(help=f"The lowest level to show: {', '.join(LEVELS)}.")]
Grep = Annotated[
    str | None, typer.Option(metavar="RE", help="Only records whose message or stack trace matches.")
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="The oldest time to show: 10m, 2h, or 2026-11-22T10:00.")
]


def level_of(text: str | None) -> str:
    """A level in the form of the documents, empty without one; raises DefinitionError."""
    level = (text or "").lower()
    if level and level not in LEVELS:
        raise DefinitionError(f"--level {text!r}: expected one of {', '.join(LEVELS)}")
    return level


def pattern_of(text: str | None) -> Expression | None:
    """The pattern of --grep; raises DefinitionError."""
    try:
        return None if text is None else Expression(text)
    except ValueError as error:
        message = f"--grep {shortened(text or '', 200)!r} is not a valid RE2 regular expression: {error}"
        raise DefinitionError(message) from error


def since_of(text: str | None) -> str:
    """The time of --since as ISO 8601 in UTC, empty without one; a time without a zone is local.

    Raises DefinitionError.
    """
    if text is None:
        return ""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        seconds = parse_seconds_of("--since", text) or 0.0
        moment = datetime.now(UTC) - timedelta(seconds=seconds)
    try:
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    except (OverflowError, ValueError) as error:  # the first and the last days that datetime has
        raise DefinitionError(f"--since {text!r}: this time is out of range") from error


_FOLLOW_SECONDS = 1.0  # the interval of shippers
_LATE_LOOKS = 5  # reads without news after the end of a job: its last records are still on their way


def tail(
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=10_000, help="The number of records to show first.")
    ] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new records until Ctrl-C.")] = False,
    job: Annotated[str | None, typer.Option(metavar="ID", help="Only records of this job.")] = None,
    level: Level = None,
    grep: Grep = None,
    since: Since = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Print the last log records of all workers and jobs; follow new ones with -f.

    The source is the Elasticsearch of `logs.url` if it responds, else the spools of this host.

    Example: orchestrator logs tail -f --job flights-1 --level warning
    """
    query = LogQuery.of(job_id=job, level=level_of(level), grep=pattern_of(grep), since=since_of(since))
    settings = load_settings()
    reader = reader_of(settings, quiet=bool(quiet))
    shown = reader.last(query, lines)
    show_entries(shown, output)
    if follow:
        for news in reader.follow(query, shown):
            show_entries(news, output)
            Event().wait(_FOLLOW_SECONDS)


def show_entries(entries: list[LogRecord], output: OutputFormat) -> None:
    """Write records to stdout, as a line of text or as a JSON document each."""
    for entry in entries:
        if output is OutputFormat.TABLE:
            sys.stdout.write(visible(entry.line()) + "\n")
        else:
            print_json({"_id": entry.id, **entry.document}, OutputFormat.JSONL)
    sys.stdout.flush()


def show_documents(
    reader: "LogReader",
    query: LogQuery,
    output: OutputFormat,
    *,
    attempt: int | None,
    is_over: Callable[[], bool] | None,
) -> None:
    """Write the matching records to stdout in order; with `is_over`, follow until it returns True.

    Raises NoSuchAttempt.
    """
    if is_over is None:
        found = list(reader.all(_of_attempt(query, attempt or _last_attempt(reader, query))))
        if not found and not reader.last(_of_attempt(LogQuery(query.terms), attempt), 1):
            job_id = query.terms["job.id"][0]
            raise NoSuchAttempt(
                f"no log record of {job_id!r} was found; `logs status` shows records that are not shipped yet"
            )
        show_entries(found, output)
        return
    query = _of_attempt(query, attempt)
    shown: list[LogRecord] = []
    looks = 0
    for news in reader.follow(query, shown):
        show_entries(news, output)
        looks = looks + 1 if is_over() and not news else 0
        if looks >= _LATE_LOOKS:
            return
        Event().wait(_FOLLOW_SECONDS)


def _of_attempt(query: LogQuery, attempt: int | None) -> LogQuery:
    if attempt is None:
        return query
    return replace(query, terms={**query.terms, "job.attempt": (str(attempt),)})


def _last_attempt(reader: "LogReader", query: LogQuery) -> int | None:
    last = reader.last(LogQuery(query.terms), 1)
    found = last[0].document.get("job.attempt") if last else None
    return found if isinstance(found, int) else None
