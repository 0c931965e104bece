"""The lag of topics from what Spark reports of a trigger."""

from types import SimpleNamespace
from typing import Any

from spark_runner.sql.execution.lags import SHOWN, lag_of


def source(end: str | None, latest: str | None, description: str = "KafkaV1[Subscribe[t]]") -> Any:
    return SimpleNamespace(description=description, endOffset=end, latestOffset=latest)


def test_each_partition_has_the_records_that_are_not_read_yet() -> None:
    found = lag_of([source('{"t": {"0": 5, "1": 7}}', '{"t": {"0": 9, "1": 7}}')])
    assert found == {"lag": {"records": 4, "partitions": {"t-0": 4}}}


def test_several_reads_of_a_topic_add_up_and_a_new_partition_counts_from_its_start() -> None:
    one = source('{"t": {"0": 5}}', '{"t": {"0": 6, "1": 3}}')
    assert lag_of([one, one])["lag"] == {"records": 8, "partitions": {"t-1": 6, "t-0": 2}}


def test_other_sources_and_unknown_offsets_have_no_lag() -> None:
    assert lag_of([source('{"logOffset": 1}', None, "FileStreamSource[file:/x]"), source(None, None)]) == {}


def test_the_largest_lags_are_shown_of_many_partitions() -> None:
    many = ", ".join(f'"{number}": {number}' for number in range(100))
    zero = ", ".join(f'"{number}": 0' for number in range(100))
    found = lag_of([source(f'{{"t": {{{zero}}}}}', f'{{"t": {{{many}}}}}')])["lag"]
    assert found["records"] == sum(range(100))
    assert list(found["partitions"])[:2] == ["t-99", "t-98"]
    assert len(found["partitions"]) == SHOWN
