"""`orchestrator job logs`."""

from contextlib import suppress
from typing import Annotated

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.job.log_files import LogStream, print_logs
from orchestrator.cli.logs.places import reader_of
from orchestrator.cli.logs.tail import Grep, Level, Since, level_of, pattern_of, show_documents, since_of
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose
from orchestrator.client.client import Client
from orchestrator.compose import build_runners
from orchestrator.config.settings import load_settings
from orchestrator.logs.reading.query import LogQuery
from queues import ItemNotFound


def logs(
    job_id: JobId,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="The number of the attempt; default: the last.")
    ] = None,
    stream: Annotated[list[LogStream] | None, typer.Option(help="Only this stream; default: all.")] = None,
    level: Level = None,
    grep: Grep = None,
    since: Since = None,
    executor: Annotated[str | None, typer.Option(metavar="ID", help="Only this executor.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow until the job has ended.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Print the logs of an attempt: stdout, stderr and the log of Spark.

    By default, print the files of this host or of the cluster. With a filter, with JSON output, or if
    `logs.url` names an Elasticsearch, print single records in the order of their times.

    Example: orchestrator job logs flights-1 --stream stdout --follow
    """
    settings, streams = load_settings(), tuple(stream or LogStream)
    filters = (level, grep, since, executor)
    if not settings.logs.has_search and filters == (None,) * 4 and output is OutputFormat.TABLE:
        with connected() as (client, _):
            print_logs(client, build_runners(settings, warm=False), job_id, attempt, streams, follow=follow)
        return
    query = LogQuery.of(
        level=level_of(level),
        grep=pattern_of(grep),
        since=since_of(since),
        job_id=job_id,
        log_stream=[each.value for each in streams],
        spark_executor_id=executor,
    )
    reader = reader_of(settings, quiet=bool(quiet))
    if not follow:
        show_documents(reader, query, output, attempt=attempt, is_over=None)
        return
    with connected() as (client, _):
        show_documents(reader, query, output, attempt=attempt, is_over=lambda: _is_over(client, job_id))


def _is_over(client: Client, job_id: str) -> bool:
    """Whether the job has ended or was removed, so that no further record will come."""
    with suppress(ItemNotFound):
        return client.get(job_id).is_final
    return True
