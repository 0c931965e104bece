"""`orchestrator logs tail`."""

import sys
from threading import Event
from typing import Annotated

import typer

from orchestrator.cli.documents import print_json
from orchestrator.cli.logs.places import reader_of
from orchestrator.cli.logs.queries import Grep, Level, Since, level_of, pattern_of, since_of
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.logs.reading.entry import LogRecord
from orchestrator.logs.reading.query import LogQuery
from orchestrator.logs.visible import visible
from orchestrator.settings import load_settings

_FOLLOW_SECONDS = 1.0  # as often as shippers ship


def tail(
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=10_000, help="So many at first.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    job: Annotated[str | None, typer.Option(metavar="ID", help="Only what concerns this job.")] = None,
    level: Level = None,
    grep: Grep = None,
    since: Since = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Print the last log records of all workers and jobs, and go on with -f.

    They come from Elasticsearch where `logs.url` names one that answers, else from the spools of this host.

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
    """Write records to stdout: a line each for people, else their documents."""
    for entry in entries:
        if output is OutputFormat.TABLE:
            sys.stdout.write(visible(entry.line()) + "\n")
        else:
            print_json({"_id": entry.id, **entry.document}, OutputFormat.JSONL)
    sys.stdout.flush()
