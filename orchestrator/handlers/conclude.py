"""success: the job has succeeded."""

from collections.abc import Mapping
from typing import Any

from loguru import logger

from orchestrator.callbacks.body import callback_body
from orchestrator.callbacks.callback import (
    CallbackError,
    CallbackRefused,
    CallbackReply,
    CallbacksBusy,
    shown,
)
from orchestrator.handlers import notices
from orchestrator.handlers.actions import Action, Finish, SetStatus, Wait
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.notices import undelivered
from orchestrator.handlers.record_run import record_run
from orchestrator.model.backoff import growing, jittered
from orchestrator.model.job import CallbackState, JobError
from orchestrator.model.states import TRANSITIONS, Status
from queues import CorruptRecord, Operation
from spark_runner.protocol.errors import RefusedSubmission


def handle(job: JobContext) -> Action:
    """Record the run, call the callback, and move the job to finish."""
    record_run(job)
    return conclude(job, Status.SUCCESS)


def conclude(
    job: JobContext,
    status: Status,
    changes: Mapping[str, Any] | None = None,
    extra: tuple[Operation, ...] = (),
) -> Action:
    """Finish as `status`, or with the status in the answer to the callback; each call is one try.

    Earlier events of the outbox are delivered first.

    Blocks for the timeout of the callback at most. `changes` and `extra` are committed when the job leaves
    its queue, never when it stays for another try: the caller passes them again then, and they must be the
    same, because the body of the callback is made of them.
    """
    changes = with_history(job, changes or {})
    callback, calls = job.definition.callback, job.state.callback
    if calls.done or not callback.url:
        return Finish(status, changes, extra)
    job.reads.forget()  # calls take time
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
        reply = job.context.reporting.callbacks.call(callback, body, job.wake_if_held)
    except CallbacksBusy:
        return Wait(notices.MAX_CALLBACK_WAIT_SECONDS)
    except CallbackError as error:
        return _undelivered(job, status, changes, extra, error)
    return _delivered(job, status, changes, extra, reply)


def with_history(job: JobContext, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, with the address of Spark's history of the last attempt, if there is one."""
    application_id = changes.get("application_id", job.state.application_id)
    if not application_id:
        return dict(changes)
    try:
        spark = job.spark
    except (RefusedSubmission, CorruptRecord):
        return dict(changes)
    address = job.context.rules.event_logs.address(job.claim.record.pool, spark, application_id)
    return dict(changes) if address is None else {"history": address, **changes}


def _undelivered(
    job: JobContext,
    status: Status,
    changes: dict[str, Any],
    extra: tuple[Operation, ...],
    error: CallbackError,
) -> Action:
    callback, calls, reason = job.definition.callback, job.state.callback, str(error)
    tries = calls.attempts + 1
    request = job.stop_request()
    is_asked = request is not None and request[1]
    # A request to stop a job that only waits for its callback makes this try the last. A request that existed
    # at the first try does not: it brought the job here, or it came too late.
    is_last = (
        tries >= callback.attempts or isinstance(error, CallbackRefused) or (is_asked and calls.attempts)
    )
    if callback.ignore_errors or is_last:
        logger.warning(
            "{} finishes as {}, but its callback has failed for the last time: {}", job.id, status, reason
        )
        lost = undelivered(job.state, "end", job.state.notices + 1, tries, reason)
        return Finish(status, {**changes, "callback": _ended(calls, reason), **lost}, extra)
    delay = jittered(growing(notices.FIRST_DELAY_SECONDS, notices.MAX_DELAY_SECONDS, tries))
    message = "try {} of {} to call the callback about the end of {} has failed, again in {:.1f} s: {}"
    logger.warning(message, tries, callback.attempts, job.id, delay, reason)
    state = CallbackState(attempts=tries, error=reason, stopped=calls.stopped or is_asked)
    # A request to stop overrides every delay: this transition removes it and stores it in the record.
    removal = () if request is None else (request[0],)
    return SetStatus(job.state.status, {"callback": state}, extra=removal, delay=delay)


def _delivered(
    job: JobContext,
    status: Status,
    changes: dict[str, Any],
    extra: tuple[Operation, ...],
    reply: CallbackReply,
) -> Action:
    calls = job.state.callback
    if reply.status is None or reply.status == status.value:
        return Finish(status, {**changes, "callback": _ended(calls)}, extra)
    override, refusal = _override(job, status, reply.status)
    if override is None:
        logger.warning("{} finishes as {}: {}", job.id, status, refusal)
        return Finish(status, {**changes, "callback": _ended(calls, refusal)}, extra)
    logger.info("{} ends as {}, but the answer to its callback has the status {}", job.id, status, override)
    if override is Status.ACCEPT:
        failures = changes.get("failures", job.state.failures)
        delay = jittered(job.definition.retry.delay_after(max(1, failures)))
        return SetStatus(override, {**changes, "callback": CallbackState()}, extra, delay=delay)
    if (status, override) == (Status.SUCCESS, Status.ERROR_FAIL):
        message = (
            f"the answer to its callback has the status {override}, though the job has ended as {status}"
        )
        error = JobError(error_class="callback", type="CallbackOverride", message=message)
        # The handler of failures decides what follows; the callback is not called a second time.
        return SetStatus(override, {**changes, "error": error, "callback": _ended(calls)}, extra)
    return Finish(override, {**changes, "callback": _ended(calls)}, extra)


def _ended(calls: CallbackState, error: str | None = None) -> CallbackState:
    return CallbackState(attempts=calls.attempts + 1, done=True, error=error, stopped=calls.stopped)


def _override(job: JobContext, status: Status, answered: str) -> tuple[Status | None, str]:
    """The status that replaces `status`, or None and the reason against it."""
    # Dead is for jobs that cannot be processed; no receiver can request it.
    allowed = TRANSITIONS[status] - {Status.DEAD}
    override = next((each for each in allowed if each.value == answered), None)
    if override is None:
        return None, f"the answer to its callback requests {shown(answered)}, which cannot follow {status}"
    if override is Status.ACCEPT and (job.state.callback.stopped or job.is_stopped()):
        return None, f"the answer to its callback requests {override}, but the job was asked to stop"
    return override, ""
