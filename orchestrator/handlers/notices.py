"""The outbox: events before the end of a job, kept in its record until they are delivered.

An event is written with the step that it reports. The size is bounded: the record has a limit, and the step
that ends the job must fit.

While the job runs, each delivery has its own thread, so that no receiver delays a handler. The remaining
events are delivered before the end.
"""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from loguru import logger

from orchestrator.callbacks.body import callback_body, kept, kept_bytes, restored
from orchestrator.callbacks.callback import (
    CallbackDelivery,
    CallbackError,
    CallbackRefused,
    CallbackReply,
    CallbacksBusy,
)
from orchestrator.handlers.actions import Action, SetStatus, Wait
from orchestrator.handlers.job_context import JobContext
from orchestrator.model.backoff import growing, jittered
from orchestrator.model.job import JobState, Notice, Undelivered
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import stored_time
from queues import Operation, timestamp
from spark_runner.protocol.attempt import AttemptState, application_in

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
        shown = shown.evolve(status=Status.RUNNING, previous=Status.ACCEPT, ended=None, warning=None)
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
        progress=job.alive(),
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


MAX_CALLBACK_WAIT_SECONDS = 30.0  # a free slot for the callback wakes the job earlier
FIRST_DELAY_SECONDS = 5.0  # after a failed try, doubled with each further one
MAX_DELAY_SECONDS = 300.0

_NAME_SECONDS = 30.0  # the wait of an event for the Spark application, whose id and page it contains
_NAME_LOOK_SECONDS = 1.0


def alongside(job: JobContext, action: Action) -> Action:
    """The action of a running job; where it only waits, the next step of its deliveries."""
    if not isinstance(action, Wait):
        return action
    if (document := unannounced(job)) is not None:
        monitor = job.current_monitor()
        waits = monitor.waits_for_name(_NAME_SECONDS)
        is_over = document.get("state") != AttemptState.STARTED
        if is_over or application(job, document) is not None or not waits:
            return SetStatus(job.state.status, with_running(job, monitor.seen()))
        action = Wait(min(action.seconds, _NAME_LOOK_SECONDS))
    step = _delivered_meanwhile(job)
    if not isinstance(step, float):
        return step
    return action if step == math.inf and job.delivery is None else Wait(min(action.seconds, step))


def _delivered_meanwhile(job: JobContext) -> Action | float:
    """The step that records the result of a delivery, or the seconds without anything to do."""
    state, delivery, now = job.state, job.delivery, time.monotonic()
    if delivery is not None:
        if delivery.outcome is None:
            return math.inf
        job.delivery = None
        if state.outbox and state.outbox[0].number == delivery.number:
            changes, delay = _recorded(job, delivery.outcome)
            job.next_try = now + delay
            return SetStatus(state.status, changes)
    if not state.outbox:
        return math.inf
    if now < job.next_try:
        return job.next_try - now
    callbacks, callback, body = job.context.reporting.callbacks, job.definition.callback, _body(job)
    try:
        # A free slot wakes the job: polling for one would cost a request to the backend per job.
        callbacks.reserve(callback, job.wake_if_held)
    except CallbacksBusy:
        return math.inf
    job.delivery = CallbackDelivery(
        state.outbox[0].number, lambda: callbacks.call_reserved(callback, body), on_end=job.wake
    )
    job.delivery.start()
    return math.inf


def before_end(job: JobContext) -> Action | None:
    """The next step to deliver all events before the end; None when none is left."""
    noted = with_running(job, {})
    if noted:
        return SetStatus(job.state.status, noted)
    delivery, job.delivery = job.delivery, None
    if not job.state.outbox:
        return None
    if delivery is not None and delivery.outcome is None:
        job.delivery = delivery
        return Wait(MAX_CALLBACK_WAIT_SECONDS)  # the end of the delivery wakes the job
    outcome: CallbackReply | CallbackError | None = None
    if delivery is not None and delivery.number == job.state.outbox[0].number:
        outcome = delivery.outcome
    try:
        outcome = outcome or job.context.reporting.callbacks.call(
            job.definition.callback, _body(job), job.wake_if_held
        )
    except CallbacksBusy:
        return Wait(MAX_CALLBACK_WAIT_SECONDS)
    except CallbackError as error:
        outcome = error
    # A request to stop overrides every delay: this step removes it and stores it in the record.
    request = job.stop_request()
    is_asked = request is not None and request[1]
    # The first request in kill brought the job there; a second one makes this try the last.
    is_news = job.state.callback.stopped or (
        job.state.status.queue is not Queue.KILL and job.state.outbox[0].tries > 0
    )
    changes, delay = _recorded(job, outcome, is_last=is_asked and is_news)
    removal: tuple[Operation, ...] = ()
    if request is not None and delay:
        removal = (request[0],)
        changes["callback"] = job.state.callback.model_copy(
            update={"stopped": job.state.callback.stopped or is_asked}
        )
    return SetStatus(job.state.status, changes, extra=removal, delay=delay)


def _body(job: JobContext) -> dict[str, Any]:
    return restored(job.state.outbox[0].body, job.claim.record, job.state, job.definition)


def _recorded(
    job: JobContext, outcome: CallbackReply | CallbackError, *, is_last: bool = False
) -> tuple[dict[str, Any], float]:
    """The changes after a try to deliver the first event, and the seconds until its next try."""
    state, callback = job.state, job.definition.callback
    notice, *rest = state.outbox
    if isinstance(outcome, CallbackReply):  # a status in the answer counts only for the end
        return {"outbox": tuple(rest)}, 0.0
    tries, event = notice.tries + 1, notice.body.get("event")
    tried = notice.model_copy(update={"tries": tries})
    if (
        callback.ignore_errors
        or tries >= callback.attempts
        or is_last
        or isinstance(outcome, CallbackRefused)
    ):
        logger.warning("the callback of {} was not called about {}: {}", job.id, event, outcome)
        return {"outbox": tuple(rest), **given_up(state, tried, str(outcome))}, 0.0
    delay = jittered(growing(FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS, tries))
    message = "try {} of {} to call the callback about {} of {} has failed, again in {:.1f} s: {}"
    logger.warning(message, tries, callback.attempts, event, job.id, delay, outcome)
    return {"outbox": (tried, *rest)}, delay
