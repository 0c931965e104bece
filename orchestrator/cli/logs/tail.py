"""`orchestrator logs tail`, and the options that select records."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from threading import Event
from typing import Annotated

import typer

from orchestrator.cli.logs.places import reader_of
from orchestrator.cli.logs.printing import RecordPrinter
from orchestrator.cli.options import LogOutput, OutputFormat, Quiet, Verbose, parse_since
from orchestrator.config.settings import load_settings
from orchestrator.logs.reading.query import LEVELS, LogRecord, query_of, time_of
from orchestrator.logs.reading.query import Grep as Expression
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
    moment = parse_since(text)
    return "" if moment is None else time_of(moment)


class LogStream(StrEnum):
    """The streams of a job; what Spark writes to stderr belongs to `spark`."""

    STDOUT = "stdout"
    STDERR = "stderr"
    SPARK = "spark"


Streams = Annotated[
    list[LogStream] | None, typer.Option("--stream", help="Only this stream; may be repeated.")
]
Spark = Annotated[
    bool, typer.Option("--spark", help="All that Spark logs; default: its warnings and errors.")
]
NoPrefix = Annotated[bool, typer.Option("--no-prefix", help="Print the lines without a prefix.")]

_FOLLOW_SECONDS = 1.0  # the interval of shippers


def tail(
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=10_000, help="The number of records to show first.")
    ] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new records until Ctrl-C.")] = False,
    job: Annotated[str | None, typer.Option(metavar="ID", help="Only records of this job.")] = None,
    stream: Streams = None,
    spark: Spark = False,
    level: Level = None,
    grep: Grep = None,
    since: Since = None,
    no_prefix: NoPrefix = False,
    output: LogOutput = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Print the last log records of all workers and jobs; follow new ones with -f.

    The source is the Elasticsearch of `logs.url` if it responds, else the spools of this host.

    Example: orchestrator logs tail -f --job flights-1 --level warning
    """
    query = query_of(
        streams=[each.value for each in stream or ()],
        level=level_of(level),
        spark=spark,
        since=since_of(since),
        grep=pattern_of(grep),
    )
    query = replace(query, terms={} if job is None else {"job.id": (job,)})
    reader = reader_of(load_settings(), quiet=bool(quiet))
    printer = RecordPrinter(output, prefix=not no_prefix, names_job=job is None)
    shown = reader.last(query, lines)
    _print(printer, shown)
    if follow:
        for news in reader.follow(query, shown):
            _print(printer, news)
            Event().wait(_FOLLOW_SECONDS)


def _print(printer: RecordPrinter, records: Sequence[LogRecord]) -> None:
    for record in records:
        printer.print(record)
    printer.flush()
