import json
from collections.abc import Sequence
from typing import Any

import pytest

from queues.admin import items
from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.dispatch.handler_pool import Action, Done, HandlerPool, Retries
from queues.model.errors import CorruptRecord, ItemNotFound, NotClaimed, QueueError, UnknownQueue
from queues.model.names import Token
from queues.model.operations import Delete, Operation, Set
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.commit import commit
from tests.claims_support import Collector, claim_of, locks
from tests.queues_support import Open, expire, places_of
from tests.waiting import wait_until

ITEM = "item"
GARBAGE = b"\x00\xffnot json"


def write_record(queues: QueueSet, data: bytes, item_id: str = ITEM) -> None:
    commit(queues.session, [Set(queues.layout.record(item_id), data, -1)])


def put_corrupt(queues: QueueSet, item_id: str = ITEM, *, queue: str = "accept") -> tuple[Token, bytes]:
    """An item whose record is damaged; its token, and the bytes that would repair it."""
    record = queues.put(queue, item_id, {"n": 1})
    write_record(queues, GARBAGE, item_id)
    return record.token, record.encode()


def note_of(queues: QueueSet, token: Token) -> dict[str, Any]:
    """The data of the token of a dead item."""
    found = queues.session.get(queues.layout.token("dead", "default", token))
    assert found is not None
    note: dict[str, Any] = json.loads(found[0])
    return note


def put_dead_corrupt(queues: QueueSet, item_id: str = ITEM, *, queue: str = "accept") -> tuple[Token, bytes]:
    token, repaired = put_corrupt(queues, item_id, queue=queue)
    assert queues.move_to_dead(queue, "default", token, CorruptRecord(item_id, "test"))
    return token, repaired


def kill(queues: QueueSet, item_id: str = ITEM, *, queue: str = "accept") -> None:
    """Let the handlers of an item fail until it is dead."""

    def fail(_claim: Claim) -> Action:
        raise ValueError("no such file")

    queues.put(queue, item_id, {"n": 1})
    with HandlerPool(queues, [queue], fail, retries=Retries(attempts=1)):
        wait_until(lambda: places_of(queues, item_id) == ["dead"], 10, "it is dead")


# ---------------------------------------------------------------------- move to dead
def test_a_token_without_a_record_goes_to_dead_with_the_reason(open_queues: Open) -> None:
    queues = open_queues()
    token = queues.put("accept", ITEM, {}).token
    commit(queues.session, [Delete(queues.layout.record(ITEM))])
    queues.put("accept", "fine", {})
    with Collector(open_queues()) as seen:
        seen.wait_for("fine")
        wait_until(lambda: places_of(queues, ITEM) == ["dead"], 10, "it is dead")
    note = note_of(queues, token)
    assert note["queue"] == "accept"
    assert "no item has the id" in note["reason"]
    assert note["since"].endswith("Z")


def test_a_corrupt_record_keeps_its_bytes_and_its_note_says_where_it_stood(open_queues: Open) -> None:
    queues = open_queues()
    token, _ = put_dead_corrupt(queues, queue="running")
    found = queues.session.get(queues.layout.record(ITEM))
    assert found is not None
    assert found[0] == GARBAGE
    assert note_of(queues, token)["queue"] == "running"
    assert locks(queues) == []


def test_an_item_whose_record_is_repaired_just_before_the_move_stays_out_of_dead(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, operator = open_queues(), open_queues()
    token, repaired = put_corrupt(queues)

    def mend_first(session: Session, operations: Sequence[Operation]) -> list[Any]:
        write_record(operator, repaired)
        return commit(session, operations)

    monkeypatch.setattr(items, "commit", mend_first)
    assert not queues.move_to_dead("accept", "default", token, CorruptRecord(ITEM, "test"))
    assert places_of(queues, ITEM) == ["accept"]


def test_an_item_whose_record_was_repaired_after_the_failed_read_stays_out_of_dead(open_queues: Open) -> None:
    queues = open_queues()
    token, repaired = put_corrupt(queues)
    with pytest.raises(CorruptRecord) as caught:
        queues.claim("accept", "default", token)
    write_record(queues, repaired)
    assert not queues.move_to_dead("accept", "default", token, caught.value)
    assert places_of(queues, ITEM) == ["accept"]


def test_an_item_that_has_moved_does_not_become_a_dead_letter(open_queues: Open) -> None:
    queues = open_queues()
    token = queues.put("accept", ITEM, {}).token
    queues.move(ITEM, "running")
    write_record(queues, GARBAGE)
    assert not queues.move_to_dead("accept", "default", token, CorruptRecord(ITEM, "test"))
    assert places_of(queues, ITEM) == ["running"]


def test_two_clients_move_the_same_item_to_dead_once(open_queues: Open) -> None:
    first, second = open_queues(), open_queues()
    token, _ = put_corrupt(first)
    error = CorruptRecord(ITEM, "test")
    assert first.move_to_dead("accept", "default", token, error)
    assert not second.move_to_dead("accept", "default", token, error)
    assert places_of(first, ITEM) == ["dead"]


def test_an_item_that_kills_those_who_handle_it_goes_to_dead(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    for _ in range(3):  # three workers claim it and disappear
        victim = open_queues("victim")
        claim_of(victim, ITEM)
        expire(victim.session)

    def survive(_claim: Claim) -> Action:
        raise AssertionError("it was handed to a handler once more")

    with HandlerPool(queues, ["accept"], survive, retries=Retries(max_claims=3)):
        wait_until(lambda: places_of(queues, ITEM) == ["dead"], 10, "it is dead")
    error = queues.get(ITEM).error
    assert error is not None
    assert "claimed 3 times" in error["reason"]


# ---------------------------------------------------------------------- replay
def test_a_dead_item_goes_back_to_where_it_came_from_and_is_counted_anew(open_queues: Open) -> None:
    queues = open_queues()
    kill(queues, queue="running")
    before = queues.clock.now_ms()
    assert queues.get(ITEM).failures == 1
    assert queues.replay() == {ITEM: None}
    record = queues.get(ITEM)
    assert (record.queue, record.failures, record.claims, record.error) == ("running", 0, 0, None)
    assert record.payload == {"n": 1}
    assert before <= record.token.due <= queues.clock.now_ms()
    assert places_of(queues, ITEM) == ["running"]
    assert locks(queues) == []


def test_replayed_items_are_handled(open_queues: Open) -> None:
    queues = open_queues()
    kill(queues)
    handled: list[str] = []

    def handle(claim: Claim) -> Action:
        handled.append(claim.id)
        return Done()

    with HandlerPool(queues, ["accept"], handle):
        queues.replay()
        wait_until(lambda: not queues.contains(ITEM), 10, "it is done")
    assert handled == [ITEM]


def test_only_the_items_that_were_asked_for_are_replayed(open_queues: Open) -> None:
    queues = open_queues()
    for item_id in ("a", "b", "c"):
        kill(queues, item_id)
    assert queues.replay(["a", "c"]) == {"a": None, "c": None}
    assert [places_of(queues, item_id) for item_id in ("a", "b", "c")] == [["accept"], ["dead"], ["accept"]]


def test_an_item_that_was_asked_for_and_is_not_dead_is_named(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "alive", {})
    outcomes = queues.replay(["alive", "absent"])
    assert {item_id: type(error) for item_id, error in outcomes.items()} == {
        "alive": ItemNotFound,
        "absent": ItemNotFound,
    }
    assert places_of(queues, "alive") == ["accept"]


def test_a_dead_item_can_be_replayed_into_another_queue(open_queues: Open) -> None:
    queues = open_queues()
    kill(queues)
    assert queues.replay(queue="finish") == {ITEM: None}
    assert places_of(queues, ITEM) == ["finish"]


def test_a_replay_into_a_queue_that_does_not_exist_leaves_the_items_free(open_queues: Open) -> None:
    queues = open_queues()
    kill(queues)
    outcomes: dict[str, QueueError | None] = {}
    try:
        outcomes = queues.replay(queue="acept")
    except UnknownQueue as error:
        outcomes = {ITEM: error}
    assert isinstance(outcomes[ITEM], UnknownQueue)
    assert places_of(queues, ITEM) == ["dead"]
    assert locks(queues) == []
    assert queues.replay() == {ITEM: None}


def test_a_corrupt_item_is_replayed_only_after_its_repair(open_queues: Open) -> None:
    queues = open_queues()
    _, repaired = put_dead_corrupt(queues, queue="running")
    outcome = queues.replay()[ITEM]
    assert isinstance(outcome, CorruptRecord)
    assert places_of(queues, ITEM) == ["dead"]
    write_record(queues, repaired)
    assert queues.replay() == {ITEM: None}
    record = queues.get(ITEM)
    assert (record.queue, record.payload) == ("running", {"n": 1})
    assert places_of(queues, ITEM) == ["running"]
    claim_of(queues, ITEM, queue="running").commit(queue="finish", release=True)


def test_one_item_that_cannot_be_replayed_does_not_hold_up_the_others(open_queues: Open) -> None:
    queues = open_queues()
    put_dead_corrupt(queues, "a-corrupt")
    kill(queues, "b-fine")
    outcomes = queues.replay()
    assert isinstance(outcomes["a-corrupt"], CorruptRecord)
    assert outcomes["b-fine"] is None


def test_a_dead_item_that_is_held_is_left_to_its_holder(open_queues: Open) -> None:
    queues, operator = open_queues(), open_queues()
    kill(queues)
    claim = claim_of(operator, ITEM, queue="dead")
    assert isinstance(queues.replay()[ITEM], NotClaimed)
    claim.remove()
    assert queues.replay() == {}


def test_a_dead_item_can_be_removed(open_queues: Open) -> None:
    queues = open_queues()
    kill(queues)
    queues.remove(ITEM)
    assert not queues.contains(ITEM)
    assert queues.count("dead") == 0


def test_a_dead_item_that_is_requeued_there_keeps_the_reason_and_where_it_came_from(
    open_queues: Open,
) -> None:
    queues = open_queues()
    kill(queues, queue="running")
    before = queues.get(ITEM)
    after = queues.requeue(ITEM, delay_ms=60_000)
    assert places_of(queues, ITEM) == ["dead"]
    assert (after.error, after.failures) == (before.error, 1)
    assert queues.replay() == {ITEM: None}
    assert places_of(queues, ITEM) == ["running"]


def test_dead_items_are_replayed_though_their_pool_is_at_its_cap(open_queues: Open) -> None:
    queues = open_queues()
    kill(queues)
    queues.put("accept", "held", {})
    queues.pools.change("default", cap=1)
    claim_of(queues, "held")
    assert queues.replay() == {ITEM: None}


def test_a_dead_item_is_claimed_only_on_request(open_queues: Open) -> None:
    queues = open_queues()
    kill(queues)
    with Collector(open_queues(), "accept", "running") as seen:
        queues.put("accept", "sign", {})
        seen.wait_for("sign")
    (outcome,) = queues.claimer.claim([Candidate("accept", "default", queues.get(ITEM).token)])
    assert isinstance(outcome, NotClaimed)
