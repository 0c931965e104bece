"""The threads that look at jobs, one look of a handler at a time; what they ask for is committed together."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from loguru import logger

from orchestrator.handlers import accept, fail, finish, kill, running, success
from orchestrator.handlers.actions import Action, Release, Wait
from orchestrator.handlers.context import Context
from orchestrator.handlers.job import HeldJob
from orchestrator.handlers.poison import burial
from orchestrator.states import Queue
from orchestrator.worker.hands import Hands
from orchestrator.worker.steps import Change, Steps
from orchestrator.worker.tally import Tally
from orchestrator.worker.telling import tell
from orchestrator.worker.waiting_room import WaitingRoom
from queues.claim import Claim, Transition
from queues.errors import ClaimLost, Conflict, OutcomeUnknown, QueueError, SessionLost, Unreachable
from queues.heartbeat import STUCK_SECONDS
from queues.settler import Settler
from queues.step import run_transitions

Handler = Callable[[HeldJob], Action]

HANDLERS: Mapping[Queue, Handler] = {
    Queue.ACCEPT: accept.handle,
    Queue.RUNNING: running.handle,
    Queue.SUCCESS: success.handle,
    Queue.FAIL: fail.handle,
    Queue.KILL: kill.handle,
    Queue.FINISH: finish.handle,
}
_MAX_REFUSALS = 20  # of a step's own operations in a row: each is somebody faster, so many are a bug
_THREADS = 32  # looks are short, but for kills, callbacks, archives and the start of drivers
_SLOW_STUCK_SECONDS = 3600.0  # a kill may be given ten minutes, an archive be away
_SLOW = {Queue.KILL, Queue.FINISH}  # half of the threads are for these: drivers that obey late, archives
_STOPPED_AT_ONCE = {Queue.ACCEPT, Queue.FINISH}
_DRAIN_LOOK_SECONDS = 0.02


class Crew:
    """Follows claimed jobs from handler to handler until they are let go; no job has a thread of its own."""

    def __init__(
        self,
        context: Context,
        *,
        on_end: Callable[[], None],
        handlers: Mapping[Queue, Handler] = HANDLERS,
        threads: int = _THREADS,
    ) -> None:
        self.tally = Tally()
        self.room = WaitingRoom(self._send)
        self._context = context
        self._on_end = on_end
        self._handlers = handlers
        self._steps = Steps(context)
        # Apart, so that a hundred kills, or an archive that is slow to answer, keep no other job waiting.
        half = (threads + 1) // 2
        self._quick = Hands("handler", self._work, threads=half, stuck_after=STUCK_SECONDS)
        self._slow = Hands("slow-handler", self._work, threads=half, stuck_after=_SLOW_STUCK_SECONDS)
        self._settler: Settler[tuple[HeldJob, Action | Exception]] = Settler(self._commit)

    def start(self) -> None:
        """Begin to look at jobs."""
        self._settler.start()
        self.room.start()
        self._quick.start()
        self._slow.start()

    def take(self, claim: Claim) -> None:
        """Follow this job from now on."""
        job = HeldJob(claim, self._context, on_wake=self.room.wake)
        self.tally.note(job)
        self._send(job)

    @property
    def checks(self) -> dict[str, Callable[[], str]]:
        """By name, what says why a part of it does not get on, and nothing while it does."""
        return {
            "handlers": self._quick.trouble,
            "slow-handlers": self._slow.trouble,
            "commits": self._settler.trouble,
            "timers": self.room.trouble,
        }

    def drain(self, seconds: float) -> bool:
        """Let go of all jobs, those that wait in one go; False when some are still looked at after that.

        `draining` of the context is set by then: nothing new is begun.
        """
        deadline = time.monotonic() + seconds
        while True:
            # Again and again: a look that had begun before may still let its job wait.
            for job in self.room.empty():
                self._settler.put((job, Release()))
            if not len(self.tally) or time.monotonic() >= deadline:
                break
            time.sleep(_DRAIN_LOOK_SECONDS)
        self.room.stop()
        return self._settler.stop(max(0.0, deadline - time.monotonic())) and not len(self.tally)

    # ------------------------------------------------------------------ looks
    def _send(self, job: HeldJob) -> None:
        if self._context.draining.is_set():
            self._settler.put((job, Release()))
        else:
            is_slow = job.claim.queue in _SLOW or job.monitor.ends_driver
            (self._slow if is_slow else self._quick).put(job)

    def _work(self, job: HeldJob) -> None:
        try:
            self._look(job)
        except BaseException as error:  # noqa: BLE001 - SystemExit too: a thread less for ever, and no word
            logger.opt(exception=error).error("{} is let go", job.id)
            self._end(job)

    def _look(self, job: HeldJob) -> None:
        """One look; never raises."""
        if self._context.draining.is_set():  # it came before that, and no thread was free
            self._settler.put((job, Release()))
            return
        self.room.begin(job)
        try:
            job.claim.check()
            with logger.contextualize(job_id=job.id, run_key=job.run_key, pool=job.claim.record.pool):
                action = self._handle(job)
        except ClaimLost as error:
            logger.info("{}", error)
            self._end(job)
        except (OutcomeUnknown, SessionLost, Unreachable) as error:  # who comes next may have more luck
            logger.warning("{} is let go: {}", job.id, error)
            self._end(job)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is counted against the job
            self._settler.put((job, error))
        else:
            if not isinstance(action, Wait):
                self._settler.put((job, action))
            elif self._context.draining.is_set():
                self._settler.put((job, Release()))
            else:
                if self.tally.note(job):  # where its driver is was learnt by this look: it needs no slot here
                    self._on_end()
                self.room.park(job, action.seconds)

    def _handle(self, job: HeldJob) -> Action:
        if (buried := burial(job)) is not None:
            return buried
        if (left := self._backoff_left(job)) > 0:
            return Wait(left)
        # In finish any status is at home; elsewhere the status decides, whatever queue the token stands in.
        is_finished = job.claim.queue == Queue.FINISH
        return self._handlers[Queue.FINISH if is_finished else job.state.status.queue](job)

    def _backoff_left(self, job: HeldJob) -> float:
        """Seconds until a job is due whose handler has failed while there was a request to stop it.

        The request stays meanwhile, and would have it tried again many times a second. Where it asks for
        something new nothing waits.
        """
        queue = job.claim.queue
        if not job.claim.hold.for_stop or not job.state.handler_errors or queue in _STOPPED_AT_ONCE:
            return 0.0
        if queue == Queue.RUNNING and job.is_stopped():
            return 0.0
        return (job.claim.record.token.due - self._context.clock.now_ms()) / 1000

    # ------------------------------------------------------------------ steps
    def _commit(self, asked: Sequence[tuple[HeldJob, Action | Exception]]) -> None:
        by_session = sorted(asked, key=lambda item: id(item[0].claim.hold.session))
        changes: dict[Transition, Change] = {}
        left = {job for job, _ in asked}
        try:
            for step, refused in run_transitions(self._made(by_session, changes)):
                left.discard(changes[step].job)
                self._settle(changes[step], refused)
        except BaseException:
            for job in left:  # else they would be held for ever, and nobody would look at them
                self._end(job)
            raise

    def _made(
        self, asked: Iterable[tuple[HeldJob, Action | Exception]], changes: dict[Transition, Change]
    ) -> Iterator[Transition]:
        for job, action in asked:
            change = self._change(job, action)
            if change is not None:
                changes[change.step] = change
                yield change.step

    def _change(self, job: HeldJob, action: Action | Exception) -> Change | None:
        try:
            if isinstance(action, Exception):
                return self._steps.of_failure(job, action)
            try:
                return self._steps.of(job, action)
            except (ClaimLost, OutcomeUnknown, SessionLost, Unreachable):
                raise
            except Exception as error:  # noqa: BLE001 - what was asked for cannot be done: the handler failed
                return self._steps.of_failure(job, error)
        except Exception as error:  # noqa: BLE001 - not even that can be told: a claim that nobody follows
            logger.warning("{} is let go: {}", job.id, error)
            self._end(job)
            return None

    def _settle(self, change: Change, refused: QueueError | None) -> None:
        job = change.job
        match refused:
            case None:
                job.refusals = 0
                if change.frees_name:
                    self._context.declined.ended(change.frees_name)
                tell(change, self._context.hooks)
                if job.claim.held:
                    self.tally.note(job)
                    self._send(job)
                else:
                    self._end(job)
            case ClaimLost():
                logger.info("{}", refused)
                self._end(job)
            case Conflict() if job.refusals < _MAX_REFUSALS:
                job.refusals += 1  # the driver or somebody else was faster at the attempt: look again
                self._send(job)
            case Conflict():
                job.refusals = 0
                self._settler.put((job, refused))
            case _:
                logger.warning("{} is let go: {}", job.id, refused)
                self._end(job)

    def _end(self, job: HeldJob) -> None:
        self.room.forget(job)
        job.give_back()
        if job.claim.held:
            job.claim.abandon()
        self.tally.drop(job)
        if not self._context.draining.is_set():
            self._on_end()
