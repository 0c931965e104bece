"""How far a source is delivered, whatever the order of deliveries."""

from hypothesis import given
from hypothesis import strategies as st

from spark_runner.push.acknowledgements import Acknowledgements
from spark_runner.push.batch import Batch, DeadLetter, Portion, Priority, Record


def batch(portion: Portion, records: int = 1, *, is_dead: bool = False) -> Batch:
    made = Batch("a", Priority.MEDIUM, created=0.0)
    made.extend([Record(None, 1)] * records, list(range(records)), portion)
    made.dead = [DeadLetter(made.records[0], 0, ("no",))] if is_dead else []
    return made


def open_portions(acknowledgements: Acknowledgements) -> int:
    count, portion = 0, acknowledgements._first  # noqa: SLF001 - what takes memory
    while portion is not None:
        count, portion = count + 1, portion.next
    return count


@given(sizes=st.lists(st.integers(0, 3), max_size=12), data=st.data())
def test_the_position_is_that_before_the_first_record_that_is_not_settled(
    sizes: list[int], data: st.DataObject
) -> None:
    found = Acknowledgements("start")
    left, dead = dict[int, int](), set[int]()
    portions = dict[int, Portion]()
    for number, size in enumerate(sizes):
        portions[number], left[number] = found.add(size, number), size
        for _ in range(data.draw(st.integers(0, 2))):
            if waiting := [each for each, count in left.items() if count]:
                chosen = data.draw(st.sampled_from(waiting))
                is_dead = data.draw(st.integers(0, 4)) == 0
                found.settle(batch(portions[chosen], is_dead=is_dead))
                left[chosen] -= 1
                dead |= {chosen} if is_dead else set()
        first = next((each for each, count in left.items() if count), len(left))
        clean = next((each for each, count in left.items() if count or each in dead), len(left))
        assert found.delivered == (clean - 1 if clean else "start")
        assert found.position == (first - 1 if first else "start")
        assert found.acknowledged == sum(sizes[:first])
        assert found.settled == sum(sizes[: len(left)]) - sum(left.values())
        assert open_portions(found) <= sum(1 for count in left.values() if count)
    for number, count in left.items():
        if count:
            found.settle(batch(portions[number], count))
    assert found.position == (len(sizes) - 1 if sizes else "start")
    assert (found.read, found.settled, found.acknowledged) == (sum(sizes),) * 3
    assert open_portions(found) == 0


def test_records_that_are_settled_behind_one_that_waits_take_no_memory() -> None:
    found = Acknowledgements()
    found.add(1, "waits")
    for number in range(1000):
        found.settle(batch(found.add(1, number)))
        found.add(0, number)
    assert open_portions(found) == 1
    assert (found.position, found.settled, found.acknowledged) == (None, 1000, 0)
