"""Faults around each multi: it is applied, its reply is lost, and then others act."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from queues.claims.claim import Claim
from queues.consumer.consumer import Consumer
from queues.model.errors import ClaimLost
from queues.model.names import MAX_DUE
from queues.model.operations import Create, Delete, Operation, Set
from queues.queue_set import QueueSet
from queues.session import ReplyLost, Session
from queues.store.commit import commit
from tests.claims_support import lose_reply
from tests.queues_support import Open, expire
from tests.waiting import wait_until

ITEM = "item"


def claim_of(queues: QueueSet, item_id: str = ITEM) -> Claim:
    (token,) = [token for token in queues.tokens("accept") if token.id == item_id]
    claim = queues.claim("accept", "default", token)
    assert claim is not None
    return claim


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: text.replace('"claims": 0', '"claims": 1e999'), id="overflow"),
        pytest.param(
            lambda text: text.replace('"payload": {}', '"payload": {"a": ' + "[" * 5000 + "]" * 5000 + "}"),
            id="nesting",
        ),
        pytest.param(
            lambda text: text.replace('"payload": {}', '"payload": {"a": "\\ud800"}'), id="surrogate"
        ),
        pytest.param(
            lambda text: text.replace('"payload": {}', '"payload": {"a": "' + "x" * 90_000 + '"}'), id="size"
        ),
    ],
)
def test_a_poison_record_does_not_hide_the_items_behind_it(
    open_queues: Open, damage: Callable[[str], str]
) -> None:
    queues = open_queues()
    record = queues.put("accept", "poison", {})
    data = damage(record.encode().decode()).encode()
    commit(queues.session, [Set(queues.layout.record("poison"), data, 0)])
    queues.put("accept", "good", {})
    claims: list[Claim] = []
    consumer = Consumer(open_queues(), ["accept"], hand_out=claims.append, capacity=lambda _queue: 100)
    consumer.start()
    try:
        wait_until(lambda: [claim.id for claim in claims] == ["good"], 5, "the item behind it is handed out")
        wait_until(lambda: queues.tokens("dead"), 5, "the poison is in dead")
    finally:
        consumer.stop()
    found = queues.session.get(queues.layout.record("poison"))
    assert found is not None
    assert found[0] == data


def test_a_repeated_removal_of_an_orphan_lock_after_a_lost_reply_keeps_the_lock_of_another_worker(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = open_queues("mine"), open_queues("other")
    mine.put("accept", ITEM, {})
    (token,) = mine.tokens("accept")
    claim_of(mine).abandon()  # as after an unknown outcome: the lock is there without a holder
    lock = mine.layout.lock("default", ITEM)
    others = list[Claim | None]()
    lose_reply(
        monkeypatch,
        lambda operations: Delete(lock) in operations,
        lambda: others.append(other.claim("accept", "default", token)),  # another worker is faster
    )
    mine.release_orphan_locks("default", [ITEM])
    (other_claim,) = others
    assert other_claim is not None
    assert mine.session.exists(lock) is not None
    other_claim.commit(payload={"n": 1})


def test_a_repeated_removal_of_an_orphan_slot_after_a_lost_reply_keeps_the_slot_of_another_worker(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = open_queues("mine"), open_queues("other")
    mine.put("accept", ITEM, {})
    mine.pools.change("default", cap=1)
    (token,) = mine.tokens("accept")
    claim_of(mine).abandon()
    path, others = mine.layout.hold("default", 0), list[Claim | None]()
    lose_reply(
        monkeypatch,
        lambda operations: Delete(path) in operations,
        lambda: others.append(other.claim("accept", "default", token)),
    )
    mine.release_orphan_locks("default", [ITEM])
    (other_claim,) = others
    assert other_claim is not None
    assert other_claim.hold.slot == 0
    assert mine.session.exists(path) is not None


def test_a_removal_that_never_reached_the_server_is_not_taken_for_done(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    claim = claim_of(queues)
    send, sent = Session.send, list[int]()

    def lose(session: Session, operations: Sequence[Operation], timeout: float) -> list[Any]:
        if not sent:
            sent.append(1)
            expire(session)  # cut off before the request arrived, for longer than the session
            raise ReplyLost("lost by the test")
        return send(session, operations, timeout)

    monkeypatch.setattr(Session, "send", lose)
    with pytest.raises(ClaimLost):
        claim.remove()
    assert queues.read(ITEM)[0].id == ITEM


def test_an_item_that_is_taken_because_of_a_stop_is_not_taken_when_the_stop_is_gone(
    open_queues: Open,
) -> None:
    queues = open_queues()
    token = queues.put("accept", ITEM, {}, delay_ms=3_600_000).token
    stop = queues.layout.stop("default", ITEM)
    assert queues.claim("accept", "default", token, stopped=True) is None
    commit(queues.session, [Create(stop)])
    assert queues.claim("accept", "default", token, stopped=True) is not None


def test_a_due_time_beyond_what_names_can_hold_means_never(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {}, delay_ms=1_000_000 * 86_400_000)
    assert [token.due for token in queues.tokens("accept")] == [MAX_DUE]
    assert queues.read(ITEM)[0].token.due == MAX_DUE


def test_a_step_of_the_hosts_clock_does_not_move_due_times(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    before, real = queues.clock.now_ms(), time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 3600 * 1_000_000_000)
    assert abs(queues.clock.now_ms() - before) < 5_000


def test_a_connected_session_is_never_taken_for_lost_while_its_state_changes(open_queues: Open) -> None:
    session = open_queues().session
    seen = set()
    session.on_change(lambda: seen.add(session.state.value))
    expire(session)
    assert session.state.value == "connected"
    # Listeners are called on another thread, perhaps a moment after the connection.
    wait_until(lambda: "connected" in seen, 10, "the listener has seen the connection")
