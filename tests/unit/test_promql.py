"""The helper that checks rules and dashboards against the served metrics detects errors."""

import pytest

from tests.promql import Served, labels_asked

SERVED = Served(
    {
        "depth": {"queue": {"accept", "dead"}, "pool": {"default"}},
        "claims_total": {"queue": {"accept"}},
        "seconds_bucket": {"queue": {"accept"}, "le": {"1.0", "+Inf"}},
        "used": {},
        "limit": {},
    }
)


@pytest.mark.parametrize(
    ("expression", "labels"),
    [
        ("depth", {"queue", "pool", "instance", "job"}),
        ('sum by (pool) (depth{queue=~"accept|dead", instance="x"}) > 3', {"pool"}),
        ("(sum(used) or vector(0)) == 0", set()),
        ("60 * sum by (queue) (rate(claims_total[$__rate_interval]))", {"queue"}),
        ("histogram_quantile(0.9, sum by (queue, le) (rate(seconds_bucket[5m])))", {"queue"}),
        ("used / limit > 0.9", {"instance", "job"}),
    ],
)
def test_the_labels_of_an_answer_are_known(expression: str, labels: set[str]) -> None:
    assert labels_asked(expression, SERVED) == labels


@pytest.mark.parametrize(
    "expression",
    [
        "sum(depht)",
        "sum(depth",
        "sum by (queues) (depth)",
        "sum by (pool) (sum by (queue) (depth))",
        'depth{queue="acept"}',
        'depth{queue=~"accept|deda"}',
        'depth{name="accept"}',
        "rate(depth[5m])",
        "avg_over_time(claims_total[5m])",
        "used / sum(limit)",
        "histogram_quantile(0.9, sum by (queue) (rate(seconds_bucket[5m])))",
    ],
)
def test_metrics_that_are_not_served_are_detected(expression: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        labels_asked(expression, SERVED)
