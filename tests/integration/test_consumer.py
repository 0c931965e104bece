import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.claims.claimer import Claimer
from queues.consumer.consumer import Consumer
from queues.model.errors import ClaimLost, QueueError
from queues.model.operations import Create, Set
from queues.queue_set import QueueSet
from queues.session import Session, Stat, Wake
from queues.store.commit import commit
from tests.queues_support import Open, expire, places_of
from tests.waiting import wait_until

NEVER = 3600.0  # a rescan that does not come: only watches find items
SOON = 0.3


class Collector:
    """Collects what a consumer hands out."""

    def __init__(self, queue_set: QueueSet, *, room: int = 100, rescan_seconds: float = NEVER) -> None:
        self.claims: list[Claim] = []
        self.room = room
        self.consumer = Consumer(
            queue_set,
            ["accept", "running"],
            hand_out=self.claims.append,
            capacity=lambda _queue: self.room - len(self.claims),
            rescan_seconds=rescan_seconds,
        )

    def ids(self) -> list[str]:
        return [claim.id for claim in self.claims]

    def wait_for(self, *ids: str, timeout: float = 10) -> None:
        wait_until(lambda: sorted(self.ids()) == sorted(ids), timeout, f"{ids} are handed out")


OpenCollector = Callable[..., Collector]


@pytest.fixture
def open_collector() -> Iterator[OpenCollector]:
    collectors: list[Collector] = []

    def make(queue_set: QueueSet, *, room: int = 100, rescan_seconds: float = NEVER) -> Collector:
        collector = Collector(queue_set, room=room, rescan_seconds=rescan_seconds)
        collectors.append(collector)
        collector.consumer.start()
        return collector

    yield make
    for collector in collectors:
        collector.consumer.stop()


def test_items_are_handed_out_in_the_order_in_which_they_are_due(
    open_queues: Open, open_collector: OpenCollector
) -> None:
    producer = open_queues()
    producer.put("accept", "second", {}, delay_ms=10)
    producer.put("accept", "first", {}, delay_ms=-1000)
    producer.put("accept", "third", {}, delay_ms=20)
    collector = open_collector(open_queues())
    collector.wait_for("first", "second", "third")
    assert collector.ids() == ["first", "second", "third"]


def test_one_slow_listing_does_not_make_new_items_wait(
    open_queues: Open, open_collector: OpenCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing, listed = Session.listing, threading.Event()

    def slow_once(session: Session, path: str, wake: Wake | None = None) -> tuple[list[str], Stat] | None:
        found = listing(session, path, wake)
        if path.endswith("/accept/default") and not listed.is_set():
            time.sleep(1)  # allows for a pause of the machine, not for the size of the folder
            listed.set()
        return found

    monkeypatch.setattr(Session, "listing", slow_once)
    queues = open_queues()
    collector = open_collector(queues)
    assert listed.wait(10)
    queues.put("accept", "a", {})
    collector.wait_for("a", timeout=5)


def test_a_watch_finds_a_new_item_without_a_rescan(open_queues: Open, open_collector: OpenCollector) -> None:
    collector = open_collector(open_queues())
    producer = open_queues()
    for item in ("a", "b", "c"):
        producer.put("accept", item, {})
        wait_until(lambda item=item: item in collector.ids(), 10, f"{item} is handed out")  # type: ignore[misc] # mypy cannot type the default of a lambda


def test_nothing_is_handed_out_before_it_is_due(open_queues: Open, open_collector: OpenCollector) -> None:
    queues = open_queues()
    queues.put("accept", "later", {}, delay_ms=700)
    due = queues.read("later")[0].token.due
    collector = open_collector(queues)
    collector.wait_for("later")
    assert queues.clock.now_ms() >= due


def test_no_more_is_taken_than_there_is_capacity_for(
    open_queues: Open, open_collector: OpenCollector
) -> None:
    queues = open_queues()
    for number in range(5):
        queues.put("accept", f"i{number}", {})
    collector = open_collector(queues, room=2)
    collector.wait_for("i0", "i1")
    collector.room = 3
    collector.consumer.look_again()
    collector.wait_for("i0", "i1", "i2")


def test_an_item_that_shall_stop_is_taken_before_it_is_due_and_without_capacity(
    open_queues: Open, open_collector: OpenCollector
) -> None:
    queues = open_queues()
    queues.put("accept", "stopped", {}, delay_ms=3_600_000)
    collector = open_collector(queues, room=0)
    commit(queues.session, [Create(queues.layout.stop("default", "stopped"), b"{}")])
    collector.wait_for("stopped")


def test_an_item_whose_holder_is_gone_is_found_by_the_watch_on_the_locks(
    open_queues: Open, open_collector: OpenCollector
) -> None:
    first = open_queues()
    first.put("accept", "orphan", {})
    held = first.claim("accept", "default", first.tokens("accept")[0])
    assert held is not None
    collector = open_collector(open_queues())
    first.session.close()
    collector.wait_for("orphan")


def test_an_abandoned_claim_is_found_by_the_rescan(open_queues: Open, open_collector: OpenCollector) -> None:
    queues = open_queues()
    queues.put("accept", "stray", {})
    collector = open_collector(queues, rescan_seconds=SOON)
    collector.wait_for("stray")
    collector.claims.pop().abandon()
    collector.wait_for("stray")


def test_a_lost_session_is_survived(open_queues: Open, open_collector: OpenCollector) -> None:
    queues = open_queues()
    queues.put("accept", "before", {})
    collector = open_collector(queues)
    collector.wait_for("before")
    expire(queues.session)
    # The lost claim is invalid; its item is free and is found again.
    with pytest.raises(ClaimLost):
        collector.claims[0].check()
    collector.claims.pop()
    collector.consumer.look_again()
    collector.wait_for("before")
    open_queues().put("accept", "after", {})
    collector.wait_for("before", "after")


def test_a_foreign_node_is_left_alone_and_reported_once(
    open_queues: Open, open_collector: OpenCollector, caplog: pytest.LogCaptureFixture
) -> None:
    queues = open_queues()
    foreign = f"{queues.layout.queue('accept', 'default')}/of-another-application"
    commit(queues.session, [Create(foreign, b"x")])
    with caplog.at_level(logging.WARNING, logger="queues.consumer.consumer"):
        collector = open_collector(queues)
        for item in ("a", "b"):
            queues.put("accept", item, {})
        collector.wait_for("a", "b")
    assert sum("of-another-application" in record.getMessage() for record in caplog.records) == 1
    assert queues.session.exists(foreign) is not None


def test_an_item_with_a_corrupt_record_becomes_a_dead_letter_and_the_others_are_handed_out(
    open_queues: Open, open_collector: OpenCollector
) -> None:
    queues = open_queues()
    queues.put("accept", "corrupt", {})
    commit(queues.session, [Set(queues.layout.record("corrupt"), b"garbage", -1)])
    queues.put("accept", "fine", {})
    collector = open_collector(queues)
    collector.wait_for("fine")
    wait_until(lambda: places_of(queues, "corrupt") == ["dead"], 10, "the corrupt item is a dead letter")


def test_a_scan_that_fails_is_tried_again(
    open_queues: Open, open_collector: OpenCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    queues.put("accept", "a", {})
    failed = threading.Event()
    claim = Claimer.claim

    def fail_once(self: Claimer, candidates: Sequence[Candidate]) -> list[Claim | QueueError]:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("a bug")
        return claim(self, candidates)

    monkeypatch.setattr(Claimer, "claim", fail_once)
    collector = open_collector(queues)
    collector.wait_for("a")
    assert failed.is_set()
