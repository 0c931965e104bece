"""How fast a change of the limits reaches all tasks, and what the channel costs them."""

import os
import statistics
import threading
import time

import psutil

from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.client import ControlClient, Endpoint
from spark_runner.push.control.messages import Orders
from spark_runner.push.control.server import ControlServer
from spark_runner.push.settings import Limits

TASKS, CHANGES, IDLE_S = 20, 50, 5.0
TOKEN = "of the benchmark"  # noqa: S105 - of this server alone
REPORT = {
    "in_flight": 0,
    "lanes": {f"lane-{n}": {"read": n, "delivered": n} for n in range(10)},
    "latencies": {str(n): n for n in range(60)},
}


def measure() -> dict[str, float]:
    """The 99th of 100 changes in seconds, and the processor share of one task and its part of the driver."""
    changed, concurrency = threading.Condition(), dict[int, int]()

    def follow(number: int, orders: Orders) -> None:
        with changed:
            concurrency[number] = orders.concurrency
            changed.notify_all()

    limits = Limits(concurrency=TASKS)
    server = ControlServer(limits, host="127.0.0.1", token=TOKEN, lease=60.0, is_exclusive=False)
    endpoint = Endpoint("127.0.0.1", server.start(), TOKEN, 60.0)
    clients = [
        ControlClient(
            endpoint,
            TaskId(number, number),
            report=REPORT.copy,
            follow=lambda orders, number=number: follow(number, orders),  # type: ignore[misc]  # of this loop
            extend=lambda _: None,
            failed=print,
        )
        for number in range(TASKS)
    ]

    def wait_for(each: int) -> None:
        with changed:
            changed.wait_for(lambda: [*concurrency.values()] == [each] * TASKS)

    wait_for(1)
    own = psutil.Process(os.getpid())
    before = sum(own.cpu_times()[:2])
    time.sleep(IDLE_S)
    share = (sum(own.cpu_times()[:2]) - before) / IDLE_S / TASKS
    took = list[float]()
    for number in range(CHANGES):
        each = 2 + number % 7
        began = time.monotonic()
        server.adjust(Limits(concurrency=each * TASKS))
        wait_for(each)
        took.append(time.monotonic() - began)
    for client in clients:
        client.close()
    server.close()
    return {"adjust_p99_seconds": statistics.quantiles(took, n=100)[98], "control_share": share}
