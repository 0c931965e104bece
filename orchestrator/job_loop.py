"""Following one claimed job from handler to handler until it is let go."""

import traceback
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from loguru import logger

from orchestrator.errors import TooManyClaims
from orchestrator.handlers import accept, fail, finish, kill, running, success
from orchestrator.handlers.actions import Action, Finish, Move, Release, Remove
from orchestrator.handlers.job import Context, HeldJob
from orchestrator.models.job import JobError, JobState
from orchestrator.states import Queue, Status, check_transition
from queues.clock import EnsembleClock
from queues.documents import timestamp
from queues.errors import ClaimLost, Conflict, OutcomeUnknown, SessionLost, Unreachable
from queues.operations import Operation

Handler = Callable[[HeldJob], Action]

HANDLERS: Mapping[Queue, Handler] = {
    Queue.ACCEPT: accept.handle,
    Queue.RUNNING: running.handle,
    Queue.SUCCESS: success.handle,
    Queue.FAIL: fail.handle,
    Queue.KILL: kill.handle,
    Queue.FINISH: finish.handle,
}
MAX_HANDLER_ERRORS = 5  # then dead: an operator has to look, and a poison job must not go round for ever
_HANDLER_ERROR_DELAY_SECONDS = 2.0  # doubled with each further error
_MAX_HANDLER_ERROR_DELAY_SECONDS = 60.0
_WITH_DRIVER = {Queue.RUNNING, Queue.KILL}
_WITHOUT_DRIVER = {Queue.ACCEPT, Queue.SUCCESS, Queue.FAIL}
MAX_CLAIMS = 10  # without a step between: such a job ends the worker that handles it, each time anew
_MAX_LOGGED_CHARACTERS = 200
_MAX_REFUSALS = 20  # of a step's own operations in a row: each is somebody faster, so many are a bug


class JobLoop:
    """Turns what handlers ask for into multis. One instance serves all threads of a worker."""

    def __init__(
        self,
        context: Context,
        clock: EnsembleClock,
        *,
        retention: float,
        handlers: Mapping[Queue, Handler] = HANDLERS,
    ) -> None:
        self._context = context
        self._clock = clock
        self._retention = retention
        self._handlers = handlers

    def follow(self, job: HeldJob) -> None:
        """Handle the job until it is let go or lost; never raises."""
        refusals = 0
        try:
            self._check_claims(job)
            while job.claim.held:
                try:
                    self._apply(job, self._handler(job)(job))
                    refusals = 0
                except Conflict:
                    refusals += 1  # the driver or somebody else was faster at the attempt: look again
                    if refusals > _MAX_REFUSALS:
                        raise
        except ClaimLost as error:
            logger.info("{}", error)
        except (OutcomeUnknown, SessionLost, Unreachable) as error:  # who comes next may have more luck
            logger.warning("{} is let go: {}", job.id, error)
            job.claim.abandon()
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is counted against the job
            self._count_error(job, error)

    def _check_claims(self, job: HeldJob) -> None:
        claims, queue = job.claim.record.claims, Queue(job.claim.queue)
        if claims > MAX_CLAIMS and queue in _WITHOUT_DRIVER:
            self._bury(job, TooManyClaims(f"it was claimed {claims} times in {queue} and nothing came of it"))

    def _handler(self, job: HeldJob) -> Handler:
        # In finish any status is at home; elsewhere the status decides, whatever queue the token stands in.
        stands_in = Queue(job.claim.queue)
        return self._handlers[Queue.FINISH if stands_in is Queue.FINISH else job.state.status.queue]

    def _apply(self, job: HeldJob, action: Action) -> None:
        match action:
            case Move(status, changes, extra, delay):
                due = self._clock.now_ms() + round(delay * 1000) if delay else None
                self._commit(job, status, changes, extra, queue=status.queue, due=due, release=bool(delay))
            case Finish(status, changes, extra):
                request = job.stop_request()
                removal = (request[0],) if request is not None else ()
                due = self._clock.now_ms() + round(self._retention * 1000)
                self._commit(
                    job, status, changes, (*extra, *removal), queue=Queue.FINISH, due=due, release=True
                )
            case Remove(extra):
                job.claim.remove(extra)
                logger.info("{} removed", job.id)
            case Release(()):
                job.claim.release()
            case Release(extra):
                job.claim.commit(extra=extra, release=True)
            case _:
                assert_never(action)

    def _commit(
        self,
        job: HeldJob,
        status: Status,
        changes: Mapping[str, Any],
        extra: tuple[Operation, ...],
        *,
        queue: Queue,
        due: int | None,
        release: bool,
    ) -> None:
        before = job.state
        check_transition(before.status, status)
        stood_in, now = Queue(job.claim.queue), timestamp()
        after = before.evolve(**{"handler_errors": 0, **changes}, status=status, updated=now)
        if queue is not stood_in:
            after = after.evolve(times={**before.times, queue.value: now})
        job.claim.commit(
            payload=after.model_dump(mode="json"), queue=queue, due=due, extra=extra, release=release
        )
        logger.info("{} {} -> {} {}{}", job.id, stood_in, queue, status, _reason(after))

    def _count_error(self, job: HeldJob, error: Exception) -> None:
        """Requeue with a growing delay, or bring to dead; the driver, if one runs, is left alone."""
        logger.opt(exception=error).error("handling {} in {} failed", job.id, job.claim.queue)
        try:
            state = job.state
        except ValueError:  # the payload is no job's: no delay will mend it
            self._bury(job, error)
            return
        errors = state.handler_errors + 1
        # A driver may run under an open attempt, and nobody looks after it in dead: there, only slower.
        if errors >= MAX_HANDLER_ERRORS and Queue(job.claim.queue) not in _WITH_DRIVER:
            self._bury(job, error)
            return
        delay = min(_HANDLER_ERROR_DELAY_SECONDS * 2 ** (errors - 1), _MAX_HANDLER_ERROR_DELAY_SECONDS)
        payload = state.evolve(handler_errors=errors, updated=timestamp()).model_dump(mode="json")
        due = self._clock.now_ms() + round(delay * 1000)
        self._let_go(job, payload=payload, due=due)

    def _bury(self, job: HeldJob, error: Exception) -> None:
        text = "".join(traceback.format_exception(error))[-8_000:]
        reason = JobError(
            error_class="handler", type=type(error).__name__, message=str(error)[:4_000], traceback=text
        )
        logger.error("{} is brought from {} to dead: {}", job.id, job.claim.queue, error)
        payload = {
            **job.claim.record.payload,
            "status": Status.DEAD.value,
            "error": reason.model_dump(),
            "updated": timestamp(),
        }
        self._let_go(job, payload=payload, queue=Queue.DEAD)

    def _let_go(self, job: HeldJob, **changes: Any) -> None:
        try:
            job.claim.commit(release=True, **changes)
        except Exception as error:  # noqa: BLE001 - a claim that nobody follows would be kept for ever
            logger.warning("{} is let go: {}", job.id, error)
            job.claim.abandon()


def _reason(state: JobState) -> str:
    # One line of the log for one event, whatever the user's text holds.
    if state.error is None:
        return ""
    return ": " + " ".join(state.error.message.split())[:_MAX_LOGGED_CHARACTERS]
