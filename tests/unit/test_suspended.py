"""A machine that was suspended: CLOCK_BOOTTIME includes the time, as the clocks of other machines do."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.handlers import supervision
from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.liveness import absence, age
from queues.session import SessionState, boottime, boottime_ns
from queues.session.contact import Contact
from spark_runner.protocol.attempt import Attempt
from tests.waiting import wait_until

HOUR = 3600.0
Suspend = Callable[[float], None]


@pytest.fixture
def suspend(monkeypatch: pytest.MonkeyPatch) -> Suspend:
    """Let these seconds pass while timers and CLOCK_MONOTONIC are stopped."""
    slept = [0.0]

    def clock() -> float:
        return boottime() + slept[0]

    for user in ("queues.session.contact", "orchestrator.handlers.attempt_monitor"):
        monkeypatch.setattr(f"{user}.boottime", clock)

    def sleep(seconds: float) -> None:
        slept[0] += seconds

    return sleep


def test_the_clock_for_that_is_the_one_that_counts_suspended_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # A machine that was never suspended has the same time on both clocks.
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: HOUR}.__getitem__)
    monkeypatch.setattr(time, "clock_gettime_ns", {time.CLOCK_BOOTTIME: 7}.__getitem__)
    assert (boottime(), boottime_ns()) == (HOUR, 7)


# ---------------------------------------------------------------------- the session
def test_a_session_is_lost_and_silent_though_its_connection_seems_to_be_there(suspend: Suspend) -> None:
    contact = Contact(10.0)
    contact.record_reply(boottime())
    contact.connected(1, "here")
    assert (contact.state, contact.seconds_away()) == (SessionState.CONNECTED, 0)
    suspend(HOUR)
    assert contact.state is SessionState.LOST
    assert contact.seconds_away() >= HOUR
    contact.record_reply(boottime() + HOUR)  # the server has not ended it: it was suspended as well
    assert (contact.state, contact.seconds_away()) == (SessionState.CONNECTED, 0)


def test_listeners_are_notified_of_the_loss_soon_after_the_machine_is_back(suspend: Suspend) -> None:
    contact, states = Contact(HOUR), list[SessionState]()
    contact.record_reply(boottime())
    contact.connected(1, "here")
    contact.on_change(lambda: states.append(contact.state))
    contact.broken(lost=False)
    suspend(HOUR)
    wait_until(
        lambda: states[-1:] == [SessionState.LOST], 10, "the loss is reported long before the hour is over"
    )
    contact.connected(1, "here")


# ---------------------------------------------------------------------- attempts
def held(*, ensemble: float = 0.0, lease: float = 900.0) -> JobContext:
    """A job whose attempt was written this many seconds ago by the ensemble's clock, without `alive`."""
    clock = SimpleNamespace(confirmed_ms=lambda: round(ensemble * 1000))
    context = SimpleNamespace(clock=clock, session=SimpleNamespace(get=lambda _path: None))
    context.rules = SimpleNamespace(limits=lambda: SimpleNamespace(warn_after=3))
    definition = SimpleNamespace(timeout=SimpleNamespace(lease=lease, stall=600))
    state = SimpleNamespace(trigger_seconds=0.0)
    reads = SimpleNamespace(get=context.session.get)
    return cast(
        "JobContext", SimpleNamespace(context=context, definition=definition, state=state, reads=reads)
    )


def attempt(version: int = 1, hosts: float = 0.0, **document: Any) -> Attempt:
    """An attempt that was written this many seconds ago by the clocks of the hosts."""
    written = datetime.fromtimestamp(time.time() - hosts, UTC).isoformat()
    state = "started" if version else "intent"
    return Attempt("/a", version, {"state": state, "started": written, "created": written, **document}, 0)


def test_an_absence_that_lasts_while_the_worker_is_suspended_counts(suspend: Suspend) -> None:
    monitor = AttemptMonitor(1)
    left = absence(held(), attempt(), monitor)
    assert left is not None
    assert 929 < left <= 930
    suspend(HOUR)
    left = absence(held(), attempt(), monitor)
    assert left is not None
    assert left < 0


def test_no_progress_while_the_machine_was_suspended_is_no_progress(suspend: Suspend) -> None:
    monitor = AttemptMonitor(1)
    assert supervision._warning(held(), monitor, None)[0] is None  # noqa: SLF001 - the rest of a poll needs servers
    suspend(HOUR)
    words, _ = supervision._warning(held(), monitor, None)  # noqa: SLF001
    assert words is not None
    assert "timeout.stall" in words


def test_observed_progress_of_an_attempt_counts_whatever_the_clocks_show_later(suspend: Suspend) -> None:
    monitor = AttemptMonitor(1)
    assert age(held(ensemble=60), attempt(hosts=60), monitor) == pytest.approx(60, abs=5)
    suspend(HOUR)
    for ensemble, hosts in ((0, 0), (9 * HOUR, 9 * HOUR), (-HOUR, -HOUR)):
        seen = age(held(ensemble=ensemble), attempt(hosts=hosts), monitor)
        assert seen == pytest.approx(HOUR + 60, abs=5)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("ensemble", "hosts", "certain"),
    [
        (2 * HOUR, 60, 60),  # the ensemble's clock is ahead
        (60, 2 * HOUR, 60),  # the clock of a host is ahead
        (HOUR, HOUR, HOUR),
        (-HOUR, HOUR, 0),
        (HOUR, -HOUR, 0),
    ],
)
def test_of_what_was_before_the_shorter_time_counts(
    version: int, ensemble: float, hosts: float, certain: float
) -> None:
    seconds = age(held(ensemble=ensemble), attempt(version, hosts), AttemptMonitor(1))
    assert seconds == pytest.approx(certain, abs=5)


def test_each_state_of_an_attempt_has_a_time_of_its_own(suspend: Suspend) -> None:
    monitor = AttemptMonitor(1)
    age(held(), attempt(0), monitor)
    suspend(HOUR)
    assert age(held(), attempt(0), monitor) >= HOUR
    assert age(held(), attempt(1), monitor) < 5


@pytest.mark.parametrize("words", [None, "soon", 7])
def test_an_attempt_that_does_not_say_when_it_was_written_is_as_old_as_it_was_seen(words: object) -> None:
    assert age(held(ensemble=HOUR), attempt(started=words), AttemptMonitor(1)) < 5
