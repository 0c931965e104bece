import random
import threading
from collections.abc import Callable, Iterable

import pytest

from queues.claims import claimer
from queues.claims.claim import Claim
from queues.dispatch.handler_pool import Action, Done, HandlerPool
from queues.model.errors import ClaimLost, QueueError
from queues.model.names import DEFAULT_POOL
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.batch import commit_many
from queues.store.commit import Transaction
from tests.claims_support import SOON, Collector, claim_of, locks
from tests.queues_support import Open, expire
from tests.waiting import wait_until


def put_some(queues: QueueSet, count: int, *, cap: int, pool: str = DEFAULT_POOL) -> list[str]:
    queues.ensure_pool(pool)
    queues.pools.change(pool, cap=cap)
    ids = [f"i{number:02}" for number in range(count)]
    queues.put_many("accept", [NewItem({}, item_id, pool) for item_id in ids])
    return ids


def try_claim(queues: QueueSet, item_id: str, pool: str = DEFAULT_POOL) -> Claim | None:
    (token,) = [token for token in queues.tokens("accept", pool) if token.id == item_id]
    return queues.claim("accept", pool, token)


def slots_taken(queues: QueueSet, pool: str = DEFAULT_POOL) -> list[str]:
    return sorted(queues.session.children(queues.layout.holds(pool)) or ())


def test_no_more_items_are_held_than_the_cap_allows_and_all_get_their_turn(open_queues: Open) -> None:
    cap, workers = 3, [open_queues(f"w{number}") for number in range(3)]
    ids = put_some(workers[0], 24, cap=cap)
    guard, now, most, handled = threading.Lock(), set[str](), list[int](), list[str]()

    def handle(claim: Claim) -> Action:
        with guard:
            now.add(claim.id)
            most.append(len(now))
        workers[0].get(claim.id)  # a round trip, so that they meet
        with guard:
            now.discard(claim.id)
            handled.append(claim.id)
        return Done()

    pools = [HandlerPool(worker, ["accept"], handle, threads=4) for worker in workers]
    for pool in pools:
        pool.start()
    try:
        wait_until(lambda: len(handled) == len(ids), 30, "all are handled")
    finally:
        for pool in pools:
            pool.stop()
    assert max(most) <= cap
    assert sorted(handled) == ids
    assert slots_taken(workers[0]) == []


def test_two_who_claim_at_the_same_moment_do_not_overshoot_the_cap(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = open_queues(), open_queues()
    put_some(first, 2, cap=1)
    between: list[Claim | None] = []

    def other_first(session: Session, steps: Iterable[Transaction]) -> list[QueueError | None]:
        if not between:
            between.append(None)
            between[0] = try_claim(second, "i01")
        return commit_many(session, steps)

    monkeypatch.setattr(claimer, "commit_many", other_first)
    assert try_claim(first, "i00") is None
    assert between[0] is not None
    assert locks(first) == ["i01"]


@pytest.mark.parametrize("held_before", ["without a cap", "under a higher cap"])
def test_the_cap_is_not_overshot_by_items_that_were_claimed_before_it_was_set(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, held_before: str
) -> None:
    holder, first, second = open_queues(), open_queues(), open_queues()
    put_some(holder, 3, cap=0 if held_before == "without a cap" else 9)
    monkeypatch.setattr(random, "shuffle", lambda free: free.sort())
    claim_of(holder, "i00")  # in the highest slot, which a lower cap does not have
    holder.pools.change(DEFAULT_POOL, cap=2)
    # The two that follow take different slots.
    monkeypatch.setattr(random, "shuffle", lambda free: free.sort(reverse=True))
    between: list[Claim | None] = []

    def other_first(session: Session, steps: Iterable[Transaction]) -> list[QueueError | None]:
        if not between:
            between.append(None)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(random, "shuffle", lambda free: free.sort())
                between[0] = try_claim(second, "i02")
        return commit_many(session, steps)

    monkeypatch.setattr(claimer, "commit_many", other_first)
    try_claim(first, "i01")
    assert len(locks(first)) == 2


def test_a_lowered_cap_counts_items_in_slots_within_it_and_beyond_it(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    put_some(queues, 5, cap=9)
    for item_id, slot in (("i00", 1), ("i01", 8)):

        def choose(free: list[int], slot: int = slot) -> None:
            free.sort(key=lambda number: number == slot)  # the last one is taken

        monkeypatch.setattr(random, "shuffle", choose)
        claim_of(queues, item_id)
    assert slots_taken(queues) == ["1", "8"]
    queues.pools.change(DEFAULT_POOL, cap=2)
    assert try_claim(queues, "i02") is None
    queues.pools.change(DEFAULT_POOL, cap=3)
    assert try_claim(queues, "i02") is not None
    assert try_claim(queues, "i03") is None


def test_items_that_were_claimed_before_there_was_a_cap_count(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 4, cap=0)
    held = [claim_of(queues, item_id) for item_id in ("i00", "i01")]
    queues.pools.change(DEFAULT_POOL, cap=2)
    assert try_claim(queues, "i02") is None
    held[0].release()
    assert try_claim(queues, "i02") is not None
    assert try_claim(queues, "i03") is None


def test_a_slot_is_free_again_when_its_item_is_released(open_queues: Open) -> None:
    queues, other = open_queues(), open_queues()
    put_some(queues, 5, cap=1)
    endings: list[Callable[[Claim], None]] = [
        lambda claim: claim.release(),
        lambda claim: claim.remove(),
        lambda claim: claim.commit(due=0, release=True),
        lambda claim: claim.commit(queue="running", release=True),
    ]
    for number, end in enumerate(endings):
        claim = claim_of(queues, f"i{number:02}")
        assert try_claim(other, "i04") is None
        end(claim)
        assert slots_taken(queues) == []
    assert try_claim(other, "i04") is not None


def test_a_slot_is_kept_as_long_as_the_item_is_held(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 2, cap=1)
    claim = claim_of(queues, "i00")
    claim.commit(payload={"n": 1})
    claim.commit(queue="running")
    assert try_claim(queues, "i01") is None
    claim.commit(release=True)
    assert try_claim(queues, "i01") is not None


def test_a_slot_is_free_again_when_the_session_of_its_holder_ends(open_queues: Open) -> None:
    holder, other = open_queues(), open_queues()
    put_some(holder, 2, cap=1)
    stale = claim_of(holder, "i00")
    with Collector(other) as seen:
        wait_until(lambda: other.session.children(other.layout.consumers), 10, "it looks")
        assert seen.ids() == []
        expire(holder.session)
        wait_until(lambda: seen.claims, 10, "a slot was free")
    with pytest.raises(ClaimLost):
        stale.commit(release=True)
    assert len(slots_taken(other)) == 1


def test_a_held_item_that_moves_to_another_pool_frees_its_slot(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 2, cap=1)
    claim = claim_of(queues, "i00")
    claim.commit(queue="running", pool="free")
    assert slots_taken(queues) == []
    assert try_claim(queues, "i01") is not None
    claim.commit(release=True)  # and its end frees no slot of another
    assert len(slots_taken(queues)) == 1


def test_a_raised_cap_wakes_a_consumer_that_does_not_rescan(open_queues: Open) -> None:
    queues = open_queues()
    ids = put_some(queues, 3, cap=1)
    with Collector(open_queues()) as seen:
        seen.wait_count(1)
        queues.pools.change(DEFAULT_POOL, cap=3)
        seen.wait_for(*ids)


def test_a_consumer_continues_without_a_rescan_when_a_slot_becomes_free(open_queues: Open) -> None:
    queues = open_queues()
    ids = put_some(queues, 3, cap=1)
    with Collector(open_queues()) as seen:
        for number in range(3):
            seen.wait_count(number + 1)
            seen.claims[number].remove()
    assert seen.ids() == ids


def test_a_pool_at_its_cap_does_not_hold_up_another(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 3, cap=1, pool="capped")
    queues.put("accept", "other", {})
    with Collector(open_queues(), pools=["capped", DEFAULT_POOL]) as seen:
        seen.wait_count(2)
        queues.put("accept", "another", {})
        wait_until(lambda: len(seen.claims) == 3, 10, "the other pool continues")
    assert sorted(claim.record.pool for claim in seen.claims) == ["capped", DEFAULT_POOL, DEFAULT_POOL]


def test_the_slot_of_an_item_that_was_taken_over_by_force_is_free_again(open_queues: Open) -> None:
    worker, operator = open_queues(), open_queues()
    put_some(worker, 2, cap=1)
    with Collector(worker, rescan_seconds=SOON) as seen:
        seen.wait_for("i00")
        operator.remove("i00", force=True)
        with pytest.raises(ClaimLost):
            seen.claims[0].commit(payload={})
        seen.wait_for("i00", "i01")


def test_a_claim_that_was_lost_to_force_leaves_no_slot_behind(open_queues: Open) -> None:
    worker, operator = open_queues(), open_queues()
    put_some(worker, 1, cap=2)
    with Collector(worker, rescan_seconds=SOON) as seen:
        seen.wait_for("i00")
        operator.remove("i00", force=True)
        with pytest.raises(ClaimLost):
            seen.claims[0].commit(payload={})
        wait_until(lambda: slots_taken(worker) == [], 3, "its slot is free")


def test_the_slot_of_an_abandoned_claim_is_found_by_the_rescan(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 2, cap=1)
    with Collector(queues, rescan_seconds=SOON) as seen:
        seen.wait_count(1)
        seen.claims[0].abandon()
        seen.wait_count(2)
        seen.claims[1].remove()
        seen.wait_count(3)


def test_slots_of_other_sessions_are_left_alone(open_queues: Open) -> None:
    first, second = open_queues(), open_queues()
    put_some(first, 2, cap=2)
    claim_of(first, "i00")
    claim_of(second, "i01")
    first.release_orphan_locks(DEFAULT_POOL, locks(first))
    assert len(slots_taken(first)) == 2
