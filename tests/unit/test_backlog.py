import math
from collections.abc import Callable, Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.consumer.backlog import Backlog, Share
from queues.model.names import Token
from queues.session import Session, Stat
from queues.session.connection import Follow
from queues.store import watched_folder
from queues.store.watched_folder import WatchedFolder

DUES = st.lists(st.integers(1, 50), max_size=30)


class FakeSession(Session):
    """Lists names that a test sets; the backlog uses nothing else of a session."""

    def __init__(self) -> None:
        self.names: list[str] | None = []
        self.listings = 0
        self.zxid = 0
        self.fails = False
        self.watch: Callable[[], None] | None = None
        self.follower: Follow | None = None

    @property
    def connections(self) -> int:
        return 1

    def follow(self, _path: str, follow: Follow) -> None:
        self.follower = follow

    def notify(self, name: str, *, there: bool) -> None:
        """A child of a followed folder comes or goes."""
        self.zxid += 1
        assert self.follower is not None
        self.follower(name, there, self.zxid)

    def listing(self, path: str, wake: Callable[[], None] | None = None) -> tuple[list[str], Stat] | None:
        self.listings += 1
        self.watch = wake
        if self.fails:
            raise ConnectionError(path)
        if self.names is None:
            return None
        return list(self.names), Stat(0, 0, 0, len(self.names), self.zxid, 0)

    def change(self, *names: str) -> None:
        """Another client has changed the folder: the watch fires once."""
        self.names = list(names)
        self.zxid += 1
        watch, self.watch = self.watch, None
        if watch is not None:
            watch()


class Made:
    """A backlog of a folder that a test fills."""

    def __init__(self, *names: str, follows: bool = False) -> None:
        self.session = FakeSession()
        self.session.names = list(names)
        self.woken: list[bool] = []
        self.foreign: list[tuple[str, str]] = []
        self.folder = WatchedFolder(self.session, "/q", lambda: self.woken.append(True), follows=follows)
        self.backlog = Backlog("accept", "default", self.folder, lambda q, n: self.foreign.append((q, n)))

    def refresh(self, now: int, *, force: bool = False) -> bool:
        self.folder._listed_at = -math.inf  # noqa: SLF001 - as if it had rested
        return self.backlog.refresh(at(now), force=force)

    def take_all(self, now: int, held: Collection[str] = ()) -> list[str]:
        taken = []
        while (name := self.backlog.take(at(now), lambda item_id: item_id not in held)) is not None:
            taken.append(ids(name))
        return taken


def at(now: int) -> str:
    return f"{now:011x}"


def token(item_id: str, due: int, seq: int = 0) -> str:
    return Token(due=due, seq=seq, id=item_id).name


def ids(name: str) -> str:
    parsed = Token.parse(name)
    assert parsed is not None
    return parsed.id


# ---------------------------------------------------------------------- order
@given(DUES)
def test_what_is_due_comes_by_due_time_then_sequence_and_what_is_not_waits(dues: list[int]) -> None:
    made = Made(*(token(f"i{seq}", due, seq) for seq, due in enumerate(dues)))
    made.refresh(now=25)
    expected = [f"i{seq}" for due, seq in sorted((due, seq) for seq, due in enumerate(dues)) if due <= 25]
    assert made.take_all(now=25) == expected
    later = [due for due in dues if due > 25]
    assert made.backlog.next_due(others=False) == (at(min(later)) if later else None)


def test_an_empty_or_missing_folder_has_nothing() -> None:
    made = Made()
    assert made.refresh(now=1)
    assert made.take_all(now=1) == []
    made.session.names = None
    made.folder.changed = True
    made.refresh(now=2)
    assert made.take_all(now=2) == []
    assert made.backlog.next_due(others=True) is None


def test_foreign_names_are_reported_and_left_out() -> None:
    made = Made("of-another-application", token("a", 1), "queue-", "queue-|a|b")
    made.refresh(now=5)
    assert made.take_all(now=5) == ["a"]
    assert made.foreign == [("accept", name) for name in ("of-another-application", "queue-", "queue-|a|b")]


def test_a_name_that_only_looks_like_a_token_does_no_harm_to_the_others() -> None:
    fake = "queue-|a b|" + at(1) + "|" + "0" * 13
    made = Made(fake, token("a", 2))
    made.refresh(now=5)
    names = [made.backlog.take(at(5), lambda _id: True) for _ in range(2)]
    assert names == [fake, token("a", 2)]  # its parser reports it


# ---------------------------------------------------------------------- listing
def test_it_is_listed_once_while_nothing_changes() -> None:
    made = Made(token("a", 1))
    assert made.refresh(now=5)
    assert not made.refresh(now=6)
    assert made.session.listings == 1


def test_it_is_not_listed_again_while_what_is_known_goes_before_all_that_may_have_come() -> None:
    made = Made(token("a", 1), token("b", 2), token("c", 9))
    made.refresh(now=5)
    made.folder._cost = 1.0  # noqa: SLF001 - a free listing is made nevertheless
    made.session.change(token("a", 1), token("b", 2), token("c", 9), token("new", 6))
    assert made.woken
    assert not made.refresh(now=6)
    assert made.take_all(now=6) == ["a", "b"]
    assert made.refresh(now=9)
    assert made.take_all(now=9) == ["a", "b", "new", "c"]  # as listed; the claim of a removed item fails


def test_an_item_due_after_the_last_listing_waits_for_another_after_a_change() -> None:
    made = Made(token("c", 9))
    made.refresh(now=5)
    made.session.change(token("c", 9), token("new", 7))
    assert made.take_all(now=9) == []
    assert made.backlog.must_list_first()
    made.refresh(now=9)
    assert made.take_all(now=9) == ["new", "c"]


def test_an_item_due_after_the_last_listing_is_taken_if_nothing_has_changed() -> None:
    made = Made(token("c", 9))
    made.refresh(now=5)
    assert made.take_all(now=8) == []
    assert made.take_all(now=9) == ["c"]


def test_a_listing_that_failed_is_done_again() -> None:
    made = Made(token("a", 1))
    made.session.fails = True
    with pytest.raises(ConnectionError):
        made.refresh(now=5)
    made.session.fails = False
    assert made.refresh(now=5)
    assert made.take_all(now=5) == ["a"]


def test_a_change_without_a_watch_event_is_noticed_by_its_zxid() -> None:
    made = Made()
    made.refresh(now=1)
    made.session.watch = None  # lost
    made.session.change(token("a", 1))
    assert not made.refresh(now=2)
    made.folder.notice(Stat(0, 0, 0, 1, made.session.zxid, 0))
    assert made.refresh(now=3)
    assert made.take_all(now=3) == ["a"]


def test_an_invalidated_backlog_is_listed_before_anything_more_is_taken() -> None:
    made = Made(token("a", 1), token("b", 2))
    made.refresh(now=5)
    made.backlog.invalidate()
    assert made.take_all(now=5) == []
    assert made.refresh(now=5)
    assert made.take_all(now=5) == ["a", "b"]


def test_a_change_is_waited_for_until_it_is_listed_also_when_the_folder_has_rested_by_now() -> None:
    made = Made()
    made.refresh(now=1)
    made.session.change(token("a", 1))
    made.folder._cost = 6.0  # noqa: SLF001 - of the last listing
    assert 0 < made.backlog.rest_left(at(2)) <= 60
    assert not made.backlog.refresh(at(2))
    made.folder._listed_at = -math.inf  # noqa: SLF001 - the rest is over, a moment after the call
    assert made.backlog.rest_left(at(2)) == 0
    assert made.backlog.refresh(at(2))
    assert made.backlog.rest_left(at(2)) == math.inf


def test_a_change_behind_what_is_due_is_not_waited_for() -> None:
    made = Made(token("a", 1))
    made.refresh(now=5)
    made.session.change(token("a", 1), token("b", 6))
    assert made.backlog.rest_left(at(7)) == math.inf


def test_a_folder_rests_after_a_listing() -> None:
    folder = WatchedFolder(FakeSession(), "/q", lambda: None, rest=60)
    assert folder.refresh()
    folder.changed = True
    assert not folder.refresh()
    assert 0 < folder.rest_left() <= 60


def test_a_listing_that_costs_nothing_is_there_when_it_is_urgent() -> None:
    folder = WatchedFolder(FakeSession(), "/q", lambda: None, rest=60)
    assert folder.refresh()
    folder.changed = True
    assert folder.refresh(urgent=True)


# ---------------------------------------------------------------------- large
@given(
    names=st.lists(st.integers(0, 15), unique=True, min_size=1),
    changes=st.lists(st.tuples(st.integers(0, 15), st.booleans())),
    of=st.integers(1, 3),
)
def test_events_of_a_large_folder_lead_to_the_same_backlog_as_a_listing(
    names: list[int], changes: list[tuple[int, bool]], of: int
) -> None:
    # Some have the same due time and sequence: they come from another producer.
    tokens = [token(f"i{number}", number // 4, number // 2) for number in range(16)]
    there = {tokens[number] for number in names}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watched_folder, "LARGE", 1)
        made = Made(*there, follows=True)
        made.backlog.divide(Share(0, of))
        assert made.refresh(now=9)
        for number, comes in changes:
            (there.add if comes else there.discard)(tokens[number])
            made.session.notify(tokens[number], there=comes)
    has_come = any(comes for _, comes in changes)
    assert made.backlog.rest_left(at(9)) == (0 if changes else math.inf)
    assert made.backlog.refresh(at(9)) == has_come
    listed = Made(*there)
    listed.backlog.divide(Share(0, of))
    listed.refresh(now=9)
    assert sorted(made.take_all(now=9)) == sorted(listed.take_all(now=9))
    assert sorted(made.backlog.find({f"i{number}" for number in range(16)})) == sorted(
        listed.backlog.find({f"i{number}" for number in range(16)})
    )
    assert made.session.listings == 2


def test_items_from_events_of_a_large_folder_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_folder, "LARGE", 1)
    made = Made(token("b", 3), token("e", 9), follows=True)
    made.refresh(now=4)
    for item_id, due in (("d", 5), ("a", 1), ("c", 4)):
        made.session.notify(token(item_id, due), there=True)
    made.session.notify("no-token", there=True)
    assert made.backlog.refresh(at(9))
    assert made.take_all(now=9) == ["a", "b", "c", "d", "e"]
    assert made.foreign == [("accept", "no-token")]


# ---------------------------------------------------------------------- held by others
def test_held_items_are_deferred_and_return_in_order_when_they_are_free() -> None:
    made = Made(*(token(item_id, due) for due, item_id in enumerate("abcd", 1)))
    made.refresh(now=9)
    assert made.take_all(now=2, held={"a", "b"}) == []
    assert made.backlog.has_deferred()
    made.backlog.restore_deferred(lambda item_id: item_id == "b")
    assert made.take_all(now=9, held={"a"}) == ["b", "c", "d"]
    made.backlog.restore_deferred(lambda _id: True)
    assert made.take_all(now=9) == ["a"]
    assert not made.backlog.has_deferred()


def test_an_item_that_could_not_be_claimed_is_deferred_or_offered_again() -> None:
    made = Made(token("a", 1), token("b", 2), token("c", 3))
    made.refresh(now=9)
    first, second = (made.backlog.take(at(9), lambda _id: True) for _ in range(2))
    assert first is not None
    assert second is not None
    made.backlog.defer(first)
    made.backlog.put_back(second)
    assert made.take_all(now=9) == ["b", "c"]
    made.backlog.restore_deferred(lambda _id: True)
    assert made.take_all(now=9) == ["a"]


def test_items_are_found_by_id_wherever_they_are_and_due_or_not() -> None:
    made = Made(token("due", 1), token("held", 2), token("later", 99))
    made.refresh(now=9)
    made.take_all(now=9, held={"due", "held", "later"})
    assert {ids(name) for name in made.backlog.find({"held", "later", "absent"})} == {"held", "later"}
    made.backlog.restore_deferred(lambda _id: True)
    assert made.take_all(now=100) == ["due"]


# ---------------------------------------------------------------------- shares
@given(st.integers(1, 8), st.sets(st.text("abcxyz-_.", min_size=1, max_size=8), max_size=40))
def test_every_item_falls_to_exactly_one_consumer(count: int, items: set[str]) -> None:
    shares = [Share(number, count) for number in range(count)]
    for item in items:
        assert sum(share.contains(item) for share in shares) == 1


def test_a_consumer_before_its_membership_has_no_share_and_a_single_member_has_all() -> None:
    assert not Share(None, 2).contains("a")
    assert Share(None, 1).contains("a")
    assert Share().contains("a")


def test_only_the_own_share_is_taken_and_others_share_only_after_a_while() -> None:
    items = [f"i{number}" for number in range(40)]
    made = Made(*(token(item, due) for due, item in enumerate(items, 1)))
    share = Share(0, 2)
    made.backlog.divide(share)
    made.refresh(now=100)
    mine = [item for item in items if share.contains(item)]
    assert made.take_all(now=100) == mine
    others = [item for item in items if not share.contains(item)]
    assert made.backlog.next_due(others=True) == at(items.index(others[0]) + 1)
    stolen: list[str] = []
    while names := made.backlog.take_over(at(30), 4, lambda _id: True):
        assert len(names) <= 4
        stolen += map(ids, names)
    assert sorted(stolen) == sorted(item for item in others if items.index(item) + 1 <= 30)


def test_a_held_item_is_not_taken_over() -> None:
    made = Made(token("a", 1), token("b", 2))
    made.backlog.divide(Share(None, 2))
    made.refresh(now=9)
    stolen: list[str] = []
    for _ in range(4):
        stolen += map(ids, made.backlog.take_over(at(9), 10, lambda item_id: item_id != "a"))
    assert stolen == ["b"]
    assert made.backlog.has_deferred()


def test_another_share_redistributes_what_is_known() -> None:
    items = [f"i{number}" for number in range(20)]
    made = Made(*(token(item, due) for due, item in enumerate(items, 1)))
    made.backlog.divide(Share(None, 2))
    made.refresh(now=100)
    assert made.take_all(now=100) == []
    made.backlog.divide(Share())
    assert made.take_all(now=100) == items
    assert made.session.listings == 1
