import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from queues.admin import scrubber
from queues.admin.scrubber import Repair, Scrubber, ScrubReport, Unrepaired
from queues.claims.claim import Claim
from queues.dispatch.handler_pool import DONE, Action, HandlerPool, Move, Requeue
from queues.model.errors import CorruptRecord, QueueError
from queues.model.events import Event, EventKind
from queues.model.names import Token
from queues.model.operations import Create, Delete, Set
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.batch import commit_many
from queues.store.commit import Receipts, Transaction, commit
from tests.claims_support import Collector, claim_of, locks
from tests.queues_support import QUEUES, Open, count_requests, places_of
from tests.sampling import times
from tests.waiting import wait_until

ITEM = "item"
GARBAGE = b"\x00\xffnot json"
HOUR_MS = 3_600_000
POOLS = ("default", "default.low", "other")

Damage = Callable[[QueueSet], None]


def scrub(queues: QueueSet, *, dry_run: bool = False) -> ScrubReport:
    return Scrubber(queues.root, queues.claimer, dry_run=dry_run).scrub()


def do(queues: QueueSet, *operations: Create | Delete | Set) -> None:
    commit(queues.session, operations)


def token_path(queues: QueueSet, token: Token, queue: str = "accept", pool: str = "default") -> str:
    return queues.layout.token(queue, pool, token)


def drop_token(queues: QueueSet, item_id: str = ITEM) -> None:
    record = queues.get(item_id)
    do(queues, Delete(queues.layout.token(record.queue, record.pool, record.token)))


def spoil(queues: QueueSet, item_id: str = ITEM) -> None:
    do(queues, Set(queues.layout.record(item_id), GARBAGE, -1))


def tree(queues: QueueSet, path: str = "") -> dict[str, tuple[bytes, int]]:
    """All nodes with data and version, except receipts and the one that is written to read the time."""
    path = path or queues.layout.root
    found = queues.session.get(path)
    if found is None or path in {queues.layout.clock, queues.layout.receipts}:
        return {}
    nodes = {path: (found[0], found[1].version)}
    for name in queues.session.children(path) or ():
        nodes |= tree(queues, f"{path}/{name}")
    return nodes


def receipts(queues: QueueSet) -> list[str]:
    return queues.session.children(queues.layout.receipts) or []


def later(monkeypatch: pytest.MonkeyPatch, queues: QueueSet, hours: float) -> None:
    """Let all clocks of this queue set advance by some hours."""
    confirmed_ms = queues.clock.confirmed_ms
    monkeypatch.setattr(queues.clock, "confirmed_ms", lambda: round(confirmed_ms() + hours * HOUR_MS))


def in_the_last_moment(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen after the second look, before the repairs are sent."""

    def send(session: Session, steps: Sequence[Transaction], receipts: Receipts) -> list[QueueError | None]:
        happens()
        return commit_many(session, steps, receipts)

    monkeypatch.setattr(scrubber, "commit_many", send)


def while_listing(
    monkeypatch: pytest.MonkeyPatch, happens: Callable[[str], object], *, before: bool = False
) -> None:
    """Let something happen after each listing of a folder, or before it; it gets the path."""
    children = Session.children

    def listed(session: Session, path: str) -> list[str] | None:
        if before:
            happens(path)
            return children(session, path)
        names = children(session, path)
        happens(path)
        return names

    monkeypatch.setattr(Session, "children", listed)


# ---------------------------------------------------------------------- healthy
def test_where_nothing_is_wrong_all_is_looked_at_and_nothing_changed(open_queues: Open) -> None:
    queues = open_queues()
    for pool in POOLS:
        queues.put_many("accept", [NewItem({"n": n}, f"{pool}-{n}", pool) for n in range(5)])
    queues.move("other-1", "finish", delay_ms=HOUR_MS)
    queues.move("default-1", "dead")
    claim_of(queues, "default-2").commit(queue="running")
    before = tree(queues)
    assert scrub(queues) == ScrubReport(records=15, tokens=15, repaired={}, unrepaired={})
    assert tree(queues) == before


def test_an_empty_root_is_healthy(open_queues: Open) -> None:
    assert scrub(open_queues()) == ScrubReport(records=0, tokens=0, repaired={}, unrepaired={})


def test_an_unused_root_is_healthy(open_queues: Open) -> None:
    queues = open_queues()
    fresh = QueueSet(queues.session, type(queues.layout)(f"{queues.layout.root}/fresh"), QUEUES)
    assert scrub(fresh) == ScrubReport(records=0, tokens=0, repaired={}, unrepaired={})


def test_thousands_of_items_take_few_requests(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    queues, each = open_queues(), times(100, 417)
    for number, pool in enumerate(POOLS):
        for queue in QUEUES:
            ids = [f"{pool}-{queue}-{n}" for n in range(each)]
            queues.put_many(queue, [NewItem({"n": number}, item_id, pool) for item_id in ids])
    requests = count_requests(queues.session, monkeypatch)
    started = time.monotonic()
    total = each * len(POOLS) * len(QUEUES)
    assert scrub(queues) == ScrubReport(records=total, tokens=total, repaired={}, unrepaired={})
    record_property("seconds", time.monotonic() - started)
    record_property("requests", requests())
    # One for each of 256 folders of records, twenty for the others, and few for their content.
    assert requests() < 276 + total // 68


# ---------------------------------------------------------------------- a record without token
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("queue", ["running", "dead"])
def test_a_record_without_a_token_gets_the_one_that_it_names(
    open_queues: Open, queue: str, pool: str
) -> None:
    queues = open_queues()
    record = queues.put(queue, ITEM, {"n": 1}, pool=pool, delay_ms=HOUR_MS)
    before = tree(queues)
    drop_token(queues)
    assert scrub(queues) == ScrubReport(1, 0, {Repair.RESTORED: (ITEM,)}, {})
    assert tree(queues) == before
    assert queues.tokens(queue, pool) == [record.token]
    assert scrub(queues) == ScrubReport(1, 1, {}, {})


def test_an_item_whose_token_was_restored_is_handled(open_queues: Open) -> None:
    queues = open_queues()
    with Collector(open_queues()) as seen:
        queues.put("accept", "first", {})
        seen.wait_for("first")
        queues.put("accept", ITEM, {}, delay_ms=HOUR_MS)
        drop_token(queues)
        record = queues.get(ITEM)
        data = record.evolve(token=Token(queues.clock.now_ms(), record.token.seq, ITEM)).encode()
        do(queues, Set(queues.layout.record(ITEM), data, -1))
        scrub(queues)
        seen.wait_for("first", ITEM)


def test_many_are_mended_together(open_queues: Open) -> None:
    queues = open_queues()
    ids = [f"i{n}" for n in range(300)]  # three bundles
    records = queues.put_many("accept", [NewItem({}, item_id) for item_id in ids])
    commit_many(queues.session, [[Delete(token_path(queues, record.token))] for record in records])
    assert sorted(scrub(queues).repaired[Repair.RESTORED]) == sorted(ids)
    assert queues.tokens("accept") == sorted(record.token for record in records)


def test_a_dead_item_stays_in_dead(open_queues: Open) -> None:
    queues = open_queues()
    record = queues.put("running", ITEM, {})
    spoil(queues)
    assert queues.move_to_dead("running", "default", record.token, CorruptRecord(ITEM, "test"))
    assert scrub(queues) == ScrubReport(1, 1, {}, {})
    do(queues, Set(queues.layout.record(ITEM), record.encode(), -1))  # repaired, and not yet replayed
    assert scrub(queues) == ScrubReport(1, 1, {}, {})
    assert places_of(queues, ITEM) == ["dead"]


@pytest.mark.parametrize("rival", ["token", "dead token", "lock", "record", "gone"])
def test_a_token_is_not_restored_when_something_has_changed_in_the_last_moment(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, rival: str
) -> None:
    queues, other = open_queues(), open_queues()
    record = queues.put("accept", ITEM, {})
    drop_token(queues)
    node = queues.layout.record(ITEM)
    change: dict[str, Create | Set | Delete] = {
        "token": Create(token_path(queues, record.token)),
        "dead token": Create(token_path(queues, record.token, "dead")),
        "lock": Create(queues.layout.lock("default", ITEM), ephemeral=True),
        "record": Set(node, record.encode(), -1),
        "gone": Delete(node),
    }
    changed: list[dict[str, tuple[bytes, int]]] = []

    def happens() -> None:
        do(other, change[rival])
        changed.append(tree(other))

    in_the_last_moment(monkeypatch, happens)
    assert scrub(queues).unrepaired == {Unrepaired.REFUSED: (ITEM,)}
    assert tree(queues) == changed[0]


def test_two_simultaneous_scrubbers_repair_each_damage_once(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, other = open_queues(), open_queues()
    for damage in DAMAGES.values():
        damage(queues)
    reports: list[ScrubReport] = []

    def happens() -> None:
        monkeypatch.undo()
        reports.append(scrub(other))

    in_the_last_moment(monkeypatch, happens)
    late = scrub(queues)
    assert late.repaired == {}
    assert sorted(late.unrepaired[Unrepaired.REFUSED]) == sorted(
        item_id for ids in reports[0].repaired.values() for item_id in ids
    )
    assert scrub(queues).repaired == {}


# ---------------------------------------------------------------------- a record that cannot be read
def test_an_unreadable_record_without_a_token_gets_one_in_dead_with_the_reason(open_queues: Open) -> None:
    queues = open_queues()
    record = queues.put("running", ITEM, {"n": 1}, pool="other")
    drop_token(queues)
    spoil(queues)
    version = queues.session.get(queues.layout.record(ITEM))
    events: list[Event] = []
    queues.listen(events.append)
    assert scrub(queues) == ScrubReport(1, 0, {Repair.ENTERED: (ITEM,)}, {})
    assert places_of(queues, ITEM) == ["dead"]
    assert [(event.kind, event.id, event.to_queue) for event in events] == [(EventKind.DEAD, ITEM, "dead")]
    assert queues.session.get(queues.layout.record(ITEM)) == version  # bytes unchanged
    (token,) = queues.tokens("dead")
    found = queues.session.get(token_path(queues, token, "dead"))
    assert found is not None
    assert "cannot be read: UnicodeDecodeError" in json.loads(found[0])["reason"]
    assert scrub(queues) == ScrubReport(1, 1, {}, {})
    do(queues, Set(queues.layout.record(ITEM), record.encode(), -1))
    assert queues.replay() == {ITEM: None}  # repaired by an operator
    assert queues.get(ITEM).payload == {"n": 1}
    assert scrub(queues) == ScrubReport(1, 1, {}, {})


def test_an_unreadable_record_that_is_held_in_any_pool_gets_no_token(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, holder = open_queues(), open_queues()
    queues.put("accept", ITEM, {}, pool="other")
    drop_token(queues)
    spoil(queues)
    lock = queues.layout.lock("other", ITEM)
    in_the_last_moment(monkeypatch, lambda: do(holder, Create(lock, ephemeral=True)))
    assert scrub(queues) == ScrubReport(1, 0, {}, {Unrepaired.REFUSED: (ITEM,)})
    monkeypatch.undo()
    assert scrub(queues) == ScrubReport(1, 0, {}, {Unrepaired.HELD: (ITEM,)})
    do(holder, Delete(lock))
    assert scrub(queues) == ScrubReport(1, 0, {Repair.ENTERED: (ITEM,)}, {})


def test_an_unreadable_record_with_a_token_is_left_to_whoever_claims_it(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    spoil(queues)
    before = tree(queues)
    assert scrub(queues) == ScrubReport(1, 1, {}, {Unrepaired.UNREADABLE: (ITEM,)})
    assert tree(queues) == before
    with Collector(open_queues()):
        wait_until(lambda: places_of(queues, ITEM) == ["dead"], 10, "it is dead")
    assert scrub(queues) == ScrubReport(1, 1, {}, {})


def test_an_unreadable_record_in_dead_is_in_no_other_queue(open_queues: Open) -> None:
    queues = open_queues()
    record = queues.put("accept", ITEM, {})
    spoil(queues)
    do(queues, Create(token_path(queues, record.token, "dead"), b"note"))  # so it can never be moved to dead
    assert not queues.move_to_dead("accept", "default", record.token, CorruptRecord(ITEM, "test"))
    assert scrub(queues) == ScrubReport(1, 2, {Repair.DEDUPLICATED: (ITEM,)}, {})
    assert places_of(queues, ITEM) == ["dead"]


def test_an_unreadable_record_that_is_repaired_just_before_the_move_gets_no_token_in_dead(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, operator = open_queues(), open_queues()
    record = queues.put("accept", ITEM, {})
    drop_token(queues)
    spoil(queues)
    in_the_last_moment(
        monkeypatch, lambda: do(operator, Set(queues.layout.record(ITEM), record.encode(), -1))
    )
    assert scrub(queues) == ScrubReport(1, 0, {}, {Unrepaired.REFUSED: (ITEM,)})
    monkeypatch.undo()
    assert scrub(queues) == ScrubReport(1, 0, {Repair.RESTORED: (ITEM,)}, {})


# ---------------------------------------------------------------------- a token without record
def test_a_token_without_a_record_goes_to_dead_with_the_reason(open_queues: Open) -> None:
    queues = open_queues()
    record = queues.put("running", ITEM, {}, pool="other")
    do(queues, Delete(queues.layout.record(ITEM)))
    events: list[Event] = []
    queues.listen(events.append)
    assert scrub(queues) == ScrubReport(0, 1, {Repair.MOVED_TO_DEAD: (ITEM,)}, {})
    assert queues.tokens("running", "other") == []
    assert queues.tokens("dead", "other") == [record.token]
    assert not queues.contains(ITEM)  # the precondition left no record behind
    found = queues.session.get(token_path(queues, record.token, "dead", "other"))
    assert found is not None
    note = json.loads(found[0])
    assert note["queue"] == "running"
    assert "no item has the id" in note["reason"]
    (event,) = events
    assert (event.kind, event.queue, event.to_queue, event.pool) == (
        EventKind.DEAD,
        "running",
        "dead",
        "other",
    )
    assert scrub(queues) == ScrubReport(0, 1, {}, {})


def test_a_token_whose_record_never_had_a_bucket_goes_to_dead(open_queues: Open) -> None:
    queues = open_queues()
    do(queues, Create(token_path(queues, Token(1, 1, ITEM))))
    assert scrub(queues) == ScrubReport(0, 1, {Repair.MOVED_TO_DEAD: (ITEM,)}, {})
    assert places_of(queues, ITEM) == ["dead"]


def test_several_tokens_without_a_record_become_one_in_dead(open_queues: Open) -> None:
    queues = open_queues()
    token = Token(1, 1, ITEM)
    for queue in ("accept", "running", "finish"):
        do(queues, Create(token_path(queues, token, queue)))
    assert scrub(queues).repaired == {Repair.MOVED_TO_DEAD: (ITEM,)}
    assert scrub(queues).repaired == {Repair.DEDUPLICATED: (ITEM, ITEM)}
    assert places_of(queues, ITEM) == ["dead"]
    assert scrub(queues) == ScrubReport(0, 1, {}, {})


def test_a_token_whose_item_is_put_anew_just_before_the_repair_is_not_moved_to_dead(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, producer = open_queues(), open_queues()
    stray = queues.put("accept", ITEM, {"life": 1}).token
    do(queues, Delete(queues.layout.record(ITEM)))
    in_the_last_moment(monkeypatch, lambda: producer.put("running", ITEM, {"life": 2}))
    assert scrub(queues) == ScrubReport(0, 1, {}, {Unrepaired.REFUSED: (ITEM,)})
    monkeypatch.undo()
    assert sorted(places_of(queues, ITEM)) == ["accept", "running"]
    assert scrub(queues) == ScrubReport(1, 2, {Repair.DEDUPLICATED: (ITEM,)}, {})
    assert places_of(queues, ITEM) == ["running"]
    assert queues.get(ITEM).token != stray


# ---------------------------------------------------------------------- a token too many
@pytest.mark.parametrize(
    ("queue", "pool"), [("running", "default"), ("accept", "other"), ("dead", "default")]
)
def test_of_two_tokens_the_one_that_the_record_names_stays(open_queues: Open, queue: str, pool: str) -> None:
    queues = open_queues()
    queues.ensure_pool("other")
    record = queues.put("accept", ITEM, {})
    before = tree(queues)
    do(queues, Create(token_path(queues, record.token, queue, pool)))
    assert scrub(queues) == ScrubReport(1, 2, {Repair.DEDUPLICATED: (ITEM,)}, {})
    assert tree(queues) == before


def test_a_token_with_another_due_time_in_the_same_folder_is_one_too_many(open_queues: Open) -> None:
    queues = open_queues()
    record = queues.put("accept", ITEM, {})
    do(queues, Create(token_path(queues, Token(record.token.due + 1, record.token.seq, ITEM))))
    do(queues, Create(token_path(queues, Token(record.token.due + 2, record.token.seq, ITEM))))
    assert scrub(queues) == ScrubReport(1, 3, {Repair.DEDUPLICATED: (ITEM, ITEM)}, {})
    assert queues.tokens("accept") == [record.token]


def test_the_last_token_is_not_removed_when_the_named_one_goes_in_the_last_moment(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, other = open_queues(), open_queues()
    record = queues.put("accept", ITEM, {})
    do(queues, Create(token_path(queues, record.token, "running")))
    in_the_last_moment(monkeypatch, lambda: do(other, Delete(token_path(queues, record.token))))
    assert scrub(queues) == ScrubReport(1, 2, {}, {Unrepaired.REFUSED: (ITEM,)})
    assert places_of(queues, ITEM) == ["running"]


def test_a_token_that_is_claimed_in_the_last_moment_is_not_removed(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, worker = open_queues(), open_queues()
    record = queues.put("accept", ITEM, {})
    do(queues, Create(token_path(queues, record.token, "running")))
    in_the_last_moment(monkeypatch, lambda: claim_of(worker, ITEM, "running"))
    assert scrub(queues) == ScrubReport(1, 2, {}, {Unrepaired.REFUSED: (ITEM,)})
    assert sorted(places_of(queues, ITEM)) == ["accept", "running"]
    assert queues.get(ITEM).queue == "running"


def test_a_token_that_the_record_does_not_name_is_left_when_it_is_the_only_one(open_queues: Open) -> None:
    queues = open_queues()
    record = queues.put("running", ITEM, {})
    do(queues, Delete(token_path(queues, record.token, "running")), Create(token_path(queues, record.token)))
    before = tree(queues)
    assert scrub(queues) == ScrubReport(1, 1, {}, {Unrepaired.MISMATCHED: (ITEM,)})
    assert tree(queues) == before
    claim_of(open_queues(), ITEM).release()  # the consumer makes them agree
    assert queues.get(ITEM).queue == "accept"
    assert scrub(queues) == ScrubReport(1, 1, {}, {})


# ---------------------------------------------------------------------- foreign nodes
@pytest.mark.parametrize("changes", [{"queue": "retired"}, {"pool": "retired"}, {"pool": "no/pool"}])
@pytest.mark.parametrize("has_token", [True, False])
def test_a_record_that_names_what_is_not_known_here_is_reported_and_not_touched(
    open_queues: Open, changes: dict[str, str], has_token: bool
) -> None:
    queues = open_queues()
    record = queues.put("accept", ITEM, {})
    do(queues, Set(queues.layout.record(ITEM), record.evolve(**changes).encode(), -1))
    if not has_token:
        drop = token_path(queues, record.token)
        do(queues, Delete(drop))
    before = tree(queues)
    assert scrub(queues) == ScrubReport(1, int(has_token), {}, {Unrepaired.UNKNOWN: (ITEM,)})
    assert tree(queues) == before


def test_a_token_in_a_queue_that_is_not_known_here_counts_and_is_not_touched(open_queues: Open) -> None:
    queues = open_queues()
    wider = QueueSet(queues.session, queues.layout, (*QUEUES, "archive"))
    wider.ensure_pool()
    put, double, moved = (wider.put("accept", item_id, {}) for item_id in ("put", "double", "moved"))
    for record in (double, moved):
        do(queues, Create(token_path(queues, record.token, "archive")))
    drop_token(queues, "moved")
    do(queues, Create(token_path(queues, Token(1, 1, "orphan"), "archive")))
    before = tree(queues)
    report = scrub(queues)
    assert (report.repaired, set(report.unrepaired)) == ({}, {Unrepaired.UNKNOWN})
    assert sorted(report.unrepaired[Unrepaired.UNKNOWN]) == ["double", "moved", "orphan"]
    assert tree(queues) == before
    assert scrub(wider).repaired == {Repair.DEDUPLICATED: ("double",), Repair.MOVED_TO_DEAD: ("orphan",)}
    assert wider.tokens("accept") == sorted([put.token, double.token])


def test_foreign_nodes_are_reported_and_not_touched(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    layout = queues.layout
    wrong_bucket = next(
        f"{layout.buckets}/{bucket:02x}/elsewhere"
        for bucket in range(256)
        if not layout.record("elsewhere").startswith(f"{layout.buckets}/{bucket:02x}/")
    )
    foreign = [
        f"{layout.queue('accept', 'default')}/README",
        f"{layout.queue('dead', 'default')}/queue-|x|1|2",
        f"{layout.queue('accept', 'default')}/queue-|.|00000000001|0000000000001",
        f"{layout.stops('default')}/not an id",
        layout.receipt("notes"),
        layout.record("not an id"),
        wrong_bucket,
    ]
    for path in foreign:
        queues.session.ensure_path(path)
    later(monkeypatch, queues, hours=48)
    before = tree(queues)
    report = scrub(queues)
    assert {kind: sorted(ids) for kind, ids in report.unrepaired.items()} == {
        Unrepaired.FOREIGN: sorted(foreign)
    }
    assert set(report.repaired) <= {Repair.RECEIPT}  # that of the put above
    assert set(before) <= set(tree(queues))
    assert "notes" in receipts(queues)


# ---------------------------------------------------------------------- traces of crashes
def test_a_receipt_is_removed_after_a_day_and_its_producer_continues(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, producer = open_queues(), open_queues()
    producer.put("accept", "a", {})
    (name,) = receipts(queues)
    assert scrub(queues).repaired == {}
    later(monkeypatch, queues, hours=23.9)
    assert scrub(queues).repaired == {}
    later(monkeypatch, queues, hours=0.2)
    assert scrub(queues).repaired == {Repair.RECEIPT: (name,)}
    assert receipts(queues) == []
    producer.put("accept", "b", {})
    assert places_of(queues, "b") == ["accept"]


def test_a_receipt_that_is_used_in_the_last_moment_stays(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, producer = open_queues(), open_queues()
    producer.put("accept", "a", {})
    (name,) = receipts(queues)
    later(monkeypatch, queues, hours=25)
    in_the_last_moment(monkeypatch, lambda: producer.put("accept", "b", {}))
    assert scrub(queues).unrepaired == {Unrepaired.REFUSED: (name,)}
    assert receipts(queues) == [name]


def test_a_request_to_stop_an_item_that_is_gone_is_removed_after_an_hour(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    do(queues, Create(queues.layout.stop("default", ITEM)), Create(queues.layout.stop("default", "gone")))
    later(monkeypatch, queues, hours=0.9)
    assert scrub(queues).repaired == {}
    later(monkeypatch, queues, hours=0.2)
    assert scrub(queues).repaired == {Repair.STOP: ("gone",)}
    assert queues.session.children(queues.layout.stops("default")) == [ITEM]
    assert not queues.contains("gone")


def test_a_request_to_stop_is_kept_when_its_item_is_put_in_the_last_moment(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, producer = open_queues(), open_queues()
    do(queues, Create(queues.layout.stop("default", ITEM)))
    later(monkeypatch, queues, hours=2)
    in_the_last_moment(monkeypatch, lambda: producer.put("accept", ITEM, {}))
    assert scrub(queues).unrepaired == {Unrepaired.REFUSED: (ITEM,)}
    assert queues.session.children(queues.layout.stops("default")) == [ITEM]


# ---------------------------------------------------------------------- all kinds
def lose_token(queues: QueueSet) -> None:
    queues.put("accept", "restored", {})
    drop_token(queues, "restored")


def lose_token_and_bytes(queues: QueueSet) -> None:
    queues.put("accept", "entered", {})
    drop_token(queues, "entered")
    spoil(queues, "entered")


def lose_record(queues: QueueSet) -> None:
    queues.put("accept", "dead-letter", {})
    do(queues, Delete(queues.layout.record("dead-letter")))


def add_token(queues: QueueSet) -> None:
    record = queues.put("accept", "singled", {})
    do(queues, Create(token_path(queues, record.token, "running")))


DAMAGES: dict[str, Damage] = {
    "restored": lose_token,
    "entered": lose_token_and_bytes,
    "dead-letter": lose_record,
    "singled": add_token,
}


def test_a_dry_run_reports_what_would_be_repaired_and_changes_nothing(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    for damage in DAMAGES.values():
        damage(queues)
    do(queues, Create(queues.layout.stop("default", "gone")), Create(f"{queues.layout.stops('default')}/a b"))
    claim_of(open_queues(), "singled")  # at either token
    later(monkeypatch, queues, hours=48)
    events: list[Event] = []
    queues.listen(events.append)
    before = tree(queues)
    planned = scrub(queues, dry_run=True)
    assert tree(queues) == before
    assert events == []
    done = scrub(queues)
    assert done == planned
    assert {kind: ids for kind, ids in done.repaired.items() if kind is not Repair.RECEIPT} == {
        Repair.RESTORED: ("restored",),
        Repair.ENTERED: ("entered",),
        Repair.MOVED_TO_DEAD: ("dead-letter",),
        Repair.STOP: ("gone",),
    }
    assert done.unrepaired[Unrepaired.HELD] == ("singled",)


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_held_item_is_never_touched(open_queues: Open, kind: str, dry_run: bool) -> None:
    queues, holder = open_queues(), open_queues()
    DAMAGES[kind](queues)
    do(holder, Create(queues.layout.lock("default", kind), ephemeral=True))
    before = tree(queues)
    report = scrub(queues, dry_run=dry_run)
    assert (report.repaired, report.unrepaired) == ({}, {Unrepaired.HELD: (kind,)})
    assert tree(queues) == before
    do(holder, Delete(queues.layout.lock("default", kind)))
    assert list(scrub(queues).repaired.values()) == [(kind,)]


@pytest.mark.parametrize("kind", DAMAGES)
def test_an_item_that_is_locked_in_the_last_moment_is_not_touched(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    queues, holder = open_queues(), open_queues()
    DAMAGES[kind](queues)
    before = tree(queues)
    lock = queues.layout.lock("default", kind)
    in_the_last_moment(monkeypatch, lambda: do(holder, Create(lock, ephemeral=True)))
    report = scrub(queues)
    assert (report.repaired, report.unrepaired) == ({}, {Unrepaired.REFUSED: (kind,)})
    do(holder, Delete(lock))
    assert tree(queues) == before


def test_items_that_this_process_holds_are_not_changed(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    claim = claim_of(queues, ITEM)
    drop_token(queues)
    assert scrub(queues) == ScrubReport(1, 0, {}, {Unrepaired.HELD: (ITEM,)})
    with pytest.raises(QueueError):
        claim.commit(queue="running", release=True)


# ---------------------------------------------------------------------- while everything moves
def test_an_item_that_moves_while_the_folders_are_listed_is_not_repaired(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, mover = open_queues(), open_queues()
    queues.put("running", ITEM, {})
    queues.put("running", "stays", {})
    for queue in QUEUES[:-1]:
        queues.put(queue, f"fills-{queue}", {})
    moves = 0

    def move(path: str) -> None:
        nonlocal moves
        if "/queues/" in path and path.endswith("/default"):
            moves += 1
            # Into the folder that was just listed: a listing of all folders never finds it.
            mover.move(ITEM, path.split("/")[-2])

    while_listing(monkeypatch, move)
    report = scrub(queues)
    assert moves > len(QUEUES)  # it was a candidate, and read again
    assert (report.repaired, report.unrepaired) == ({}, {})
    monkeypatch.undo()
    assert len(places_of(queues, ITEM)) == 1


def test_an_item_that_moves_and_is_spoilt_while_the_folders_are_listed_gets_no_second_token(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, mover = open_queues(), open_queues()
    queues.put("running", ITEM, {})
    for queue in QUEUES[:-1]:
        queues.put(queue, f"fills-{queue}", {})
    listed: list[str] = []

    def move(path: str) -> None:
        if listed.count(path) == 0 and path.endswith("/accept/default"):
            mover.move(ITEM, "accept")
            spoil(mover)
        listed.append(path)

    while_listing(monkeypatch, move)
    report = scrub(queues)
    assert (report.repaired, report.unrepaired) == ({}, {Unrepaired.UNREADABLE: (ITEM,)})
    assert places_of(queues, ITEM) == ["accept"]


@pytest.mark.parametrize("look", [1, 2])
def test_an_item_that_moves_to_dead_while_the_folders_are_listed_gets_no_second_token(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    queues, worker = open_queues(), open_queues()
    record = queues.put("running", ITEM, {})
    for queue in QUEUES:
        queues.put(queue, f"fills-{queue}", {})
    spoil(queues)
    listed: list[str] = []

    def move_away(path: str) -> None:
        listed.append(path)
        if path.endswith("/running/default") and listed.count(path) == look:
            assert worker.move_to_dead("running", "default", record.token, CorruptRecord(ITEM, "test"))

    while_listing(monkeypatch, move_away, before=True)
    report = scrub(queues)
    assert (report.repaired, report.unrepaired) == ({}, {})
    assert places_of(queues, ITEM) == ["dead"]


def test_an_item_that_is_done_and_put_anew_while_the_folders_are_listed_gets_no_second_token(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, worker = open_queues(), open_queues()
    queues.put("accept", ITEM, {})
    queues.put("dead", "fills-dead", {})

    def renew(path: str) -> None:  # never there while its folder is listed, always there with a record at 0
        if path.endswith("/queues"):
            worker.remove(ITEM)
        if path.endswith("/dead/default"):
            worker.put("accept", ITEM, {})

    while_listing(monkeypatch, renew)
    report = scrub(queues)
    assert (report.repaired, report.unrepaired) == ({}, {})
    monkeypatch.undo()
    assert places_of(queues, ITEM) == ["accept"]


@contextmanager
def background(*loops: Callable[[], None]) -> Iterator[None]:
    """Run these repeatedly until the end, and raise their errors then."""
    stopping, errors = threading.Event(), list[BaseException]()

    def run(loop: Callable[[], None]) -> None:
        try:
            while not stopping.is_set():
                loop()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(loop,)) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def test_nothing_is_mended_while_items_move_round_and_every_item_stays_in_one_queue(
    open_queues: Open, record_property: Callable[[str, object], None]
) -> None:
    """Five hundred items move round, some are finished and put again, some are spoilt: no damage."""
    queues, producer, spoiler = open_queues(), open_queues(), open_queues()
    queues.ensure_pool("other")
    ids = [f"i{n}" for n in range(500)]
    queues.put_many(
        "accept", [NewItem({}, item_id, POOLS[0] if n % 2 else "other") for n, item_id in enumerate(ids)]
    )
    ring = {"accept": "running", "running": "finish", "finish": "accept"}
    moved = 0

    def handle(claim: Claim) -> Action:
        nonlocal moved
        moved += 1
        if claim.id.startswith("short"):
            return DONE
        if moved % 10 == 0:
            return Requeue(delay_ms=20)
        pool = ("default", "other")[moved % 2] if moved % 5 == 0 else None
        return Move(ring[claim.queue], delay_ms=10 if moved % 3 == 0 else 0, pool=pool)

    spoilt = 0

    def put_short_lived() -> None:
        producer.put("accept", "short", {})
        wait_until(lambda: not producer.contains("short"), 30, "it is done")

    def spoil_one() -> None:
        nonlocal spoilt
        item_id = f"spoilt-{spoilt}"
        spoiler.put("accept", item_id, {})
        spoil(spoiler, item_id)
        spoilt += 1
        time.sleep(0.05)  # the load, no condition

    reports: list[ScrubReport] = []
    pools = ("default", "other")
    taken = ((("accept", "running")), ("running", "finish", "accept"))
    handlers = [HandlerPool(open_queues(), names, handle, pools=pools, rescan_seconds=1) for names in taken]
    with handlers[0], handlers[1], background(put_short_lived, spoil_one):
        began = time.monotonic()
        while time.monotonic() < began + times(3, 10) or len(reports) <= 3 or moved <= 2_000:
            assert time.monotonic() < began + 60, f"{len(reports)} scrubs, {moved} moves"
            reports.append(scrub(queues))
    record_property("scrubs", len(reports))
    record_property("moves", moved)
    assert [report.repaired for report in reports if report.repaired] == []
    left = {
        (kind, item_id) for report in reports for kind, ids in report.unrepaired.items() for item_id in ids
    }
    # An item that moves to dead between two listings is seen twice; one that comes and goes between two reads
    # of its record seems to have none. The repair detects both when it is sent.
    assert [found for found in left if not found[1].startswith(("spoilt", "short"))] == []
    assert {kind for kind, _ in left} <= {Unrepaired.UNREADABLE, Unrepaired.REFUSED, Unrepaired.HELD}
    assert all(not locks(queues, pool) for pool in pools)
    found = [(token.id, queue) for queue in QUEUES for pool in pools for token in queues.tokens(queue, pool)]
    assert sorted(item_id for item_id, _ in found if item_id.startswith("i")) == sorted(ids)
    assert len({item_id for item_id, _ in found}) == len(found)
    final = scrub(queues)
    assert (final.records, final.tokens) == (len(found), len(found))
    assert final.repaired == {}
