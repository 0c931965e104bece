"""Timers of waiting jobs: what they keep."""

import gc
import weakref
from types import SimpleNamespace
from typing import cast

from orchestrator.handlers.job_context import JobContext
from orchestrator.worker.timers import Timers
from tests.waiting import wait_until

WAIT_S = 3600.0
WAKES = 1_000


class Job:
    """What timers need of a job."""

    claim = SimpleNamespace(held=True)


def new_job() -> JobContext:
    return cast("JobContext", Job())


def test_an_ended_job_is_not_kept_until_its_former_waits_are_over() -> None:
    timers = Timers(lambda _job: None)
    ended, other = new_job(), new_job()
    kept = weakref.ref(ended)
    timers.park(ended, WAIT_S)
    timers.forget(ended)
    del ended
    for _ in range(WAKES):
        timers.park(other, WAIT_S)
        timers.wake(other)
    gc.collect()
    assert kept() is None


def test_a_parked_job_keeps_its_timer_while_others_are_woken_often() -> None:
    due = list[JobContext]()
    timers = Timers(lambda _job: None, on_due=due.append)
    waiting, other = new_job(), new_job()
    timers.park(waiting, 0.0)
    for _ in range(WAKES):
        timers.park(other, WAIT_S)
        timers.wake(other)
    assert timers.parked() == [waiting]
    timers.start()
    try:
        wait_until(lambda: due == [waiting], 30, "its timer has fired")
    finally:
        timers.stop()
