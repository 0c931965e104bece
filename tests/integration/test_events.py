import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from queues.claims.claim import Claim
from queues.dispatch.handler_pool import Action, HandlerPool, Retries
from queues.model.errors import ClaimLost, IdTaken
from queues.model.events import Event, EventKind
from queues.model.operations import Set
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.store.commit import commit
from tests.claims_support import Collector, claim_of
from tests.queues_support import Open, expire, places_of
from tests.waiting import wait_until

ITEM = "item"


class Heard:
    """Collects events of items, or those of the session."""

    def __init__(self, queues: QueueSet, *, session: bool = False) -> None:
        self.events: list[Event] = []
        self._session = session
        queues.listen(self._note)

    def _note(self, event: Event) -> None:
        # The session reports its changes at any time, between any two other events.
        if (event.kind is EventKind.SESSION) is self._session:
            self.events.append(event)

    def kinds(self) -> list[EventKind]:
        return [event.kind for event in self.events]

    def only(self, kind: EventKind) -> Event:
        (event,) = [event for event in self.events if event.kind is kind]
        return event


def test_a_put_is_reported_with_the_item_and_its_duration(open_queues: Open) -> None:
    queues = open_queues()
    heard = Heard(queues)
    record = queues.put("accept", ITEM, {}, pool="team")
    (event,) = heard.events
    assert (event.kind, event.id, event.queue, event.pool) == (EventKind.PUT, ITEM, "accept", "team")
    assert (event.to_queue, event.run_key) == ("accept", record.run_key)
    assert 0 < event.seconds < 10


def test_each_of_many_puts_is_reported_and_no_refused_one(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "taken", {})
    heard = Heard(queues)
    with pytest.raises(IdTaken):
        queues.put("accept", "taken", {})
    queues.put("accept", "taken", {}, existing=True)
    assert heard.events == []
    queues.put_many("accept", [NewItem({}, f"i{number}") for number in range(3)])
    queues.put_background("accept", NewItem({}, "later")).result(10)
    assert [(event.kind, event.id) for event in heard.events] == [
        (EventKind.PUT, item_id) for item_id in ("i0", "i1", "i2", "later")
    ]


@pytest.mark.parametrize(
    ("act", "kind", "to_queue", "released"),
    [
        (lambda claim: claim.commit(payload={"n": 1}), EventKind.COMMIT, "accept", False),
        (lambda claim: claim.release(), EventKind.COMMIT, "accept", True),
        (lambda claim: claim.commit(due=5, release=True), EventKind.REQUEUE, "accept", True),
        (lambda claim: claim.commit(queue="running"), EventKind.MOVE, "running", False),
        (lambda claim: claim.commit(pool="other", release=True), EventKind.MOVE, "accept", True),
        (lambda claim: claim.commit(queue="dead", release=True), EventKind.DEAD, "dead", True),
        (lambda claim: claim.remove(), EventKind.REMOVE, "accept", True),
    ],
    ids=["commit", "release", "requeue", "move", "pool", "dead", "remove"],
)
def test_a_transition_is_reported_with_the_old_and_the_new_queue(
    open_queues: Open, act: Callable[[Claim], Any], kind: EventKind, to_queue: str, *, released: bool
) -> None:
    queues = open_queues()
    run_key = queues.put("accept", ITEM, {}).run_key
    heard = Heard(queues)
    claim = claim_of(queues, ITEM)
    claimed = heard.only(EventKind.CLAIM)
    assert (claimed.id, claimed.queue, claimed.version, claimed.run_key) == (ITEM, "accept", 1, run_key)
    assert claimed.seconds > 0
    act(claim)
    event = heard.events[-1]
    assert len(heard.events) == 2
    assert (event.kind, event.id, event.queue, event.pool) == (kind, ITEM, "accept", "default")
    assert (event.to_queue, event.released, event.run_key) == (to_queue, released, run_key)
    assert (event.to_pool, event.due) == (claim.record.pool, claim.record.token.due)
    assert event.seconds > 0
    if queues.contains(ITEM):
        record, version = queues.read(ITEM)
        assert (event.version, event.nonce) == (version, record.nonce)  # the fence


def test_the_transitions_of_handlers_are_reported_too(open_queues: Open) -> None:
    queues, worker = open_queues(), open_queues()
    heard = Heard(worker)

    def fail(_claim: Claim) -> Action:
        raise ValueError("no such file")

    queues.put("accept", ITEM, {})
    with HandlerPool(worker, ["accept"], fail, retries=Retries(attempts=2, delay_ms=0)):
        wait_until(lambda: places_of(queues, ITEM) == ["dead"], 10, "it is dead")
        wait_until(lambda: EventKind.DEAD in heard.kinds(), 10, "it is reported")
    assert heard.kinds() == [EventKind.CLAIM, EventKind.REQUEUE, EventKind.CLAIM, EventKind.DEAD]
    dead = heard.only(EventKind.DEAD)
    assert (dead.id, dead.queue, dead.to_queue) == (ITEM, "accept", "dead")
    assert "no such file" in dead.detail


def test_a_lost_claim_is_reported_once_with_the_reason(open_queues: Open) -> None:
    queues, operator = open_queues(), open_queues()
    queues.put("accept", ITEM, {})
    claim = claim_of(queues, ITEM)
    heard = Heard(queues)
    operator.remove(ITEM, force=True)
    for _ in range(2):
        with pytest.raises(ClaimLost):
            claim.commit(payload={})
    event = heard.only(EventKind.LOST)
    assert (event.id, event.queue, event.version) == (ITEM, "accept", 1)
    assert event.detail
    assert event.same_session


def test_a_claim_that_was_lost_with_its_session_is_reported_as_such(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    claim = claim_of(queues, ITEM)
    heard = Heard(queues)
    expire(queues.session)
    with pytest.raises(ClaimLost):
        claim.check()
    assert not heard.only(EventKind.LOST).same_session


def test_a_refused_change_is_reported_only_as_a_lost_claim(open_queues: Open) -> None:
    queues, other = open_queues(), open_queues()
    queues.put("accept", ITEM, {})
    claim_of(other, ITEM)
    heard = Heard(queues)
    (token,) = queues.tokens("accept")
    assert queues.claim("accept", "default", token) is None
    assert heard.events == []


def test_the_move_of_a_corrupt_item_to_dead_is_reported_with_its_id_and_queue(open_queues: Open) -> None:
    queues, worker = open_queues(), open_queues()
    heard = Heard(worker)
    queues.put("accept", ITEM, {}, pool="team")
    commit(queues.session, [Set(queues.layout.record(ITEM), b"garbage", -1)])
    with Collector(worker, pools=["team"]):
        wait_until(lambda: EventKind.DEAD in heard.kinds(), 10, "it is reported")
    event = heard.only(EventKind.DEAD)
    assert (event.id, event.queue, event.to_queue, event.pool) == (ITEM, "accept", "dead", "team")
    assert "cannot be read" in event.detail


def test_acts_of_an_operator_are_reported_in_the_operators_queue_set(open_queues: Open) -> None:
    queues = open_queues()
    heard = Heard(queues)
    queues.put("accept", ITEM, {})
    queues.requeue(ITEM)
    queues.move(ITEM, "running")
    queues.remove(ITEM)
    steps = [kind for kind in heard.kinds() if kind is not EventKind.CLAIM]
    assert steps == [EventKind.PUT, EventKind.REQUEUE, EventKind.MOVE, EventKind.REMOVE]


def test_changes_of_the_session_are_reported(open_queues: Open) -> None:
    queues = open_queues()
    heard = Heard(queues, session=True)
    expire(queues.session)

    # It may be lost in several steps: suspended, lost.
    wait_until(lambda: "connected" in [event.detail for event in heard.events], 10, "it is back")
    assert heard.events[0].detail != "connected"
    assert heard.events[-1].detail == "connected"


def test_a_listener_that_raises_breaks_nothing_and_keeps_no_other_from_hearing(
    open_queues: Open, caplog: pytest.LogCaptureFixture
) -> None:
    queues = open_queues()

    def break_down(event: Event) -> None:
        raise RuntimeError(f"a bug at {event.kind}")

    queues.listen(break_down)
    heard = Heard(queues)
    with caplog.at_level(logging.ERROR, logger="queues.model.events"):
        queues.put("accept", ITEM, {})
        claim_of(queues, ITEM).commit(queue="running", release=True)
        expire(queues.session)
    queues.remove(ITEM)
    assert {EventKind.PUT, EventKind.CLAIM, EventKind.MOVE, EventKind.REMOVE} <= set(heard.kinds())
    assert "a bug at put" in caplog.text


def test_a_listener_may_use_the_queues(open_queues: Open) -> None:
    queues = open_queues()
    found: list[bool] = []
    queues.listen(lambda event: found.append(queues.contains(event.id)))
    queues.put("accept", ITEM, {})
    assert found == [True]


def test_a_listener_that_is_slow_does_not_stop_the_connection(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    heard, go_on = threading.Event(), threading.Event()

    def dawdle(event: Event) -> None:
        if event.kind is EventKind.SESSION:
            heard.set()
            go_on.wait(15)

    queues.listen(dawdle)
    waiter = threading.Thread(target=expire, args=(queues.session,))
    waiter.start()
    try:
        assert heard.wait(10)
        waiter.join(5)
        assert not waiter.is_alive(), "the session is not back"
        assert queues.contains(ITEM)
    finally:
        go_on.set()
        waiter.join(30)
