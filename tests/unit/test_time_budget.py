import time

import pytest

from queues.consumer.rotation import TimeBudget


def test_so_much_of_the_time_may_be_spent_and_no_more_is_saved_than_the_burst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    allowance = TimeBudget(share=0.1, burst=2.0)
    assert allowance.is_left()
    allowance.spend(3.0)  # one too many: it has to be saved first
    assert not allowance.is_left()
    now[0] += 9.0
    assert not allowance.is_left()
    now[0] += 1.5
    assert allowance.is_left()
    now[0] += 1_000.0
    allowance.is_left()
    allowance.spend(1.9)
    assert allowance.is_left()
    allowance.spend(0.2)
    assert not allowance.is_left()
