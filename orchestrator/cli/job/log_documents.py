"""The logs of a job and Spark, from the documents in Elasticsearch and in the spools of this host."""

from collections.abc import Callable
from dataclasses import replace
from threading import Event

from orchestrator.cli.logs.tail import show_entries
from orchestrator.cli.options import OutputFormat
from orchestrator.logs.reading.query import LogQuery, LogRecord
from orchestrator.logs.reading.reader import LogReader
from orchestrator.model.errors import NoSuchAttempt

_FOLLOW_SECONDS = 1.0
_LATE_LOOKS = (
    5  # reads without news after the end of the job: time to collect, ship and refresh the last records
)


def show_documents(
    reader: LogReader,
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


def _last_attempt(reader: LogReader, query: LogQuery) -> int | None:
    last = reader.last(LogQuery(query.terms), 1)
    found = last[0].document.get("job.attempt") if last else None
    return found if isinstance(found, int) else None
