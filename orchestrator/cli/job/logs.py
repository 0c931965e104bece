"""`orchestrator job logs`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.logs.places import reader_of, say
from orchestrator.cli.logs.printing import RecordPrinter
from orchestrator.cli.logs.tail import (
    Grep,
    Level,
    NoPrefix,
    Since,
    Spark,
    Streams,
    level_of,
    pattern_of,
    since_of,
)
from orchestrator.cli.options import JobId, LogOutput, OutputFormat, Quiet, Verbose
from orchestrator.config.settings import load_settings
from orchestrator.logs.reading.query import DRIVER, LogRecord, query_of
from orchestrator.model.errors import DefinitionError
from queues import QueueError

if TYPE_CHECKING:
    from orchestrator.client.client import Client


def logs(
    job_id: JobId,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="The number of the attempt; default: the last.")
    ] = None,
    stream: Streams = None,
    spark: Spark = False,
    level: Level = None,
    grep: Grep = None,
    since: Since = None,
    executor: Annotated[
        str, typer.Option(metavar="ID", help="Only this executor, all for all; default: the driver.")
    ] = DRIVER,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow until the job has ended.")] = False,
    no_prefix: NoPrefix = False,
    output: LogOutput = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Print the logs of an attempt: what the program prints, and Spark's warnings.

    They come from the files of this host or of the cluster, from another host through its worker, or from
    the Elasticsearch of `logs.url`. A single `--stream` is printed without a prefix.

    Example: orchestrator job logs flights-1 --stream stdout --follow
    """
    settings, streams = load_settings(), [each.value for each in stream or ()]
    printer = RecordPrinter(output, prefix=not no_prefix and len(streams) != 1, is_raw=True)
    view: dict[str, Any] = {
        "streams": streams,
        "level": level_of(level),
        "spark": spark,
        "executor": executor,
    }
    time, expression = since_of(since), pattern_of(grep)
    try:  # of options, typer checks all but this one
        query = query_of(**view, since=time, grep=expression)
    except ValueError as error:
        raise DefinitionError(f"--executor: {error}") from error

    def report(words: str) -> None:
        say(words, quiet=bool(quiet))

    is_silent = True

    def found() -> Iterator[LogRecord]:
        if settings.logs.has_search and not follow:  # the job need not be in ZooKeeper
            from orchestrator.client.logs import searched  # noqa: PLC0415 - lazy: it loads all runners

            reader = reader_of(settings, quiet=bool(quiet))
            yield from searched(reader, job_id, query, attempt=attempt, executor=executor)
            return
        moment = datetime.fromisoformat(time).replace(tzinfo=UTC) if time else None
        with connected() as (client, _):
            yield from client.logs(
                job_id, **view, since=moment, grep=grep, attempt=attempt, follow=follow, report=report
            )
            if is_silent:
                is_filtered = bool(streams or level or grep or since) or executor != DRIVER
                report(_nothing(client, job_id, attempt, is_filtered=is_filtered, spark=spark))

    try:
        for record in found():
            is_silent = False
            printer.print(record)
            if follow:
                printer.flush()
    finally:
        printer.close()


def _nothing(client: "Client", job_id: str, attempt: int | None, *, is_filtered: bool, spark: bool) -> str:
    """Why a command printed nothing, and the command that prints something."""
    try:
        job = client.get(job_id)
    except QueueError:  # removed meanwhile
        return f"nothing of {job_id} is left to print"
    number = attempt or job.attempt
    if is_filtered:
        return f"no line of attempt {number} of {job_id} matches"
    is_open = not job.is_final and number == job.attempt
    words = f"attempt {number} of {job_id} {'has printed nothing yet' if is_open else 'printed nothing'}"
    if number > 1:
        before = f"`orchestrator job logs {job_id} --attempt {number - 1}`"
        return f"{words}; {before} has the output of the attempt before"
    return words if spark else f"{words}; with --spark, `job logs` prints all that Spark logs"
