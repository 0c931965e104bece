"""When the offsets of a checkpoint are those of another topic with the same name."""

import pytest

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.kafka.identities import check_same_topics, identity

REACHED = ('{"t": {"0": 3}}', '{"logOffset": 0}', "5", "null")  # also of other sources


def test_an_offset_of_another_topic_with_this_name_is_an_error() -> None:
    with pytest.raises(ConnectorError, match="topic 't' was created anew"):
        check_same_topics({"t": "new"}, [identity("t", "old")], REACHED)


@pytest.mark.parametrize(
    ("known", "reached"),
    [
        ([identity("t", "new")], REACHED),
        ([identity("t", "old")], ()),
        ([identity("t", "old")], ('{"u": {"0": 3}}',)),
        ([], REACHED),
        ([identity("t.old", "old")], REACHED),
        ([identity("t", "of another cluster"), identity("t", "new")], REACHED),
    ],
    ids=["the same", "nothing read", "nothing of it read", "no id kept", "a longer name", "two clusters"],
)
def test_other_offsets_are_none(known: list[str], reached: tuple[str, ...]) -> None:
    check_same_topics({"t": "new"}, known, reached)


def test_a_topic_without_an_id_is_not_compared() -> None:
    check_same_topics({}, [identity("t", "old")], REACHED)
