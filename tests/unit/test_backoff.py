"""The delay after consecutive failures."""

import pytest

from orchestrator.model.backoff import growing, jittered
from orchestrator.model.definition_parts import Retry


@pytest.mark.parametrize(("failures", "seconds"), [(1, 2.0), (2, 4.0), (5, 32.0), (6, 60.0), (100_000, 60.0)])
def test_a_delay_grows_up_to_its_limit_however_many_failures_there_were(
    failures: int, seconds: float
) -> None:
    assert growing(2.0, 60.0, failures) == seconds


def test_the_delay_of_a_definition_grows_by_its_factor() -> None:
    retry = Retry(delay=1, factor=10, max_delay=1e9)
    assert [retry.delay_after(failures) for failures in (1, 2, 3, 1_000)] == [1, 10, 100, 1e9]


def test_simultaneous_failures_are_retried_at_different_times() -> None:
    delays = {jittered(10.0) for _ in range(200)}
    assert len(delays) > 100
    assert min(delays) >= 8.0
    assert max(delays) <= 12.0
