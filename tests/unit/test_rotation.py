from collections import Counter, deque
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from queues.consumer.rotation import Rotation

Take = Callable[[str, bool], str | None]

WEIGHTS = st.lists(st.integers(1, 20), min_size=1, max_size=6)
PLENTY = 10_000


def taker(main: dict[str, int], low: dict[str, int] | None = None) -> Take:
    """Returns the name of the pool, or of its low lane, once per item there."""
    left = {False: dict(main), True: dict(low or {})}

    def take(pool: str, is_low: bool) -> str | None:
        if left[is_low].get(pool, 0) <= 0:
            return None
        left[is_low][pool] -= 1
        return f"{pool}.low" if is_low else pool

    return take


def rotation_of(weights: dict[str, int], low_share: float = 0.0) -> Rotation[str]:
    rotation: Rotation[str] = Rotation()
    for pool, weight in weights.items():
        rotation.arrange(pool, weight, low_share)
    return rotation


def test_nothing_is_taken_where_there_is_nothing() -> None:
    assert rotation_of({}).collect(taker({}), 10) == []
    assert rotation_of({"a": 1, "b": 2}).collect(taker({}), 10) == []


def test_no_more_is_taken_than_asked_for() -> None:
    rotation = rotation_of({"a": 1, "b": 1})
    assert len(rotation.collect(taker({"a": 9, "b": 9}), 5)) == 5
    assert rotation.collect(taker({"a": 9, "b": 9}), 0) == []


def test_turns_are_evenly_spread_as_nginx_spreads_them() -> None:
    order = rotation_of({"a": 5, "b": 1, "c": 1}).collect(taker(dict.fromkeys("abc", PLENTY)), 7)
    assert "".join(order) == "aabacaa"  # the example of nginx's commit message


@given(WEIGHTS, st.integers(1, 5))
def test_each_pool_gets_turns_in_proportion_to_its_weight(weights: list[int], rounds: int) -> None:
    pools = {f"p{index}": weight for index, weight in enumerate(weights)}
    taken = rotation_of(pools).collect(taker(dict.fromkeys(pools, PLENTY)), rounds * sum(weights))
    assert Counter(taken) == {pool: rounds * weight for pool, weight in pools.items()}


@given(WEIGHTS, st.integers(1, 30))
def test_the_proportion_holds_over_many_short_rounds(weights: list[int], limit: int) -> None:
    pools = {f"p{index}": weight for index, weight in enumerate(weights)}
    rotation, take = rotation_of(pools), taker(dict.fromkeys(pools, PLENTY))
    total = sum(weights)
    taken: deque[str] = deque()
    while len(taken) < 2 * total:
        taken.extend(rotation.collect(take, limit))
    for pool, weight in pools.items():
        assert Counter(list(taken)[: 2 * total])[pool] == 2 * weight


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), WEIGHTS)
def test_every_item_is_taken_and_no_pool_starves(there: list[int], weights: list[int]) -> None:
    pools = {f"p{index}": weight for index, weight in enumerate(weights)}
    have = dict(zip(pools, there, strict=False))
    taken = rotation_of(pools).collect(taker(have), PLENTY)
    assert Counter(taken) == {pool: count for pool, count in have.items() if count}


def test_a_light_pool_is_served_beside_the_heaviest() -> None:
    order = rotation_of({"heavy": 1000, "light": 1}).collect(taker({"heavy": PLENTY, "light": 5}), 1001)
    assert order.count("light") == 1


def test_a_pool_that_has_nothing_saves_up_no_turns() -> None:
    rotation = rotation_of({"a": 1, "b": 1})
    rotation.collect(taker({"a": 100}), 100)
    assert rotation.collect(taker({"a": 9, "b": 9}), 8).count("b") == 4


def test_a_weight_that_changes_counts_from_then_on() -> None:
    rotation, take = rotation_of({"a": 1, "b": 1}), taker({"a": PLENTY, "b": PLENTY})
    assert rotation.collect(take, 10).count("a") == 5
    rotation.arrange("a", 4, 0.0)
    assert rotation.collect(take, 10).count("a") == 8


def test_a_pool_that_was_dropped_gets_no_turn() -> None:
    rotation = rotation_of({"a": 1, "b": 1})
    rotation.keep({"b"})
    assert rotation.collect(taker({"a": 5, "b": 5}), 10) == ["b"] * 5


def test_the_low_lane_gets_the_turns_that_its_pool_does_not_use() -> None:
    order = rotation_of({"a": 1, "b": 1}).collect(taker({"a": 1, "b": 3}, {"a": 2}), 10)
    assert Counter(order) == {"a": 1, "a.low": 2, "b": 3}
    assert order[:6].count("b") == 3  # it took none of the turns of the other pool


@given(st.floats(0, 1), st.integers(10, 200))
def test_the_low_lane_gets_at_least_its_share(share: float, turns: int) -> None:
    taken = rotation_of({"a": 1}, share).collect(taker({"a": PLENTY}, {"a": PLENTY}), turns)
    assert int(share * turns) - 1 <= taken.count("a.low") <= share * turns + 1


def test_turns_of_the_low_lane_beyond_its_share_are_not_deducted_later() -> None:
    rotation = rotation_of({"a": 1}, 0.5)
    assert rotation.collect(taker({}, {"a": 100}), 50) == ["a.low"] * 50
    assert rotation.collect(taker({"a": 100}, {"a": 100}), 20).count("a.low") >= 9


def test_a_low_lane_without_a_share_waits_until_its_pool_has_nothing() -> None:
    order = rotation_of({"a": 1}, 0.0).collect(taker({"a": 5}, {"a": 5}), 10)
    assert order == ["a"] * 5 + ["a.low"] * 5


def test_a_share_that_the_low_lane_does_not_use_goes_to_its_pool() -> None:
    assert rotation_of({"a": 1}, 0.9).collect(taker({"a": 10}), 20) == ["a"] * 10
