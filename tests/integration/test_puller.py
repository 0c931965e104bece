import threading

from queues.claims.claim import Claim
from queues.dispatch.puller import Puller
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from tests.claims_support import locks
from tests.queues_support import Open, places_of
from tests.waiting import wait_until


def put_some(queues: QueueSet, count: int, queue: str = "accept") -> list[str]:
    ids = [f"{queue}-{number:02}" for number in range(count)]
    queues.put_many(queue, [NewItem({}, item_id) for item_id in ids])
    return ids


def test_as_many_items_are_claimed_as_asked_for_in_their_order(open_queues: Open) -> None:
    queues = open_queues()
    ids = put_some(queues, 5)
    with Puller(open_queues(), ["accept"]) as puller:
        claims: list[Claim] = []
        while len(claims) < 3:
            claims += puller.claim(3 - len(claims), timeout=10)
        assert [claim.id for claim in claims] == ids[:3]
        assert locks(queues) == ids[:3]
        claims[0].commit(queue="finish", release=True)
        assert places_of(queues, ids[0]) == ["finish"]


def test_nothing_is_claimed_before_a_request(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 3)
    with Puller(open_queues(), ["accept"]) as puller:
        folder = queues.layout.consumers
        wait_until(lambda: queues.session.children(folder), 10, "it looks")
        assert locks(queues) == []
        assert len(puller.claim(1, timeout=10)) == 1


def test_no_more_is_held_than_asked_for_though_several_queues_have_items(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 3)
    put_some(queues, 3, "running")
    with Puller(open_queues(), ["accept", "running"]) as puller:
        (claim,) = puller.claim(1, timeout=10)
        assert locks(queues) == [claim.id] == ["accept-00"]


def test_a_claim_without_items_returns_nothing_after_its_timeout(open_queues: Open) -> None:
    with Puller(open_queues(), ["accept"]) as puller:
        assert puller.claim(2) == []
        assert puller.claim(2, timeout=0.2) == []


def test_a_waiting_claim_gets_an_item_that_is_put_meanwhile(open_queues: Open) -> None:
    queues = open_queues()
    got: list[Claim] = []
    with Puller(open_queues(), ["accept"]) as puller:
        thread = threading.Thread(target=lambda: got.extend(puller.claim(1, timeout=20)))
        thread.start()
        queues.put("accept", "new", {})
        thread.join(20)
    assert [claim.id for claim in got] == ["new"]


def test_several_threads_get_different_items(open_queues: Open) -> None:
    queues = open_queues()
    ids = put_some(queues, 20)
    got: list[Claim] = []

    def pull() -> None:
        while claims := puller.claim(2, timeout=1):
            got.extend(claims)

    with Puller(open_queues(), ["accept"]) as puller:
        threads = [threading.Thread(target=pull) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sorted(claim.id for claim in got) == ids


def test_claims_that_were_not_fetched_are_released_at_the_stop(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 3)
    with Puller(open_queues(), ["accept"]) as puller:
        (mine,) = puller.claim(1, timeout=10)
        for claim in puller.claim(2):  # requested, and almost without a wait
            claim.release()
        mine.release()
    assert locks(queues) == []
