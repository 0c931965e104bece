"""The pushes of one driver: two at the same time into one target, and the numbers of ended ones."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from spark_runner.push.adjustment import Adjustment
from spark_runner.push.batch import Batch, Record
from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.client import FencedOut
from spark_runner.push.errors import PushError
from spark_runner.push.pushes import PORT, Pushes
from spark_runner.push.settings import Limits, Order
from spark_runner.push.task import Portion
from tests.push_support import WAIT_S, settings
from tests.waiting import wait_until


def session(**conf: str) -> Any:
    """What a push asks of Spark."""
    return SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]", _gateway=None), conf=conf)


@contextmanager
def task_of(
    pushes: Pushes, task: TaskId, count: int, gate: threading.Event, limits: Limits
) -> Iterator[threading.Thread]:
    """A push with one task, which delivers once the gate opens."""

    def deliver(_: Batch) -> None:
        assert gate.wait(WAIT_S)

    with pushes.start(session(), "dst", settings(batch_records=1), limits) as made:
        portions = [Portion([Record(number, 1) for number in range(count)])]
        thread = threading.Thread(
            target=lambda: list(made.run(deliver, portions, task)), daemon=True, name="task"
        )
        thread.start()
        yield thread
        thread.join(WAIT_S)
        assert not thread.is_alive()


def shown(pushes: Pushes, name: str) -> int:
    return int(pushes.document().get("dst", {}).get(name, 0))


def test_two_pushes_into_one_target_at_the_same_time_are_counted_and_steered_both() -> None:
    pushes, gate = Pushes(), threading.Event()
    limits = Limits(concurrency=4)
    with ExitStack() as stack:
        stack.enter_context(task_of(pushes, TaskId(0, 1), 10, gate, limits))
        stack.enter_context(task_of(pushes, TaskId(0, 2), 20, gate, limits))
        stack.callback(gate.set)
        wait_until(lambda: shown(pushes, "in_flight") == 8, WAIT_S, "both are there")
        pushes.adjust(Adjustment(concurrency=10))
        wait_until(lambda: shown(pushes, "in_flight") == 20, WAIT_S, "both follow")
    assert shown(pushes, "delivered") == 30
    assert shown(pushes, "tasks") == 0


def test_the_water_line_of_two_pushes_into_one_target_is_that_of_both_buffers() -> None:
    pushes, gate, limits = Pushes(), threading.Event(), Limits(concurrency=1, buffer_records=100)
    with ExitStack() as stack:
        for number in (1, 2):
            stack.enter_context(task_of(pushes, TaskId(0, number), 40, gate, limits))
        stack.callback(gate.set)
        wait_until(lambda: shown(pushes, "buffered") == 80, WAIT_S, "both have read")
        wait_until(lambda: pushes.document()["dst"]["water_line"] == 0.4, WAIT_S, "each is at 40 %")


def test_the_water_line_rises_where_a_task_holds_two_parts_of_many_rows_at_most() -> None:
    pushes, gate, parts = Pushes(), threading.Event(), [Record(0, 10, rows=10) for _ in range(10)]

    def deliver(_: Batch) -> None:
        assert gate.wait(WAIT_S)

    given = settings(batch_records=1, order=Order.STRICT)
    with pushes.start(session(), "dst", given, Limits(buffer_records=1000)) as made:
        task = threading.Thread(target=lambda: list(made.run(deliver, [Portion(parts)], TaskId(0, 1))))
        task.start()
        wait_until(lambda: pushes.document()["dst"].get("water_line", 0) > 0.8, WAIT_S, "it has stopped")
        assert shown(pushes, "buffered") == 20
        gate.set()
        task.join(WAIT_S)
    assert shown(pushes, "delivered") == 100


def test_a_later_push_continues_the_numbers_of_the_target() -> None:
    pushes, gate = Pushes(), threading.Event()
    gate.set()
    for number in range(3):
        with task_of(pushes, TaskId(0, number), 5, gate, Limits()):
            pass
        assert shown(pushes, "delivered") == 5 * (number + 1)


def test_numbers_of_a_task_that_a_push_ends_without_are_kept_and_it_runs_no_more() -> None:
    pushes, gate, refusals = Pushes(), threading.Event(), list[FencedOut]()
    with pushes.start(session(), "dst", settings(batch_records=1), Limits(concurrency=2)) as made:
        seen = threading.Event()

        def deliver(batch: Batch) -> None:
            if batch.numbers[0] >= 2:
                seen.set()
                assert gate.wait(WAIT_S)

        def run() -> None:
            try:
                list(made.run(deliver, [Portion([Record(number, 1) for number in range(4)])], TaskId(0, 1)))
            except FencedOut as error:
                refusals.append(error)

        thread = threading.Thread(target=run, daemon=True, name="task")
        thread.start()
        assert seen.wait(WAIT_S)
        wait_until(lambda: shown(pushes, "delivered") == 2, WAIT_S, "the task has reported")
    found = pushes.document()["dst"]
    assert (found["delivered"], found["tasks"], found["in_flight"]) == (2, 0, 0)
    gate.set()
    thread.join(WAIT_S)
    assert [str(error) for error in refusals] == ["the push has ended"]
    with task_of(pushes, TaskId(0, 2), 5, gate, Limits()):
        pass
    assert shown(pushes, "delivered") == 7


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_a_port_that_is_none_is_an_error_with_the_name_of_its_setting(port: str) -> None:
    with (
        pytest.raises(PushError, match=f"{PORT}.*{port}"),
        Pushes().start(session(**{PORT: port}), "dst", settings(), Limits()),
    ):
        pass


def test_a_driver_that_cannot_listen_is_an_error_with_its_address() -> None:
    with Pushes().start(session(), "dst", settings(), Limits()) as made:
        taken = str(made.endpoint.port)
        with (
            pytest.raises(PushError, match=f"127.0.0.1.*{taken}.*{PORT}"),
            Pushes().start(
                session(**{PORT: taken, "spark.port.maxRetries": "0"}), "dst", settings(), Limits()
            ),
        ):
            pass


def test_the_numbers_of_many_targets_fit_into_a_node() -> None:
    pushes = Pushes()
    for number in range(100):
        with pushes.start(session(), f"target {number}", settings(batch_records=1), Limits()) as made:
            records = [Record(0, 1, f"{lane} {'long' * 20}") for lane in range(60)]
            list(made.run(lambda _: None, [Portion(records)], TaskId(0, number)))
    found = pushes.document()
    assert len(found) == 100
    assert len(json.dumps(found)) < 500_000
    assert {push["delivered"] for push in found.values()} == {60}
    assert {sum(lane["read"] for lane in push["lanes"].values()) for push in found.values()} == {60}
