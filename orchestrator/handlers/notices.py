"""Telling events before the end of a job, in their order, from its outbox.

While the job runs a thread of its own tells each, so that no receiver holds a look up. What is left is told
before the end is.
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
from orchestrator.handlers.job import HeldJob
from orchestrator.handlers.outbox import application, given_up, unannounced, with_running
from orchestrator.states import Queue
from queues.operations import Operation
from spark_runner.attempt import AttemptState

NO_PLACE_SECONDS = 30.0  # unless the job is woken, as there is one
FIRST_DELAY_SECONDS = 5.0  # after a try that failed, doubled with each further one
MAX_DELAY_SECONDS = 300.0

_NAME_SECONDS = 30.0  # so long an event waits for Spark to have an application, whose name and page it tells
_NAME_LOOK_SECONDS = 1.0


def alongside(job: HeldJob, action: Action) -> Action:
    """What a look at a running job has asked for; where that is nothing, what is to be told goes on."""
    if not isinstance(action, Wait):
        return action
    if (document := unannounced(job)) is not None:
        monitor, now = job.current_monitor(), time.monotonic()
        monitor.name_until = monitor.name_until or now + _NAME_SECONDS
        is_over = document.get("state") != AttemptState.STARTED
        if is_over or application(job, document) is not None or now >= monitor.name_until:
            return Move(job.state.status, with_running(job, monitor.seen()))
        action = Wait(min(action.seconds, _NAME_LOOK_SECONDS))
    told = _told_meanwhile(job)
    return Wait(min(action.seconds, told)) if isinstance(told, float) else told


def _told_meanwhile(job: HeldJob) -> Action | float:
    """The step that records what has come of a call, or for how long there is nothing to do."""
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
    callbacks, callback, body = job.context.callbacks, job.definition.callback, _body(job)
    try:
        # Woken when there is one: a look costs a request to the backend, and thousands may wait.
        callbacks.reserve(callback, job.wake_if_held)
    except CallbacksBusy:
        return math.inf
    job.delivery = CallbackDelivery(
        state.outbox[0].number, lambda: callbacks.call_reserved(callback, body), on_end=job.wake
    )
    job.delivery.start()
    return math.inf


def before_end(job: HeldJob) -> Action | None:
    """The next step until all is told that comes before the end; None when it is."""
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
        outcome = outcome or job.context.callbacks.call(job.definition.callback, _body(job), job.wake_if_held)
    except CallbacksBusy:
        return Wait(NO_PLACE_SECONDS)
    except CallbackError as error:
        outcome = error
    # A request to stop overrides every delay: it goes with this step, and stands in the record from then on.
    request = job.stop_request()
    is_asked = request is not None and request[1]
    # The first one in kill is how the job came there; who asks once more is heard: this try was the last.
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


def _body(job: HeldJob) -> dict[str, Any]:
    return restored(job.state.outbox[0].body, job.claim.record, job.state, job.definition)


def _recorded(
    job: HeldJob, outcome: CallbackReply | CallbackError, *, is_last: bool = False
) -> tuple[dict[str, Any], float]:
    """What the record says after a try to tell the first one, and the seconds until the next try of it."""
    state, callback = job.state, job.definition.callback
    notice, *rest = state.outbox
    if isinstance(outcome, CallbackReply):  # whatever status it names: only the end has an answer that counts
        return {"outbox": tuple(rest)}, 0.0
    tries, event = notice.tries + 1, notice.body.get("event")
    tried = notice.model_copy(update={"tries": tries})
    if (
        callback.ignore_errors
        or tries >= callback.attempts
        or is_last
        or isinstance(outcome, CallbackRefused)
    ):
        logger.warning("nobody is told that {}: {} ({})", job.id, event, outcome)
        return {"outbox": tuple(rest), **given_up(state, tried, str(outcome))}, 0.0
    delay = jittered(growing(FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS, tries))
    words = "try {} of {} to tell {} of {} has failed, again in {:.1f} s: {}"
    logger.warning(words, tries, callback.attempts, event, job.id, delay, outcome)
    return {"outbox": (tried, *rest)}, delay
