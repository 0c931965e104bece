"""`orchestrator logs tail`, and the options that select records."""

import sys
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Annotated

import typer

from orchestrator.cli.documents import print_json
from orchestrator.cli.logs.places import reader_of
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, parse_seconds_of
from orchestrator.config.settings import load_settings
from orchestrator.logs.reading.query import LEVELS, LogQuery, LogRecord
from orchestrator.logs.reading.query import Grep as Expression
from orchestrator.logs.visible import visible
from orchestrator.model.errors import DefinitionError
from spark_runner.protocol.text import shortened

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
