"""Transitions: the one multi that carries out the action of a handler."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from loguru import logger

from orchestrator.handlers.actions import Action, DeadLetter, Finish, Keep, Release, Remove, SetStatus, Wait
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.warnings import recordable_text
from orchestrator.handlers.worker_context import WorkerContext
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.model.act import with_act
from orchestrator.model.backoff import growing
from orchestrator.model.job import JobError, JobState
from orchestrator.model.states import Queue, Status, check_transition
from orchestrator.model.waiting import Reason, Waiting
from queues import Operation, TooLarge, Transition, timestamp

_HANDLER_ERROR_DELAY_SECONDS = 2.0  # doubled with each further error
_MAX_HANDLER_ERROR_DELAY_SECONDS = 60.0
_WITH_DRIVER = {Queue.RUNNING, Queue.KILL}
_HOLDS_SLOTS = {Status.RUNNING, Status.RUNNING_WARN, Status.KILL}
_MAX_TRACEBACK_CHARACTERS, _MAX_MESSAGE_CHARACTERS = 8_000, 4_000


@dataclass(frozen=True, slots=True)
class JobTransition:
    """A transition to commit, with its meaning for the job; the states are None where none changes."""

    job: JobContext
    step: Transition
    before: JobState | None = None
    after: JobState | None = None
    source: str = ""  # the queue before the transition
    queue: Queue | None = None  # after the transition
    removes: bool = False
    waiting: Waiting | None = None  # why the job stays where it is

    @property
    def frees_name(self) -> str:
        """The job name that has a free slot after the transition; empty when it frees none."""
        if self.before is None or self.before.name_slot is None:
            return ""
        is_kept = self.after is not None and self.after.name_slot is not None
        return "" if is_kept or self.queue is None else self.before.name


class Transitions:
    """Makes transitions of actions, and of failures of handlers."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context

    def of(self, job: JobContext, action: Action) -> JobTransition:
        """The transition of an action; raises IllegalTransition, and the errors of `Claim.step`."""
        match action:
            case SetStatus(status, changes, extra, delay, pool):
                return self._change(job, status, changes, extra, queue=status.queue, delay=delay, pool=pool)
            case Finish(status, changes, extra):
                request = job.stop_request()
                removal = () if request is None else (request[0],)
                if status is Status.SUCCESS:
                    extra += self._success(job)
                retention = self._context.rules.limits().retention
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
                    makes_progress=False,
                )
            case DeadLetter(reason, extra):
                return self._dead_letter(job, reason, extra)
            case Remove(extra):
                # A job claimed for a stop request may not be due: it is kept until then.
                is_due = job.claim.record.token.due <= self._context.clock.now_ms()
                step = job.claim.removal(extra) if is_due else job.claim.transition(release=True)
                return JobTransition(job, step, before=job.state if is_due else None, removes=is_due)
            case Release(extra, waiting):
                payload = None if waiting is None else job.state.evolve(waiting=waiting).to_payload()
                # A transition, so that an orderly release does not count as a claim that ended its worker.
                step = job.claim.transition(payload=payload, extra=extra, release=True)
                return JobTransition(job, step, waiting=waiting)
            case Wait():
                raise TypeError("Wait is no transition: the dispatcher sets a timer for it")
            case _:
                assert_never(action)

    def _change(
        self,
        job: JobContext,
        status: Status,
        changes: Mapping[str, Any],
        extra: tuple[Operation, ...],
        *,
        queue: Queue,
        delay: float = 0.0,
        pool: str | None = None,
        makes_progress: bool = True,
    ) -> JobTransition:
        before = job.state
        check_transition(before.status, status)
        source, now = Queue(job.claim.queue), timestamp()
        news: dict[str, Any] = {"handler_errors": 0, **changes, "status": status, "updated": now}
        if before.handler_errors:  # their message is stored as a warning
            news.setdefault("warning", None)
        if queue is not source:
            news["times"] = {**before.times, queue.value: now}
        if job.stop_act is not None and job.stop_act not in before.actions:
            news["actions"] = with_act(before.actions, job.stop_act)
        callback = news.get("callback", before.callback)
        # After the first callback about its end nothing runs, though the job may stay in kill for hours.
        is_reported = status is Status.KILL and "outbox" in news
        if status not in _HOLDS_SLOTS or queue is Queue.FINISH or callback.attempts or is_reported:
            extra += self._freed_slots(job, before, news)
        after = before.evolve(**news)
        if status is not before.status:
            self._audit(job)
        # A transition that only changes messages: the job made no progress.
        is_same = queue is source and not (delay or pool or (extra and makes_progress))
        step = job.claim.transition(
            payload=after.to_payload(),
            claims=job.claim.record.claims if is_same else 0,
            queue=queue,
            pool=pool,
            due=self._context.clock.now_ms() + round(delay * 1000) if delay else None,
            extra=extra,
            release=bool(delay) or self._context.draining.is_set(),
        )
        return JobTransition(job, step, before, after, source, queue)

    def _audit(self, job: JobContext) -> None:
        if self._context.reporting.audit is not None:
            self._context.reporting.audit.write_submission(job.claim.record)

    def _success(self, job: JobContext) -> tuple[Operation, ...]:
        """The operation that reports the success to the schedules that wait for the name; mostly none."""
        if self._context.reporting.successes is None:
            return ()
        return self._context.reporting.successes.operations(
            job.state.name, job.claim.record, job.state.attempt, self._context.clock.now_ms()
        )

    def _freed_slots(self, job: JobContext, before: JobState, news: dict[str, Any]) -> tuple[Operation, ...]:
        """The operations that free the slots of a running job; clears their numbers in `news`."""
        if before.slot is None and before.name_slot is None:
            return ()
        news |= {"slot": None, "name_slot": None}
        return tuple(self._context.admission.slots.release(job.claim.record.pool, before, job.run_key))

    # ------------------------------------------------------------------ failures
    def of_failure(self, job: JobContext, error: Exception) -> JobTransition:
        """Requeue with a growing delay, or move to dead; a running driver is not touched."""
        logger.opt(exception=error).error("handling {} in {} failed", job.id, job.claim.queue)
        self._context.reporting.hooks.fire(lambda hook: hook.after_error(job.id, error))
        try:
            state = job.state
        except ValueError:  # the payload is no JobState: no delay repairs it
            return self._dead_letter(job, _reason(error))
        errors = state.handler_errors + 1
        # A driver may run under an open attempt, and no handler follows it in dead: retry more slowly.
        is_last = errors >= self._context.rules.limits().handler_errors
        if is_last and not _WITH_DRIVER & {Queue(job.claim.queue), state.status.queue}:
            return self._dead_letter(job, _reason(error))
        delay = growing(_HANDLER_ERROR_DELAY_SECONDS, _MAX_HANDLER_ERROR_DELAY_SECONDS, errors)
        news: dict[str, Any] = {"handler_errors": errors, "updated": timestamp()}
        if _WITH_DRIVER & {Queue(job.claim.queue), state.status.queue}:
            # This may last as long as its cluster is unreachable: the record shows why.
            news["warning"] = recordable_text(
                f"try {errors} to continue has failed, again in {delay:.0f} s: {error}"
            )
        else:
            news["waiting"] = Waiting(reason=Reason.BACKOFF, message=recordable_text(str(error)))
        after = state.evolve(**news)
        due = self._context.clock.now_ms() + round(delay * 1000)
        step = job.claim.transition(payload=after.to_payload(), due=due, release=True)
        return JobTransition(job, step, state, after, job.claim.queue, Queue(job.claim.queue))

    def _dead_letter(
        self, job: JobContext, reason: JobError, extra: tuple[Operation, ...] = ()
    ) -> JobTransition:
        logger.error("{} is moved from {} to dead: {}", job.id, job.claim.queue, reason.message)
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
            extra += self._freed_slots(job, before, news)
        except ValueError:
            before = None  # its payload is no JobState
        try:
            step = job.claim.transition(payload={**raw, **news}, queue=Queue.DEAD, extra=extra, release=True)
        except TooLarge:  # the payload stays as it is; the record reserves space for a note
            note = {"reason": reason.message, "queue": job.claim.queue, "since": timestamp()}
            step = job.claim.transition(queue=Queue.DEAD, extra=extra, release=True, error=note)
        return JobTransition(job, step, before, None, job.claim.queue, Queue.DEAD)


def _reason(error: Exception) -> JobError:
    # Masked before it is cut: the mask would not find half of a secret.
    text = REDACTOR.mask("".join(traceback.format_exception(error)))[-_MAX_TRACEBACK_CHARACTERS:]
    message = REDACTOR.mask(str(error))[:_MAX_MESSAGE_CHARACTERS]
    return JobError(error_class="handler", type=type(error).__name__, message=message, traceback=text)
