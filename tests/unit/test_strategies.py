"""Tests that draw what they need while threads of the product run."""

import random
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.waiting import wait_until


@pytest.fixture
def thread_with_jitter() -> Iterator[threading.Event]:
    """Uses `random` without a pause, as the threads of a session do for the jitter of their waits."""
    ending, has_begun = threading.Event(), threading.Event()

    def draw() -> None:
        while not ending.is_set():
            random.random()  # noqa: S311 - of jitter, too
            has_begun.set()

    thread = threading.Thread(target=draw)
    thread.start()
    wait_until(has_begun.is_set, 10, "the thread runs")
    yield ending
    ending.set()
    thread.join()


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_thread_that_uses_random_during_a_draw_fails_no_test(
    thread_with_jitter: threading.Event, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.integers(0, 9), min_size=50, max_size=50))
    assert not thread_with_jitter.is_set()
    assert len(drawn) == 50
