import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from queues.model.errors import (
    IdTaken,
    InvalidName,
    InvalidPayload,
    OutcomeUnknown,
    PutsFailed,
    QueueError,
    QueueFull,
    SessionLost,
    TooLarge,
    UnknownQueue,
)
from queues.model.names import Layout
from queues.model.operations import Create, Delete, Operation
from queues.model.record import NewItem, Record
from queues.producer.producer import Background
from queues.queue_set import QueueSet
from queues.session import Posted, Session, SessionSettings
from queues.store.commit import MAX_MULTI_BYTES, commit
from tests.claims_support import Collector, claim_of, lose_reply, names_node
from tests.queues_support import QUEUES, Open, places_of
from tests.waiting import wait_until

ITEM = "item"


def items(*ids: str) -> list[NewItem]:
    return [NewItem({"id": item_id}, item_id) for item_id in ids]


def raise_a_bug(_path: str) -> Iterable[Operation]:
    raise RuntimeError("a bug of the caller")


# ---------------------------------------------------------------------- one item
def test_an_item_without_an_id_gets_a_uuid(open_queues: Open) -> None:
    queues = open_queues()
    put = queues.put("accept", None, {"n": 1})
    assert uuid.UUID(put.id).version == 4
    assert queues.get(put.id).payload == {"n": 1}
    assert queues.put_many("accept", [NewItem(), NewItem()])[0].id != put.id


def test_a_delay_counts_from_now_and_a_due_time_is_kept_as_it_is(open_queues: Open) -> None:
    queues = open_queues()
    before = queues.clock.now_ms()
    delayed = queues.put("accept", "delayed", {}, delay_ms=60_000)
    assert before + 60_000 <= delayed.token.due <= queues.clock.now_ms() + 60_000
    assert queues.put("accept", "absolute", {}, due_ms=1_234_567).token.due == 1_234_567
    assert [token.id for token in queues.tokens("accept")] == ["absolute", "delayed"]


def test_a_queue_that_does_not_exist_is_refused_and_nothing_is_put(open_queues: Open) -> None:
    queues = open_queues()
    with pytest.raises(UnknownQueue, match="there are accept, running"):
        queues.put("acept", ITEM, {})
    with pytest.raises(UnknownQueue):
        queues.put_background("acept", NewItem())
    assert not queues.contains(ITEM)


def test_a_taken_id_returns_the_existing_item_when_asked_to(open_queues: Open) -> None:
    queues = open_queues()
    first = queues.put("accept", ITEM, {"n": 1})
    assert queues.put("running", ITEM, {"n": 2}, existing=True) == first
    assert [*queues.put_many("accept", items(ITEM, "new"), existing=True)] == [first, queues.get("new")]
    assert places_of(queues, ITEM) == ["accept"]


def test_a_client_that_only_puts_leaves_nothing_behind(open_queues: Open) -> None:
    queues = open_queues()
    queues.put_many("accept", items("a", "b"))
    assert queues.session.children(queues.layout.receipts)
    assert queues.close()
    assert queues.session.children(queues.layout.receipts) == []


def test_a_queue_set_that_made_its_session_ends_it(zookeeper_hosts: str, zookeeper_root: str) -> None:
    with QueueSet.connect(zookeeper_hosts, zookeeper_root, QUEUES) as queues:
        queues.put("accept", ITEM, {})
    with pytest.raises(SessionLost):
        queues.get(ITEM)


# ---------------------------------------------------------------------- many items
def test_many_items_keep_their_order_and_travel_in_few_requests(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    queues.put("accept", "before", {})
    ids = [f"i{number}" for number in range(500)]
    for item_id in ids:
        queues.root.ensure_bucket(item_id)  # as after some thousand puts
    post, sent = Session.post, list[int]()

    def count(session: Session, operations: Sequence[Operation]) -> Posted:
        sent.append(len(operations))
        return post(session, operations)

    monkeypatch.setattr(Session, "post", count)
    put = queues.put_many("running", items(*ids))
    assert len(sent) < 10
    assert [record.id for record in put] == ids
    assert [token.id for token in queues.tokens("running")] == ids
    assert queues.get("i17") == put[17]


def test_a_refused_item_is_named_with_its_reason_and_the_others_are_put(open_queues: Open) -> None:
    queues = open_queues()
    first = queues.put("accept", "taken", {"n": 1})
    with pytest.raises(PutsFailed, match="6 of 9 items") as caught:
        queues.put_many(
            "accept",
            [
                *items("a", "taken", "b", "b", "bad/id"),
                NewItem({"text": "x" * 70_000}, "large"),
                NewItem({"when": object()}, "payload"),
                NewItem({}, "multi", riders=lambda path: [Create(f"{path}/x", b"x" * MAX_MULTI_BYTES)]),
                *items("c"),
            ],
        )
    assert {item_id: type(error) for item_id, error in caught.value.errors.items()} == {
        "taken": IdTaken,
        "b": IdTaken,  # the second of two
        "bad/id": InvalidName,
        "large": TooLarge,
        "payload": InvalidPayload,
        "multi": TooLarge,
    }
    assert sorted(token.id for token in queues.tokens("accept")) == ["a", "b", "c", "taken"]
    assert queues.get("taken") == first


def test_an_empty_put_is_no_error(open_queues: Open) -> None:
    assert open_queues().put_many("accept", []) == []


# ---------------------------------------------------------------------- limit
def test_a_full_pool_refuses_at_once_and_says_what_to_do(open_queues: Open) -> None:
    queues = open_queues()
    queues.pools.change("default", bound=3)
    for number in range(3):
        queues.put("accept", f"i{number}", {})
    started = time.monotonic()
    with pytest.raises(QueueFull, match="raise the bound") as caught:
        queues.put("accept", ITEM, {})
    assert time.monotonic() - started < 2  # no wait was requested
    assert (caught.value.queue, caught.value.pool, caught.value.bound) == ("accept", "default", 3)
    assert not queues.contains(ITEM)
    queues.put("running", ITEM, {})  # each queue has its own limit


def test_a_put_waits_for_capacity_up_to_its_limit(open_queues: Open) -> None:
    queues, other = open_queues(), open_queues()
    queues.pools.change("default", bound=1)
    queues.put("accept", "first", {})
    with pytest.raises(QueueFull):
        queues.put("accept", ITEM, {}, max_wait=0.3)
    put: list[Record] = []
    thread = threading.Thread(target=lambda: put.append(queues.put("accept", ITEM, {}, max_wait=20)))
    thread.start()
    other.remove("first")
    thread.join()
    assert [record.id for record in put] == [ITEM]


def test_many_items_are_put_up_to_the_bound_and_not_beyond(open_queues: Open) -> None:
    queues = open_queues()
    queues.pools.change("default", bound=5)
    with pytest.raises(PutsFailed) as caught:
        queues.put_many("accept", items(*(f"i{number:02}" for number in range(20))))
    assert {type(error) for error in caught.value.errors.values()} == {QueueFull}
    assert [token.id for token in queues.tokens("accept")] == [f"i{number:02}" for number in range(5)]


def test_many_items_wait_for_capacity_while_the_earlier_ones_are_already_there(open_queues: Open) -> None:
    queues = open_queues()
    queues.pools.change("default", bound=5)
    with Collector(open_queues(), then=lambda claim: claim.remove()) as seen:
        ids = [f"i{number:02}" for number in range(12)]
        put = queues.put_many("accept", items(*ids), max_wait=20)
        seen.wait_for(*ids)
    assert [record.id for record in put] == ids


def test_the_bound_does_not_bind_moves(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool("small")
    queues.pools.change("small", bound=1)
    queues.put("running", "full", {}, pool="small")
    for item_id in ("held", "free"):
        queues.put("accept", item_id, {}, pool="default")
    claim_of(queues, "held").commit(queue="running", pool="small", release=True)
    queues.move("free", "running", pool="small")
    assert queues.count("running", "small") == 3
    with pytest.raises(QueueFull):
        queues.put("running", ITEM, {}, pool="small")


def test_a_raised_limit_adds_capacity_at_once(open_queues: Open) -> None:
    queues = open_queues()
    queues.pools.change("default", bound=1)
    queues.put("accept", "first", {})
    with pytest.raises(QueueFull):
        queues.put("accept", ITEM, {})
    open_queues().pools.change("default", bound=2)
    put = queues.put("accept", ITEM, {}, max_wait=10)  # as soon as the watch has fired
    assert put.id == ITEM


# ---------------------------------------------------------------------- lost replies
PUTS: list[Any] = [
    pytest.param(lambda queues: queues.put("accept", ITEM, {}), id="put"),
    pytest.param(lambda queues: queues.put_many("accept", items(ITEM))[0], id="put_many"),
    pytest.param(lambda queues: queues.put_background("accept", items(ITEM)[0]).result(20), id="background"),
]


@pytest.mark.parametrize("put", PUTS)
def test_a_put_whose_reply_was_lost_is_not_done_again_when_its_item_has_gone_meanwhile(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, put: Callable[[QueueSet], Record]
) -> None:
    queues, consumer = open_queues(), open_queues()
    queues.put("accept", "before", {})  # receipt and folders are there
    lost = lose_reply(
        monkeypatch, names_node(f"/{ITEM}"), meanwhile=lambda: claim_of(consumer, ITEM).remove()
    )
    assert put(queues).id == ITEM
    assert len(lost) == 1
    assert places_of(queues, ITEM) == []
    assert not queues.contains(ITEM)
    queues.put("accept", "after", {})  # the receipt has the expected version


@pytest.mark.parametrize("put", PUTS)
def test_a_put_that_never_arrived_is_done_once(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, put: Callable[[QueueSet], Record]
) -> None:
    queues = open_queues()
    queues.put("accept", "before", {})
    lost = lose_reply(monkeypatch, names_node(f"/{ITEM}"), arrives=False)
    record = put(queues)
    assert len(lost) == 1
    assert queues.get(ITEM) == record
    assert places_of(queues, ITEM) == ["accept"]


def test_an_id_that_another_took_while_the_put_was_lost_is_taken(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, other = open_queues(), open_queues()
    queues.put("accept", "before", {})
    theirs: list[Record] = []
    lose_reply(
        monkeypatch,
        names_node(f"/{ITEM}"),
        meanwhile=lambda: theirs.append(other.put("running", ITEM, {"n": 2})),
        arrives=False,
    )
    with pytest.raises(IdTaken):
        queues.put("accept", ITEM, {"n": 1})
    assert [queues.get(ITEM)] == theirs


def test_when_the_proof_of_a_put_is_gone_its_outcome_is_unknown_and_not_guessed(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, other = open_queues(), open_queues()
    queues.put("accept", "before", {})
    names = queues.session.children(queues.layout.receipts)
    assert names
    receipt = names[0]

    def clean_up() -> None:
        claim_of(other, ITEM).remove()
        commit(other.session, [Delete(queues.layout.receipt(receipt))])

    lose_reply(monkeypatch, names_node(f"/{ITEM}"), meanwhile=clean_up)
    with pytest.raises(OutcomeUnknown, match="receipt"):
        queues.put("accept", ITEM, {})
    assert places_of(queues, ITEM) == []


def test_a_receipt_that_was_removed_keeps_no_put_from_being_done(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "before", {})
    for name in queues.session.children(queues.layout.receipts) or ():
        commit(queues.session, [Delete(queues.layout.receipt(name))])
    assert queues.put("accept", ITEM, {}) == queues.get(ITEM)


# ---------------------------------------------------------------------- background
def test_background_puts_are_done_soon_and_their_futures_have_the_records(open_queues: Open) -> None:
    queues = open_queues()
    futures = [queues.put_background("accept", item) for item in items(*(f"i{n:02}" for n in range(50)))]
    assert queues.flush_puts(20)
    assert all(future.done() for future in futures)
    assert [queues.get(future.result(0).id) for future in futures] == [future.result(0) for future in futures]
    assert [token.id for token in queues.tokens("accept")] == [f"i{n:02}" for n in range(50)]


def test_the_failure_of_a_background_put_reaches_its_future_and_no_other(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "taken", {})
    taken, large, fine = [
        queues.put_background("accept", item)
        for item in (*items("taken"), NewItem({"text": "x" * 70_000}, "large"), *items("fine"))
    ]
    assert isinstance(taken.exception(20), IdTaken)
    assert isinstance(large.exception(20), TooLarge)
    assert fine.result(20).id == "fine"


def test_a_bug_in_one_background_put_does_not_fail_those_that_travel_with_it(open_queues: Open) -> None:
    queues = open_queues()
    with _held_back(queues) as go_on:
        before = queues.put_background("accept", items("before")[0])
        broken = queues.put_background("accept", NewItem({}, "broken", riders=raise_a_bug))
        after = queues.put_background("accept", items("after")[0])
        go_on.set()
    assert isinstance(broken.exception(20), RuntimeError)
    assert before.result(20) == queues.get("before")
    assert after.result(20) == queues.get("after")


def test_a_background_put_that_was_cancelled_does_not_stop_those_after_it(open_queues: Open) -> None:
    queues = open_queues()
    with _held_back(queues) as go_on:
        cancelled = queues.put_background("accept", items("cancelled")[0])
        cancelled.cancel()
        go_on.set()
    assert queues.put_background("accept", items("after")[0]).result(5).id == "after"
    assert queues.flush_puts(5)


def test_a_flush_says_when_its_time_was_too_short(open_queues: Open) -> None:
    queues = open_queues()
    with _held_back(queues) as go_on:
        future = queues.put_background("accept", items(ITEM)[0])
        assert not queues.flush_puts(0.1)
        assert not future.done()
        go_on.set()
    assert queues.flush_puts(20)
    assert future.done()


def test_closing_waits_for_what_is_in_flight_and_takes_nothing_more(open_queues: Open) -> None:
    queues = open_queues()
    closed: list[bool] = []
    with _held_back(queues) as go_on:
        future = queues.put_background("accept", items(ITEM)[0])
        thread = threading.Thread(target=lambda: closed.append(queues.close(20)))
        thread.start()
        wait_until(lambda: _is_refused(queues), 10, "nothing more is taken")
        assert not closed
        go_on.set()
        thread.join()
    assert closed == [True]
    assert future.result(0) == queues.get(ITEM)


def test_a_background_put_without_a_connection_fails_in_its_future(
    zookeeper_hosts: str, zookeeper_root: str
) -> None:
    session = Session(SessionSettings(zookeeper_hosts, call_timeout=2)).start()
    queues = QueueSet(session, Layout(zookeeper_root), QUEUES)
    queues.put("accept", "before", {})
    session.close()
    assert isinstance(queues.put_background("accept", items(ITEM)[0]).exception(20), QueueError)
    assert queues.close(5)


def _is_refused(queues: QueueSet) -> bool:
    try:
        queues.put_background("accept", NewItem())
    except SessionLost:
        return True
    return False


@contextmanager
def _held_back(queues: QueueSet) -> Iterator[threading.Event]:
    """The background thread delays its next round, so that puts are combined in a known way."""
    put, go_on, began = Background._put, threading.Event(), threading.Event()  # noqa: SLF001 - only there its rounds can be held

    def wait(background: Background, queue: str, entries: Any) -> None:
        began.set()
        go_on.wait(20)
        put(background, queue, entries)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Background, "_put", wait)
        queues.put_background("finish", NewItem())
        assert began.wait(10)  # a round by itself; later puts are sent together in the next
        try:
            yield go_on
        finally:
            go_on.set()
