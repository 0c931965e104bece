"""Protections of jobs that can be taken out of a process, to show that the tests then fail."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any, assert_never, cast

from orchestrator.admission.slots import SlotReservation, Slots
from orchestrator.handlers import accept, submission
from orchestrator.handlers.actions import Action, SetStatus
from orchestrator.handlers.job_context import JobContext
from orchestrator.model.states import Queue, Status
from orchestrator.worker import dispatcher
from queues.claims.claim import Transition
from queues.model.errors import Conflict, QueueError
from queues.model.operations import Create, Set
from queues.store.commit import commit
from spark_runner.protocol.attempt import Attempt

Replace = Callable[[object, str, object], None]


class Protection(StrEnum):
    """One protection each."""

    SLOT = "slot"  # a job of a capped pool takes its slot in the intent
    INTENT = "intent"  # nothing is submitted before the attempt is recorded
    COMPARE = "compare"  # an attempt is closed only in the state that was read
    CONFLICT = "conflict"  # a refused transition does not count as applied


def take_out(protection: Protection, put: Replace = setattr) -> None:
    """Take it out of this process; `put` replaces an attribute."""
    match protection:
        case Protection.SLOT:
            put(Slots, "take", lambda *_, **__: SlotReservation(None, None, ()))
        case Protection.INTENT:
            handlers = cast("dict[Queue, Callable[[JobContext], Action]]", dispatcher.HANDLERS)
            handlers[Queue.ACCEPT] = _submit_first
        case Protection.COMPARE:
            closed = submission._closed  # noqa: SLF001 - the protection
            put(submission, "_closed", lambda *a, **facts: _anyhow(closed(*a, **facts)))
        case Protection.CONFLICT:
            settle = Transition.settle
            put(
                Transition,
                "settle",
                lambda step, refused, seconds: settle(step, _without_refusal(refused), seconds),
            )
        case _:
            assert_never(protection)


def _submit_first(job: JobContext) -> Action:
    action = accept.handle(job)
    if not isinstance(action, SetStatus) or action.status is not Status.RUNNING:
        return action
    announced, *places = action.extra
    assert isinstance(announced, Create)
    commit(job.context.session, [announced])
    attempt = Attempt.read(job.context.session, announced.path)
    assert attempt is not None
    runner: Any = job.context.drivers.runners.at(job.place(attempt))
    submission._submit(job, attempt, runner, is_first=True)  # noqa: SLF001 - submitted too early
    return replace(action, extra=tuple(places))


def _anyhow(change: Set) -> Set:
    return Set(change.path, change.data, -1)


def _without_refusal(refused: QueueError | None) -> QueueError | None:
    return None if isinstance(refused, Conflict) else refused
