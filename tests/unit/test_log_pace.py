"""Concurrent requests: fewer after each failure, more after each success, and never in step with others."""

import threading
import time
from types import SimpleNamespace

import pytest

from orchestrator.logs.shipping import pace as pace_module
from orchestrator.logs.shipping.pace import Pace
from tests.waiting import wait_until

WAIT_S = 10


class Clock:
    """Time that the test advances, and jitter whose limits it records."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, share: float = 1.0) -> None:
        self.now, self.share, self.longest = 1_000.0, share, list[float]()
        monkeypatch.setattr(pace_module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(pace_module, "random", SimpleNamespace(uniform=self._uniform))

    def is_open(self, pace: Pace) -> bool:
        """Whether a permit is given now; it is taken."""
        if pace._not_before > self.now or pace._flying >= max(1, int(pace.limit)):  # noqa: SLF001 - it would wait
            return False
        return pace.enter()

    def _uniform(self, low: float, high: float) -> float:
        assert low == 0
        self.longest.append(high)
        return high * self.share


def enter_within(pace: Pace, entered: list[bool]) -> None:
    entered.append(pace.enter())


def test_no_more_requests_are_under_way_than_are_allowed() -> None:
    pace = Pace(3)
    assert all(pace.enter() for _ in range(3))
    entered = list[bool]()
    waiter = threading.Thread(target=enter_within, args=(pace, entered))
    waiter.start()
    assert entered == []
    pace.succeeded()
    waiter.join(WAIT_S)
    assert entered == [True]


def test_failures_halve_what_is_sent_and_successes_add_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pace, limits = Clock(monkeypatch, 0.0), Pace(16), list[float]()
    for _ in range(5):
        assert pace.enter()
        pace.slowed("busy")
        limits.append(pace.limit)
        clock.now += 100
    assert limits == [8, 4, 2, 1, 1]
    for _ in range(200):
        assert pace.enter()
        pace.succeeded()
        assert pace.limit <= limits[-1] + 1
        limits.append(pace.limit)
    assert limits[-1] == 16
    assert limits[5:] == sorted(limits[5:])
    assert pace.enter()
    pace.failed("away")
    assert pace.limit == 1


def test_delays_grow_to_a_limit_and_are_a_random_share_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pace = Clock(monkeypatch), Pace(2)
    for _ in range(30):
        assert pace.enter()
        pace.failed("away")
        clock.now += clock.longest[-1] - 0.01
        assert not clock.is_open(pace)
        clock.now += 0.02
    assert clock.longest[:4] == [0.4, 0.8, 1.6, 3.2]
    assert max(clock.longest) == 30
    assert pace.enter()
    pace.succeeded()
    assert pace.enter()
    pace.failed("again")
    assert clock.longest[-1] == 0.4


def test_shares_differ_from_host_to_host(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(pace_module, "time", SimpleNamespace(monotonic=lambda: now))
    until = set[float]()
    for _ in range(50):
        pace = Pace(2)
        assert pace.enter()
        pace.failed("away")
        until.add(pace._not_before - now)  # noqa: SLF001 - it is not public
    assert len(until) > 40
    assert 0 <= min(until) < 0.1
    assert 0.3 < max(until) <= 0.4


def test_a_delay_that_the_server_requests_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pace = Clock(monkeypatch, 0.5), Pace(2)
    assert pace.enter()
    pace.slowed("busy", 7.0)
    clock.now += 6.9
    assert not clock.is_open(pace)
    clock.now += 0.2
    assert clock.is_open(pace)


def test_a_pause_is_reported_and_ends_with_a_success_or_another_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, pace = Clock(monkeypatch), Pace(2)
    assert pace.enter()
    pace.paused("who are you?")
    assert (pace.trouble, pace.is_paused) == ("who are you?", True)
    clock.now += 29
    assert not clock.is_open(pace)
    clock.now += 1.1
    assert clock.is_open(pace)
    pace.failed("away")
    assert (pace.trouble, pace.is_paused) == ("away", False)
    clock.now += 100
    assert pace.enter()
    pace.succeeded()
    assert (pace.trouble, pace.is_paused) == ("", False)


def test_the_longer_of_two_waits_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pace = Clock(monkeypatch), Pace(2)
    assert pace.enter()
    assert pace.enter()
    pace.paused("forbidden")
    pace.failed("away")
    clock.now += 29
    assert not clock.is_open(pace)


@pytest.mark.parametrize("end", ["stop", "hurry"])
def test_a_waiter_is_woken_at_the_end(end: str) -> None:
    pace, found = Pace(2), list[bool]()
    assert pace.enter()
    pace.paused("forbidden")
    waiter = threading.Thread(target=enter_within, args=(pace, found))
    waiter.start()
    getattr(pace, end)()
    waiter.join(WAIT_S)
    assert found == [end == "hurry"]


def test_after_an_outage_threads_come_one_by_one() -> None:
    pace, entered = Pace(8), list[bool]()
    assert pace.enter()
    pace.failed("away")
    pace.hurry()
    threads = [threading.Thread(target=enter_within, args=(pace, entered)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for done in range(4):
        wait_until(lambda before=done: len(entered) > before, WAIT_S, "one may go")  # type: ignore[misc]
        assert len(entered) - done <= pace.limit <= done + 1
        pace.succeeded()
    pace.stop()
    for thread in threads:
        thread.join(WAIT_S)
