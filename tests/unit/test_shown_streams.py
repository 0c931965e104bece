"""The line of `job show` for the limit of a stream; what a driver reports is untrusted."""

from typing import Any

import pytest

from orchestrator.cli.job.streams import batch_limits


def test_a_limit_is_shown_with_who_decides_it_its_target_and_its_reason() -> None:
    tuned = {"rows": 1200, "by": "tuning", "target_seconds": 10.0, "reason": "900 rows took 12.0 s"}
    shown = {
        "streams": {"a": {"limit": tuned}, "b": {"batch": 3}, "c": {"limit": {"rows": 7, "by": "operator"}}}
    }
    assert list(batch_limits(shown)) == [
        "stream into a: at most 1,200 rows in a micro-batch, tuned for 10 s (900 rows took 12.0 s)",
        "stream into c: at most 7 rows in a micro-batch, set by an operator",
    ]


@pytest.mark.parametrize(
    "limit",
    [None, 7, [], {"rows": "many"}, {"rows": True}, {"rows": -1}, {"rows": float("nan")}, {"rows": 10**400}],
)
def test_what_is_no_limit_is_not_shown(limit: Any) -> None:
    assert list(batch_limits({"streams": {"a": {"limit": limit}}})) == []
    assert list(batch_limits({"streams": limit})) == []


def test_texts_of_a_driver_are_short_and_have_one_line() -> None:
    limit = {"rows": 1, "by": ["x"], "reason": "\x1b[31m\n" + "x" * 10_000}
    (line,) = batch_limits({"streams": {"t\n" * 1000: {"limit": limit}}})
    assert len(line) < 1000
    assert line.isprintable()
