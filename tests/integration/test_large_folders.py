"""Folders too large to be listed for each change: events name the nodes that come and go."""

from collections.abc import Callable

import pytest

from queues.model.errors import Refused
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import Session, Stat, Wake
from queues.session.connection import Follow
from queues.store import watched_folder
from queues.store.watched_folder import WatchedFolder
from tests.claims_support import SOON, Collector
from tests.queues_support import Open, expire
from tests.waiting import wait_until

COUNT = 60
LATER_MS = 3_600_000

Listings = Callable[[], int]


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_folder, "LARGE", COUNT // 2)


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> Listings:
    """The number of listings of accept by any client."""
    listing, listed = Session.listing, list[str]()

    def note(session: Session, path: str, wake: Wake | None = None) -> tuple[list[str], Stat] | None:
        if path.endswith("/accept/default"):
            listed.append(path)
        return listing(session, path, wake)

    monkeypatch.setattr(Session, "listing", note)
    return lambda: len(listed)


def fill(queues: QueueSet) -> None:
    """Items that are not due."""
    queues.put_many("accept", [NewItem({}, f"later-{n:02}", delay_ms=LATER_MS + n) for n in range(COUNT)])


def wait_followed(seen: Collector) -> WatchedFolder:
    """The folder of accept, when it is followed and listed."""
    view = wait_until(lambda: seen.consumer._views.get("default"), 10, "the pool is served")  # noqa: SLF001 - nothing else shows it
    folder = view.backlog_of("accept").folder
    wait_until(lambda: folder.is_followed and not folder.changed, 10, "the folder is followed")
    return folder


def test_a_new_due_item_of_a_large_folder_is_found_without_a_listing(
    open_queues: Open, listings: Listings
) -> None:
    queues = open_queues()
    fill(queues)
    with Collector(open_queues()) as seen:
        wait_followed(seen)
        before = listings()
        for item_id in ("a", "b", "c"):
            queues.put("accept", item_id, {})
            wait_until(lambda item_id=item_id: item_id in seen.ids(), 10, f"{item_id} is handed out")  # type: ignore[misc] # mypy cannot type the default of a lambda
        queues.put("accept", "soon", {}, delay_ms=300)
        queues.put("accept", "first", {}, delay_ms=100)
        seen.wait_for("a", "b", "c", "first", "soon")
        assert seen.ids()[3:] == ["first", "soon"]
        assert listings() == before


def test_a_rescan_of_a_large_folder_lists_nothing_after_complete_events(
    open_queues: Open, listings: Listings, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice, noticed = WatchedFolder.notice, list[str]()

    def note(folder: WatchedFolder, stat: Stat | None) -> None:
        notice(folder, stat)
        noticed.append(folder.path)

    queues = open_queues()
    fill(queues)
    with Collector(open_queues(), rescan_seconds=0.05) as seen:
        folder = wait_followed(seen)
        before = listings()
        queues.put("accept", "a", {})
        seen.wait_for("a")
        monkeypatch.setattr(WatchedFolder, "notice", note)
        wait_until(lambda: noticed.count(folder.path) >= 3, 10, "it was rescanned")
        assert listings() == before


def test_a_rescan_finds_changes_without_events(open_queues: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    queues = open_queues()
    fill(queues)
    monkeypatch.setattr(WatchedFolder, "_on_news", lambda *_: None)
    with Collector(open_queues(), rescan_seconds=SOON) as seen:
        wait_followed(seen)
        queues.put("accept", "a", {})
        seen.wait_for("a")


def test_an_item_that_is_gone_from_a_large_folder_is_not_tried(open_queues: Open) -> None:
    queues = open_queues()
    fill(queues)
    with Collector(open_queues(), room=1) as seen:
        folder = wait_followed(seen)
        seen.room = 0
        queues.put_many("accept", [NewItem({}, item_id) for item_id in ("gone", "stays")])
        wait_until(lambda: len(folder._news) == 2, 10, "the event has come")  # noqa: SLF001 - nothing else shows it
        backlog = seen.consumer._views["default"].backlog_of("accept")  # noqa: SLF001 - likewise
        queues.remove("gone")
        wait_until(lambda: len(folder._news) == 3, 10, "the event has come")  # noqa: SLF001 - likewise
        seen.room = 2
        seen.consumer.look_again()
        seen.wait_for("stays")
        assert not backlog.find({"gone"})


def test_consumers_share_what_comes_into_a_large_folder(open_queues: Open) -> None:
    queues = open_queues()
    fill(queues)
    with (
        Collector(open_queues("a"), then=lambda claim: claim.remove()) as first,
        Collector(open_queues("b"), then=lambda claim: claim.remove()) as second,
    ):
        for seen in (first, second):
            wait_followed(seen)
        wait_until(
            lambda: len(queues.session.children(queues.layout.consumers) or ()) == 2, 10, "both are there"
        )
        queues.put_many("accept", [NewItem({}, f"i{number:02}") for number in range(40)])
        wait_until(lambda: len(first.claims) + len(second.claims) == 40, 10, "all are handed out")
        assert len({*first.ids(), *second.ids()}) == 40


def test_two_consumers_of_one_session_are_both_notified(open_queues: Open) -> None:
    queues, worker = open_queues(), open_queues()
    fill(queues)
    with Collector(worker) as first, Collector(worker) as second:
        for seen in (first, second):
            wait_followed(seen)
        queues.put_many("accept", [NewItem({}, f"i{number:02}") for number in range(20)])
        wait_until(lambda: len(first.claims) + len(second.claims) == 20, 10, "all are handed out")


def test_a_large_folder_is_followed_again_after_a_lost_session(open_queues: Open) -> None:
    queues, worker = open_queues(), open_queues()
    fill(queues)
    with Collector(worker) as seen:
        wait_followed(seen)
        expire(worker.session)
        queues.put("accept", "a", {})
        seen.wait_for("a")
        wait_followed(seen)
        queues.put("accept", "b", {})
        seen.wait_for("a", "b")


def test_a_server_without_the_needed_watches_is_asked_for_listings(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_session: Session, path: str, _follow: Follow) -> None:
        raise Refused(path, "Unimplemented")

    monkeypatch.setattr(Session, "follow", refuse)
    queues = open_queues()
    fill(queues)
    with Collector(open_queues()) as seen:
        queues.put("accept", "a", {})
        seen.wait_for("a")
        queues.put("accept", "b", {})
        seen.wait_for("a", "b")
    assert caplog.text.count("are detected late") == 1


def test_changes_that_are_never_fetched_are_listed_in_the_end(
    open_queues: Open, listings: Listings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_folder, "_MAX_NEWS", 5)
    queues = open_queues()
    fill(queues)
    with Collector(open_queues(), room=1) as seen:
        folder = wait_followed(seen)
        seen.room = 0
        before = listings()
        queues.put_many("accept", [NewItem({}, f"i{number:02}") for number in range(20)])
        wait_until(lambda: folder.changed, 10, "some were not kept")
        seen.room = 20
        seen.consumer.look_again()
        seen.wait_count(20)
    assert listings() > before


def test_names_below_the_folder_of_the_hosts_are_reported(zookeeper_hosts: str, zookeeper_root: str) -> None:
    hosts = f"{zookeeper_hosts}{zookeeper_root}"
    with QueueSet.connect(hosts, "/inner", ["accept"]) as queues:
        queues.ensure_pool()
        fill(queues)
        with QueueSet.connect(hosts, "/inner", ["accept"]) as worker, Collector(worker) as seen:
            wait_followed(seen)
            queues.put("accept", "a", {})
            seen.wait_for("a")
            seen.claims.pop().remove()
