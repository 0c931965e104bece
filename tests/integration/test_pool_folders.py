"""The nodes of pools: their number, their removal, and the repair of damage."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from queues.admin.scrubber import Scrubber
from queues.claims import claimer
from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.claims.lock_sessions import LockSessions
from queues.claims.transitions import run_transitions
from queues.consumer import pool_views
from queues.consumer.pool_views import PoolViews
from queues.model.errors import PoolInUse, PutsFailed, QueueError, TooManyPools, Unreachable
from queues.model.names import DEFAULT_POOL, Layout
from queues.model.operations import Create, Delete
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import Session, SessionSettings
from queues.store import pool_nodes
from queues.store.batch import commit_once
from queues.store.commit import commit
from tests.claims_support import SOON, Collector, claim_of
from tests.queues_support import QUEUES, Open, expire, open_session
from tests.waiting import wait_until

POOL = "team"
LANE = "team.low"


def tree(queues: QueueSet, path: str = "") -> Iterator[str]:
    path = path or queues.layout.root
    for name in queues.session.children(path) or ():
        yield f"{path}/{name}"
        yield from tree(queues, f"{path}/{name}")


def nodes_of(queues: QueueSet, pool: str) -> list[str]:
    return [path for path in tree(queues) if pool in path.split("/")]


def drop(queues: QueueSet, *paths: str) -> None:
    commit(queues.session, [Delete(path) for path in paths])


@pytest.fixture
def open_bounded(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[Callable[[int], QueueSet]]:
    """A queue set that makes at most this many pools."""
    sessions: list[Session] = []

    def make(max_pools: int) -> QueueSet:
        sessions.append(open_session(zookeeper_hosts))
        return QueueSet(sessions[-1], Layout(zookeeper_root), QUEUES, max_pools=lambda: max_pools)

    yield make
    for session in sessions:
        session.close()


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[Claim | QueueError]:
    """The results of all claims from now on."""
    made: list[Claim | QueueError] = []
    claim = claimer.Claimer.claim

    def note(self: claimer.Claimer, candidates: Sequence[Candidate]) -> list[Claim | QueueError]:
        claims = claim(self, candidates)
        made.extend(claims)
        return claims

    monkeypatch.setattr(claimer.Claimer, "claim", note)
    return made


# ---------------------------------------------------------------------- number of nodes
def test_a_consumer_owns_one_node_whatever_the_number_of_pools(open_queues: Open) -> None:
    queues, worker = open_queues(), open_queues()
    for number in range(30):
        queues.ensure_pool(f"pool-{number}")
    with Collector(worker, pools=None) as seen:
        queues.put("accept", "a", {}, pool="pool-29")
        seen.wait_for("a")
        found = queues.session.get_many(list(tree(queues)))
        seen.claims.pop().remove()
    owned = [node for node in found if node is not None and node[1].owner == worker.session.id]
    assert len(owned) == 2  # the lock is the other
    assert queues.session.children(queues.layout.consumers) == []


def test_the_node_of_a_consumer_counts_as_a_path_of_its_session(
    zookeeper_hosts: str, open_queues: Open
) -> None:
    layout = open_queues().layout
    max_bytes = len(layout.consumer("consumer-123456"))
    settings = SessionSettings(zookeeper_hosts, session_timeout=4, max_ephemeral_bytes=max_bytes)
    with Session(settings) as session, QueueSet(session, layout, QUEUES) as worker, Collector(worker):
        wait_until(lambda: session.children(layout.consumers), 10, "it is a member")
        assert worker.claimer.sessions.reserve(1) is not session


def test_the_folder_of_the_hosts_counts_in_each_path(zookeeper_hosts: str, zookeeper_root: str) -> None:
    hosts = f"{zookeeper_hosts}{zookeeper_root}"
    with Session(SessionSettings(hosts, max_ephemeral_bytes=2 * len(zookeeper_root) + 10)) as first:
        sessions = LockSessions(first)
        assert sessions.reserve(10) is first
        assert sessions.reserve(1) is not first
        sessions.give_back(first, 10)
        assert sessions.reserve(10) is first
        sessions.close()


def test_a_consumer_is_seen_again_after_its_session_was_lost(open_queues: Open) -> None:
    queues, worker = open_queues(), open_queues()
    with Collector(worker):
        (before,) = wait_until(lambda: queues.session.children(queues.layout.consumers), 10, "it is there")
        expire(worker.session)
        path = queues.layout.consumer(before)

        def is_back() -> bool:
            stat = queues.session.exists(path)
            return stat is not None and stat.owner == worker.session.id

        wait_until(is_back, 10, "it is there again")


def test_consumers_of_other_queues_or_pools_have_no_share(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool(POOL)
    with (
        Collector(open_queues("mine"), pools=None) as mine,
        Collector(open_queues("other-pool"), pools=[POOL]),
        Collector(open_queues("other-queue"), "running", pools=None),
    ):
        wait_until(
            lambda: len(queues.session.children(queues.layout.consumers) or ()) == 3, 10, "all are there"
        )
        view = wait_until(lambda: mine.consumer._views.get(POOL), 10, "the pool is served")  # noqa: SLF001 - nothing else shows its users
        backlog = view.backlog_of("accept")
        wait_until(lambda: backlog._share.of == 2, 10, "it is shared by two")  # noqa: SLF001 - likewise
        other = mine.consumer._views[DEFAULT_POOL].backlog_of("accept")  # noqa: SLF001 - likewise
        assert other._share.of == 1  # noqa: SLF001 - likewise


def test_a_put_makes_no_more_pools_than_there_may_be(open_bounded: Callable[[int], QueueSet]) -> None:
    queues = open_bounded(2)
    queues.put("accept", "a", {}, pool="one")
    queues.put("accept", "b", {}, pool="two")
    with pytest.raises(TooManyPools, match=r"three.*limit of 2 pools"):
        queues.put("accept", "c", {}, pool="three")
    with pytest.raises(PutsFailed, match="three"):
        queues.put_many("accept", [NewItem({}, "c", "three"), NewItem({}, "d", "one")])
    assert not queues.contains("c")
    assert nodes_of(queues, "three") == []
    queues.put("accept", "e", {}, pool="two")
    with pytest.raises(TooManyPools, match=r"three\.low"):
        open_bounded(3).put("accept", "f", {}, pool="three.low")  # with its pool it would be two
    assert nodes_of(queues, "three") == []
    queues.move("e", "accept", pool="one.low")  # a limit applies to puts
    assert queues.pools.names(low=True) == ["one", "one.low", "two"]


# ---------------------------------------------------------------------- remove
def test_an_empty_pool_is_removed_with_its_low_lane(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool(LANE)
    assert nodes_of(queues, POOL)
    assert queues.remove_pool(POOL)
    assert nodes_of(queues, POOL) + nodes_of(queues, LANE) == []
    assert not queues.remove_pool(POOL)


def test_a_low_lane_is_removed_alone(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool(LANE)
    with Collector(open_queues(), pools=[POOL]):
        assert queues.remove_pool(LANE)
    assert queues.pools.names(low=True) == [DEFAULT_POOL, POOL]


@pytest.mark.parametrize("pools", [None, [POOL]])
def test_a_pool_that_is_removed_while_a_consumer_begins_to_serve_it_stays_removed(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, pools: list[str] | None
) -> None:
    queues, serve, removed = open_queues(), PoolViews._serve, threading.Event()  # noqa: SLF001 - the moment
    queues.ensure_pool(LANE)

    def remove_and_serve(views: PoolViews, pool: str) -> None:
        if pool == LANE:
            assert queues.remove_pool(LANE)
        serve(views, pool)
        if pool == LANE:
            removed.set()

    monkeypatch.setattr(PoolViews, "_serve", remove_and_serve)
    with Collector(open_queues(), pools=pools, then=lambda claim: claim.remove()) as seen:
        assert removed.wait(10)
        assert queues.pools.names(low=True) == [DEFAULT_POOL, POOL]
        queues.put("accept", "a", {}, pool=POOL)  # the rest is served
        seen.wait_for("a")


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("pool", [POOL, LANE])
def test_a_pool_with_items_is_not_removed(open_queues: Open, queue: str, pool: str) -> None:
    queues = open_queues()
    queues.put(queue, "a", {}, pool=pool)
    before = set(tree(queues))
    with pytest.raises(PoolInUse, match=f"1 in .*/{queue}/{pool}"):
        queues.remove_pool(POOL)
    assert set(tree(queues)) == before


def test_a_pool_with_a_request_to_stop_is_not_removed(open_queues: Open) -> None:
    queues = open_queues()
    queues.ensure_pool(POOL)
    commit(queues.session, [Create(queues.layout.stop(POOL, "a"))])
    with pytest.raises(PoolInUse, match="stops"):
        queues.remove_pool(POOL)


def test_a_pool_that_a_consumer_names_is_not_removed(open_queues: Open) -> None:
    queues = open_queues()
    with Collector(open_queues("worker-1"), pools=[POOL]):
        wait_until(lambda: queues.session.children(queues.layout.consumers), 10, "it is there")
        with pytest.raises(PoolInUse, match="worker-1"):
            queues.remove_pool(POOL)
    assert queues.remove_pool(POOL)


def test_a_consumer_of_all_pools_serves_a_pool_that_was_removed_and_comes_again(open_queues: Open) -> None:
    queues, producer = open_queues(), open_queues()
    with Collector(open_queues(), pools=None, then=lambda claim: claim.remove()) as seen:
        for item_id in ("a", "b", "c"):  # each put assumes that the pool exists
            producer.put("accept", item_id, {}, pool=POOL)
            wait_until(lambda item_id=item_id: item_id in seen.ids(), 10, f"{item_id} is handed out")  # type: ignore[misc] # mypy cannot type the default of a lambda
            assert queues.remove_pool(POOL)
            wait_until(lambda: seen.consumer._views.get(POOL) is None, 10, "it is not served")  # noqa: SLF001 - nothing else shows it
    assert nodes_of(queues, POOL) == []


@pytest.mark.parametrize(("pool", "words"), [(POOL, "1 in"), (LANE, LANE)], ids=["item", "low lane"])
def test_a_put_while_a_pool_is_removed_stops_the_removal(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, pool: str, words: str
) -> None:
    queues, producer = open_queues(), open_queues()
    queues.ensure_pool(POOL)

    def put_first(*arguments: Any) -> object:
        if not producer.contains("a"):
            producer.put("accept", "a", {}, pool=pool)
        return commit_once(*arguments)

    monkeypatch.setattr(pool_nodes, "commit_once", put_first)
    with pytest.raises(PoolInUse, match=words):
        queues.remove_pool(POOL)
    with Collector(open_queues(), pools=None) as seen:
        seen.wait_for("a")


def test_puts_and_removals_at_once_lose_nothing_and_strand_nothing(open_queues: Open) -> None:
    queues, remover = open_queues(), open_queues()
    producers = [open_queues() for _ in range(2)]
    stop = threading.Event()
    removed: list[bool] = []

    def remove() -> None:
        while not stop.is_set():
            try:
                removed.append(remover.remove_pool(POOL))
            except PoolInUse:
                continue

    def put(number: int) -> None:
        for count in range(40):
            producers[number].put("accept", f"i{number}-{count}", {}, pool=LANE if count % 2 else POOL)

    def remove_item(claim: Claim) -> None:
        claim.remove()

    with Collector(open_queues(), pools=None, then=remove_item, rescan_seconds=SOON) as seen:
        threads = [threading.Thread(target=put, args=(number,)) for number in range(2)]
        killer = threading.Thread(target=remove)
        for thread in (*threads, killer):
            thread.start()
        for thread in threads:
            thread.join()
        seen.wait_count(80, timeout=30)
        stop.set()
        killer.join()
    assert sorted(seen.ids()) == sorted(f"i{number}-{count}" for number in range(2) for count in range(40))
    assert any(removed)
    assert queues.count("accept", POOL) == queues.count("accept", LANE) == 0


# ---------------------------------------------------------------------- damage
@pytest.mark.parametrize("pools", [None, [POOL]], ids=["all", "named"])
@pytest.mark.parametrize("item_pool", [POOL, LANE])
def test_a_pool_whose_node_was_removed_by_hand_gets_it_again_without_a_storm_of_claims(
    open_queues: Open,
    outcomes: list[Claim | QueueError],
    pools: Sequence[str] | None,
    item_pool: str,
) -> None:
    queues = open_queues()
    queues.ensure_pool(LANE)
    limits, serving = queues.pools.change(POOL, weight=3, cap=0, bound=500), open_queues()
    with Collector(serving, pools=pools, room=0) as seen:
        wait_until(lambda: seen.consumer._views.get(item_pool), 10, "the pool is served")  # noqa: SLF001 - nothing else shows it
        wait_until(lambda: serving.pools.last_good(POOL) == limits, 10, "its limits are known")
        queues.put("accept", "a", {}, pool=item_pool)
        drop(queues, queues.layout.pool(POOL))
        seen.room = 1
        seen.consumer.look_again()
        seen.wait_for("a")
        assert queues.pools.read(POOL)[0] == limits
    assert len(outcomes) < 5


def test_a_pool_that_is_removed_by_hand_again_and_again_is_tried_now_and_then(
    open_queues: Open, outcomes: list[Claim | QueueError], monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    queues.put("accept", "a", {}, pool=POOL)

    def make(folders: pool_nodes.PoolFolders, pool: str, *_: object, **_more: object) -> None:
        folders._made.add(pool)  # noqa: SLF001 - it was created and removed

    with Collector(open_queues(), pools=[POOL], room=0) as seen:
        wait_until(lambda: seen.consumer._views.get(POOL), 10, "the pool is served")  # noqa: SLF001 - nothing else shows it
        monkeypatch.setattr(pool_nodes.PoolFolders, "_make", make)
        tries: list[int] = []
        scan = seen.consumer._scan  # noqa: SLF001 - nothing else shows the number of tries

        def counted_scan() -> float:
            before = len(outcomes)
            pause = scan()
            tries.append(len(outcomes) - before)
            return pause

        drop(queues, queues.layout.pool(POOL))
        monkeypatch.setattr(seen.consumer, "_scan", counted_scan)
        seen.room = 1
        seen.consumer.look_again()
        wait_until(lambda: sum(tries) >= 3, 10, "it was tried three times")
    assert max(tries) == 1


@pytest.mark.parametrize("folder", ["queue", "locks", "stops", "holds"])
def test_a_folder_that_was_removed_by_hand_is_made_again(open_queues: Open, folder: str) -> None:
    queues, layout = open_queues(), open_queues().layout
    path = layout.queue("accept", POOL) if folder == "queue" else getattr(layout, folder)(POOL)
    queues.put("running", "other", {}, pool=POOL)
    with Collector(open_queues(), "accept", pools=None, rescan_seconds=SOON) as seen:
        wait_until(lambda: seen.consumer._views.get(POOL), 10, "the pool is served")  # noqa: SLF001 - nothing else shows it
        drop(queues, path)
        if folder != "holds":  # it has no watch: the next put makes it
            wait_until(lambda: queues.session.exists(path), 10, "it is there again")
        queues.root.forget_folders()
        queues.put("accept", "a", {}, pool=POOL)
        seen.wait_for("a")
    assert queues.session.exists(path)


def test_a_put_into_a_folder_that_was_removed_by_hand_makes_it_again(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "a", {}, pool=POOL)
    queues.remove("a")
    drop(queues, queues.layout.queue("accept", POOL))
    queues.put("accept", "b", {}, pool=POOL)
    assert [token.id for token in queues.tokens("accept", POOL)] == ["b"]


@pytest.mark.parametrize("item_pool", [POOL, LANE])
def test_a_pool_whose_node_was_removed_while_no_worker_served_it_is_served_after_a_scrub(
    open_queues: Open, item_pool: str
) -> None:
    queues = open_queues()
    queues.put("accept", "a", {}, pool=item_pool)
    drop(queues, *(queues.layout.pool(pool) for pool in {POOL, item_pool}))
    Scrubber(queues.root, queues.claimer, dry_run=True).scrub()
    assert queues.pools.names() == [DEFAULT_POOL]
    with Collector(open_queues(), pools=None) as seen:
        Scrubber(queues.root, queues.claimer).scrub()
        seen.wait_for("a")


def test_an_operator_takes_an_item_whose_pool_has_no_node_any_more(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "a", {}, pool=POOL)
    drop(queues, queues.layout.pool(POOL))
    queues.remove("a")
    assert not queues.contains("a")


@pytest.mark.parametrize("queue", ["accept", "dead"])
def test_folders_of_a_pool_without_a_node_are_removed_when_they_are_empty(
    open_queues: Open, queue: str
) -> None:
    queues = open_queues()
    queues.put(queue, "a", {}, pool=LANE)
    drop(queues, *(queues.layout.pool(pool) for pool in (POOL, LANE)))
    with pytest.raises(PoolInUse, match="1 in"):
        queues.remove_pool(POOL)
    queues.remove("a")
    drop(queues, *(queues.layout.pool(pool) for pool in (POOL, LANE)))
    assert queues.remove_pool(POOL)
    assert nodes_of(queues, POOL) + nodes_of(queues, LANE) == []


def test_a_foreign_node_beside_the_pools_hinders_no_client(open_queues: Open) -> None:
    queues = open_queues()
    commit(queues.session, [Create(f"{queues.layout.pools}/my note")])
    with Collector(open_queues(), pools=None) as seen:
        queues.put("accept", "a", {}, pool=POOL)
        seen.wait_for("a")
    assert queues.pools.names() == [DEFAULT_POOL, POOL]


def test_a_consumer_whose_node_was_removed_by_hand_is_seen_again(open_queues: Open) -> None:
    queues, layout = open_queues(), open_queues().layout
    with Collector(open_queues(), rescan_seconds=SOON):
        (name,) = wait_until(lambda: queues.session.children(layout.consumers), 10, "it is there")
        drop(queues, layout.consumer(name), layout.consumers)
        wait_until(lambda: queues.session.children(layout.consumers) == [name], 10, "it is there again")


# ---------------------------------------------------------------------- stale caches
@pytest.mark.parametrize("together", [False, True], ids=["alone", "with others"])
@pytest.mark.parametrize("release", [False, True])
def test_an_item_moves_into_a_pool_that_was_removed_since_it_was_used(
    open_queues: Open, *, release: bool, together: bool
) -> None:
    queues = open_queues()
    queues.put_many("accept", [NewItem({}, "a"), NewItem({}, "b")])
    queues.ensure_pool(POOL)
    assert open_queues().remove_pool(POOL)
    claims = [claim_of(queues, item_id) for item_id in "ab"]
    steps = [claim.transition(queue="running", pool=POOL, release=release) for claim in claims]
    if together:
        assert [error for _, error in run_transitions(steps)] == [None, None]
    else:
        for step in steps:
            step.run()
    assert {token.id for token in queues.tokens("running", POOL)} == {"a", "b"}
    assert [claim.held for claim in claims] == [not release] * 2


def test_an_item_moves_into_a_folder_that_was_removed_by_hand(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "a", {}, pool=POOL)
    drop(queues, queues.layout.queue("running", POOL))
    queues.move("a", "running")
    assert [token.id for token in queues.tokens("running", POOL)] == ["a"]


def test_a_pause_binds_who_looked_at_the_pool_when_it_was_not_there(open_queues: Open) -> None:
    queues, operator = open_queues(), open_queues()
    assert queues.pools.limits(POOL)[1] < 0
    operator.ensure_pool(POOL)
    operator.pools.change(POOL, paused=True)
    record = operator.put("accept", "a", {}, pool=POOL)
    assert queues.claim("accept", POOL, record.token) is None


def test_pools_that_could_not_be_served_at_once_are_served_later(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, worker = open_queues(), open_queues()
    restore, failed = worker.root.pool_folders.restore, list[str]()

    def fail_once(pool: str) -> bool:
        if pool == POOL and not failed:
            failed.append(pool)
            raise Unreachable("host", 1)
        return restore(pool)

    with Collector(worker, pools=None) as seen:
        monkeypatch.setattr(worker.root.pool_folders, "restore", fail_once)
        queues.put("accept", "a", {}, pool=POOL)
        seen.wait_for("a")
    assert failed


def test_pools_that_come_by_the_hundred_keep_those_that_are_served_waiting_for_none_of_them(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, worker = open_queues(), open_queues()
    monkeypatch.setattr(pool_views, "_ARRANGE_SECONDS", 0.0)
    restore, made = worker.root.pool_folders.restore, list[str]()

    with Collector(worker, pools=None) as seen:
        wait_until(lambda: seen.consumer._views.get(DEFAULT_POOL), 10, "it is served")  # noqa: SLF001 - nothing else shows it

        def restore_and_note(pool: str) -> bool:
            if len(made) == 5:  # of a hundred
                queues.put("accept", "a", {})
            if len(made) == 50 and not seen.claims:
                raise AssertionError("the item waits for all pools")
            made.append(pool)
            return restore(pool)

        monkeypatch.setattr(worker.root.pool_folders, "restore", restore_and_note)
        commit(queues.session, [Create(queues.layout.pool(f"hand-{number}")) for number in range(100)])
        seen.wait_for("a")
        wait_until(lambda: len(made) >= 100, 30, "all pools are served")
        queues.put("accept", "b", {}, pool="hand-0")
        queues.put("accept", "c", {}, pool="hand-99")
        seen.wait_for("a", "b", "c")


def test_a_low_lane_has_its_pool(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", "a", {}, pool=LANE)
    assert queues.pools.names() == [DEFAULT_POOL, POOL]
    with Collector(open_queues(), pools=None) as seen:
        seen.wait_for("a")
