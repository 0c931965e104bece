"""The rows of one round trip to Redis: bounded by their number and by their bytes."""

import pytest

from spark_runner.connectors.redis.round_trips import round_trips

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("sizes", "rows", "parts"),
    [
        ([], 2, []),
        ([1] * 5, 2, [2, 2, 1]),
        ([5 * MIB, 3 * MIB, 1], 1000, [2, 1]),
        ([20 * MIB, 1, 1, 20 * MIB], 1000, [1, 2, 1]),
    ],
)
def test_a_round_trip_has_a_number_of_rows_and_8_mib_or_one_larger_row(
    sizes: list[int], rows: int, parts: list[int]
) -> None:
    found = [sizes[part] for part in round_trips(sizes, rows)]
    assert [len(part) for part in found] == parts
    assert [size for part in found for size in part] == sizes
