"""How far pushes are delivered, for those that go on after them."""

import json
from typing import Any

import pytest

from spark_runner.protocol.zookeeper import decode, encode
from spark_runner.push.control.budget import TaskId
from spark_runner.push.positions import (
    MAX_CHARACTERS,
    OF_ATTEMPT,
    OF_NAME,
    BadPosition,
    KeptPositions,
    check_position,
)


def passed_on(kept: KeptPositions, *, is_done: bool = False) -> KeptPositions:
    found = KeptPositions()
    found.follow(json.loads(json.dumps(kept.document(is_done=is_done))))
    return found


def report(position: Any, read: Any = None) -> dict[str, Any]:
    return {"position": position, "read_position": read}


def test_a_further_attempt_goes_on_in_each_partition_and_the_next_job_begins_anew() -> None:
    first = KeptPositions()
    first.start(OF_ATTEMPT, "dst#0").add([(TaskId(0, 1), report(10)), (TaskId(7, 2), report([3, "x"]))])
    assert passed_on(first).start(OF_ATTEMPT, "dst#0").reached == {0: 10, 7: [3, "x"]}
    assert passed_on(first).start(OF_ATTEMPT, "dst#1").reached == {}
    assert first.document(is_done=True) == {}
    third = passed_on(passed_on(first))
    assert third.start(OF_ATTEMPT, "dst#0").reached == {0: 10, 7: [3, "x"]}, (
        "also if the second began nothing"
    )


def test_the_next_job_of_the_name_goes_on_where_a_source_was_acknowledged() -> None:
    first = KeptPositions()
    first.start(OF_NAME, "numbers").add([(TaskId(0, 1), report({"offset": 5}, {"offset": 9}))])
    assert first.document(is_done=True) == {
        "name": {"numbers": {"acknowledged": {"offset": 5}, "read": {"offset": 9}}}
    }
    again = passed_on(first, is_done=True)
    assert again.start(OF_NAME, "numbers").reached == {0: {"offset": 5}}
    assert again.document(is_done=False)["name"]["numbers"]["acknowledged"] == {"offset": 5}
    again.reached("numbers", {"offset": 20})
    assert again.start(OF_NAME, "numbers").reached == {0: {"offset": 20}}, "a second push of the same run"


def test_dead_letters_of_a_job_that_fails_after_its_push_come_again() -> None:
    kept = KeptPositions()
    kept.start(OF_NAME, "numbers").add([(TaskId(0, 1), report(5, 20))])  # the sixth is dead
    kept.reached("numbers", 20)
    assert passed_on(kept).start(OF_NAME, "numbers").reached == {0: 5}
    assert passed_on(kept, is_done=True).start(OF_NAME, "numbers").reached == {0: 20}
    assert kept.start(OF_NAME, "numbers").reached == {0: 20}, "who pushes on has dealt with them"
    assert passed_on(kept).start(OF_NAME, "numbers").reached == {0: 20}


@pytest.mark.parametrize(
    "position",
    [
        "a file \udcff",
        {"\ud800": 1},
        float("nan"),
        float("inf"),
        json.loads("[" * 400 + "]" * 400),
        json.loads('{"a":' * 21 + "1" + "}" * 21),
    ],
)
def test_a_position_that_no_node_can_hold_is_left_out(position: Any) -> None:
    kept = KeptPositions()
    for kind in (OF_ATTEMPT, OF_NAME):
        kept.start(kind, "dst").add([(TaskId(0, 1), report(3)), (TaskId(0, 1), report(position, position))])
        assert kept.start(kind, "dst").reached == ({} if kind == OF_ATTEMPT else {0: 3})
    assert decode(encode(kept.document(is_done=False)))
    with pytest.raises(BadPosition):
        check_position(position)


def test_an_earlier_attempt_of_a_task_moves_nothing_back() -> None:
    kept = KeptPositions()
    made = kept.start(OF_ATTEMPT, "dst")
    made.add([(TaskId(0, 5), report(50))])
    made.add([(TaskId(0, 4), report(20)), (TaskId(0, 5), report(None))])
    made.add([(TaskId(0, 5), report("x" * MAX_CHARACTERS))])
    assert made.acknowledged() == {"0": 50}


def test_rows_that_are_others_are_forgotten() -> None:
    kept = KeptPositions()
    kept.follow({OF_ATTEMPT: {"dst": {"0": 3}}})
    kept.forget("dst")
    assert kept.start(OF_ATTEMPT, "dst").reached == {}


@pytest.mark.parametrize(
    "document",
    [
        {"attempt": 3, "name": []},
        {"attempt": {"dst": 7}, "name": {"dst": None}},
        {"attempt": {"dst": {"x": 1, "-1": 2, "9" * 20: 3}}, "name": {"dst": {"read": 4}}},
    ],
)
def test_a_document_that_is_none_lets_pushes_begin_anew(document: dict[str, Any]) -> None:
    for kind in (OF_ATTEMPT, OF_NAME):
        kept = KeptPositions()
        kept.follow(document)
        assert kept.start(kind, "dst").reached == {}
