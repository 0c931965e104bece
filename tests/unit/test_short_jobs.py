from typing import Any

import pytest

from orchestrator.handlers.submit_request import is_short


def runs(*durations: Any) -> list[dict[str, Any]]:
    return [{"seconds": seconds, "state": "succeeded"} for seconds in durations]


@pytest.mark.parametrize("durations", [(8, 9.5, 12), (60, 60, 60), (5,) * 50, (900, *(5,) * 10)])
def test_a_job_whose_last_runs_were_all_short_is_short(durations: tuple[float, ...]) -> None:
    assert is_short(runs(*durations))


@pytest.mark.parametrize(
    "durations", [(), (5,), (5, 5), (5, 5, 61), (61, 5, 5, 5), (None, 5, 5), ("5", 5, 5)]
)
def test_a_job_with_a_long_run_or_too_few_runs_is_not_short(durations: tuple[Any, ...]) -> None:
    assert not is_short(runs(*durations))


def test_runs_without_a_duration_count_for_nothing() -> None:
    assert is_short([{}, *runs(5, 5, 5, None)])
    assert not is_short([{}, {}, {}])
    failed = {"seconds": 5, "state": "failed"}
    assert not is_short([failed] * 5)
    assert is_short([*runs(5, 5, 5), {"seconds": 900, "state": "failed"}])
