from collections.abc import Callable, Iterator

import pytest

from queues.claims.claim import Claim
from queues.claims.lock_sessions import LockSessions
from queues.dispatch.handler_pool import DONE, Action, HandlerPool
from queues.model.errors import ClaimLost
from queues.model.names import DEFAULT_POOL, Layout
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import Session, SessionSettings
from tests.claims_support import SOON, Collector, claim_of, locks
from tests.queues_support import QUEUES, Open, expire, places_of
from tests.waiting import wait_until

LOCKS = 2  # of one session

OpenSmall = Callable[[], QueueSet]


@pytest.fixture
def open_small(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[OpenSmall]:
    """Queue sets whose sessions hold the locks of two items."""
    made: list[QueueSet] = []

    def make() -> QueueSet:
        layout = Layout(zookeeper_root)
        max_bytes = LOCKS * 2 * len(layout.lock(DEFAULT_POOL, "i00"))  # each counts for its slot as well
        settings = SessionSettings(
            zookeeper_hosts, session_timeout=4, call_timeout=20, max_ephemeral_bytes=max_bytes
        )
        queues = QueueSet(Session(settings).start(), layout, QUEUES, owner="small")
        queues.ensure_pool()
        made.append(queues)
        return queues

    yield make
    for queues in made:
        queues.close()
        queues.session.close()


def put_some(queues: QueueSet, count: int) -> list[str]:
    ids = [f"i{number:02}" for number in range(count)]
    queues.put_many("accept", [NewItem({"n": 0}, item_id) for item_id in ids])
    return ids


def owner(queues: QueueSet, item_id: str, pool: str = DEFAULT_POOL) -> int:
    stat = queues.session.exists(queues.layout.lock(pool, item_id))
    assert stat is not None
    return stat.owner


def lose(queues: QueueSet, claim: Claim) -> None:
    queues.move(claim.id, "running", force=True)
    with pytest.raises(ClaimLost):
        claim.release()


def sessions_of(claims: list[Claim]) -> list[Session]:
    return list(dict.fromkeys(claim.hold.session for claim in claims))


def test_no_session_owns_more_paths_than_it_may(open_small: OpenSmall) -> None:
    queues = open_small()
    claims = [claim_of(queues, item_id) for item_id in put_some(queues, 5)]
    owners = [owner(queues, claim.id) for claim in claims]
    assert sorted(owners.count(session) for session in set(owners)) == [1, 2, 2]
    assert owners == [claim.hold.session.id for claim in claims]
    assert owners[0] == queues.session.id


def test_the_capacity_of_released_items_is_used_again(open_small: OpenSmall) -> None:
    queues = open_small()
    endings: list[Callable[[Claim], None]] = [
        lambda claim: claim.release(),
        lambda claim: claim.remove(),
        lambda claim: claim.commit(queue="running", release=True),
        lambda claim: claim.commit(pool="other", release=True),
        lambda claim: lose(queues, claim),
    ]
    for item_id, end in zip(put_some(queues, 5), endings, strict=True):
        end(claim_of(queues, item_id))
    claims = [
        claim_of(queues, item_id, queue=queue) for item_id, queue in (("i02", "running"), ("i00", "accept"))
    ]
    assert len(claims) == LOCKS
    assert sessions_of(claims) == [queues.session]


def test_items_in_another_session_are_fenced_as_those_in_the_first(
    open_small: OpenSmall, open_queues: Open
) -> None:
    queues, other = open_small(), open_queues()
    claims = [claim_of(queues, item_id) for item_id in put_some(queues, 3)]
    stale = claims[2]
    assert stale.hold.session is not queues.session
    (token,) = [token for token in other.tokens("accept") if token.id == stale.id]
    assert other.claim("accept", DEFAULT_POOL, token) is None
    expire(stale.hold.session)
    with pytest.raises(ClaimLost):
        stale.check()
    claim = claim_of(other, stale.id)
    with pytest.raises(ClaimLost):
        stale.commit(queue="finish")
    with pytest.raises(ClaimLost):
        stale.remove()
    assert places_of(other, stale.id) == ["accept"]
    claim.commit(queue="running")
    for untouched in claims[:2]:
        untouched.check()
        untouched.commit(queue="finish", release=True)


def test_the_end_of_the_first_session_does_not_end_what_others_hold(open_small: OpenSmall) -> None:
    queues = open_small()
    claims = [claim_of(queues, item_id) for item_id in put_some(queues, 3)]
    expire(queues.session)
    for lost in claims[:2]:
        with pytest.raises(ClaimLost):
            lost.check()
    claims[2].check()
    claims[2].commit(queue="finish", release=True)
    assert places_of(queues, "i02") == ["finish"]


def test_an_item_in_another_session_can_be_taken_by_force(open_small: OpenSmall, open_queues: Open) -> None:
    queues, operator = open_small(), open_queues()
    claims = [claim_of(queues, item_id) for item_id in put_some(queues, 3)]
    operator.move("i02", "finish", force=True)
    with pytest.raises(ClaimLost):
        claims[2].commit(payload={})
    assert places_of(operator, "i02") == ["finish"]


def test_a_lock_that_moves_to_another_pool_stays_in_its_session(open_small: OpenSmall) -> None:
    queues = open_small()
    claims = [claim_of(queues, item_id) for item_id in put_some(queues, 3)]
    claims[2].commit(pool="other")
    assert owner(queues, "i02", "other") == claims[2].hold.session.id
    claims[2].commit(queue="finish", release=True)
    assert locks(queues, "other") == []


def test_slots_of_a_capped_pool_are_in_the_session_of_their_lock(open_small: OpenSmall) -> None:
    queues = open_small()
    ids = put_some(queues, 4)
    queues.pools.change(DEFAULT_POOL, cap=3)
    claims = [claim_of(queues, item_id) for item_id in ids[:3]]
    (token,) = [token for token in queues.tokens("accept") if token.id == "i03"]
    assert queues.claim("accept", DEFAULT_POOL, token) is None
    expire(claims[2].hold.session)
    assert len(queues.session.children(queues.layout.holds(DEFAULT_POOL)) or ()) == 2
    assert queues.claim("accept", DEFAULT_POOL, token) is not None


def test_an_orphan_lock_in_another_session_is_released_by_the_rescan(open_small: OpenSmall) -> None:
    queues = open_small()
    ids = put_some(queues, 3)
    with Collector(queues, rescan_seconds=SOON) as seen:
        seen.wait_for(*ids)
        assert len(sessions_of(seen.claims)) == 2
        seen.claims[2].abandon()
        seen.wait_for(*ids, "i02")


def test_items_held_in_another_session_that_ended_are_found_again(open_small: OpenSmall) -> None:
    queues = open_small()
    ids = put_some(queues, 3)
    with Collector(queues, rescan_seconds=SOON) as seen:
        seen.wait_for(*ids)
        stale = seen.claims[2]
        expire(stale.hold.session)
        with pytest.raises(ClaimLost):
            stale.check()
        seen.wait_for(*ids, "i02")


def test_handlers_work_through_a_queue_in_many_sessions(open_small: OpenSmall) -> None:
    queues = open_small()
    ids = put_some(queues, 40)
    handled: list[str] = []
    used: set[int] = set()

    def handle(claim: Claim) -> Action:
        used.add(owner(queues, claim.id))
        handled.append(claim.id)
        return DONE

    with HandlerPool(queues, ["accept"], handle, threads=4, held=8):
        wait_until(lambda: queues.count("accept") == 0, 20, "all are done")
    assert sorted(handled) == ids
    assert 1 < len(used) <= 5  # the first one owns the node of the consumer too
    assert locks(queues) == []


def test_all_sessions_that_were_opened_end_with_the_queue_set(open_small: OpenSmall) -> None:
    queues = open_small()
    claims = [claim_of(queues, item_id) for item_id in put_some(queues, 3)]
    queues.close()
    wait_until(lambda: locks(queues) == ["i00", "i01"], 10, "the lock of the other session is gone")
    for claim in claims:
        claim.abandon()  # a thread that still has one may drop it
    assert queues.session.wait_connected(0)  # it was not opened there


def test_capacity_is_counted_for_each_session(zookeeper_hosts: str) -> None:
    with Session(SessionSettings(zookeeper_hosts, max_ephemeral_bytes=100)) as first:
        sessions = LockSessions(first)
        assert sessions.reserve(60) is first
        second = sessions.reserve(60)
        assert second is not first
        assert sessions.reserve(40) is first
        sessions.give_back(first, 60)
        assert sessions.reserve(60) is first
        assert sessions.owns(first.id)
        assert sessions.owns(second.id)
        assert not sessions.owns(1)
        sessions.close()
        assert not sessions.owns(second.id)


def test_a_listener_is_called_for_each_session(zookeeper_hosts: str) -> None:
    with Session(SessionSettings(zookeeper_hosts, session_timeout=4, max_ephemeral_bytes=100)) as first:
        sessions = LockSessions(first)
        woken: list[bool] = []
        sessions.on_change(lambda: woken.append(True))
        sessions.reserve(60)
        expire(sessions.reserve(60))
        assert woken
        sessions.close()
