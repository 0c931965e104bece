"""The end of a job: who wants to know is told, and what he answers may change it."""

from collections.abc import Mapping
from typing import Any

from loguru import logger

from orchestrator.backoff import growing, jittered
from orchestrator.callbacks.body import callback_body
from orchestrator.callbacks.callback import (
    CallbackError,
    CallbackRefused,
    CallbackReply,
    CallbacksBusy,
    shown,
)
from orchestrator.handlers import notices
from orchestrator.handlers.actions import Action, Finish, Move, Wait
from orchestrator.handlers.job import HeldJob
from orchestrator.handlers.outbox import undelivered
from orchestrator.models.job import CallbackState, JobError
from orchestrator.states import TRANSITIONS, Status
from queues.operations import Operation


def conclude(
    job: HeldJob,
    status: Status,
    changes: Mapping[str, Any] | None = None,
    extra: tuple[Operation, ...] = (),
) -> Action:
    """Finish as `status`, or as the answer to the callback says; each call is one try to tell it.

    What is to be told before is told before.

    Blocks for the timeout of the callback at most. `changes` and `extra` are committed when the job leaves
    its queue, never when it stays for another try: the caller gives them again then, and they must be the
    same, because what is told is made of them.
    """
    changes = dict(changes or {})
    callback, told = job.definition.callback, job.state.callback
    if told.done or not callback.url:
        return Finish(status, changes, extra)
    if (before := notices.before_end(job)) is not None:
        return before
    if "end" not in callback.on:
        return Finish(status, changes, extra)
    body = callback_body(
        job.claim.record,
        job.state.evolve(**changes),
        job.definition,
        job.attempt_document(),
        event="end",
        number=job.state.notices + 1,
        status=status,
    )
    try:
        reply = job.context.callbacks.call(callback, body, job.wake_if_held)
    except CallbacksBusy:
        return Wait(notices.NO_PLACE_SECONDS)
    except CallbackError as error:
        return _not_told(job, status, changes, extra, error)
    return _told(job, status, changes, extra, reply)


def _not_told(
    job: HeldJob, status: Status, changes: dict[str, Any], extra: tuple[Operation, ...], error: CallbackError
) -> Action:
    callback, told, reason = job.definition.callback, job.state.callback, str(error)
    tries = told.attempts + 1
    request = job.stop_request()
    is_asked = request is not None and request[1]
    # Who asks to stop what only waits to be told is heard: this try was the last. A request that was there at
    # the first one is another matter: it is how the job came here, or it came too late.
    is_last = tries >= callback.attempts or isinstance(error, CallbackRefused) or (is_asked and told.attempts)
    if callback.ignore_errors or is_last:
        logger.warning("{} finishes as {} and nobody is told: {}", job.id, status, reason)
        lost = undelivered(job.state, "end", job.state.notices + 1, tries, reason)
        return Finish(status, {**changes, "callback": _ended(told, reason), **lost}, extra)
    delay = jittered(growing(notices.FIRST_DELAY_SECONDS, notices.MAX_DELAY_SECONDS, tries))
    words = "try {} of {} to tell of the end of {} has failed, again in {:.1f} s: {}"
    logger.warning(words, tries, callback.attempts, job.id, delay, reason)
    state = CallbackState(attempts=tries, error=reason, stopped=told.stopped or is_asked)
    # A request to stop overrides every delay: it goes with this step, and stands in the record from then on.
    removal = () if request is None else (request[0],)
    return Move(job.state.status, {"callback": state}, extra=removal, delay=delay)


def _told(
    job: HeldJob, status: Status, changes: dict[str, Any], extra: tuple[Operation, ...], reply: CallbackReply
) -> Action:
    told = job.state.callback
    if reply.status is None or reply.status == status.value:
        return Finish(status, {**changes, "callback": _ended(told)}, extra)
    override, refusal = _override(job, status, reply.status)
    if override is None:
        logger.warning("{} finishes as {}: {}", job.id, status, refusal)
        return Finish(status, {**changes, "callback": _ended(told, refusal)}, extra)
    logger.info("{} ends as {}, but the answer to its callback says {}", job.id, status, override)
    if override is Status.ACCEPT:
        failures = changes.get("failures", job.state.failures)
        delay = jittered(job.definition.retry.delay_after(max(1, failures)))
        return Move(override, {**changes, "callback": CallbackState()}, extra, delay=delay)
    if (status, override) == (Status.SUCCESS, Status.ERROR_FAIL):
        message = f"the answer to its callback says {override}, though the job has ended as {status}"
        error = JobError(error_class="callback", type="CallbackOverride", message=message)
        # What becomes of a failure is for its own handler to say; it is not told a second time.
        return Move(override, {**changes, "error": error, "callback": _ended(told)}, extra)
    return Finish(override, {**changes, "callback": _ended(told)}, extra)


def _ended(told: CallbackState, error: str | None = None) -> CallbackState:
    return CallbackState(attempts=told.attempts + 1, done=True, error=error, stopped=told.stopped)


def _override(job: HeldJob, status: Status, answered: str) -> tuple[Status | None, str]:
    """The status to have instead, or None and why not."""
    # Dead is for what cannot be processed; it is nobody's verdict.
    allowed = TRANSITIONS[status] - {Status.DEAD}
    override = next((each for each in allowed if each.value == answered), None)
    if override is None:
        return None, f"the answer to its callback wants {shown(answered)}, which cannot follow {status}"
    if override is Status.ACCEPT and (job.state.callback.stopped or job.is_stopped()):
        return None, f"the answer to its callback wants {override}, but somebody asked to stop the job"
    return override, ""
