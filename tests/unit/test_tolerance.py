"""How many rows of a write its target may reject."""

import pytest

from spark_runner.connectors.base import Tolerance


@pytest.mark.parametrize(
    ("tolerance", "rows", "most"),
    [
        (Tolerance(), 100, 0),
        (Tolerance(3), 100, 3),
        (Tolerance(3, percent=50), 4, 2),
        (Tolerance(3, percent=50), 5, 2),
        (Tolerance(1, percent=50), 100, 1),
        (Tolerance(9, percent=0.5), 200, 1),
        (Tolerance(9, percent=1.1), 1000, 9),
        (Tolerance(99, percent=10, counted=60, bad=4), 40, 6),
        (Tolerance(99, percent=10, counted=60, bad=40), 40, 0),
    ],
)
def test_a_percentage_counts_all_rows_and_those_that_did_not_fit_before(
    tolerance: Tolerance, rows: int, most: int
) -> None:
    assert tolerance.of(rows) == most
