"""The outbox: events before the end of a job, kept in its record until they are delivered.

An event is written with the step that it reports. The size is bounded: the record has a limit, and the step
that ends the job must fit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from orchestrator.callbacks.body import callback_body, kept, kept_bytes
from orchestrator.handlers.job_context import JobContext
from orchestrator.models.job import JobState, Notice, Undelivered
from orchestrator.states import Queue, Status
from orchestrator.times import stored_time
from queues.documents import timestamp
from spark_runner.attempt import application_in

_MAX_BYTES = 6_000  # eight of the usual size, of a record of 64 KiB, of which the error may take 48
_MOST_UNDELIVERED = 5
_MAX_REASON_CHARACTERS = 160


def with_warning(job: JobContext, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes that make a job RUNNING_WARN, with the event if its callback asks for it."""
    noted = with_running(job, changes)
    if not _is_wanted(job, "warn") or job.state.status is Status.RUNNING_WARN:
        return noted
    return _noted(job, "warn", job.state.evolve(**noted, status=Status.RUNNING_WARN), noted)


def with_running(job: JobContext, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, with the event `running` of the present attempt if that is due."""
    document = unannounced(job)
    return dict(changes) if document is None else _running(job, document, changes)


def _running(job: JobContext, document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    facts = {"started": stored_time(document["started"]), "announced": job.state.attempt}
    if (named := application(job, document)) is not None:
        facts["application_id"] = named
    news = {**facts, **changes}
    shown = job.state.evolve(**news)
    if shown.status.queue is not Queue.RUNNING:  # it ended before a handler saw it run
        shown = shown.model_copy(
            update={"status": Status.RUNNING, "previous": Status.ACCEPT, "ended": None, "warning": None}
        )
    return _noted(job, "running", shown, news)


def application(job: JobContext, document: Mapping[str, Any]) -> str | None:
    """The application id of the present attempt with this document; None until it is known."""
    return application_in(document) or application_in(job.alive())


def unannounced(job: JobContext) -> Mapping[str, Any] | None:
    """The document of an attempt that has started, if its event `running` is due; else None.

    It is due once for each attempt, if the callback asks for it.
    """
    state = job.state
    if state.announced >= state.attempt or not _is_wanted(job, "running"):
        return None
    document = job.attempt_document()
    return document if document and document.get("started") else None


def _is_wanted(job: JobContext, event: Literal["running", "warn"]) -> bool:
    callback = job.definition.callback
    return bool(callback.url) and event in callback.on


def _noted(
    job: JobContext, event: Literal["running", "warn"], after: JobState, changes: Mapping[str, Any]
) -> dict[str, Any]:
    number = after.notices + 1
    body = callback_body(
        job.claim.record,
        after,
        job.definition,
        {"place": (job.attempt_document() or {}).get("place")},
        event=event,
        number=number,
        status=after.status,
        driver_page=job.alive().get("ui"),
    )
    outbox = (*after.outbox, Notice(number=number, body=kept(body)))
    noted = {**changes, "notices": number, "outbox": outbox}
    first_and_last = 2  # the first may be in delivery, the last is new
    while len(outbox) > first_and_last and _bytes(outbox) > _MAX_BYTES:
        lost, outbox = outbox[1], (outbox[0], *outbox[2:])
        after = after.evolve(**given_up(after, lost, "too many events wait for their delivery"))
        noted |= {"outbox": outbox, "undelivered": after.undelivered}
    return noted


def _bytes(outbox: Sequence[Notice]) -> int:
    return sum(kept_bytes(notice.body) for notice in outbox)


def given_up(state: JobState, notice: Notice, reason: str) -> dict[str, Any]:
    """The change that records an event before the end as undelivered."""
    return undelivered(state, str(notice.body.get("event")), notice.number, notice.tries, reason)


def undelivered(state: JobState, event: str, number: int, tries: int, reason: str) -> dict[str, Any]:
    """The change that records an event as undelivered."""
    error = reason[:_MAX_REASON_CHARACTERS]
    lost = Undelivered(event=event, number=number, tries=tries, error=error, at=timestamp())
    return {"undelivered": (*state.undelivered, lost)[-_MOST_UNDELIVERED:]}
