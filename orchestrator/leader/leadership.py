"""The duties of the leader: each in a loop of its own, done by the elected worker alone."""

import random
import time
from collections.abc import Sequence

from loguru import logger

from orchestrator.backoff import growing
from orchestrator.errors import NotLeading
from orchestrator.leader.duty import Duty
from orchestrator.leader.election import Election
from orchestrator.loop import Loop
from queues.errors import QueueError

# How long a lost watch can hide that nobody leads: with two ticks of the server, in which it ends sessions,
# still less than the two ticks and 2 s within which somebody else is to lead.
_RESCAN_SECONDS = 3.0
_STANDBY_SECONDS = 60.0  # woken when it is elected
_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 60.0  # after an error of a duty; doubled with each in a row
_STUCK_SECONDS = 3600.0  # a duty may look at a million jobs
_STOP_SECONDS = 2.0  # for duties that are under way; without a leader's fence they can do no harm


class Leadership:
    """A candidate who does the duties while it leads.

    A leader whose machine was paused may believe in itself for a moment while another one leads. So it looks
    again before each step of a duty, and duties change nothing but by claims, by compare-and-set, or with the
    fence of their election.
    """

    def __init__(self, election: Election, duties: Sequence[Duty]) -> None:
        self._election = election
        self._tasks = [_Task(duty, election) for duty in duties]
        self._loop = Loop("leadership", self._look)
        self._led = False

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads, as far as is known here; asks nobody."""
        return self._election.is_leader

    def trouble(self) -> str:
        """Which of its loops do not get on, empty when all do."""
        troubles = [self._loop.trouble(), *(task.trouble() for task in self._tasks)]
        return "; ".join(filter(None, troubles))

    def start(self) -> None:
        """Stand for election, and do the duties whenever it is won."""
        for task in self._tasks:
            task.start()
        self._election.session.on_change(self._loop.wake)
        self._loop.start()

    def stop(self) -> bool:
        """Begin no step of a duty and let the next one lead at once; False when a step is still under way."""
        deadline = time.monotonic() + _STOP_SECONDS
        stops = [self._loop.stop, *(task.stop for task in self._tasks)]
        for stop in stops:
            stop(0)
        self._election.resign()
        self._tell(leads=False)
        return not [stop for stop in stops if not stop(max(0.0, deadline - time.monotonic()))]

    def _look(self) -> float:
        try:
            leads = self._election.look(self._loop.wake)
        finally:
            self._tell(leads=self._election.is_leader)
        if leads:
            for task in self._tasks:
                task.wake()  # those that are not due go on waiting
        return _RESCAN_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311 - not for security

    def _tell(self, *, leads: bool) -> None:
        if leads is not self._led:
            self._led = leads
            logger.info("this worker leads now" if leads else "this worker does not lead any more")


class _Task:
    """One duty in its loop: what it raises is told, and it is tried again after a growing delay."""

    def __init__(self, duty: Duty, election: Election) -> None:
        self._duty, self._election = duty, election
        self._loop = Loop(f"duty {duty.name}", self._step, stuck_after=_STUCK_SECONDS)
        self._due = 0.0  # monotonic
        self._errors = 0  # in a row
        self.start, self.wake, self.stop = self._loop.start, self._loop.wake, self._loop.stop
        self.trouble = self._loop.trouble

    def _step(self) -> float:
        left = self._due - time.monotonic()
        if left > 0:
            return left
        if not self._election.verify():
            return _RETRY_SECONDS if self._election.is_leader else _STANDBY_SECONDS
        try:
            pause = max(0.0, self._duty.step())
            self._errors = 0
        except NotLeading:
            return _STANDBY_SECONDS
        except Exception as error:  # noqa: BLE001 - a bug in one duty must not hinder the others
            pause = self._after(error)
        self._due = time.monotonic() + pause
        return pause

    def _after(self, error: Exception) -> float:
        self._errors += 1
        pause = growing(_RETRY_SECONDS, _MAX_RETRY_SECONDS, self._errors)
        if not self._loop.is_stopping:  # the session may be gone then, and nobody asked for more
            trace = None if isinstance(error, QueueError) else error
            words = "the leader's duty {}: {}; again in {:g} s"
            logger.opt(exception=trace).warning(words, self._duty.name, error, pause)
        return pause
