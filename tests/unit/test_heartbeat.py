"""The detection of dead and stuck loops."""

import threading
from collections.abc import Iterator

import pytest

from orchestrator.loop import Loop
from queues.consumer.heartbeat import Heartbeat
from tests.waiting import wait_until


@pytest.fixture
def go() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


def test_a_loop_is_judged_from_its_start_to_its_stop() -> None:
    loop = Loop("counting", lambda: 0.01)
    assert loop.trouble() == ""
    loop.start()
    assert loop.trouble() == ""
    assert loop.stop()
    assert loop.trouble() == ""


def test_a_step_that_lasts_too_long_is_trouble_and_a_long_rest_is_none(go: threading.Event) -> None:
    rested = threading.Event()

    def step() -> float:
        go.wait()
        rested.set()
        return 3600.0

    loop = Loop("waiting", step, stuck_after=0.05)
    loop.start()
    try:
        words = wait_until(loop.trouble, 10, "it is seen")
        assert words == "waiting: one step has lasted for 0 s"
        go.set()
        rested.wait(10)
        wait_until(lambda: not loop.trouble(), 10, "it is well again")
    finally:
        loop.stop()


def test_a_step_that_fails_is_no_trouble() -> None:
    tried: list[int] = []

    def step() -> float:
        tried.append(1)
        raise ValueError("each time")

    loop = Loop("failing", step, retry=0.01, stuck_after=5)
    loop.start()
    wait_until(lambda: len(tried) > 2, 10, "it has failed")
    assert loop.trouble() == ""
    assert loop.stop()


def test_a_thread_that_has_ended_is_trouble() -> None:
    thread = threading.Thread(target=int)
    beat = Heartbeat(thread)
    assert beat.trouble() == ""
    thread.start()
    thread.join()
    assert beat.trouble() == "its thread has ended"
