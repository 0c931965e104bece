"""From what a handler asks for to the one multi that does it."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from loguru import logger

from orchestrator.backoff import growing
from orchestrator.handlers.actions import Action, Bury, Finish, Keep, Move, Release, Remove, Wait
from orchestrator.handlers.context import Context
from orchestrator.handlers.job import HeldJob
from orchestrator.handlers.warnings import recordable
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.models.act import with_act
from orchestrator.models.job import JobError, JobState
from orchestrator.models.waiting import Reason, Waiting
from orchestrator.states import Queue, Status, check_transition
from queues.claim import Transition
from queues.documents import timestamp
from queues.errors import TooLarge
from queues.operations import Operation

_HANDLER_ERROR_DELAY_SECONDS = 2.0  # doubled with each further error
_MAX_HANDLER_ERROR_DELAY_SECONDS = 60.0
_WITH_DRIVER = {Queue.RUNNING, Queue.KILL}
_HOLDS_PLACES = {Status.RUNNING, Status.RUNNING_WARN, Status.KILL}
_MAX_TRACEBACK_CHARACTERS, _MAX_MESSAGE_CHARACTERS = 8_000, 4_000


@dataclass(frozen=True, slots=True)
class Change:
    """A step that is to be done, and what it means for the job; states are None where none changes."""

    job: HeldJob
    step: Transition
    before: JobState | None = None
    after: JobState | None = None
    stood_in: str = ""
    queue: Queue | None = None  # where the job will stand
    removes: bool = False
    waiting: Waiting | None = None  # why it is left where it is

    @property
    def frees_name(self) -> str:
        """The name among whose running jobs there is room once it is done; empty when it changes nothing."""
        if self.before is None or self.before.name_slot is None:
            return ""
        is_kept = self.after is not None and self.after.name_slot is not None
        return "" if is_kept or self.queue is None else self.before.name


class Steps:
    """Makes steps of actions, and of failures of handlers."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def of(self, job: HeldJob, action: Action) -> Change:
        """The step of an action; raises IllegalTransition and what the claim raises for what cannot be."""
        match action:
            case Move(status, changes, extra, delay, pool):
                return self._change(job, status, changes, extra, queue=status.queue, delay=delay, pool=pool)
            case Finish(status, changes, extra):
                request = job.stop_request()
                removal = () if request is None else (request[0],)
                retention = self._context.limits().retention
                return self._change(
                    job, status, changes, (*extra, *removal), queue=Queue.FINISH, delay=retention
                )
            case Keep(changes, extra, delay):
                return self._change(
                    job,
                    job.state.status,
                    changes,
                    extra,
                    queue=Queue(job.claim.queue),
                    delay=delay,
                    gets_on=False,
                )
            case Bury(reason, extra):
                return self._bury(job, reason, extra)
            case Remove(extra):
                # Whatever it was claimed for: it is kept until it is due.
                is_due = job.claim.record.token.due <= self._context.clock.now_ms()
                step = job.claim.removal(extra) if is_due else job.claim.transition(release=True)
                return Change(job, step, before=job.state if is_due else None, removes=is_due)
            case Release(extra, waiting):
                payload = None if waiting is None else _payload(job.state.evolve(waiting=waiting))
                # A step: who is let go of in order does not count as one that ends its workers.
                step = job.claim.transition(payload=payload, extra=extra, release=True)
                return Change(job, step, waiting=waiting)
            case Wait():
                raise TypeError("who waits takes no step")
            case _:
                assert_never(action)

    def _change(
        self,
        job: HeldJob,
        status: Status,
        changes: Mapping[str, Any],
        extra: tuple[Operation, ...],
        *,
        queue: Queue,
        delay: float = 0.0,
        pool: str | None = None,
        gets_on: bool = True,
    ) -> Change:
        before = job.state
        check_transition(before.status, status)
        stood_in, now = Queue(job.claim.queue), timestamp()
        news: dict[str, Any] = {"handler_errors": 0, **changes, "status": status, "updated": now}
        if before.handler_errors:  # whose words stand there as a warning
            news.setdefault("warning", None)
        if queue is not stood_in:
            news["times"] = {**before.times, queue.value: now}
        if job.stop_act is not None and job.stop_act not in before.actions:
            news["actions"] = with_act(before.actions, job.stop_act)
        told = news.get("callback", before.callback)
        # Whose end has been told, in vain perhaps, runs no more, though it may stay in kill for hours.
        is_told_before = status is Status.KILL and "outbox" in news
        if status not in _HOLDS_PLACES or queue is Queue.FINISH or told.attempts or is_told_before:
            extra += self._places(job, before, news)
        after = before.evolve(**news)
        if status is not before.status:
            self._audit(job)
        # Words alone: it came no further.
        is_same = queue is stood_in and not (delay or pool or (extra and gets_on))
        step = job.claim.transition(
            payload=_payload(after),
            claims=job.claim.record.claims if is_same else 0,
            queue=queue,
            pool=pool,
            due=self._context.clock.now_ms() + round(delay * 1000) if delay else None,
            extra=extra,
            release=bool(delay) or self._context.draining.is_set(),
        )
        return Change(job, step, before, after, stood_in, queue)

    def _audit(self, job: HeldJob) -> None:
        if self._context.audit is not None:
            self._context.audit.write_submission(job.claim.record)

    def _places(self, job: HeldJob, before: JobState, news: dict[str, Any]) -> tuple[Operation, ...]:
        """What gives the places of a running job back; its numbers go from the record with them."""
        if before.slot is None and before.name_slot is None:
            return ()
        news |= {"slot": None, "name_slot": None}
        return tuple(self._context.slots.release(job.claim.record.pool, before, job.run_key))

    # ------------------------------------------------------------------ failures
    def of_failure(self, job: HeldJob, error: Exception) -> Change:
        """Requeue with a growing delay, or bring to dead; the driver, if one runs, is left alone."""
        logger.opt(exception=error).error("handling {} in {} failed", job.id, job.claim.queue)
        self._context.hooks.fire(lambda hook: hook.after_error(job.id, error))
        try:
            state = job.state
        except ValueError:  # the payload is no job's: no delay will mend it
            return self._bury(job, _reason(error))
        errors = state.handler_errors + 1
        # A driver may run under an open attempt, and nobody looks after it in dead: there, only slower.
        is_last = errors >= self._context.limits().handler_errors
        if is_last and not _WITH_DRIVER & {Queue(job.claim.queue), state.status.queue}:
            return self._bury(job, _reason(error))
        delay = growing(_HANDLER_ERROR_DELAY_SECONDS, _MAX_HANDLER_ERROR_DELAY_SECONDS, errors)
        news: dict[str, Any] = {"handler_errors": errors, "updated": timestamp()}
        if _WITH_DRIVER & {Queue(job.claim.queue), state.status.queue}:
            # It may go on like this for as long as its cluster is away: who looks at the job sees why.
            news["warning"] = recordable(f"try {errors} to go on has failed, again in {delay:.0f} s: {error}")
        else:
            news["waiting"] = Waiting(reason=Reason.BACKOFF, message=recordable(str(error)))
        after = state.evolve(**news)
        due = self._context.clock.now_ms() + round(delay * 1000)
        step = job.claim.transition(payload=_payload(after), due=due, release=True)
        return Change(job, step, state, after, job.claim.queue, Queue(job.claim.queue))

    def _bury(self, job: HeldJob, reason: JobError, extra: tuple[Operation, ...] = ()) -> Change:
        logger.error("{} is brought from {} to dead: {}", job.id, job.claim.queue, reason.message)
        raw = job.claim.record.payload
        self._audit(job)
        news: dict[str, Any] = {
            "status": Status.DEAD.value,
            "error": reason.model_dump(exclude_defaults=True),
            "updated": timestamp(),
            "buried_from": {"queue": job.claim.queue, "status": str(raw.get("status", ""))},
        }
        try:
            before: JobState | None = job.state
            assert before is not None  # noqa: S101 - for the type checker
            check_transition(before.status, Status.DEAD)
            if before.error is not None:
                news["buried_error"] = before.error.model_dump(exclude_defaults=True)
            extra += self._places(job, before, news)
        except ValueError:
            before = None  # its payload is no job's
        try:
            step = job.claim.transition(payload={**raw, **news}, queue=Queue.DEAD, extra=extra, release=True)
        except TooLarge:  # it goes as it is, and the reason beside it, for which there is always room
            note = {"reason": reason.message, "queue": job.claim.queue, "since": timestamp()}
            step = job.claim.transition(queue=Queue.DEAD, extra=extra, release=True, error=note)
        return Change(job, step, before, None, job.claim.queue, Queue.DEAD)


def _payload(state: JobState) -> dict[str, Any]:
    # What is as it was at the beginning need not be told: records stay small and readable.
    return state.model_dump(mode="json", exclude_defaults=True)


def _reason(error: Exception) -> JobError:
    # Masked before it is cut: half a secret is none to know.
    text = REDACTOR.mask("".join(traceback.format_exception(error)))[-_MAX_TRACEBACK_CHARACTERS:]
    message = REDACTOR.mask(str(error))[:_MAX_MESSAGE_CHARACTERS]
    return JobError(error_class="handler", type=type(error).__name__, message=message, traceback=text)
