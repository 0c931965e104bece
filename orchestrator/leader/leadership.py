"""Runs the duties of the leader, each in its own loop, on the elected worker alone."""

import random
import time
from collections.abc import Sequence

from loguru import logger

from orchestrator.leader.duty import Duty
from orchestrator.leader.election import Election
from orchestrator.loop import Loop
from orchestrator.model.backoff import growing
from orchestrator.model.errors import NotLeading
from queues import QueueError

# How long a lost watch can hide that there is no leader. Together with the two ticks in which the server ends
# a session it stays below the two ticks and 2 s within which another worker has to lead.
_RESCAN_SECONDS = 3.0
_STANDBY_SECONDS = 60.0  # an election wakes it earlier
_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 60.0  # after an error of a duty; doubled with each in a row
_STUCK_SECONDS = 3600.0  # a duty may look at a million jobs
_STOP_SECONDS = 2.0  # for steps in progress; without the fence of the leader they cannot do harm


class Leadership:
    """A candidate that runs the duties while it leads.

    A leader whose machine was paused may believe for a moment that it still leads. It therefore verifies its
    lead before each step of a duty, and duties change nothing except by claims, by compare-and-set, or with
    the fence of their election.
    """

    def __init__(self, election: Election, duties: Sequence[Duty]) -> None:
        self._election = election
        self._tasks = [_Task(duty, election) for duty in duties]
        self._loop = Loop("leadership", self._look)
        self._led = False

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads, from local state, without a request."""
        return self._election.is_leader

    def trouble(self) -> str:
        """The loops that are stuck, and why; empty when there are none."""
        troubles = [self._loop.trouble(), *(task.trouble() for task in self._tasks)]
        return "; ".join(filter(None, troubles))

    def start(self) -> None:
        """Join the election, and run the duties whenever this worker leads."""
        for task in self._tasks:
            task.start()
        self._election.session.on_change(self._loop.wake)
        self._loop.start()

    def stop(self) -> bool:
        """Begin no further step and resign at once; False when a step is still in progress."""
        deadline = time.monotonic() + _STOP_SECONDS
        stops = [self._loop.stop, *(task.stop for task in self._tasks)]
        for stop in stops:
            stop(0)
        self._election.resign()
        self._report(leads=False)
        return not [stop for stop in stops if not stop(max(0.0, deadline - time.monotonic()))]

    def _look(self) -> float:
        try:
            leads = self._election.look(self._loop.wake)
        finally:
            self._report(leads=self._election.is_leader)
        if leads:
            for task in self._tasks:
                task.wake()  # a duty that is not due continues to wait
        return _RESCAN_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311 - not for security

    def _report(self, *, leads: bool) -> None:
        if leads is not self._led:
            self._led = leads
            logger.info("this worker leads now" if leads else "this worker no longer leads")


class _Task:
    """One duty in its loop: an error is logged, and the duty is retried after a growing delay."""

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
        except Exception as error:  # noqa: BLE001 - a bug in one duty must not stop the others
            pause = self._after(error)
        self._due = time.monotonic() + pause
        return pause

    def _after(self, error: Exception) -> float:
        self._errors += 1
        pause = growing(_RETRY_SECONDS, _MAX_RETRY_SECONDS, self._errors)
        if not self._loop.is_stopping:  # its session may be closed then, and a warning would mislead
            trace = None if isinstance(error, QueueError) else error
            words = "duty {} of the leader has failed: {}; next try in {:g} s"
            logger.opt(exception=trace).warning(words, self._duty.name, error, pause)
        return pause
