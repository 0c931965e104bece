"""Delivers the events before the end of a job from its outbox, in order.

While the job runs, each delivery has its own thread, so that no receiver delays a handler. The remaining
events are delivered before the end.
"""

import math
import time
from typing import Any

from loguru import logger

from orchestrator.backoff import growing, jittered
from orchestrator.callbacks.body import restored
from orchestrator.callbacks.callback import CallbackError, CallbackRefused, CallbackReply, CallbacksBusy
from orchestrator.callbacks.delivery import CallbackDelivery
from orchestrator.handlers.actions import Action, Move, Wait
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.outbox import application, given_up, unannounced, with_running
from orchestrator.states import Queue
from queues.operations import Operation
from spark_runner.attempt import AttemptState

NO_PLACE_SECONDS = 30.0  # at most: a free place wakes the job
FIRST_DELAY_SECONDS = 5.0  # after a failed try, doubled with each further one
MAX_DELAY_SECONDS = 300.0

_NAME_SECONDS = 30.0  # so long an event waits for the application of Spark, whose id and page it contains
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
            return Move(job.state.status, with_running(job, monitor.seen()))
        action = Wait(min(action.seconds, _NAME_LOOK_SECONDS))
    step = _delivered_meanwhile(job)
    return Wait(min(action.seconds, step)) if isinstance(step, float) else step


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
            return Move(state.status, changes)
    if not state.outbox:
        return math.inf
    if now < job.next_try:
        return job.next_try - now
    callbacks, callback, body = job.context.reporting.callbacks, job.definition.callback, _body(job)
    try:
        # A free place wakes the job: polling for one would cost a request to the backend per job.
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
        return Move(job.state.status, noted)
    delivery, job.delivery = job.delivery, None
    if not job.state.outbox:
        return None
    if delivery is not None and delivery.outcome is None:
        job.delivery = delivery
        return Wait(NO_PLACE_SECONDS)  # it wakes the job
    outcome: CallbackReply | CallbackError | None = None
    if delivery is not None and delivery.number == job.state.outbox[0].number:
        outcome = delivery.outcome
    try:
        outcome = outcome or job.context.reporting.callbacks.call(
            job.definition.callback, _body(job), job.wake_if_held
        )
    except CallbacksBusy:
        return Wait(NO_PLACE_SECONDS)
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
    return Move(job.state.status, changes, extra=removal, delay=delay)


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
