import pytest

from queues.model.errors import InvalidName, ItemNotFound
from queues.model.operations import Create, Set
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.commit import commit
from tests.claims_support import claim_of
from tests.queues_support import Open

MINUTE_MS = 60_000


def put_some(queues: QueueSet, count: int, pool: str = "default") -> list[str]:
    ids = [f"i{number:03}" for number in range(count)]
    queues.put_many("accept", [NewItem({"n": n}, item_id, pool) for n, item_id in enumerate(ids)])
    return ids


def test_an_item_is_looked_up_by_its_id_in_any_queue(open_queues: Open) -> None:
    queues = open_queues()
    assert not queues.contains("a")
    with pytest.raises(ItemNotFound):
        queues.get("a")
    put = queues.put("accept", "a", {"n": 1})
    assert queues.get("a") == put
    claim_of(queues, "a").commit(queue="running", payload={"n": 2})
    assert queues.contains("a")
    assert (queues.get("a").queue, queues.get("a").payload) == ("running", {"n": 2})
    for look in (queues.get, queues.contains):
        with pytest.raises(InvalidName):
            look("a/b")


def test_items_are_listed_in_the_order_in_which_they_are_due_page_by_page(open_queues: Open) -> None:
    queues = open_queues()
    ids = put_some(queues, 25)
    queues.put("accept", "first", {}, due_ms=1)
    queues.put("accept", "last", {}, delay_ms=MINUTE_MS)
    seen: list[str] = []
    after, pages = None, 0
    while pages == 0 or after is not None:
        page = queues.look.page("accept", "default", after=after, limit=10)
        seen += [record.id for record in page.items]
        after, pages = page.after, pages + 1
    assert seen == ["first", *ids, "last"]
    assert pages == 3


def test_a_page_has_only_what_was_asked_for(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 300)
    page = queues.look.page("accept", "default", where=lambda record: record.payload["n"] % 50 == 3, limit=4)
    assert [record.payload["n"] for record in page.items] == [3, 53, 103, 153]
    rest = queues.look.page(
        "accept", "default", where=lambda record: record.payload["n"] % 50 == 3, after=page.after, limit=4
    )
    assert [record.payload["n"] for record in rest.items] == [203, 253]
    assert rest.after is None


def test_pages_go_on_where_they_were_though_items_come_and_go(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 10)
    page = queues.look.page("accept", "default", limit=5)
    for item_id in ("i002", "i004", "i006"):
        queues.remove(item_id)
    queues.put("accept", "new", {})
    rest = queues.look.page("accept", "default", after=page.after)
    assert [record.id for record in rest.items] == ["i005", "i007", "i008", "i009", "new"]


def test_unreadable_and_foreign_nodes_do_not_break_a_listing(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 3)
    commit(queues.session, [Set(queues.layout.record("i001"), b"garbage", -1)])
    foreign = f"{queues.layout.queue('accept', 'default')}/of-another-application"
    commit(queues.session, [Create(foreign, b"x")])
    assert [record.id for record in queues.look.page("accept", "default").items] == ["i000", "i002"]
    assert [token.id for token in queues.tokens("accept")] == ["i000", "i001", "i002"]
    assert queues.session.exists(foreign) is not None


def test_an_empty_queue_has_nothing(open_queues: Open) -> None:
    queues = open_queues()
    look = queues.look
    assert look.page("accept", "default").items == ()
    assert look.page("accept", "default").after is None
    assert look.next_due("accept", "default") is None
    assert look.oldest_seconds("accept", "default") == 0
    assert look.held("default") == []
    assert look.held("no-such-pool") == []
    assert queues.count("accept", "no-such-pool") == 0


def test_items_are_counted_by_queue_and_pool_without_being_listed(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    put_some(queues, 4)
    queues.put("running", "r", {}, pool="team")
    queues.put("running", "low", {}, pool="team.low")
    monkeypatch.setattr(Session, "listing", _refuse_queues(Session.listing, queues))
    assert queues.count("accept") == 4
    assert queues.look.counts() == {
        "accept": {"default": 4, "team": 0, "team.low": 0},
        "running": {"default": 0, "team": 1, "team.low": 1},
        "finish": {"default": 0, "team": 0, "team.low": 0},
        "dead": {"default": 0, "team": 0, "team.low": 0},
    }


def test_the_next_due_item_is_seen_without_being_taken(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 3)
    early = queues.put("accept", "early", {}, due_ms=5).token
    assert queues.look.next_due("accept", "default") == early
    claim_of(queues, "early")  # not held


def test_the_age_of_the_oldest_item_counts_from_its_put_and_not_from_its_last_move(open_queues: Open) -> None:
    queues = open_queues()
    put = queues.put("accept", "a", {})
    queues.put("accept", "b", {}, due_ms=1)
    claim_of(queues, "a").commit(queue="running", due=put.token.due + MINUTE_MS, release=True)
    put_ago = queues.clock.now_ms() / 1000 - put.token.seq / 1_000_000
    assert 0 <= put_ago <= queues.look.oldest_seconds("running", "default") < put_ago + 10


def test_the_holders_of_items_are_listed_with_their_times(open_queues: Open) -> None:
    worker, other, operator = open_queues("worker-1"), open_queues("worker-2"), open_queues()
    for item_id in ("a", "b", "c"):
        worker.put("accept", item_id, {})
    claim_of(worker, "b")
    claim_of(other, "a")
    held = operator.look.held("default")
    assert [(holder.id, holder.worker, holder.pool) for holder in held] == [
        ("a", "worker-2", "default"),
        ("b", "worker-1", "default"),
    ]
    assert [holder.session for holder in held] == [other.session.id, worker.session.id]
    assert all(0 <= holder.seconds < 60 for holder in held)
    assert all(holder.since.endswith("Z") for holder in held)


def test_a_lock_that_is_no_document_is_listed_without_a_name(open_queues: Open) -> None:
    queues = open_queues()
    commit(queues.session, [Create(queues.layout.lock("default", "a"), b"\xff", ephemeral=True)])
    (holder,) = queues.look.held("default")
    assert (holder.id, holder.worker) == ("a", "")


def _refuse_queues(listing: object, queues: QueueSet) -> object:
    folder = f"{queues.layout.root}/queues/"

    def refuse(session: Session, path: str, *rest: object) -> object:
        assert not path.startswith(folder), "the tokens were listed"
        return listing(session, path, *rest)  # type: ignore[operator] # it is the method that was there

    return refuse
