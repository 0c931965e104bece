"""The limits of a push: rate, circuit breaker, adaptive concurrency, settings."""

from dataclasses import replace

import pytest

from spark_runner.push.adaptive_limit import AdaptiveLimit
from spark_runner.push.circuit_breaker import Circuit, CircuitBreaker
from spark_runner.push.errors import SettingError
from spark_runner.push.settings import LaneLimits, Limits, PushSettings
from spark_runner.push.token_bucket import TokenBucket


def taken(bucket: TokenBucket, seconds: float, step: float = 0.001) -> int:
    count, now = 0, 0.0
    while now < seconds:
        if not bucket.wait(now):
            bucket.take(now)
            count += 1
        else:
            now += step
    return count


@pytest.mark.parametrize("rate", [0.5, 3.0, 100.0])
def test_a_token_bucket_gives_as_many_tokens_as_its_rate(rate: float) -> None:
    burst = max(1.0, rate * 0.1)
    assert taken(TokenBucket(rate), 20.0) == pytest.approx(20.0 * rate + burst, abs=1)


def test_a_token_bucket_without_a_rate_has_no_limit_and_one_that_gets_one_has_no_old_tokens() -> None:
    bucket = TokenBucket()
    assert bucket.wait(0.0) == 0.0
    bucket.adjust(10.0, 100.0)
    assert bucket.wait(100.0) == pytest.approx(0.1)


def test_the_named_wait_is_enough_for_a_token() -> None:
    bucket = TokenBucket(7.0)
    now = 1e6 + 0.1
    for _ in range(1000):
        now += bucket.wait(now)
        assert bucket.wait(now) == 0.0
        bucket.take(now)


def test_a_breaker_opens_after_failures_in_sequence_and_lets_one_probe_pass() -> None:
    breaker = CircuitBreaker(threshold=3)
    for _ in range(2):
        breaker.failed(0.0, 0.0)
    breaker.succeeded()
    for _ in range(3):
        assert breaker.wait(1.0) == 0.0
        breaker.failed(1.0, 1.0)
    assert breaker.state is Circuit.OPEN
    wait = breaker.wait(1.0)
    assert wait
    assert breaker.wait(1.0 + wait) == 0.0
    breaker.started(90.0)
    breaker.failed(1.0, 95.0)
    assert breaker.wait(99.0) is None, "one probe at a time, whatever earlier requests say"
    breaker.failed(90.0, 99.0)
    assert breaker.wait(99.0) == 2 * wait
    breaker.started(100.0)
    breaker.succeeded()
    assert (breaker.state, breaker.wait(99.0), breaker.is_up) == (Circuit.CLOSED, 0.0, True)


def test_a_breaker_probes_at_least_each_two_seconds() -> None:
    breaker = CircuitBreaker(threshold=1)
    for now in range(20):
        breaker.failed(float(now), float(now))
        breaker.started(float(now))
    breaker.failed(20.0, 20.0)
    assert breaker.wait(20.0) == 2.0


def test_overload_cuts_the_limit_once_for_the_requests_in_flight_and_successes_restore_it() -> None:
    limit = AdaptiveLimit(16)
    for _ in range(16):
        limit.overloaded(started=1.0, now=2.0)
    assert limit.limit == 11
    for _ in range(200):
        limit.succeeded(started=3.0, now=3.02)
    assert limit.limit == 16


def test_answers_that_get_slow_cut_the_limit() -> None:
    limit, now = AdaptiveLimit(16), 0.0
    for _ in range(500):
        now += 0.1
        limit.succeeded(now - 0.02, now)
    assert limit.limit == 16
    for _ in range(100):
        now += 0.1
        limit.succeeded(now - 0.2, now)
    assert limit.limit < 12


def test_a_single_slow_answer_leaves_the_limit_as_it_is() -> None:
    limit = AdaptiveLimit(16)
    for number in range(100):
        limit.succeeded(0.0, 0.08 if number == 50 else 0.02)
    assert limit.limit == 16


def test_a_limit_that_is_not_adaptive_stays() -> None:
    limit = AdaptiveLimit(16, is_adaptive=False)
    limit.overloaded(1.0, 2.0)
    assert limit.limit == 16


def test_a_limit_follows_a_change_of_its_bound() -> None:
    limit = AdaptiveLimit(16)
    limit.adjust(4)
    assert limit.limit == 4
    limit.adjust(32)
    assert limit.limit == 32


@pytest.mark.parametrize("name", ["concurrency", "buffer_records", "buffer_bytes"])
def test_limits_are_above_zero(name: str) -> None:
    with pytest.raises(SettingError, match=f"'{name}' is 0; it must be at least 1"):
        replace(Limits(), **{name: 0})  # type: ignore[arg-type]  # the name is a parameter


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
def test_a_rate_is_a_number(rate: float) -> None:
    with pytest.raises(SettingError, match="'rate' is"):
        Limits(rate=rate)
    with pytest.raises(SettingError, match="'rate' of lane 'x'"):
        Limits(lanes={"x": LaneLimits(rate=rate)})


def test_settings_are_checked() -> None:
    with pytest.raises(SettingError, match="'batch_records' is 0"):
        PushSettings(batch_records=0)
    with pytest.raises(SettingError, match="'retry_timeout' is nan"):
        PushSettings(retry_timeout=float("nan"))
    with pytest.raises(SettingError, match="'low_share' is 2"):
        PushSettings(low_share=2)
