import logging
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from queues.claims import claimer
from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.model.errors import InvalidLimit, QueueError
from queues.model.names import DEFAULT_POOL
from queues.model.operations import Set
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.batch import commit_many
from queues.store.commit import Transaction, commit
from queues.store.pool_limits import PoolLimits, Pools
from queues.store.watched_folder import WatchedFolder
from tests.claims_support import SOON, Collector, claim_of, locks
from tests.queues_support import Open, places_of
from tests.waiting import wait_until


def put_in(queues: QueueSet, pool: str, count: int) -> None:
    queues.put_many("accept", [NewItem({}, f"{pool}-{number:03}", pool) for number in range(count)])


def pools_of(seen: Collector, first: int) -> list[str]:
    return [claim.record.pool for claim in seen.claims[:first]]


# ---------------------------------------------------------------------- order
def test_weights_shape_the_order_in_which_pools_are_served(open_queues: Open) -> None:
    queues = open_queues()
    for pool, weight in (("heavy", 3), ("light", 1)):
        queues.ensure_pool(pool)
        queues.pools.change(pool, weight=weight)
        put_in(queues, pool, 12)
    with Collector(open_queues(), pools=["heavy", "light"]) as seen:
        seen.wait_count(24)
    for turn in range(0, 12, 4):  # evenly spread, not three dozen first
        assert sorted(pools_of(seen, 12)[turn : turn + 4]) == ["heavy"] * 3 + ["light"]
    for pool in ("heavy", "light"):
        assert [item for item in seen.ids() if item.startswith(pool)] == [f"{pool}-{n:03}" for n in range(12)]


def test_the_weights_of_a_consumer_go_before_those_of_the_pools(open_queues: Open) -> None:
    queues = open_queues()
    for pool in ("a", "b"):
        put_in(queues, pool, 10)
    queues.pools.change("a", weight=9)
    with Collector(open_queues(), pools={"a": 1, "b": 4}) as seen:
        seen.wait_count(20)
    assert pools_of(seen, 10).count("b") == 8


def test_a_weight_that_is_changed_while_consumers_run_counts_from_then_on(open_queues: Open) -> None:
    queues = open_queues()
    for pool in ("a", "b"):
        put_in(queues, pool, 30)
    with Collector(open_queues(), pools=["a", "b"], room=10) as seen:
        seen.wait_count(10)
        assert pools_of(seen, 10).count("a") == 5
        queues.pools.change("a", weight=4)
        wait_until(lambda: seen.consumer._set.pools.limits("a")[0].weight == 4, 10, "the weight is known")  # noqa: SLF001 - the next round depends on it
        seen.room = 20
        seen.consumer.look_again()
        seen.wait_count(20)
    assert pools_of(seen, 20)[10:].count("a") == 8


def test_one_consumer_takes_the_items_of_a_pool_by_due_time_then_sequence(open_queues: Open) -> None:
    queues = open_queues()
    now = queues.clock.now_ms() - 60_000
    dues = {f"i{number:02}": now + (number * 7 % 5) * 1_000 for number in range(40)}
    queues.put_many("accept", [NewItem({}, item_id, due_ms=due) for item_id, due in dues.items()])
    with Collector(open_queues()) as seen:
        seen.wait_count(40)
    assert seen.ids() == sorted(dues, key=lambda item_id: (dues[item_id], item_id))


def test_the_order_holds_for_items_that_are_put_while_it_runs(open_queues: Open) -> None:
    queues = open_queues()
    with Collector(open_queues(), then=lambda claim: claim.remove()) as seen:
        for start in range(0, 200, 10):
            queues.put_many("accept", [NewItem({}, f"i{n:03}") for n in range(start, start + 10)])
        seen.wait_count(200)
    assert seen.ids() == [f"i{number:03}" for number in range(200)]


def test_an_item_that_comes_with_an_earlier_due_time_goes_before_those_that_wait(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "old", {}, due_ms=1_000)
    held = claim_of(queues, "old")
    queues.put_many("running", [NewItem({}, f"i{number}") for number in range(5)])
    with Collector(open_queues(), "running", room=1) as seen:
        seen.wait_for("i0")
        held.commit(queue="running", release=True)  # a move keeps the due time
        folder = seen.consumer._views[DEFAULT_POOL].backlog_of("running").folder  # noqa: SLF001 - the watch
        wait_until(lambda: folder.changed, 5, "the consumer has heard of it")
        seen.room = 6
        seen.consumer.look_again()
        seen.wait_count(6)
    assert seen.ids() == ["i0", "old", "i1", "i2", "i3", "i4"]


def test_an_item_that_is_not_due_delays_no_other(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "later", {}, delay_ms=600)
    queues.put("accept", "now", {})
    with Collector(queues) as seen:
        seen.wait_for("now", "later")
        assert queues.clock.now_ms() >= queues.get("later").token.due
    assert seen.ids() == ["now", "later"]


def test_a_consumer_of_all_pools_finds_those_that_come_later(open_queues: Open) -> None:
    queues = open_queues()
    with Collector(open_queues(), pools=None) as seen:
        queues.put("accept", "first", {})
        seen.wait_for("first")
        queues.put("accept", "second", {}, pool="brand-new")
        seen.wait_for("first", "second")


def test_a_pool_that_appears_while_another_is_busy_is_served_in_the_next_round(open_queues: Open) -> None:
    queues = open_queues()
    put_in(queues, "busy", 1_000)

    def put_beside(claim: Claim) -> None:
        if claim.id == "busy-000":
            queues.put("accept", "new", {}, pool="brand-new")
            names = seen.consumer._views._names  # noqa: SLF001 - nothing else shows that the watch has fired
            wait_until(lambda: names.changed, 10, "the consumer has noticed it")

    with Collector(open_queues(), room=2_000, pools=None, then=put_beside) as seen:
        seen.wait_count(1_001)
    assert seen.ids().index("new") < 500  # two rounds of two hundred


def test_a_busy_consumer_rescans_as_well(open_queues: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    queues = open_queues()
    queues.ensure_pool("other")
    put_in(queues, "busy", 1_000)
    monkeypatch.setattr(WatchedFolder, "_on_change", lambda _folder: None)  # all watches are lost

    def put_beside(claim: Claim) -> None:
        if claim.id == "busy-000":
            queues.put("accept", "new", {}, pool="other")

    worker = open_queues()
    with Collector(
        worker, room=2_000, pools=["busy", "other"], then=put_beside, rescan_seconds=0.001
    ) as seen:
        seen.wait_count(1_001)
    assert seen.ids().index("new") < 500


def test_a_consumer_of_some_pools_leaves_the_others_alone(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "not-mine", {}, pool="other")
    queues.put("accept", "mine", {}, pool="one")
    with Collector(open_queues(), pools=["one"], rescan_seconds=SOON) as seen:
        seen.wait_for("mine")
        queues.put("accept", "mine-too", {}, pool="one")
        seen.wait_for("mine", "mine-too")
    assert queues.count("accept", "other") == 1


# ---------------------------------------------------------------------- pause
def test_a_paused_pool_is_not_served_and_the_others_are(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool("paused")
    queues.pools.change("paused", paused=True)
    put_in(queues, "paused", 2)
    with Collector(open_queues(), pools=["paused", DEFAULT_POOL], rescan_seconds=SOON) as seen:
        for item_id in ("a", "b"):
            queues.put("accept", item_id, {})
            wait_until(lambda item_id=item_id: item_id in seen.ids(), 10, f"{item_id} is handed out")  # type: ignore[misc] # mypy cannot type the default of a lambda
    assert seen.ids() == ["a", "b"]


def test_a_pause_stops_claims_that_are_on_their_way(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, worker = open_queues(), open_queues()
    put_in(operator, DEFAULT_POOL, 3)
    tried = threading.Event()

    def pause_first(session: Session, steps: Iterable[Transaction]) -> list[QueueError | None]:
        if not tried.is_set():
            operator.pools.change(DEFAULT_POOL, paused=True)
        refused = commit_many(session, steps)
        tried.set()
        return refused

    monkeypatch.setattr(claimer, "commit_many", pause_first)
    with Collector(worker, rescan_seconds=SOON) as seen:
        assert tried.wait(10)
        operator.put("accept", "other", {}, pool="other")  # a round trip later there is still nothing
        assert seen.ids() == []
        assert locks(operator) == []
        operator.pools.change(DEFAULT_POOL, paused=False)
        seen.wait_for("default-000", "default-001", "default-002")


def test_a_resume_wakes_a_consumer_that_does_not_rescan(open_queues: Open) -> None:
    operator = open_queues()
    operator.put("accept", "waiting", {})
    operator.pools.change(DEFAULT_POOL, paused=True)
    with Collector(open_queues(), pools=[DEFAULT_POOL, "other"]) as seen:
        operator.put("accept", "sign", {}, pool="other")
        seen.wait_for("sign")
        operator.pools.change(DEFAULT_POOL, paused=False)
        seen.wait_for("sign", "waiting", timeout=3)


def test_a_resume_wakes_a_consumer_whose_own_queue_set_has_looked_at_the_limits_before_it(
    open_queues: Open,
) -> None:
    operator, worker = open_queues(), open_queues()
    operator.pools.change(DEFAULT_POOL, paused=True)
    worker.put("accept", "waiting", {})  # it reads the limits to check the capacity
    with Collector(worker, pools=[DEFAULT_POOL, "other"]) as seen:
        operator.put("accept", "sign", {}, pool="other")
        seen.wait_for("sign")
        operator.pools.change(DEFAULT_POOL, paused=False)
        seen.wait_for("sign", "waiting", timeout=3)


def test_a_claim_does_not_rely_on_a_pause_that_has_ended(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, worker = open_queues(), open_queues()
    put_in(operator, DEFAULT_POOL, 1)
    (token,) = operator.tokens("accept")
    operator.pools.change(DEFAULT_POOL, paused=True)
    assert worker.claim("accept", DEFAULT_POOL, token) is None
    monkeypatch.setattr(Pools, "on_change", lambda *_: None)  # the watch fires late
    operator.pools.change(DEFAULT_POOL, paused=False)
    assert worker.claim("accept", DEFAULT_POOL, token) is not None


def test_a_pause_does_not_hinder_puts_moves_and_those_who_hold_an_item(open_queues: Open) -> None:
    queues = open_queues()
    put_in(queues, DEFAULT_POOL, 2)
    claim = claim_of(queues, "default-000")
    queues.pools.change(DEFAULT_POOL, paused=True)
    queues.put("accept", "new", {})
    claim.commit(queue="running", release=True)
    queues.move("default-001", "finish")
    queues.remove("new")
    assert [places_of(queues, item) for item in ("default-000", "default-001")] == [["running"], ["finish"]]


# ---------------------------------------------------------------------- limits
@pytest.mark.parametrize(
    "change",
    [
        {"weight": 0},
        {"weight": 1.5},
        {"weight": True},
        {"bound": 0},
        {"cap": -1},
        {"paused": 1},
        {"low_share": 1.1},
        {"low_share": "half"},
        {"high_water": 1.01},
        {"high_water": True},
        {"wieght": 2},
    ],
    ids=str,
)
def test_a_limit_that_makes_no_sense_is_refused_and_nothing_changes(
    open_queues: Open, change: dict[str, Any]
) -> None:
    queues = open_queues()
    with pytest.raises(InvalidLimit, match=next(iter(change))):
        queues.pools.change(DEFAULT_POOL, **change)
    assert queues.pools.read(DEFAULT_POOL)[0] == PoolLimits()


def test_two_who_change_different_limits_at_once_lose_neither(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = open_queues(), open_queues()
    read, between = first.pools.read, list[PoolLimits]()

    def read_then_the_other(pool: str) -> tuple[PoolLimits, int]:
        seen = read(pool)
        if not between:
            between.append(second.pools.change(pool, cap=7))
        return seen

    monkeypatch.setattr(first.pools, "read", read_then_the_other)
    assert first.pools.change(DEFAULT_POOL, weight=5) == PoolLimits(weight=5, cap=7)
    assert second.pools.read(DEFAULT_POOL)[0] == PoolLimits(weight=5, cap=7)


@pytest.mark.parametrize("data", [b"\xff", b"[]", b'{"weight": "much"}'], ids=repr)
def test_limits_that_cannot_be_read_are_reported_and_defaults_are_used(
    open_queues: Open, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    queues = open_queues()
    commit(queues.session, [Set(queues.layout.pool(DEFAULT_POOL), data, -1)])
    with caplog.at_level(logging.WARNING, logger="queues.store.pool_limits"):
        assert queues.pools.read(DEFAULT_POOL)[0] == PoolLimits()
    assert "pool default" in caplog.text
    queues.put("accept", "a", {})
    with Collector(open_queues()) as seen:
        seen.wait_for("a")


def test_limits_that_become_unreadable_leave_the_last_good_ones(open_queues: Open) -> None:
    operator, worker = open_queues(), open_queues()
    good = operator.pools.change(DEFAULT_POOL, paused=True, cap=3)
    assert worker.pools.limits(DEFAULT_POOL)[0] == good
    commit(operator.session, [Set(operator.layout.pool(DEFAULT_POOL), b"no JSON", -1)])
    wait_until(lambda: worker.pools.limits(DEFAULT_POOL)[1] == 2, 10, "the new version is known")
    assert worker.pools.limits(DEFAULT_POOL)[0] == good


def test_the_pools_are_named_without_their_low_lanes(open_queues: Open) -> None:
    queues = open_queues()
    for pool in ("b", "a", "a.low"):
        queues.ensure_pool(pool)
    assert queues.pools.names() == ["a", "b", DEFAULT_POOL]
    assert queues.pools.names(low=True) == ["a", "a.low", "b", DEFAULT_POOL]


# ---------------------------------------------------------------------- several consumers
def test_consumers_share_the_items_of_a_pool_without_racing_for_them(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 600
    queues = open_queues()
    outcomes: list[Claim | QueueError] = []
    claim = claimer.Claimer.claim

    def note(self: claimer.Claimer, candidates: Sequence[Candidate]) -> list[Claim | QueueError]:
        made = claim(self, candidates)
        outcomes.extend(made)
        return made

    monkeypatch.setattr(claimer.Claimer, "claim", note)
    with (
        Collector(open_queues("a"), then=lambda claim: claim.remove()) as first,
        Collector(open_queues("b"), then=lambda claim: claim.remove()) as second,
    ):
        folder = queues.layout.consumers
        wait_until(lambda: len(queues.session.children(folder) or ()) == 2, 10, "both are there")
        put_in(queues, DEFAULT_POOL, count)
        wait_until(lambda: len(first.claims) + len(second.claims) >= count, 20, "all are handed out")
    assert len({*first.ids(), *second.ids()}) == len(first.ids()) + len(second.ids()) == count
    assert min(len(first.claims), len(second.claims)) > count / 10
    assert sum(isinstance(outcome, QueueError) for outcome in outcomes) < count / 10


def test_a_consumer_takes_what_a_dead_fellow_leaves(open_queues: Open) -> None:
    queues, fellow = open_queues(), open_queues("fellow")
    with Collector(open_queues("left")) as seen:
        with Collector(fellow, room=0):  # it is a member with a share, and takes nothing
            folder = queues.layout.consumers
            wait_until(lambda: len(queues.session.children(folder) or ()) == 2, 10, "both are there")
            fellow.session.close()  # as when its process dies
        put_in(queues, DEFAULT_POOL, 40)
        seen.wait_count(40)


def test_a_consumer_takes_what_a_busy_fellow_leaves_lying(open_queues: Open) -> None:
    queues = open_queues()
    with Collector(open_queues("busy"), room=0), Collector(open_queues("idle")) as seen:
        folder = queues.layout.consumers
        wait_until(lambda: len(queues.session.children(folder) or ()) == 2, 10, "both are there")
        put_in(queues, DEFAULT_POOL, 40)
        seen.wait_count(40)


def test_a_consumer_that_stops_is_no_member_any_more(open_queues: Open) -> None:
    queues = open_queues()
    folder = queues.layout.consumers
    with Collector(queues):
        wait_until(lambda: queues.session.children(folder), 10, "it is a member")
    assert queues.session.children(folder) == []


def test_a_claim_in_a_pool_that_has_come_since_its_limits_were_looked_at_is_made(open_queues: Open) -> None:
    queues = open_queues()
    assert queues.pools.limits("new")[1] < 0, "there is no such pool"
    put_in(queues, "new", 1)
    (token,) = queues.tokens("accept", "new")
    (outcome,) = queues.claimer.claim([Candidate("accept", "new", token)], capped=False)
    assert isinstance(outcome, Claim)


def test_a_claim_by_a_client_that_has_not_read_new_limits_succeeds(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, other = open_queues(), open_queues()
    put_in(queues, DEFAULT_POOL, 1)
    (token,) = queues.tokens("accept", DEFAULT_POOL)
    queues.pools.limits(DEFAULT_POOL)  # cached from here on, and no watch reports a change
    monkeypatch.setattr(queues.pools, "on_change", lambda _pool: None)
    other.pools.change(DEFAULT_POOL, weight=2)
    claim = queues.claim("accept", DEFAULT_POOL, token)
    assert claim is not None
    claim.release()
    other.pools.change(DEFAULT_POOL, paused=True)
    assert queues.claim("accept", DEFAULT_POOL, token) is None
