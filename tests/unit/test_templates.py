"""Texts with columns in braces."""

import pytest

from spark_runner.connectors.redis.client import address, slot
from spark_runner.connectors.redis.keys import pattern_of
from spark_runner.connectors.templates import Piece, columns_of, pieces, unknown_column


def test_a_template_is_texts_and_columns() -> None:
    assert pieces("clicks:{page}:{{x}}") == [
        *(Piece("clicks:"), Piece("page", is_column=True), Piece(":")),
        *(Piece("{"), Piece("x"), Piece("}")),
    ]
    assert columns_of("{a b}-{c}") == ["a b", "c"]


@pytest.mark.parametrize("template", ["clicks:{page", "page}", "{}"])
def test_a_brace_without_its_counterpart_is_an_error(template: str) -> None:
    with pytest.raises(ValueError, match=r"has no counterpart; write '(\{\{|\}\})' for a brace"):
        pieces(template)


def test_a_template_names_columns_without_regard_to_case() -> None:
    assert unknown_column("{Page}:{day}", ["page", "views"]) == "day"
    assert unknown_column("{Page}", ["page"]) is None


def test_the_pattern_of_keys_has_a_star_for_each_column() -> None:
    assert pattern_of("clicks:{page}:[{day}]") == r"clicks:*:\[*\]"
    assert pattern_of("clicks:*") == "clicks:*"


@pytest.mark.parametrize(
    ("key", "number"),
    # Of the specification of Redis Cluster, and of `CLUSTER KEYSLOT` of a server.
    [("123456789", 12739), ("{user1000}.following", 3443), ("foo{}{bar}", 8363), ("foo{{bar}}zap", 4015)],
)
def test_the_slot_of_a_key_is_that_of_the_part_in_braces(key: str, number: int) -> None:
    assert slot(key.encode()) == number


def test_a_node_may_have_a_port() -> None:
    assert address("redis-1:7000", 6379) == ("redis-1", 7000)
    assert address("redis-1", 6379) == ("redis-1", 6379)
    assert address("[::1]:7000", 6379) == ("::1", 7000)
