"""Rows of a partition that an earlier attempt has delivered."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_runner.connectors.delivered_rows import DeliveredRows
from spark_runner.connectors.errors import OtherRows


def portions(keys: list[str], cuts: list[int]) -> list[list[str]]:
    ends = sorted({0, len(keys), *(cut for cut in cuts if cut < len(keys))})
    return [keys[start:end] for start, end in pairwise(ends)]


def passed(position: Any, found: list[list[str]]) -> int:
    rows = DeliveredRows(position)
    count = sum(rows.pass_over(keys) for keys in found)
    rows.end()
    return count


@given(
    count=st.integers(0, 30),
    delivered=st.integers(0, 30),
    first=st.lists(st.integers(1, 30), max_size=4),
    second=st.lists(st.integers(1, 30), max_size=4),
)
def test_as_many_equal_rows_are_passed_over_as_were_delivered_however_they_come(
    count: int, delivered: int, first: list[int], second: list[int]
) -> None:
    keys, before = [f"k{number}" for number in range(count)], DeliveredRows(None)
    for each in portions(keys[:delivered], first):
        before.pass_over(each)
    assert passed(before.position, portions(keys, second)) == min(count, delivered)


@pytest.mark.parametrize(
    "other",
    [
        ["a", "x", "c", "d"],  # another row
        ["b", "a", "c", "d"],  # another order
        ["a"],  # fewer rows
        [],
        ["a\nb", "c"],
    ],
)
def test_other_rows_are_an_error(other: list[str]) -> None:
    before = DeliveredRows(None)
    before.pass_over(["a", "b"])
    with pytest.raises(OtherRows):
        passed(before.position, [other])


@pytest.mark.parametrize("position", [None, 7, "x", [], [1], ["1", "x"], [0, ""], {"a": 1}])
def test_without_a_position_no_row_is_passed_over(position: Any) -> None:
    assert passed(position, [["a", "b"]]) == 0


def test_rows_that_may_be_others_are_not_reported_as_delivered() -> None:
    before = DeliveredRows(None)
    before.pass_over(["a", "b", "c"])
    rows = DeliveredRows(before.position)
    assert rows.pass_over(["x"]) == 1, "it is not sent, and not known either"
    assert rows.position == before.position, "an attempt that ends here must not pass on what was never sent"
    again = DeliveredRows(before.position)
    again.pass_over(["a", "b", "c"])
    again.pass_over(["d"])
    assert again.position != before.position
