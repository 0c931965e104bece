from collections.abc import Callable, Iterable
from typing import Any

import pytest

from queues.claims import claimer
from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.claims.claimer import Claimer
from queues.model.errors import (
    ClaimLost,
    Conflict,
    InvalidName,
    ItemHeld,
    ItemNotFound,
    QueueError,
    TooLarge,
    UnknownQueue,
)
from queues.model.operations import Create, Delete
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.batch import commit_many
from queues.store.commit import Transaction, commit
from tests.claims_support import Collector, claim_of, locks
from tests.queues_support import Open, expire, places_of

ITEM = "item"

USES: list[Any] = [
    pytest.param(lambda claim: claim.commit(payload={"n": 1}), id="commit"),
    pytest.param(lambda claim: claim.commit(queue="finish", release=True), id="move"),
    pytest.param(lambda claim: claim.release(), id="release"),
    pytest.param(lambda claim: claim.remove(), id="remove"),
]


# ---------------------------------------------------------------------- remove
def test_a_waiting_item_is_removed_due_or_not(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "now", {})
    queues.put("accept", "later", {}, delay_ms=3_600_000)
    for item_id in ("now", "later"):
        queues.remove(item_id)
        assert not queues.contains(item_id)
        assert places_of(queues, item_id) == []
    assert locks(queues) == []
    queues.put("accept", "now", {})  # the id is free again


def test_nodes_below_the_record_are_removed_with_the_item(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {}, extra=lambda path: [Create(f"{path}/definition")])
    queues.remove(ITEM, extra=lambda claim: [Delete(f"{queues.layout.record(claim.id)}/definition")])
    assert not queues.contains(ITEM)


def test_an_item_that_is_not_there_is_said_to_be_missing(open_queues: Open) -> None:
    queues = open_queues()
    for act in (queues.remove, queues.requeue, lambda item_id: queues.move(item_id, "running")):
        with pytest.raises(ItemNotFound, match="absent"):
            act("absent")
        with pytest.raises(InvalidName):
            act("no/id")


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda queues: queues.remove(ITEM), id="remove"),
        pytest.param(lambda queues: queues.move(ITEM, "running"), id="move"),
        pytest.param(lambda queues: queues.requeue(ITEM, delay_ms=5), id="requeue"),
    ],
)
def test_a_held_item_is_left_to_its_holder_who_is_named(
    open_queues: Open, act: Callable[[QueueSet], Any]
) -> None:
    holder, operator = open_queues("worker-7"), open_queues("operator")
    holder.put("accept", ITEM, {})
    claim = claim_of(holder, ITEM)
    for queues in (operator, holder):
        with pytest.raises(ItemHeld, match="worker-7") as caught:
            act(queues)
        assert caught.value.holder == "worker-7"
    claim.commit(queue="finish", release=True)
    assert places_of(operator, ITEM) == ["finish"]


@pytest.mark.parametrize("use", USES)
def test_a_forced_removal_is_seen_by_the_holder_as_a_lost_claim(
    open_queues: Open, use: Callable[[Claim], None]
) -> None:
    holder, operator = open_queues(), open_queues()
    holder.put("accept", ITEM, {})
    claim = claim_of(holder, ITEM)
    operator.remove(ITEM, force=True)
    assert not operator.contains(ITEM)
    assert places_of(operator, ITEM) == locks(operator) == []
    with pytest.raises(ClaimLost):
        use(claim)
    assert not claim.held
    assert not holder.holds(ITEM)
    holder.put("accept", ITEM, {})
    claim_of(holder, ITEM)  # nothing of the old claim is left


@pytest.mark.parametrize("use", USES)
def test_a_forced_move_is_seen_by_the_holder_as_a_lost_claim(
    open_queues: Open, use: Callable[[Claim], None]
) -> None:
    holder, operator = open_queues(), open_queues()
    holder.put("accept", ITEM, {"n": 0})
    claim = claim_of(holder, ITEM)
    operator.move(ITEM, "running", force=True)
    with pytest.raises(ClaimLost):
        use(claim)
    assert places_of(operator, ITEM) == ["running"]
    assert operator.get(ITEM).payload == {"n": 0}
    assert locks(operator) == []


@pytest.mark.parametrize("use", USES)
def test_the_new_holder_of_an_item_taken_by_force_is_not_disturbed_by_the_old_one(
    open_queues: Open, use: Callable[[Claim], None]
) -> None:
    holder, operator, next_ = open_queues(), open_queues(), open_queues()
    holder.put("accept", ITEM, {})
    stale = claim_of(holder, ITEM)
    operator.requeue(ITEM, force=True)
    claim = claim_of(next_, ITEM)
    with pytest.raises(ClaimLost):
        use(stale)
    assert locks(operator) == [ITEM]
    claim.commit(queue="running", release=True)


def test_force_works_against_a_claim_of_the_same_client(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    stale = claim_of(queues, ITEM)
    queues.move(ITEM, "running", force=True)
    with pytest.raises(ClaimLost):
        stale.commit(payload={})
    claim_of(queues, ITEM, queue="running").commit(queue="finish", release=True)


def test_force_works_though_the_same_client_has_not_noticed_yet_that_it_lost_the_item(
    open_queues: Open,
) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    stale = claim_of(queues, ITEM)
    expire(queues.session)
    queues.move(ITEM, "running", force=True)
    assert places_of(queues, ITEM) == ["running"]
    with pytest.raises(ClaimLost):
        stale.commit(payload={})
    assert locks(queues) == []


def test_force_removes_an_item_without_a_holder_as_usual(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    queues.remove(ITEM, force=True)
    assert not queues.contains(ITEM)


def test_force_takes_along_what_the_holder_changed_in_the_last_moment(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, operator = open_queues(), open_queues()
    holder.put("accept", ITEM, {"n": 0})
    claim = claim_of(holder, ITEM)
    sent: list[Session] = []

    def holder_first(session: Session, steps: Iterable[Transaction]) -> list[QueueError | None]:
        sent.append(session)
        if len(sent) == 1:  # the record was read before and is written next
            claim.commit(payload={"n": 1})
        return commit_many(session, steps)

    monkeypatch.setattr(claimer, "commit_many", holder_first)
    operator.move(ITEM, "running", force=True)
    assert operator.get(ITEM).payload == {"n": 1}
    with pytest.raises(ClaimLost):
        claim.commit(payload={"n": 2})


def test_a_claim_never_overwrites_what_was_changed_since_the_item_was_read(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, other = open_queues(), open_queues()
    token = queues.put("accept", ITEM, {"n": 0}).token
    sent: list[Session] = []

    def other_first(session: Session, steps: Iterable[Transaction]) -> list[QueueError | None]:
        sent.append(session)
        if len(sent) == 1:
            claim_of(other, ITEM).commit(payload={"n": 1}, release=True)
        return commit_many(session, steps)

    monkeypatch.setattr(claimer, "commit_many", other_first)
    assert queues.claim("accept", "default", token) is None
    assert queues.get(ITEM).payload == {"n": 1}


def test_a_claim_by_a_stale_listing_is_refused_by_the_server_too(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    stale = queues.put("accept", ITEM, {}).token
    queues.move(ITEM, "running")
    monkeypatch.setattr(Claimer, "_gone", lambda *_: set())  # the read before it found nothing
    assert queues.claim("accept", "default", stale) is None
    assert places_of(queues, ITEM) == ["running"]
    assert queues.get(ITEM).queue == "running"
    assert locks(queues) == []


# ---------------------------------------------------------------------- move
def test_a_moved_item_keeps_id_sequence_payload_and_due_time(open_queues: Open) -> None:
    queues = open_queues()
    put = queues.put("accept", ITEM, {"n": 1}, delay_ms=60_000)
    moved = queues.move(ITEM, "running")
    assert (moved.token, moved.payload, moved.run_key) == (put.token, {"n": 1}, put.run_key)
    assert queues.get(ITEM) == moved
    assert places_of(queues, ITEM) == ["running"]
    assert locks(queues) == []


def test_an_item_moves_to_another_pool_with_another_payload_and_due_time(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {"n": 1})
    before = queues.clock.now_ms()
    moved = queues.move(ITEM, "running", pool="other", payload={"n": 2}, delay_ms=60_000)
    assert (moved.pool, moved.payload) == ("other", {"n": 2})
    assert before + 60_000 <= moved.token.due <= queues.clock.now_ms() + 60_000
    assert [token.id for token in queues.tokens("running", "other")] == [ITEM]
    assert places_of(queues, ITEM) == []  # nothing in its old pool
    assert locks(queues) == locks(queues, "other") == []


def test_an_unknown_queue_is_refused_and_the_item_stays_where_it_is(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    with pytest.raises(UnknownQueue):
        queues.move(ITEM, "runing")
    assert places_of(queues, ITEM) == ["accept"]
    assert locks(queues) == []


def test_a_held_item_that_its_holder_moves_to_another_pool_stays_held_there(open_queues: Open) -> None:
    holder, other = open_queues("worker-7"), open_queues()
    holder.put("accept", ITEM, {})
    claim = claim_of(holder, ITEM)
    claim.commit(queue="running", pool="other")
    assert locks(holder) == []
    assert locks(holder, "other") == [ITEM]
    assert [held.worker for held in holder.look.held("other")] == ["worker-7"]
    (token,) = other.tokens("running", "other")
    assert other.claim("running", "other", token) is None
    claim.commit(payload={"n": 1})
    claim.commit(queue="finish", pool="default", release=True)
    assert places_of(holder, ITEM) == ["finish"]
    assert locks(holder, "other") == locks(holder) == []


# ---------------------------------------------------------------------- requeue
def test_a_requeued_item_is_due_after_the_delay_in_its_queue(open_queues: Open) -> None:
    queues = open_queues()
    put = queues.put("running", ITEM, {"n": 1})
    before = queues.clock.now_ms()
    requeued = queues.requeue(ITEM, delay_ms=60_000)
    assert before + 60_000 <= requeued.token.due <= queues.clock.now_ms() + 60_000
    assert (requeued.token.seq, requeued.queue, requeued.payload) == (put.token.seq, "running", {"n": 1})
    assert [token.due for token in queues.tokens("running")] == [requeued.token.due]


def test_an_item_that_is_requeued_without_delay_is_due_at_once(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {}, delay_ms=3_600_000)
    with Collector(open_queues()) as seen:
        queues.requeue(ITEM)
        seen.wait_for(ITEM)


# ---------------------------------------------------------------------- pauses and caps
def test_items_of_a_paused_pool_can_be_operated_on(open_queues: Open) -> None:
    queues = open_queues()
    for item_id in ("a", "b", "c"):
        queues.put("accept", item_id, {})
    queues.pools.change("default", paused=True)
    queues.remove("a")
    queues.move("b", "running")
    queues.requeue("c", delay_ms=60_000)
    assert [places_of(queues, item_id) for item_id in ("a", "b", "c")] == [[], ["running"], ["accept"]]


def test_waiting_items_of_a_pool_at_its_cap_can_be_operated_on(open_queues: Open) -> None:
    queues = open_queues()
    for item_id in ("held", "a", "b"):
        queues.put("accept", item_id, {})
    queues.pools.change("default", cap=1)
    claim_of(queues, "held")
    queues.remove("a")
    queues.move("b", "running")
    assert [places_of(queues, item_id) for item_id in ("a", "b")] == [[], ["running"]]


def test_an_item_that_moves_while_it_is_looked_at_is_found_where_it_is(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, worker = open_queues(), open_queues()
    operator.put("accept", ITEM, {})
    claim, moved = Claimer.claim, list[str]()

    def move_before(self: Claimer, candidates: list[Candidate], **how: Any) -> Any:
        if self is operator.claimer and not moved:
            moved.append(ITEM)
            claim_of(worker, ITEM).commit(queue="running", release=True)
        return claim(self, candidates, **how)

    monkeypatch.setattr(Claimer, "claim", move_before)
    operator.remove(ITEM)
    assert not operator.contains(ITEM)


# ---------------------------------------------------------------------- failures
@pytest.mark.parametrize(
    ("act", "error"),
    [
        pytest.param(
            lambda queues: queues.remove(ITEM, extra=lambda _claim: [Delete("/no-such-node")]),
            Conflict,
            id="remove",
        ),
        pytest.param(
            lambda queues: queues.move(ITEM, "running", payload={"text": "x" * 70_000}), TooLarge, id="move"
        ),
    ],
)
def test_an_operation_that_fails_leaves_the_item_to_the_others(
    open_queues: Open, act: Callable[[QueueSet], Any], error: type[Exception]
) -> None:
    operator, worker = open_queues(), open_queues()
    operator.put("accept", ITEM, {})
    with pytest.raises(error):
        act(operator)
    assert places_of(operator, ITEM) == ["accept"]
    assert locks(operator) == []
    claim_of(worker, ITEM)


def test_an_item_with_children_that_were_not_named_is_not_removed(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    commit(queues.session, [Create(f"{queues.layout.record(ITEM)}/attempt")])
    with pytest.raises(Conflict, match="NotEmpty"):
        queues.remove(ITEM)
    assert places_of(queues, ITEM) == ["accept"]
