from collections.abc import Iterable

import pytest

from queues.claims import claimer
from queues.model.errors import QueueError
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.batch import commit_many
from queues.store.commit import Transaction
from tests.claims_support import SOON, Collector, claim_of
from tests.queues_support import Open
from tests.waiting import wait_until

POOL, LANE = "team", "team.low"


def put_both(queues: QueueSet, *, main: int, low: int) -> None:
    for pool, count in ((POOL, main), (LANE, low)):
        queues.put_many("accept", [NewItem({}, f"{pool}-{n:02}", pool) for n in range(count)])


def lanes(seen: Collector) -> list[str]:
    return [claim.record.pool for claim in seen.claims]


def test_the_low_lane_is_served_when_its_pool_has_nothing(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool(POOL)
    queues.pools.change(POOL, low_share=0)
    put_both(queues, main=6, low=3)
    with Collector(open_queues(), pools=[POOL]) as seen:
        seen.wait_count(9)
    assert lanes(seen) == [POOL] * 6 + [LANE] * 3


def test_the_low_lane_is_served_while_the_items_of_its_pool_are_not_due(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "later", {}, pool=POOL, delay_ms=3_600_000)
    put_both(queues, main=0, low=2)
    with Collector(open_queues(), pools=[POOL]) as seen:
        seen.wait_for("team.low-00", "team.low-01")


@pytest.mark.parametrize("rest", [10, 300], ids=["at once", "while the folder of pools rests"])
def test_a_low_lane_that_comes_later_is_found(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, rest: int
) -> None:
    monkeypatch.setattr(
        "queues.store.watched_folder._REST", rest
    )  # 300: after a millisecond of listing, 0.3 s of rest
    queues = open_queues()
    queues.ensure_pool(POOL)
    with Collector(open_queues(), pools=[POOL]) as seen:
        queues.put("accept", "first", {}, pool=POOL)
        seen.wait_for("first")
        queues.put("accept", "low", {}, pool=LANE)
        seen.wait_for("first", "low")


@pytest.mark.parametrize(("share", "expected"), [(0.25, 5), (0.5, 10), (1, 20), (0, 0)])
def test_the_low_lane_gets_its_share_though_its_pool_has_work(
    open_queues: Open, share: float, expected: int
) -> None:
    queues = open_queues()
    queues.ensure_pool(POOL)
    queues.pools.change(POOL, low_share=share)
    put_both(queues, main=20, low=20)
    with Collector(open_queues(), pools=[POOL]) as seen:
        seen.wait_count(40)
    assert lanes(seen)[:20].count(LANE) == expected


def test_turns_of_the_low_lane_beyond_its_share_are_not_deducted_later(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool(POOL)
    queues.pools.change(POOL, low_share=0.5)
    put_both(queues, main=0, low=30)
    with Collector(open_queues(), pools=[POOL], room=10) as seen:
        seen.wait_count(10)  # its pool has nothing yet
        put_both(queues, main=10, low=0)
        seen.room = 20
        seen.consumer.look_again()
        seen.wait_count(20)
    assert lanes(seen)[10:20].count(LANE) >= 4


def test_a_pause_of_a_pool_pauses_its_low_lane(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool(POOL)
    queues.pools.change(POOL, paused=True)
    put_both(queues, main=1, low=1)
    with Collector(open_queues(), pools=[POOL, "other"], rescan_seconds=SOON) as seen:
        for item_id in ("a", "b"):
            queues.put("accept", item_id, {}, pool="other")
            wait_until(lambda item_id=item_id: item_id in seen.ids(), 10, f"{item_id} is handed out")  # type: ignore[misc] # mypy cannot type the default of a lambda
        assert seen.ids() == ["a", "b"]
        queues.pools.change(POOL, paused=False)
        seen.wait_for("a", "b", "team-00", "team.low-00")


def test_a_low_lane_can_be_paused_by_itself(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool(LANE)
    queues.pools.change(LANE, paused=True)
    put_both(queues, main=2, low=2)
    with Collector(open_queues(), pools=[POOL]) as seen:
        seen.wait_for("team-00", "team-01")
        queues.put("accept", "sign", {}, pool=POOL)
        seen.wait_for("team-00", "team-01", "sign")


def test_the_pause_of_a_pool_stops_claims_of_its_low_lane_that_are_on_their_way(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, worker = open_queues(), open_queues()
    put_both(operator, main=0, low=1)
    operator.ensure_pool(POOL)
    worker.pools.limits(POOL)
    (token,) = operator.tokens("accept", LANE)

    def pause_first(session: Session, steps: Iterable[Transaction]) -> list[QueueError | None]:
        operator.pools.change(POOL, paused=True)
        return commit_many(session, steps)

    monkeypatch.setattr(claimer, "commit_many", pause_first)
    assert worker.claim("accept", LANE, token) is None


def test_a_low_lane_has_order_bound_and_cap_of_its_own(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool(LANE)
    queues.pools.change(LANE, cap=1, bound=50)
    put_both(queues, main=3, low=3)
    first = claim_of(queues, "team.low-00", pool=LANE)
    with Collector(open_queues(), pools=[POOL]) as seen:
        seen.wait_for("team-00", "team-01", "team-02")
        first.release()
        wait_until(lambda: len(seen.claims) == 4, 10, "one of the low lane is handed out")
    assert lanes(seen) == [POOL] * 3 + [LANE]
