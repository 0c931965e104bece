import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.model.errors import InvalidName
from queues.model.names import Layout, Token, check_id, check_pool

IDS = st.from_regex(r"\A[A-Za-z0-9._-]{1,128}\Z").filter(lambda item: item not in {".", ".."})


@given(IDS, st.integers(0, 2**44 - 1), st.integers(0, 2**52 - 1))
def test_a_token_name_is_read_back_as_the_token(item_id: str, due: int, seq: int) -> None:
    token = Token(id=item_id, due=due, seq=seq)
    assert Token.parse(token.name) == token


@given(st.lists(st.tuples(st.integers(0, 2**44 - 1), st.integers(0, 2**52 - 1)), min_size=2, max_size=8))
def test_tokens_sort_by_due_time_then_by_sequence(pairs: list[tuple[int, int]]) -> None:
    tokens = sorted(Token(id=f"z{index}", due=due, seq=seq) for index, (due, seq) in enumerate(pairs))
    assert [(token.due, token.seq) for token in tokens] == sorted(pairs)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "queue-",
        "queue-|a|1|2",
        "lock",
        "queue-|a b|00000000001|0000000000002",
        "queue-|a|00000000001|0000000000002x",
    ],
)
def test_a_foreign_node_is_no_token(name: str) -> None:
    assert Token.parse(name) is None


@pytest.mark.parametrize("item_id", ["", ".", "..", "a/b", "a|b", "a b", "é", "x" * 129, "a\n"])
def test_an_id_that_cannot_be_a_node_name_is_refused_never_rewritten(item_id: str) -> None:
    with pytest.raises(InvalidName):
        check_id(item_id)


def test_the_low_lane_of_a_pool_is_a_pool() -> None:
    assert check_pool("a.low") == "a.low"


@pytest.mark.parametrize("pool", ["", ".low", "a.low.low", "a.high", "a/b", "x" * 65])
def test_a_pool_that_cannot_be_a_node_name_is_refused(pool: str) -> None:
    with pytest.raises(InvalidName):
        check_pool(pool)


@given(IDS)
def test_a_record_lives_in_the_bucket_of_the_first_byte_of_its_crc(item_id: str) -> None:
    bucket = zlib.crc32(item_id.encode()).to_bytes(4, "big")[0]
    assert Layout("/o").record(item_id) == f"/o/jobs/{bucket:02x}/{item_id}"


@pytest.mark.parametrize("root", ["", "/", "o", "/o/"])
def test_a_root_that_is_no_path_is_refused(root: str) -> None:
    with pytest.raises(InvalidName):
        Layout(root)
