from collections.abc import Callable, Iterator, Sequence

import pytest

from queues.model.errors import Conflict, OutcomeUnknown, QueueError, TooLarge
from queues.model.names import Layout
from queues.model.operations import Check, Create, Delete, Operation, Set
from queues.session import Posted, Session, SessionSettings
from queues.store import batch
from queues.store.batch import commit_many
from queues.store.commit import MAX_MULTI_BYTES, Receipts, commit
from tests.claims_support import Lost, lose_reply, names_node


@pytest.fixture
def session(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[Session]:
    with Session(SessionSettings(zookeeper_hosts, session_timeout=4, call_timeout=10)) as made:
        made.ensure_path(zookeeper_root)
        yield made


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Operation]]:
    """The multis that are sent from now on."""
    post, multis = Session.post, list[Sequence[Operation]]()

    def note(session: Session, operations: Sequence[Operation]) -> Posted:
        multis.append(operations)
        return post(session, operations)

    monkeypatch.setattr(Session, "post", note)
    return multis


def reasons(outcomes: Sequence[QueueError | None]) -> list[str | None]:
    return [None if o is None else o.reason if isinstance(o, Conflict) else str(o) for o in outcomes]


def children(session: Session, root: str) -> list[str]:
    return sorted(session.children(root) or ())


def test_many_steps_travel_in_few_multis(
    session: Session, zookeeper_root: str, sent: list[Sequence[Operation]]
) -> None:
    steps = [[Create(f"{zookeeper_root}/{number}")] for number in range(1_000)]
    assert commit_many(session, steps) == [None] * 1_000
    assert len(children(session, zookeeper_root)) == 1_000
    assert len(sent) < 10


def test_an_empty_batch_sends_nothing(session: Session, sent: list[Sequence[Operation]]) -> None:
    assert commit_many(session, []) == []
    assert sent == []


def test_a_step_that_is_refused_has_its_reason_and_its_companions_are_done(
    session: Session, zookeeper_root: str
) -> None:
    root = zookeeper_root
    commit(session, [Create(f"{root}/taken", b"first")])
    steps: list[list[Operation]] = [
        [Create(f"{root}/a"), Create(f"{root}/a-too")],
        [Create(f"{root}/b"), Create(f"{root}/taken")],
        [Set(f"{root}/taken", b"", 7)],
        [Create(f"{root}/c")],
        [Check(f"{root}/nobody"), Create(f"{root}/d")],
        [Create(f"{root}/e")],
    ]
    outcomes = commit_many(session, steps)
    assert reasons(outcomes) == [None, "NodeExists", "BadVersion", None, "NoNode", None]
    assert children(session, root) == ["a", "a-too", "c", "e", "taken"]
    refused = outcomes[1]
    assert isinstance(refused, Conflict)
    assert (refused.index, refused.operation) == (1, Create(f"{root}/taken"))  # its index in its own step
    assert not refused.ambiguous


def test_each_step_is_done_as_a_whole_or_not_at_all(session: Session, zookeeper_root: str) -> None:
    root = zookeeper_root
    steps: list[list[Operation]] = [
        [Create(f"{root}/{n}-first"), Delete(f"{root}/nobody" if n % 3 == 0 else f"{root}/{n}-first")]
        for n in range(60)
    ]
    outcomes = commit_many(session, steps)
    assert reasons(outcomes) == ["NoNode" if n % 3 == 0 else None for n in range(60)]
    assert children(session, root) == []


def test_of_two_that_want_the_same_node_the_first_gets_it(session: Session, zookeeper_root: str) -> None:
    root = zookeeper_root
    steps = [[Create(f"{root}/node", str(n).encode())] for n in range(2)]
    assert reasons(commit_many(session, steps)) == [None, "NodeExists"]
    found = session.get(f"{root}/node")
    assert found is not None
    assert found[0] == b"0"


def test_of_many_creations_of_the_same_node_one_succeeds_and_is_reported_so(
    session: Session, zookeeper_root: str
) -> None:
    root = zookeeper_root
    steps = [[Create(f"{root}/node", str(n).encode())] for n in range(20)]
    outcomes = reasons(commit_many(session, steps))
    assert sorted(outcomes, key=str) == ["NodeExists"] * 19 + [None]
    found = session.get(f"{root}/node")
    assert found is not None
    assert found[0] == str(outcomes.index(None)).encode()


def test_a_step_that_was_in_the_way_of_another_and_fails_itself_does_not_take_it_along(
    session: Session, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, post, sent = zookeeper_root, Session.post, list[Sequence[Operation]]()
    commit(session, [Create(f"{root}/guard")])

    def lift_the_guard(session: Session, operations: Sequence[Operation]) -> Posted:
        sent.append(operations)
        if len(sent) == 2:  # both were refused; the first one is sent again next
            post(session, [Delete(f"{root}/guard")]).results(10)
        return post(session, operations)

    monkeypatch.setattr(Session, "post", lift_the_guard)
    steps: list[list[Operation]] = [
        [Create(f"{root}/node", b"0"), Check(f"{root}/guard")],
        [Create(f"{root}/node", b"1")],
    ]
    assert reasons(commit_many(session, steps)) == ["NoNode", None]
    found = session.get(f"{root}/node")
    assert found is not None
    assert found[0] == b"1"


def test_steps_that_follow_each_other_on_one_node_are_done_in_their_order(
    session: Session, zookeeper_root: str
) -> None:
    path = f"{zookeeper_root}/node"
    steps: list[list[Operation]] = [[Create(path)]]
    steps += [[Set(path, str(n).encode(), n)] for n in range(900)]
    assert commit_many(session, steps) == [None] * 901
    stat = session.exists(path)
    assert stat is not None
    assert stat.version == 900


def test_a_step_that_is_too_large_for_any_multi_fails_alone(session: Session, zookeeper_root: str) -> None:
    root = zookeeper_root
    steps = [
        [Create(f"{root}/a", b"x" * 1_000)],
        [Create(f"{root}/b", b"x" * MAX_MULTI_BYTES)],
        [Create(f"{root}/c")],
    ]
    outcomes = commit_many(session, steps)
    assert [type(outcome) for outcome in outcomes] == [type(None), TooLarge, type(None)]
    assert children(session, root) == ["a", "c"]


def test_no_multi_is_larger_than_the_server_takes(
    session: Session, zookeeper_root: str, sent: list[Sequence[Operation]]
) -> None:
    data = b"x" * 60_000
    steps = [[Create(f"{zookeeper_root}/{number}", data)] for number in range(40)]
    assert commit_many(session, steps) == [None] * 40
    assert max(sum(len(o.data) for o in multi if isinstance(o, Create)) for multi in sent) <= MAX_MULTI_BYTES
    assert len(sent) == 4


def test_steps_are_made_while_those_before_them_are_on_their_way(
    session: Session, zookeeper_root: str, sent: list[Sequence[Operation]]
) -> None:
    sent_when_made: list[int] = []

    def steps() -> Iterator[list[Operation]]:
        for number in range(1_200):
            sent_when_made.append(len(sent))
            yield [Create(f"{zookeeper_root}/{number}")]

    assert commit_many(session, steps()) == [None] * 1_200
    assert sent_when_made[0] == 0
    assert sent_when_made[-1] > 0


def test_steps_whose_reply_was_lost_are_done_once_and_their_conflicts_are_ambiguous(
    session: Session, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = zookeeper_root
    commit(session, [Create(f"{root}/counter")])
    steps: list[list[Operation]] = [
        [Set(f"{root}/counter", b"1", 0)],  # applied, and refused when it is sent again
        [Create(f"{root}/new")],
    ]
    lose_reply(monkeypatch, names_node("/counter"))
    outcomes = commit_many(session, steps)
    assert reasons(outcomes) == ["BadVersion", "NodeExists"]
    assert all(isinstance(outcome, Conflict) and outcome.ambiguous for outcome in outcomes)
    stat = session.exists(f"{root}/counter")
    assert stat is not None
    assert stat.version == 1


def test_steps_that_never_arrived_are_sent_again(
    session: Session, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose_reply(monkeypatch, names_node("/a"), arrives=False)
    steps = [[Create(f"{zookeeper_root}/{name}")] for name in "abc"]
    assert commit_many(session, steps) == [None] * 3
    assert len(lost) == 1
    assert children(session, zookeeper_root) == ["a", "b", "c"]


@pytest.mark.parametrize("arrives", [True, False], ids=["carried out", "never arrived"])
def test_a_receipt_decides_the_outcome_after_a_lost_reply(
    session: Session, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch, *, arrives: bool
) -> None:
    root = zookeeper_root
    receipts = Receipts(session, Layout(root))
    commit(session, [Create(f"{root}/taken")])
    steps = [[Create(f"{root}/{name}")] for name in ("a", "b")]
    assert commit_many(session, [[Create(f"{root}/before")]], receipts) == [None]

    def meanwhile() -> None:
        if arrives:  # it was created and removed
            commit(session, [Delete(f"{root}/a")])

    lose_reply(monkeypatch, names_node("/a"), meanwhile, arrives=arrives)
    assert commit_many(session, steps, receipts) == [None, None]
    expected = ["b", "before", "receipts", "taken"] if arrives else ["a", "b", "before", "receipts", "taken"]
    assert children(session, root) == expected
    refused = commit_many(session, [[Create(f"{root}/taken")], [Create(f"{root}/c")]], receipts)
    assert reasons(refused) == ["NodeExists", None]


def test_a_refusal_after_a_lost_reply_is_a_refusal_when_the_receipt_shows_it(
    session: Session, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = zookeeper_root
    receipts = Receipts(session, Layout(root))
    commit(session, [Create(f"{root}/taken")])
    lose_reply(monkeypatch, names_node("/taken"))
    outcomes = commit_many(session, [[Create(f"{root}/a")], [Create(f"{root}/taken")]], receipts)
    assert reasons(outcomes) == [None, "NodeExists"]
    assert children(session, root) == ["a", "receipts", "taken"]


def test_receipts_are_used_again(
    session: Session, zookeeper_root: str, sent: list[Sequence[Operation]]
) -> None:
    receipts = Receipts(session, Layout(zookeeper_root))
    for number in range(5):
        assert commit_many(session, [[Create(f"{zookeeper_root}/{number}")]], receipts) == [None]
    assert len(children(session, f"{zookeeper_root}/receipts")) == 1
    assert len(sent) == 6  # one to make it
    receipts.close()
    assert children(session, f"{zookeeper_root}/receipts") == []


def test_without_a_connection_each_step_says_that_nothing_was_changed(zookeeper_hosts: str) -> None:
    session = Session(SessionSettings(zookeeper_hosts, session_timeout=4, call_timeout=1)).start()
    session.close()
    outcomes = commit_many(session, [[Create("/test-never")], [Create("/test-never-too")]])
    assert len(outcomes) == 2
    assert all(isinstance(outcome, QueueError) for outcome in outcomes)


def test_replies_that_stay_away_end_as_unknown_and_not_as_done(
    session: Session, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipts = Receipts(session, Layout(zookeeper_root))
    assert commit_many(session, [[Create(f"{zookeeper_root}/before")]], receipts) == [None]
    short = SessionSettings(session.settings.hosts, session_timeout=4, call_timeout=0.5)
    monkeypatch.setattr(session, "settings", short)
    monkeypatch.setattr(Session, "post", lambda _session, _operations: Lost())
    for many in (None, receipts):
        (outcome,) = commit_many(session, [[Create(f"{zookeeper_root}/a")]], many)
        assert isinstance(outcome, OutcomeUnknown)
        assert "may or may not" in str(outcome)


def test_no_more_multis_are_under_way_than_allowed(
    session: Session, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    post, under_way, most = Session.post, set[int](), list[int]()

    class Counted(Posted):
        def __init__(self, posted: Posted, number: int) -> None:
            super().__init__(None)
            self._posted = posted
            self._number = number

        def results(self, timeout: float) -> list[object]:
            under_way.discard(self._number)
            return self._posted.results(timeout)

    def count(session: Session, operations: Sequence[Operation]) -> Posted:
        under_way.add(len(most))
        most.append(len(under_way))
        return Counted(post(session, operations), len(most) - 1)

    monkeypatch.setattr(Session, "post", count)
    monkeypatch.setattr(batch, "_OPERATIONS_PER_MULTI", 10)
    steps = [[Create(f"{zookeeper_root}/{number}")] for number in range(200)]
    assert commit_many(session, steps) == [None] * 200
    assert 1 < max(most) <= batch._MULTIS_IN_FLIGHT  # noqa: SLF001 - the limit itself


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (lambda root, number: Create(f"{root}/taken-{number}", ephemeral=True), "NodeExists"),
        (lambda root, number: Check(f"{root}/nobody-{number}"), "NoNode"),
        (lambda root, number: Check(f"{root}/taken-{number}", 4), "BadVersion"),
        (lambda root, number: Set(f"{root}/taken-{number}", b"", 4), "BadVersion"),
        (lambda root, number: Delete(f"{root}/nobody-{number}"), "NoNode"),
    ],
)
def test_many_that_are_refused_for_one_reason_cost_one_multi_and_not_one_each(
    session: Session,
    zookeeper_root: str,
    sent: list[Sequence[Operation]],
    refused: Callable[[str, int], Operation],
    reason: str,
) -> None:
    root = zookeeper_root
    commit(session, [Create(f"{root}/taken-{number}", b"before") for number in range(0, 60, 2)])
    steps: list[list[Operation]] = [
        [refused(root, number), Create(f"{root}/made-{number}")]
        if number % 2 == 0
        else [Create(f"{root}/made-{number}")]
        for number in range(60)
    ]
    sent.clear()
    outcomes = commit_many(session, steps)
    assert reasons(outcomes) == [reason if number % 2 == 0 else None for number in range(60)]
    assert [o.index for o in outcomes if isinstance(o, Conflict)] == [0] * 30
    made = {name for name in children(session, root) if name.startswith("made")}
    assert made == {f"made-{number}" for number in range(1, 60, 2)}
    assert len(sent) == 2  # one is refused, and one omits all that would be refused


def test_a_change_by_a_multi_of_a_batch_does_not_fail_the_following_ones(
    session: Session, zookeeper_root: str
) -> None:
    root = zookeeper_root
    commit(session, [Create(f"{root}/taken"), Create(f"{root}/goes")])
    steps: list[list[Operation]] = [
        [Create(f"{root}/taken")],
        [Delete(f"{root}/goes")],
        [Create(f"{root}/goes", b"again")],
    ]
    assert reasons(commit_many(session, steps)) == ["NodeExists", None, None]
    assert session.get(f"{root}/goes") is not None
