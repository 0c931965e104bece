"""Dispatches claimed jobs: the handler of each status, timers, and the transition of each action."""

from collections.abc import Callable, Mapping
from functools import partial

from loguru import logger

from orchestrator.handlers import accept, conclude, fail, finish, kill, running
from orchestrator.handlers.actions import Action, Release, Wait
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.poison import dead_letter_of
from orchestrator.handlers.worker_context import WorkerContext
from orchestrator.model.states import Queue
from orchestrator.worker.event_log import log_transition
from orchestrator.worker.in_flight import JobsInFlight
from orchestrator.worker.quiet_looks import QuietLooks
from orchestrator.worker.timers import Timers
from orchestrator.worker.transitions import JobTransition, Transitions
from queues import (
    STUCK_SECONDS,
    Claim,
    Dispatcher,
    HandlerThreads,
    OutcomeUnknown,
    Prepared,
    SessionLost,
    Unreachable,
)

Handler = Callable[[JobContext], Action]

HANDLERS: Mapping[Queue, Handler] = {
    Queue.ACCEPT: accept.handle,
    Queue.RUNNING: running.handle,
    Queue.SUCCESS: conclude.handle,
    Queue.FAIL: fail.handle,
    Queue.KILL: kill.handle,
    Queue.FINISH: finish.handle,
}
_THREADS = 32  # handlers are short, except for kills, callbacks, archives and the start of drivers
_SLOW_STUCK_SECONDS = 3600.0  # a kill may take ten minutes, an archive may be unavailable
_SLOW = {Queue.KILL, Queue.FINISH}  # half of the threads are for these: slow kills, archives
_STOPPED_AT_ONCE = {Queue.ACCEPT, Queue.FINISH}


class JobDispatcher:
    """Brings claimed jobs from handler to handler until they are released; no job has its own thread."""

    def __init__(
        self,
        context: WorkerContext,
        *,
        on_end: Callable[[], None],
        handlers: Mapping[Queue, Handler] = HANDLERS,
        threads: int = _THREADS,
    ) -> None:
        self.in_flight = JobsInFlight()
        self._context = context
        self.freed = on_end
        self._handlers = handlers
        self._transitions = Transitions(context)
        # Separate threads, so that a hundred kills or a slow archive do not delay the other jobs.
        half = (threads + 1) // 2
        self._quick = HandlerThreads[JobContext]("handler", threads=half, stuck_after=STUCK_SECONDS)
        self._slow = HandlerThreads[JobContext]("slow-handler", threads=half, stuck_after=_SLOW_STUCK_SECONDS)
        self._dispatcher: Dispatcher[JobContext, Action] = Dispatcher(
            self,
            [self._quick, self._slow],
            draining=context.draining,
            in_flight=self.in_flight,
            abandons_on=(OutcomeUnknown, SessionLost, Unreachable),
        )
        self._looks = QuietLooks(context.session, ready=self._dispatcher.put, park=self._park_calm)
        self.timers = Timers(self._dispatcher.put, on_due=self._looks.put)
        self._wake = self.timers.wake  # one bound method for all jobs

    def start(self) -> None:
        """Start the threads."""
        self.timers.start()
        self._looks.start()
        self._dispatcher.start()

    def take(self, claim: Claim) -> None:
        """Dispatch a newly claimed job."""
        self._dispatcher.take(JobContext(claim, self._context, on_wake=self._wake))

    @property
    def checks(self) -> dict[str, Callable[[], str]]:
        """One check per part; each returns why the part makes no progress, empty while it does."""
        return {**self._dispatcher.checks, "timers": self.timers.trouble, "quiet-looks": self._looks.trouble}

    def drain(self, seconds: float) -> bool:
        """Release all jobs; False when handlers of some still run after `seconds`.

        `draining` of the context is set before: no handler begins.
        """
        is_drained = self._dispatcher.drain(seconds)
        self.timers.stop()
        self._looks.stop(0)
        return is_drained

    # ------------------------------------------------------------------ policy of the dispatcher
    def claim_of(self, item: JobContext) -> Claim:
        """The claim of a job."""
        return item.claim

    def threads_for(self, item: JobContext) -> HandlerThreads[JobContext]:
        """The slow threads for a kill and for an archive, the quick ones for all others."""
        return self._slow if item.claim.queue in _SLOW or item.monitor.ends_driver else self._quick

    def recall(self) -> list[JobContext]:
        """Take out the jobs that wait for a timer."""
        return [*self._looks.empty(), *self.timers.empty()]

    def ended(self, item: JobContext) -> None:
        """Remove the timer of a job, and the resources that are reserved for its driver."""
        self.timers.forget(item)
        item.give_back()

    def handle(self, item: JobContext) -> Action | None:
        """The action of the job's handler; None when the job waits for a timer."""
        self.timers.begin(item)
        item.reads.forget()
        item.claim.check()
        with logger.contextualize(job_id=item.id, run_key=item.run_key, pool=item.claim.record.pool):
            action = self._action(item)
        if not isinstance(action, Wait):
            return action
        if self._context.draining.is_set():
            return Release()
        if self.in_flight.note(item):  # the handler found its driver on another host: it needs no slot here
            self.freed()
        item.note_calm(action.seconds, action.calm_seconds)
        self.timers.park(item, action.seconds)
        return None

    def _park_calm(self, item: JobContext, seconds: float) -> None:
        self.timers.park(item, seconds)  # they are made after the looks

    def prepare(self, item: JobContext, outcome: Action) -> Prepared:
        """The transition of an action."""
        return self._prepared(self._transitions.of(item, outcome))

    def prepare_release(self, item: JobContext) -> Prepared:
        """The transition that releases a job as it is."""
        return self._prepared(self._transitions.of(item, Release()))

    def prepare_failure(self, item: JobContext, error: Exception) -> Prepared:
        """The transition after an error of the handler: later again, or dead."""
        return self._prepared(self._transitions.of_failure(item, error))

    def _prepared(self, change: JobTransition) -> Prepared:
        return Prepared(change.step, partial(self._committed, change))

    def _committed(self, change: JobTransition) -> None:
        if change.frees_name:
            self._context.admission.declined.ended(change.frees_name)
        log_transition(change, self._context.reporting.hooks)

    # ------------------------------------------------------------------ handlers
    def _action(self, job: JobContext) -> Action:
        if (dead := dead_letter_of(job)) is not None:
            return dead
        if (left := self._backoff_left(job)) > 0:
            return Wait(left)
        # In finish every status is valid; in other queues the status decides, whatever queue the token is in.
        is_finished = job.claim.queue == Queue.FINISH
        return self._handlers[Queue.FINISH if is_finished else job.state.status.queue](job)

    def _backoff_left(self, job: JobContext) -> float:
        """Seconds until a job is due whose handler failed while a request to stop it existed.

        The request stays meanwhile, and would cause many retries per second. A new request is not delayed.
        """
        queue = job.claim.queue
        if not job.claim.hold.for_stop or not job.state.handler_errors or queue in _STOPPED_AT_ONCE:
            return 0.0
        if queue == Queue.RUNNING and job.is_stopped_at_once():
            return 0.0
        return (job.claim.record.token.due - self._context.clock.now_ms()) / 1000
