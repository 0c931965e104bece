"""The logs of a job, wherever they are: on this host, on another one, or in Elasticsearch."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from orchestrator.client.log_pages import LogPages, OwnPages, RemotePages
from orchestrator.config.directories import spool_directory
from orchestrator.config.runners import build_runners
from orchestrator.config.settings import Settings
from orchestrator.driver_logs.attempt_runs import AttemptRun, find_run, secrets_of_job
from orchestrator.driver_logs.page_request import PageRequest
from orchestrator.logs.reading.query import ALL, LogQuery, LogRecord
from orchestrator.logs.reading.reader import LogReader
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.model.errors import NoSuchAttempt
from orchestrator.model.job_view import JobView
from orchestrator.model.paths import Nodes
from queues import ItemNotFound, QueueSet, Record
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.runners.registry import Runners

_FOLLOW_SECONDS = 0.3
_SEARCH_SECONDS = 1.0  # the interval of shippers
_LATE_LOOKS = 5  # reads without news after the end of a job: its last records are still on their way


class JobLogs:
    """Reads the logs of jobs. `report` receives a message when a source cannot be read now.

    `runners` are those of this host; None = as the settings describe them.
    """

    def __init__(
        self,
        queue_set: QueueSet,
        settings: Settings,
        report: Callable[[str], None],
        runners: Runners | None = None,
    ) -> None:
        self._set, self._settings, self._report, self._own = queue_set, settings, report, runners
        self._session, self._nodes = queue_set.session, Nodes(queue_set.layout.root)

    def records(
        self, job_id: str, query: LogQuery, *, attempt: int | None, executor: str, follow: bool
    ) -> Iterator[LogRecord]:
        """The records that match, in the order of time; with `follow` until the job has ended.

        Without an attempt these are the records of the last one, and with `follow` also those of its
        retries. Raises ItemNotFound, NoSuchAttempt, LogsElsewhere.
        """
        reader = reader_of(self._settings, self._report)
        if self._settings.logs.has_search:
            is_over = (lambda: self._is_over(job_id)) if follow else None
            yield from searched(reader, job_id, query, attempt=attempt, executor=executor, is_over=is_over)
            return
        try:
            self._set.get(job_id)
        except ItemNotFound:  # removed; its records may still be in a spool of this host
            try:
                yield from searched(reader, job_id, query, attempt=attempt, executor=executor)
            except NoSuchAttempt:
                pass
            else:
                return
            raise
        yield from self._from_files(job_id, query, attempt, executor, follow=follow)

    # ------------------------------------------------------------------ files
    def _from_files(
        self, job_id: str, query: LogQuery, number: int | None, executor: str, *, follow: bool
    ) -> Iterator[LogRecord]:
        shown = 0
        while (record := self._record(job_id, is_shown=shown > 0)) is not None:
            state = JobView.of(record)
            waits = follow and number is None and not state.is_final
            if not (waits and state.attempt == shown):
                found = self._run(record, number, waits=waits)
                if found is not None and found.number > shown:
                    shown = found.number
                    yield from self._of_attempt(job_id, found, query, executor, follow=follow)
                elif not waits:
                    return
            if not follow or number is not None:
                return
            time.sleep(_FOLLOW_SECONDS)

    def _record(self, job_id: str, *, is_shown: bool) -> Record | None:
        """The record of the job; None if it was removed after its logs were shown."""
        try:
            return self._set.get(job_id)
        except ItemNotFound:
            if not is_shown:
                raise
            return None

    def _run(self, record: Record, number: int | None, *, waits: bool) -> AttemptRun | None:
        """The run of the attempt; None if it has not started, and the reader waits for it."""
        try:
            return find_run(self._session, self._set.layout, record, number)
        except NoSuchAttempt:
            if not waits:
                raise
            return None

    def _of_attempt(
        self, job_id: str, found: AttemptRun, query: LogQuery, executor: str, *, follow: bool
    ) -> Iterator[LogRecord]:
        runners = build_runners(self._settings, warm=False) if self._own is None else self._own
        try:
            runner = runners.at(found.place)
        except SparkRunnerError:  # such as a state directory that this user may not create
            runner = None
        if runner is None:
            request = request_of(query, job_id, found.number, executor)
            remote = RemotePages(self._session, self._nodes, found, request, self._report)
            try:
                yield from self._pages(remote, job_id, found, follow=follow)
            finally:
                remote.close()
            return
        REDACTOR.add_of_job(secrets_of_job(self._session, self._set.layout, job_id))
        own = OwnPages(found, runner, self._settings.state_dir, query=query, executor=executor)
        yield from self._pages(own, job_id, found, follow=follow)

    def _pages(self, pages: LogPages, job_id: str, found: AttemptRun, *, follow: bool) -> Iterator[LogRecord]:
        cursor: dict[str, int] = {}
        flush = False
        while True:
            # Looked at before the logs are read, so that all output before the end is read.
            is_over = not follow or self._has_passed(job_id, found.number)
            page = pages.page(cursor, flush=flush, wait=not is_over)
            for each in page.records:
                yield LogRecord(each.id, {**page.fields, **each.document})
            cursor = dict(page.cursor)
            if page.is_full:
                continue
            if flush:
                return
            flush = is_over

    def _has_passed(self, job_id: str, number: int) -> bool:
        """Whether no more output of this attempt will come."""
        try:
            state = JobView.of(self._set.get(job_id))
        except ItemNotFound:
            self._report(f"job {job_id!r} was removed; this is what was left of its logs")
            return True
        return state.is_final or state.attempt != number

    def _is_over(self, job_id: str) -> bool:
        try:
            return JobView.of(self._set.get(job_id)).is_final
        except ItemNotFound:
            return True


def request_of(query: LogQuery, job_id: str, number: int, executor: str) -> PageRequest:
    """The request to a worker for records that match."""
    return PageRequest(
        job=job_id,
        attempt=number,
        executor=executor,
        level=query.level,
        spark_level=query.spark_level,
        since=query.since,
        grep=query.grep.expression if query.grep else "",
        origins=[origin.value for origin in query.origins],
    )


# ---------------------------------------------------------------------- records of the collector
def reader_of(settings: Settings, report: Callable[[str], None]) -> LogReader:
    """A reader of the Elasticsearch of `logs.url`, and of the spools of this host; raises UnsafeDirectory."""
    return LogReader(settings.logs, spool_directory(settings), report=report)


def searched(
    reader: LogReader,
    job_id: str,
    query: LogQuery,
    *,
    attempt: int | None,
    executor: str,
    is_over: Callable[[], bool] | None = None,
) -> Iterator[LogRecord]:
    """The records of a job that were collected; with `is_over`, until it returns True.

    Raises NoSuchAttempt if there is none.
    """
    terms = {"job.id": (job_id,), "log.stream": ("stdout", "stderr", "spark")}
    if executor != ALL:
        terms["spark.executor_id"] = (executor,)
    query = replace(query, terms=terms)
    if is_over is None:
        found = list(reader.all(_of_attempt(query, attempt or _last_attempt(reader, query))))
        if not found and not reader.last(_of_attempt(LogQuery(terms), attempt), 1):
            raise NoSuchAttempt(
                f"no log record of {job_id!r} was found; `logs status` shows records that are not shipped yet"
            )
        yield from found
        return
    looks = 0
    for news in reader.follow(_of_attempt(query, attempt), []):
        yield from news
        looks = looks + 1 if is_over() and not news else 0
        if looks >= _LATE_LOOKS:
            return
        time.sleep(_SEARCH_SECONDS)


def _of_attempt(query: LogQuery, attempt: int | None) -> LogQuery:
    if attempt is None:
        return query
    return replace(query, terms={**query.terms, "job.attempt": (str(attempt),)})


def _last_attempt(reader: LogReader, query: LogQuery) -> int | None:
    last = reader.last(LogQuery(query.terms), 1)
    found = last[0].document.get("job.attempt") if last else None
    return found if isinstance(found, int) else None
