import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from queues.claims.claim import Claim
from queues.model.errors import ClaimLost, Conflict, CorruptRecord, IdTaken, ItemNotFound, TooLarge
from queues.model.names import Token
from queues.model.operations import Create, Delete, Operation, Set
from queues.model.record import Record
from queues.queue_set import QueueSet
from queues.session import ReplyLost, Session
from queues.store import commit
from tests.queues_support import Open, expire, places_of

ITEM = "item-1"


def put_and_claim(queues: QueueSet, item_id: str = ITEM) -> Claim:
    queues.put("accept", item_id, {"n": 0})
    claim = claim_of(queues, item_id)
    assert claim is not None
    return claim


def claim_of(queues: QueueSet, item_id: str = ITEM, queue: str = "accept") -> Claim | None:
    (token,) = [token for token in queues.tokens(queue) if token.id == item_id]
    return queues.claim(queue, "default", token)


def test_an_item_stands_in_one_queue_and_its_record_says_which(open_queues: Open) -> None:
    queues = open_queues()
    put = queues.put("accept", ITEM, {"name": "x"})
    record, version = queues.read(ITEM)
    assert record == put
    assert version == 0
    assert places_of(queues, ITEM) == ["accept"]
    assert [token.name for token in queues.tokens("accept")] == [record.token.name]


def test_a_record_is_json_that_a_person_can_read(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {"name": "größe"})
    data, _ = queues.session.get(queues.layout.record(ITEM)) or (b"", None)
    assert "größe" in data.decode()
    assert json.loads(data)["payload"] == {"name": "größe"}


def test_a_taken_id_is_refused_and_the_first_item_stays(open_queues: Open) -> None:
    queues = open_queues()
    first = queues.put("accept", ITEM, {"n": 1})
    with pytest.raises(IdTaken, match=ITEM):
        queues.put("accept", ITEM, {"n": 2})
    assert queues.read(ITEM)[0] == first
    assert places_of(queues, ITEM) == ["accept"]


def test_operations_of_the_caller_ride_in_the_same_multi(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {}, extra=lambda path: [Create(f"{path}/definition", b"{}")])
    assert queues.session.get(f"{queues.layout.record(ITEM)}/definition") is not None
    with pytest.raises(Conflict):
        queues.put("accept", "other", {}, extra=lambda _path: [Delete(f"{queues.layout.root}/no-such-node")])
    with pytest.raises(ItemNotFound):
        queues.read("other")
    assert places_of(queues, "other") == []


def test_items_keep_the_order_in_which_they_were_put(open_queues: Open) -> None:
    queues = open_queues()
    for number in range(20):
        queues.put("accept", f"i{number}", {})
    assert [token.id for token in queues.tokens("accept")] == [f"i{number}" for number in range(20)]


def test_a_record_that_is_too_large_is_refused_before_it_is_sent(open_queues: Open) -> None:
    queues = open_queues()
    with pytest.raises(TooLarge, match="65,536"):
        queues.put("accept", ITEM, {"text": "x" * 70_000})
    with pytest.raises(TooLarge):
        commit.commit(queues.session, [Create("/too-large", b"x" * commit.MAX_MULTI_BYTES)])
    assert places_of(queues, ITEM) == []


def race(worker: QueueSet, item: str, start: threading.Barrier, claims: list[Claim | None]) -> None:
    (token,) = [token for token in worker.tokens("accept") if token.id == item]
    start.wait()
    claims.append(worker.claim("accept", "default", token))


def test_only_one_of_many_workers_gets_the_claim(open_queues: Open) -> None:
    workers = [open_queues(f"w{number}") for number in range(4)]
    for number in range(10):
        item = f"i{number}"
        workers[0].put("accept", item, {})
        claims: list[Claim | None] = []
        start = threading.Barrier(len(workers))

        threads = [threading.Thread(target=race, args=(worker, item, start, claims)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(claim is not None for claim in claims) == 1


def test_a_held_item_moves_with_id_and_sequence_and_stays_held(open_queues: Open) -> None:
    queues = open_queues()
    claim = put_and_claim(queues)
    seq = claim.record.token.seq
    claim.commit(queue="running", payload={"n": 1})
    claim.commit(queue="finish", payload={"n": 2}, due=12345, release=True)
    record, _ = queues.read(ITEM)
    assert (record.queue, record.token.seq, record.token.due) == ("finish", seq, 12345)
    assert record.payload == {"n": 2}
    assert places_of(queues, ITEM) == ["finish"]
    assert queues.session.children(queues.layout.locks("default")) == []
    assert not queues.holds(ITEM)


def test_a_released_item_can_be_claimed_again_and_claims_are_counted(open_queues: Open) -> None:
    queues = open_queues()
    put_and_claim(queues).release()
    claim = claim_of(queues)
    assert claim is not None
    assert claim.record.claims == 2


def test_removing_takes_the_token_the_lock_and_what_hangs_below_the_record(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {}, extra=lambda path: [Create(f"{path}/definition")])
    claim = claim_of(queues)
    assert claim is not None
    claim.remove([Delete(f"{queues.layout.record(ITEM)}/definition")])
    with pytest.raises(ItemNotFound):
        queues.read(ITEM)
    assert places_of(queues, ITEM) == []
    assert queues.session.children(queues.layout.locks("default")) == []


def test_a_refused_extra_operation_changes_nothing_and_the_item_stays_held(open_queues: Open) -> None:
    queues = open_queues()
    claim = put_and_claim(queues)
    with pytest.raises(Conflict):
        claim.commit(queue="running", extra=[Set(f"{queues.layout.root}/no-such-node", b"", 0)])
    assert claim.held
    assert places_of(queues, ITEM) == ["accept"]
    claim.commit(queue="running", release=True)
    assert places_of(queues, ITEM) == ["running"]


def test_a_worker_that_lost_its_session_can_change_nothing(open_queues: Open) -> None:
    first, second = open_queues("first"), open_queues("second")
    stale = put_and_claim(first)
    expire(first.session)
    claim = claim_of(second)
    assert claim is not None
    with pytest.raises(ClaimLost):
        stale.commit(queue="finish")
    assert places_of(second, ITEM) == ["accept"]
    claim.commit(queue="running")
    assert places_of(second, ITEM) == ["running"]


def test_the_fence_refuses_a_stale_holder_even_when_it_does_not_know_of_its_loss(open_queues: Open) -> None:
    # As after a pause: another client has the lock; the old holder's checks have not run yet.
    first, second = open_queues("first"), open_queues("second")
    stale = put_and_claim(first)
    commit.commit(first.session, [Delete(first.layout.lock("default", ITEM))])
    claim = claim_of(second)
    assert claim is not None  # so the lock is there again: only fence and nonce differ
    with pytest.raises(ClaimLost):
        stale.commit(queue="finish")
    with pytest.raises(ClaimLost):
        stale.release()
    assert places_of(second, ITEM) == ["accept"]
    claim.commit(queue="running")


def test_a_holder_without_its_lock_can_change_nothing_even_without_another_claim(open_queues: Open) -> None:
    queues = open_queues()
    claim = put_and_claim(queues)
    commit.commit(queues.session, [Delete(queues.layout.lock("default", ITEM))])
    with pytest.raises(ClaimLost):
        claim.commit(queue="finish")
    assert places_of(queues, ITEM) == ["accept"]


def test_a_stale_listing_cannot_claim_an_item_that_has_moved_on(open_queues: Open) -> None:
    first, second = open_queues("first"), open_queues("second")
    claim = put_and_claim(first)
    old = claim.record.token
    claim.commit(queue="running", release=True)
    assert second.claim("accept", "default", old) is None
    assert second.session.children(second.layout.locks("default")) == []


def test_a_reused_id_does_not_let_an_old_holder_in(open_queues: Open) -> None:
    first, second = open_queues("first"), open_queues("second")
    stale = put_and_claim(first)
    commit.commit(first.session, [Delete(first.layout.lock("default", ITEM))])
    claim = claim_of(second)
    assert claim is not None
    claim.remove()
    second.put("accept", ITEM, {"new": True})
    for _ in range(3):  # bring the new record to the version that the old holder expects
        again = claim_of(second)
        assert again is not None
        again.release()
    with pytest.raises(ClaimLost):
        stale.commit(queue="finish")
    assert places_of(second, ITEM) == ["accept"]


@pytest.fixture
def lose_replies(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the next N multis be applied and lose their replies, as when a connection breaks."""
    send = Session.send
    left = 0

    def lossy(self: Session, operations: Sequence[Operation], timeout: float) -> list[Any]:
        nonlocal left
        results = send(self, operations, timeout)
        if left > 0:
            left -= 1
            raise ReplyLost("lost by the test")
        return results

    monkeypatch.setattr(Session, "send", lossy)

    def lose(count: int) -> None:
        nonlocal left
        left = count

    return lose


def test_a_put_whose_reply_was_lost_is_found_to_be_its_own(
    open_queues: Open, lose_replies: Callable[[int], None]
) -> None:
    queues = open_queues()
    queues.clock.now_ms()
    queues.put("accept", "other-in-the-same-folder", {})
    lose_replies(1)
    record = queues.put("accept", ITEM, {"n": 1})
    assert queues.read(ITEM)[0] == record
    lose_replies(1)
    with pytest.raises(IdTaken):  # lost as well, but the id was used before
        queues.put("accept", ITEM, {})


def test_a_claim_whose_reply_was_lost_is_held(open_queues: Open, lose_replies: Callable[[int], None]) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    lose_replies(1)
    claim = claim_of(queues)
    assert claim is not None
    lose_replies(1)
    claim.commit(queue="running", payload={"n": 1})
    assert places_of(queues, ITEM) == ["running"]
    claim.commit(payload={"n": 2})  # the fence is correct
    lose_replies(1)
    claim.release()
    assert queues.session.children(queues.layout.locks("default")) == []


def test_a_removal_whose_reply_was_lost_is_done(
    open_queues: Open, lose_replies: Callable[[int], None]
) -> None:
    queues = open_queues()
    claim = put_and_claim(queues)
    lose_replies(1)
    claim.remove()
    assert not claim.held
    with pytest.raises(ItemNotFound):
        queues.read(ITEM)


def test_a_step_of_a_stale_holder_is_not_taken_for_its_own_lost_reply(open_queues: Open) -> None:
    first, second = open_queues("first"), open_queues("second")
    stale = put_and_claim(first)
    commit.commit(first.session, [Delete(first.layout.lock("default", ITEM))])
    claim = claim_of(second)
    assert claim is not None
    ambiguous = Conflict(2, "test", "BadVersion", ambiguous=True)

    def refuse(_session: Session, _operations: Sequence[Operation]) -> list[Any]:
        raise ambiguous

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queues.claims.claim.commit", refuse)
        with pytest.raises(ClaimLost):
            stale.commit(queue="finish")


def test_a_failed_multi_raises_and_names_the_operation_that_was_refused(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    path = queues.layout.record(ITEM)
    with pytest.raises(Conflict) as caught:
        commit.commit(queues.session, [Create(f"{path}/a"), Set(path, b"{}", 7), Create(f"{path}/b")])
    assert caught.value.index == 1
    assert caught.value.reason == "BadVersion"
    assert not caught.value.ambiguous
    assert queues.session.exists(f"{path}/a") is None


def test_an_own_orphan_lock_is_released_and_a_lock_of_another_client_is_kept(open_queues: Open) -> None:
    first, second = open_queues("first"), open_queues("second")
    abandoned = put_and_claim(first)
    other = put_and_claim(second, "other")
    abandoned.abandon()
    assert first.release_orphan_locks("default", [ITEM, "other"]) == [ITEM]
    assert claim_of(second) is not None
    other.commit(queue="running")


def test_a_corrupt_record_goes_to_dead_with_the_reason_and_its_bytes_unchanged(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    (token,) = queues.tokens("accept")
    garbage = b"\x00\xffnot json"
    commit.commit(queues.session, [Set(queues.layout.record(ITEM), garbage, -1)])
    with pytest.raises(CorruptRecord) as caught:
        queues.claim("accept", "default", token)
    assert queues.move_to_dead("accept", "default", token, caught.value)
    assert places_of(queues, ITEM) == ["dead"]
    assert queues.session.get(queues.layout.record(ITEM))[0] == garbage  # type: ignore[index] # it is there
    note = queues.session.get(queues.layout.token("dead", "default", token))
    assert note is not None
    assert "cannot be read" in json.loads(note[0])["reason"]


def test_a_held_item_does_not_become_a_dead_letter(open_queues: Open) -> None:
    queues = open_queues()
    claim = put_and_claim(queues)
    assert not queues.move_to_dead("accept", "default", claim.record.token, CorruptRecord(ITEM, "test"))
    assert places_of(queues, ITEM) == ["accept"]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"id": "other"}', b"\xff"])
def test_bytes_that_are_no_record_are_reported_as_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecord):
        Record.decode(ITEM, data)


def test_due_times_are_in_the_ensembles_time(open_queues: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    queues = open_queues()
    right = queues.clock.now_ms()
    hour = 3_600_000
    shifted = open_queues()
    real = time.time_ns
    monkeypatch.setattr("queues.store.clock.time.time_ns", lambda: real() + hour * 1_000_000)
    assert abs(shifted.clock.now_ms() - right) < 60_000
    token: Token = shifted.put("accept", ITEM, {}, delay_ms=5000).token
    assert abs(token.due - right - 5000) < 60_000
