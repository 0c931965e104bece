import time

import pytest

from queues.consumer.rotation import TimeBudget


def test_a_share_of_the_time_may_be_spent_and_at_most_the_burst_is_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    budget = TimeBudget(share=0.1, burst=2.0)
    assert budget.is_left()
    budget.spend(3.0)  # more than is left
    assert not budget.is_left()
    now[0] += 9.0
    assert not budget.is_left()
    now[0] += 1.5
    assert budget.is_left()
    now[0] += 1_000.0
    budget.is_left()
    budget.spend(1.9)
    assert budget.is_left()
    budget.spend(0.2)
    assert not budget.is_left()
