"""How soon a worker polls its backends again."""

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.model.states import Status
from orchestrator.worker import polling
from orchestrator.worker.polling import Polling


def rest_after(poll: Callable[[], None]) -> tuple[float, float]:
    """The seconds until the next poll, and those that this one took."""

    def poll_many(_runs: list[str]) -> dict[str, list[object]]:
        poll()
        return {}

    runner = SimpleNamespace(backend="yarn", poll_many=poll_many)
    monitor = AttemptMonitor(1)
    monitor.follow("run", runner)  # type: ignore[arg-type]  # only what a poll needs of a runner
    state = SimpleNamespace(status=Status.RUNNING)
    limits = SimpleNamespace(warn_after=3)
    context = SimpleNamespace(rules=SimpleNamespace(limits=lambda: limits))
    job = SimpleNamespace(monitor=monitor, state=state, context=context, wake=lambda: None)
    started = time.monotonic()
    rest = Polling(lambda: [job]).step()  # type: ignore[list-item]  # only what a poll needs of a job
    return rest, time.monotonic() - started


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.fixture(autouse=True)
def no_least_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "_POLL_SECONDS", 0.0)


def test_a_cluster_that_answers_late_is_asked_again_after_the_time_that_it_took() -> None:
    rest, took = rest_after(lambda: time.sleep(0.5))
    assert 0.5 <= rest <= took


def test_a_poll_that_computes_takes_at_most_a_twentieth_of_the_time() -> None:
    rest, _ = rest_after(lambda: compute(0.1))
    assert rest >= 20 * 0.1
