import threading
import time
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest

from queues.claims.claim import Claim, Transition
from queues.claims.transitions import run_transitions
from queues.dispatch import dispatcher
from queues.dispatch.handler_pool import DONE, Action, HandlerPool, Move, Requeue, Retries
from queues.model.errors import ClaimLost, QueueError, Unreachable
from queues.model.operations import Delete
from queues.model.record import MAX_RECORD_BYTES, NewItem
from queues.queue_set import QueueSet
from queues.store.commit import commit
from tests.claims_support import NEVER, SOON, locks
from tests.queues_support import Open, expire, places_of
from tests.waiting import wait_until

ITEM = "item"
AT_ONCE = Retries(attempts=3, delay_ms=0)


class Seen:
    """A handler that records its claims and acts as the test sets for each queue."""

    def __init__(self, **by_queue: Callable[[Claim], Action]) -> None:
        self._by_queue = by_queue
        self._guard = threading.Lock()
        self.calls: list[tuple[str, str]] = []
        self.now = 0
        self.most = 0

    def __call__(self, claim: Claim) -> Action:
        with self._guard:
            self.calls.append((claim.id, claim.queue))
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            return self._by_queue[claim.queue](claim)
        finally:
            with self._guard:
                self.now -= 1


def done(_claim: Claim) -> Action:
    return DONE


def fail(_claim: Claim) -> Action:
    raise ValueError("no such file")


def put_some(queues: QueueSet, count: int, queue: str = "accept") -> list[str]:
    ids = [f"{queue}-{number:02}" for number in range(count)]
    queues.put_many(queue, [NewItem({"n": 0}, item_id) for item_id in ids])
    return ids


# ---------------------------------------------------------------------- actions
def test_a_finished_item_is_removed(open_queues: Open) -> None:
    queues = open_queues()
    ids = put_some(queues, 30)
    seen = Seen(accept=done)
    with HandlerPool(open_queues(), ["accept"], seen):
        wait_until(lambda: queues.count("accept") == 0, 10, "all are done")
    assert sorted(seen.calls) == [(item_id, "accept") for item_id in ids]
    assert not any(queues.contains(item_id) for item_id in ids)
    assert locks(queues) == []


def test_a_requeued_item_comes_again_with_its_new_payload_and_not_before_its_delay(open_queues: Open) -> None:
    queues = open_queues()
    put = queues.put("accept", ITEM, {"n": 0})
    times: list[int] = []

    def again(claim: Claim) -> Action:
        times.append(queues.clock.now_ms())
        return Requeue({"n": claim.payload["n"] + 1}, delay_ms=200) if len(times) < 3 else DONE

    worker = open_queues()
    with HandlerPool(worker, ["accept"], again, rescan_seconds=NEVER):
        wait_until(lambda: len(times) >= 2, 10, "it comes again")
        assert queues.get(ITEM).token.seq == put.token.seq
        wait_until(lambda: not queues.contains(ITEM), 10, "it is done")
    assert all(later - earlier >= 200 for earlier, later in pairwise(times))


def test_a_requeue_keeps_the_payload_when_no_other_is_given(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {"n": 7})
    with HandlerPool(open_queues(), ["accept"], Seen(accept=lambda _claim: Requeue(delay_ms=3_600_000))):
        wait_until(lambda: queues.get(ITEM).token.due > queues.clock.now_ms(), 10, "it is requeued")
    assert queues.get(ITEM).payload == {"n": 7}


def test_an_item_moves_with_its_new_payload_and_is_released_to_a_queue_without_a_local_handler(
    open_queues: Open,
) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {"n": 0})
    with HandlerPool(open_queues(), ["accept"], Seen(accept=lambda _claim: Move("finish", {"n": 1}))):
        wait_until(lambda: places_of(queues, ITEM) == ["finish"], 10, "it has moved")
        wait_until(lambda: locks(queues) == [], 10, "it is let go")
    assert queues.get(ITEM).payload == {"n": 1}


def test_an_item_stays_held_across_moves_when_its_consumer_takes_both_queues(open_queues: Open) -> None:
    queues, worker = open_queues(), open_queues()
    locked_at: list[int] = []

    def look(claim: Claim) -> None:
        stat = queues.session.exists(queues.layout.lock("default", claim.id))
        assert stat is not None
        assert claim.record.claims == (1 if claim.queue == "accept" else 0)  # it was not claimed again
        locked_at.append(stat.created)

    def first(claim: Claim) -> Action:
        look(claim)
        return Move("running", {"n": 1})

    def second(claim: Claim) -> Action:
        look(claim)
        return Move("finish")

    seen = Seen(accept=first, running=second)
    with HandlerPool(worker, ["accept", "running"], seen):
        queues.put("accept", ITEM, {"n": 0})
        wait_until(lambda: places_of(queues, ITEM) == ["finish"], 10, "it is there")
    assert seen.calls == [(ITEM, "accept"), (ITEM, "running")]
    assert locked_at[0] == locked_at[1]
    assert locks(queues) == []


def test_a_move_with_a_delay_lets_go_and_comes_when_it_is_due(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    times: list[int] = []

    def on(_claim: Claim) -> Action:
        times.append(queues.clock.now_ms())
        return Move("running", delay_ms=200)

    def last(_claim: Claim) -> Action:
        times.append(queues.clock.now_ms())
        return DONE

    with HandlerPool(open_queues(), ["accept", "running"], Seen(accept=on, running=last)):
        wait_until(lambda: not queues.contains(ITEM), 10, "it is done")
    assert times[1] - times[0] >= 200


def test_an_item_moves_into_another_pool(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    with HandlerPool(open_queues(), ["accept"], Seen(accept=lambda _claim: Move("running", pool="other"))):
        wait_until(lambda: queues.count("running", "other") == 1, 10, "it has moved")
        wait_until(lambda: locks(queues, "other") == [], 10, "it is let go")
    assert locks(queues) == []


# ---------------------------------------------------------------------- errors
def test_a_handler_that_raises_is_tried_again_with_a_growing_delay(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {"n": 0})
    times: list[int] = []

    def fail_twice(_claim: Claim) -> Action:
        times.append(queues.clock.now_ms())
        if len(times) < 3:
            raise ValueError("not yet")
        return DONE

    retries = Retries(attempts=5, delay_ms=100, factor=3)
    with HandlerPool(open_queues(), ["accept"], fail_twice, retries=retries, rescan_seconds=NEVER):
        wait_until(lambda: len(times) == 2, 10, "it comes again")
        wait_until(lambda: not queues.contains(ITEM), 10, "it is done")
    assert times[1] - times[0] >= 100
    assert times[2] - times[1] >= 300


def test_failures_are_counted_and_the_last_error_is_kept(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {"n": 0})
    with HandlerPool(open_queues(), ["accept"], Seen(accept=fail), retries=Retries(delay_ms=3_600_000)):
        wait_until(lambda: queues.get(ITEM).failures == 1, 10, "the failure is counted")
    record = queues.get(ITEM)
    assert record.error is not None
    assert record.error["reason"] == "ValueError: no such file"
    assert (record.queue, record.payload, record.claims) == ("accept", {"n": 0}, 0)


def test_an_item_that_fails_too_often_is_dead_with_the_reason_and_the_traceback(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("running", ITEM, {"n": 0})
    seen = Seen(running=fail)
    with HandlerPool(open_queues(), ["running"], seen, retries=AT_ONCE):
        wait_until(lambda: places_of(queues, ITEM) == ["dead"], 10, "it is dead")
    assert len(seen.calls) == AT_ONCE.attempts
    record = queues.get(ITEM)
    assert record.error is not None
    assert record.error["reason"] == "ValueError: no such file"
    assert "in fail" in record.error["traceback"]
    assert (record.error["queue"], record.failures) == ("running", 3)
    assert record.payload == {"n": 0}
    assert locks(queues) == []


def test_a_step_that_succeeds_forgets_earlier_failures(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    tries: list[str] = []

    def first_fails(claim: Claim) -> Action:
        tries.append(claim.queue)
        if tries.count(claim.queue) < 2:
            raise ValueError("once in each queue")
        return Move("running") if claim.queue == "accept" else Move("finish")

    with HandlerPool(
        open_queues(), ["accept", "running"], first_fails, retries=Retries(attempts=2, delay_ms=0)
    ):
        wait_until(lambda: places_of(queues, ITEM) == ["finish"], 10, "it comes through")
    assert tries == ["accept", "accept", "running", "running"]
    assert (queues.get(ITEM).failures, queues.get(ITEM).error) == (0, None)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        pytest.param(None, "TypeError", id="nothing"),
        pytest.param(Move("nowhere"), "UnknownQueue", id="unknown queue"),
        pytest.param(Move("running", {"text": "x" * 70_000}), "TooLarge", id="too large"),
        pytest.param(Requeue({"when": object()}), "InvalidPayload", id="no JSON"),
        pytest.param(Move("running", pool="no/pool"), "InvalidName", id="no pool"),
    ],
)
def test_an_impossible_action_is_a_failure_of_the_handler(
    open_queues: Open, action: Action, reason: str
) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {"n": 0})
    with HandlerPool(
        open_queues(), ["accept"], Seen(accept=lambda _claim: action), retries=Retries(attempts=1)
    ):
        wait_until(lambda: places_of(queues, ITEM) == ["dead"], 10, "it is dead")
    error = queues.get(ITEM).error
    assert error is not None
    assert error["reason"].startswith(reason)


def test_one_item_that_fails_does_not_hold_up_the_others(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 20)

    def handle(claim: Claim) -> Action:
        return fail(claim) if claim.id.endswith("0") else DONE

    with HandlerPool(open_queues(), ["accept"], handle, threads=1, retries=Retries(attempts=1)):
        wait_until(lambda: queues.count("accept") == 0, 10, "all are handled")
    assert [token.id for token in queues.tokens("dead")] == ["accept-00", "accept-10"]


@pytest.mark.parametrize("text", ["\ud800", "x" * 100_000], ids=["no Unicode", "long"])
def test_an_error_that_cannot_be_written_as_it_is_brings_its_item_to_dead_all_the_same(
    open_queues: Open, text: str
) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})

    def fail_oddly(_claim: Claim) -> Action:
        raise ValueError(text)

    with HandlerPool(open_queues(), ["accept"], fail_oddly, retries=Retries(attempts=1)):
        wait_until(lambda: places_of(queues, ITEM) == ["dead"], 10, "it is dead")
    error = queues.get(ITEM).error
    assert error is not None
    assert error["reason"].startswith("ValueError: ")


def test_a_failure_of_an_item_near_the_limit_of_size_is_recorded_all_the_same(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {"text": "x" * 65_000})
    with HandlerPool(open_queues(), ["accept"], Seen(accept=fail), retries=AT_ONCE):
        wait_until(lambda: places_of(queues, ITEM) == ["dead"], 10, "it is dead")
    record = queues.get(ITEM)
    assert record.error is not None
    assert record.error["reason"] == "ValueError: no such file"
    assert len(record.payload["text"]) == 65_000


@pytest.mark.parametrize("action", ["move", "fail"])
def test_an_item_as_large_as_may_be_put_can_be_moved_on_and_can_fail(open_queues: Open, action: str) -> None:
    queues = open_queues()
    spare = MAX_RECORD_BYTES - len(queues.put("accept", ITEM, {"text": ""}).encode())
    queues.remove(ITEM)
    queues.put("accept", ITEM, {"text": "x" * spare})  # not one byte more

    def handle(claim: Claim) -> Action:
        return Move("running") if action == "move" else fail(claim)

    with HandlerPool(open_queues(), ["accept"], handle, retries=AT_ONCE):
        wait_until(lambda: places_of(queues, ITEM) != ["accept"], 10, "it is brought on")
    record = queues.get(ITEM)
    assert (record.queue, record.failures) == (("running", 0) if action == "move" else ("dead", 3))
    assert len(record.payload["text"]) == spare


@pytest.mark.parametrize(
    ("failures", "delay_ms"), [(1, 1_000), (2, 2_000), (3, 4_000), (7, 60_000), (10_000, 60_000)]
)
def test_the_delay_grows_up_to_its_limit(failures: int, delay_ms: int) -> None:
    assert Retries().delay_after(failures) == delay_ms


# ---------------------------------------------------------------------- bounds
@pytest.mark.parametrize("queue_names", [["accept"], ["accept", "running"]], ids=["one queue", "two queues"])
def test_no_more_items_are_in_hand_than_allowed(open_queues: Open, queue_names: list[str]) -> None:
    queues = open_queues()
    for queue in queue_names:
        put_some(queues, 12, queue)
    go_on, most = threading.Event(), list[int]()

    def wait(_claim: Claim) -> Action:
        most.append(len(locks(queues)))
        go_on.wait(0.02)  # until the end of the test
        return DONE

    pool = HandlerPool(open_queues(), queue_names, wait, threads=2, held=3)
    with pool:
        wait_until(lambda: sum(queues.count(queue) for queue in queue_names) == 0, 20, "all are done")
    assert 2 <= max(most) <= 3
    assert pool.in_flight() == 0


def test_no_more_handlers_run_at_once_than_there_are_threads(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 12)
    barrier = threading.Barrier(3)

    def meet(_claim: Claim) -> Action:
        barrier.wait(10)  # three run at once, or this breaks
        return DONE

    seen = Seen(accept=meet)
    with HandlerPool(open_queues(), ["accept"], seen, threads=3):
        wait_until(lambda: queues.count("accept") == 0, 10, "all are done")
    assert seen.most == 3


# ---------------------------------------------------------------------- lost claims
@pytest.mark.parametrize("how", ["session", "lock", "force"])
def test_the_action_of_a_handler_on_a_lost_item_is_ignored(open_queues: Open, how: str) -> None:
    queues, worker = open_queues(), open_queues()
    queues.put("accept", ITEM, {"n": 0})
    began, go_on = threading.Event(), threading.Event()

    def wait(_claim: Claim) -> Action:
        began.set()
        go_on.wait(20)
        return Move("finish", {"n": 1})

    pool = HandlerPool(worker, ["accept"], wait, rescan_seconds=NEVER)
    with pool:
        assert began.wait(10)
        if how == "session":
            expire(worker.session)
        elif how == "lock":
            commit(queues.session, [Delete(queues.layout.lock("default", ITEM))])
        queues.move(ITEM, "running", force=how == "force", delay_ms=3_600_000)
        go_on.set()
        wait_until(lambda: pool.in_flight() == 0, 10, "the outcome is settled")
    record = queues.get(ITEM)
    assert (record.queue, record.payload, record.failures) == ("running", {"n": 0}, 0)


def test_a_handler_can_ask_whether_the_item_is_still_its_own(open_queues: Open) -> None:
    queues, worker = open_queues(), open_queues()
    queues.put("accept", ITEM, {})
    began, go_on = threading.Event(), threading.Event()
    asked: list[ClaimLost] = []

    def ask(claim: Claim) -> Action:
        if began.is_set():
            return Move("finish")  # the second time
        began.set()
        go_on.wait(20)
        try:
            claim.check()
        except ClaimLost as error:
            asked.append(error)
            raise
        return DONE

    with HandlerPool(worker, ["accept"], ask, rescan_seconds=SOON):
        assert began.wait(10)
        expire(worker.session)
        go_on.set()
        wait_until(lambda: places_of(queues, ITEM) == ["finish"], 10, "it is handled again")
    assert len(asked) == 1
    assert queues.get(ITEM).failures == 0


# ---------------------------------------------------------------------- stop
def test_stopping_waits_for_running_handlers_and_lets_go_of_what_none_has_begun(open_queues: Open) -> None:
    queues = open_queues()
    put_some(queues, 6)
    began, go_on = threading.Event(), threading.Event()

    def wait(_claim: Claim) -> Action:
        began.set()
        go_on.wait(20)
        return DONE

    seen = Seen(accept=wait)
    pool = HandlerPool(open_queues(), ["accept"], seen, threads=1, held=4).start()
    assert began.wait(10)
    wait_until(lambda: len(locks(queues)) == 4, 10, "four are in hand")
    stopped = threading.Thread(target=pool.stop)
    stopped.start()
    wait_until(lambda: _is_stopping(pool), 10, "it stops")
    go_on.set()
    stopped.join(20)
    assert seen.calls == [("accept-00", "accept")]
    assert locks(queues) == []
    assert queues.count("accept") == 5
    assert {queues.get(token.id).claims for token in queues.tokens("accept")} == {0}


def test_an_item_that_was_moving_on_when_it_stopped_is_let_go(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    under_way, go_on = threading.Event(), threading.Event()

    def slowly(steps: Iterable[Transition]) -> list[tuple[Transition, QueueError | None]]:
        made = list(steps)
        if made:
            under_way.set()
            go_on.wait(20)
        return run_transitions(made)

    monkeypatch.setattr(dispatcher, "run_transitions", slowly)
    seen = Seen(accept=lambda _claim: Move("running"), running=done)
    pool = HandlerPool(open_queues(), ["accept", "running"], seen, threads=1).start()
    assert under_way.wait(10)  # its next queue is decided: it stays held
    stopped = threading.Thread(target=pool.stop)
    stopped.start()
    wait_until(lambda: _is_stopping(pool), 10, "it stops")
    go_on.set()
    stopped.join(20)
    assert places_of(queues, ITEM) == ["running"]
    assert locks(queues) == []


def test_a_pool_that_could_not_start_leaves_no_thread_and_can_be_started_again(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = open_queues()
    put_some(queues, 1)
    pool = HandlerPool(queues, ["accept"], done, pools=("default",))

    def away(_pool: str) -> None:
        raise Unreachable("127.0.0.1:1", 3)

    before = set(threading.enumerate())
    with monkeypatch.context() as patch:
        patch.setattr(queues.root, "ensure_pool", away)
        with pytest.raises(Unreachable):
            pool.start()
    started = [thread.name for thread in threading.enumerate() if thread not in before]
    assert not [name for name in started if name.startswith(("handler", "batcher", "consumer"))]
    with pool:
        wait_until(lambda: queues.count("accept") == 0, 10, "it is done")


def test_released_items_are_handled_by_the_next_handler_pool(open_queues: Open) -> None:
    queues = open_queues()
    ids = put_some(queues, 40)
    handled: list[str] = []

    def note(claim: Claim) -> Action:
        time.sleep(0.001)  # a slow handler, so that many items are held
        handled.append(claim.id)
        return DONE

    for _ in range(3):
        with HandlerPool(open_queues(), ["accept"], note, threads=2, held=20):
            wait_until(lambda: queues.count("accept") < 40, 10, "it has begun")
    with HandlerPool(open_queues(), ["accept"], note):
        wait_until(lambda: queues.count("accept") == 0, 10, "all are done")
    assert sorted(handled) == ids  # each once


def _is_stopping(pool: HandlerPool) -> bool:
    return pool._stopping.is_set()  # noqa: SLF001 - no other way to see it
