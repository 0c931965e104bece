"""What a push measures."""

import pytest

from spark_runner.push.measures import Delay, Latencies, Speed


def test_a_speed_is_that_of_its_window_and_of_a_push_that_has_just_begun() -> None:
    speed = Speed(1000.0)
    for second in range(10):
        speed.add(50, 1000.0 + second)
    assert speed.over(60, 1010.0) == pytest.approx(50.0)
    assert speed.over(300, 1100.0) == pytest.approx(5.0)
    assert speed.over(60, 1100.0) == 0.0


def test_quantiles_of_latencies_are_exact_to_a_tenth() -> None:
    latencies = Latencies()
    assert latencies.quantile(0.99) == 0.0
    for number in range(1, 1001):
        latencies.add(number / 1000)
    for part in (0.5, 0.9, 0.99):
        assert part <= latencies.quantile(part) <= 1.1 * part


def test_a_delay_begins_anew_after_a_minute_without_a_record() -> None:
    delay = Delay()
    assert delay.seconds() == 0.0
    for at in (10.0, 40.0, 99.0):
        delay.add(at)
    assert delay.seconds() == 89.0
    delay.add(160.0)
    delay.add(163.0)
    assert delay.seconds() == 3.0
