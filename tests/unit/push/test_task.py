"""The push of a task, whose limits a real server sets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spark_runner.push.batch import Batch, DeadLetter, Record
from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.client import Endpoint
from spark_runner.push.control.server import ControlServer
from spark_runner.push.errors import Permanent, SettingError
from spark_runner.push.settings import LaneLimits, Limits
from spark_runner.push.task import Portion, PushTask
from tests.push_support import WAIT_S, settings
from tests.waiting import wait_until

LEASE_S = 30.0


@contextmanager
def driver(limits: Limits) -> Iterator[tuple[ControlServer, Endpoint]]:
    server = ControlServer(limits, host="127.0.0.1", token="t", lease=LEASE_S, is_exclusive=False)  # noqa: S106 - of this server alone
    endpoint = Endpoint("127.0.0.1", server.start(), "t", LEASE_S)
    try:
        yield server, endpoint
    finally:
        server.close()


class Target:
    """Takes batches once it may."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.values, self.sizes = list[Any](), list[int]()
        self.in_flight = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, batch: Batch) -> None:
        with self._lock:
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
        assert self.open.wait(WAIT_S)
        values = [record.value for record in batch.records]
        with self._lock:
            self.in_flight -= 1
            self.sizes.append(len(batch))
            if "bad" in values:
                raise Permanent("no")
            self.values += values


def portions(count: int) -> Iterator[Portion]:
    for start in range(0, count, 10):
        yield Portion(
            [Record(value, 1) for value in range(start, start + 10)], start + 10, count - start - 10
        )


def test_a_task_delivers_what_it_reads_and_tells_what_became_of_it() -> None:
    target = Target()
    target.open.set()
    with driver(Limits(concurrency=4)) as (server, endpoint):
        task = PushTask(settings(batch_records=3, is_repeatable=True), endpoint)
        found = list(task.run(target, [*portions(100), Portion([Record("bad", 1)], 101, 0)]))
        assert sum(news.delivered for news in found) == 100
        assert found[-1].position == 101
        (dead,) = (letter for news in found for letter in news.dead)
        assert isinstance(dead, DeadLetter)
        assert (dead.record.value, dead.errors) == ("bad", ("no",))
        assert sorted(target.values) == list(range(100))
        assert target.sizes.count(3) >= 33, "batches are full although the first orders come late"
        ((_, counts),) = server.take_ended()
        assert counts["lanes"][""]["delivered"] == 100
        assert (counts["available"], counts["position"], counts["read_position"]) == (0, 100, 101)


def test_limits_hold_for_two_tasks_together_and_change_while_they_run() -> None:
    target, have_shares = Target(), threading.Event()
    target.open.set()
    with driver(Limits(concurrency=6)) as (server, endpoint):
        tasks = [PushTask(settings(batch_records=1), endpoint) for _ in range(2)]
        ids = iter(range(2))

        def read() -> Iterator[Portion]:
            first, *others = portions(40)
            yield first
            assert have_shares.wait(WAIT_S)
            yield from others

        def run(task: PushTask) -> None:
            list(task.run(target, read(), TaskId(next(ids), 0)))

        threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        # The second one has a share only once the first one is within its own.
        wait_until(lambda: len(target.values) == 20, WAIT_S, "both deliver")
        target.open.clear()
        have_shares.set()
        wait_until(lambda: target.in_flight == 6, WAIT_S, "they use all")
        server.adjust(Limits(concurrency=8, lanes={"": LaneLimits(is_paused=True)}))
        target.open.set()
        wait_until(lambda: target.in_flight == 0, WAIT_S, "the lane is paused")
        server.adjust(Limits(concurrency=2))
        for thread in threads:
            thread.join(WAIT_S)
        assert sorted(target.values) == sorted([*range(40), *range(40)])
        assert target.most <= 8


def test_a_request_must_fit_into_the_lease() -> None:
    with pytest.raises(SettingError, match="'request_timeout' is 30; it must be below the lease of 30 s"):
        PushTask(settings(request_timeout=30.0), Endpoint("127.0.0.1", 1, "t", 30.0))
