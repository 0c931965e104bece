"""Nothing stalls: whatever waits for a time, or for another thread, goes on by itself."""

import threading
import time
from collections.abc import Callable

import pytest

from spark_runner.push.batch import Batch, DeadLetter, Record
from spark_runner.push.engine import Engine
from spark_runner.push.errors import Permanent, PushEnded, Retryable
from spark_runner.push.retry import Results
from spark_runner.push.settings import LaneLimits, Limits, Order, PushSettings
from tests import push_support
from tests.push_support import WAIT_S
from tests.waiting import wait_until


def settings(**given: object) -> PushSettings:
    return push_support.settings(**{"batch_records": 1, **given})


class Ends:
    """Calls a function in a thread, and keeps how that ends."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[[], object]) -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def wait(self) -> BaseException | None:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "it hangs"
        return self.error


def test_a_retry_that_is_due_early_does_not_wait_for_one_that_is_due_late() -> None:
    again = threading.Event()

    def deliver(batch: Batch) -> None:
        if batch.lane == "late" and not again.is_set():
            raise Retryable("503", retry_after=3600.0)
        if batch.lane == "early" and batch.tries == 1:
            time.sleep(0.2)  # the thread of the other lane waits for its time by now
            raise Retryable("503")
        again.set()

    engine = Engine(deliver, settings(), Limits())
    engine.put([Record(1, 1, "late")])
    engine.put([Record(2, 1, "early")])
    wait_until(again.is_set, WAIT_S, "the early one comes again")
    engine.abort()


def test_retries_go_on_when_there_are_to_be_fewer_threads() -> None:
    def deliver(batch: Batch) -> None:
        if batch.tries == 1:
            time.sleep(0.1 if batch.lane == "a" else 0.3)
            raise Retryable("503", retry_after=1.0)

    engine = Engine(deliver, settings(), Limits(concurrency=2))
    engine.put([Record(1, 1, "a"), Record(2, 1, "b")])
    threading.Timer(0.6, engine.adjust, [Limits(concurrency=1)]).start()
    assert Ends(engine.drain).wait() is None


@pytest.mark.parametrize("what", ["put", "drain"])
def test_who_waits_for_a_push_that_is_aborted_hears_of_it(what: str) -> None:
    def deliver(batch: Batch) -> None:  # noqa: ARG001 - of every delivery
        raise Retryable("503", retry_after=3600.0)

    engine = Engine(deliver, settings(), Limits(buffer_records=2))
    engine.put([Record(1, 1)])
    waiting = Ends(engine.drain if what == "drain" else lambda: engine.put([Record(n, 1) for n in range(9)]))
    wait_until(lambda: what == "drain" or engine.report()["is_full"], WAIT_S, "it waits")
    engine.abort()
    assert isinstance(waiting.wait(), PushEnded)
    with pytest.raises(PushEnded):
        engine.put([Record(1, 1)])


def test_an_error_in_a_batch_that_the_producer_runs_ends_the_push() -> None:
    go_on = threading.Event()

    def deliver(batch: Batch) -> None:  # noqa: ARG001 - of every delivery
        if threading.current_thread() is producer:
            go_on.set()
            raise ZeroDivisionError
        assert go_on.wait(WAIT_S)

    engine = Engine(deliver, settings(max_threads=1), Limits(concurrency=2, buffer_records=5))
    producer = threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        engine.put([Record(n, 1) for n in range(100)])
    with pytest.raises(ZeroDivisionError):
        engine.drain()


def test_a_paused_lane_leaves_room_for_the_others_whatever_comes_at_once() -> None:
    seen = list[str]()
    limits = Limits(buffer_records=100, lanes={"paused": LaneLimits(is_paused=True)})
    engine = Engine(lambda batch: seen.append(batch.lane), settings(), limits)
    waiting = Ends(lambda: engine.put([*[Record(0, 1, "paused")] * 200, *[Record(0, 1, "open")] * 50]))
    wait_until(lambda: seen == ["open"] * 50, WAIT_S, "the other lane is delivered")
    engine.adjust(Limits(buffer_records=100))
    assert waiting.wait() is None
    engine.drain()
    assert len(seen) == 250


@pytest.mark.parametrize("backlog", [0, 3])
def test_there_is_a_thread_without_core_threads_too(backlog: int) -> None:
    engine = Engine(lambda _: None, settings(core_threads=0, backlog=backlog), Limits())
    engine.put([Record(1, 1), Record(2, 1)])
    assert Ends(engine.drain).wait() is None


def test_a_thread_starts_for_what_became_due_while_there_was_none() -> None:
    def deliver(batch: Batch) -> None:
        if batch.tries == 1:
            raise Retryable("503", retry_after=0.2)

    engine = Engine(deliver, settings(core_threads=0, backlog=3, keep_alive=0.05), Limits())
    engine.put([Record(1, 1)])
    wait_until(lambda: engine.counts()["errors"] == 1, WAIT_S, "it has failed")
    engine.adjust(Limits(is_suspended=True))
    wait_until(lambda: engine.report()["threads"] == 0, WAIT_S, "no thread is left")
    time.sleep(0.3)  # the retry is due, and nothing may start
    engine.adjust(Limits())
    assert Ends(engine.drain).wait() is None


def test_threads_end_after_their_time_also_while_something_is_due_later() -> None:
    go_on = threading.Event()

    def deliver(batch: Batch) -> None:
        if batch.lane == "later" and batch.tries == 1:
            raise Retryable("503", retry_after=3600.0)
        assert go_on.wait(WAIT_S)

    engine = Engine(deliver, settings(core_threads=0, keep_alive=0.05), Limits())
    engine.put([Record(1, 1, "later"), *(Record(n, 1) for n in range(7))])
    wait_until(lambda: engine.report()["threads"] >= 4, WAIT_S, "threads run")
    go_on.set()
    wait_until(lambda: engine.report()["threads"] == 1, WAIT_S, "one waits for the time")
    engine.abort()


def test_a_wait_of_any_length_is_possible() -> None:
    def deliver(batch: Batch) -> None:
        if batch.lane == "busy":
            raise Retryable("503", retry_after=1e10)

    limits = Limits(lanes={"slow": LaneLimits(rate=1e-10)})
    engine = Engine(deliver, settings(), limits)
    engine.put([Record(1, 1, "busy"), Record(1, 1, "slow"), Record(2, 1, "slow"), Record(1, 1)])
    wait_until(lambda: engine.counts()["delivered"] == 2, WAIT_S, "the others are delivered")
    assert engine.abort() == 2


def test_a_pause_by_the_operator_is_no_time_in_which_the_target_took_nothing() -> None:
    def deliver(batch: Batch) -> None:
        if batch.tries < 3:
            raise Retryable("503", retry_after=0.2)

    with Engine(deliver, settings(retry_timeout=1.5), Limits()) as engine:
        engine.put([Record(1, 1)])
        wait_until(lambda: engine.counts()["errors"] == 1, WAIT_S, "it has failed")
        engine.adjust(Limits(is_suspended=True))
        time.sleep(2.0)
        engine.adjust(Limits())


def test_dead_letters_and_counts_are_those_of_acknowledged_records_alone() -> None:
    dead = list[DeadLetter]()
    second = threading.Event()

    def deliver(batch: Batch) -> Results:
        if batch.records[0].value == 0 and batch.tries == 1:
            assert second.wait(WAIT_S)
            raise Retryable("503")
        if batch.records[0].value == 1:
            second.set()
            return {0: Permanent("no")}
        return None

    with Engine(deliver, settings(order=Order.STRICT, window=2), Limits(), on_dead=dead.extend) as engine:
        engine.put([Record(0, 1), Record(1, 1)])
    assert [letter.number for letter in dead] == [1]
    assert {name: engine.counts()[name] for name in ("read", "delivered", "dead")} == {
        "read": 2,
        "delivered": 1,
        "dead": 1,
    }


def test_a_record_that_a_rollback_brings_again_is_no_dead_letter_before() -> None:
    dead, seen = list[DeadLetter](), list[int]()
    go_on = threading.Event()

    def deliver(batch: Batch) -> Results:
        seen.append(batch.tries)
        assert go_on.wait(WAIT_S)
        return {0: Permanent("no")} if len(seen) == 1 else None

    with Engine(deliver, settings(), Limits(), on_dead=dead.extend) as engine:
        engine.put([Record(0, 1)])
        wait_until(lambda: seen, WAIT_S, "it is in flight")
        engine.roll_back()
        go_on.set()
    assert (dead, engine.counts()["delivered"], engine.counts()["dead"]) == ([], 1, 0)


def test_a_key_of_any_kind_has_an_order() -> None:
    seen = list[object]()

    def deliver(batch: Batch) -> None:
        seen.extend(record.value for record in batch.records)

    with Engine(deliver, settings(order=Order.BY_KEY), Limits()) as engine:
        engine.put([Record(n, 0, key=["a", {"b": None}]) for n in range(20)])
    assert seen == list(range(20))
