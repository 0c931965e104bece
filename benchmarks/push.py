"""The push engine against the latency of its target, without Spark. Last line: JSON.

`window`: 50,000 records in order by key, batches of 100, a target with a latency of 20 ms: the rate of
records against that of requests which follow each other without a pause, as many as are allowed in flight.
`slow_lane_loss`: ten lanes, of which one takes 100 times as long: how much later the nine others are
delivered, 0 for no loss.

    python benchmarks/push.py [--records 50000] [--concurrency 8] [--rounds 3]
"""

import argparse
import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

sys.path.insert(0, str(Path(__file__).parents[1]))

from quiet import Stolen, wait_idle

from spark_runner.push.batch import Batch, Record
from spark_runner.push.engine import Engine
from spark_runner.push.errors import Overloaded, Permanent, Refused, Retryable, TimedOut
from spark_runner.push.settings import Limits, Order, PushSettings

BATCH, CHUNK, KEYS, LANES = 100, 1000, 997, 10
LATENCY_S, SLOW_S = 0.02, 2.0
SLOW = "lane-3"
TIMEOUT_S = 10.0
STATUSES = {400: Permanent, 429: Overloaded, 500: Retryable}


class Target:
    """The server of `push_target.py`, and the connections of this process to it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._local = threading.local()

    def call(self, method: str, path: str, document: object = None) -> Any:
        """The answer of the server, as JSON."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self._port)) as connection:
            connection.request(method, path, json.dumps(document))
            return json.loads(connection.getresponse().read())

    def deliver(self, batch: Batch) -> None:
        """Send a batch, on a connection of this thread."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
            self._local.connection = connection
        try:
            body = f"[{','.join(record.value for record in batch.records)}]"
            connection.request("POST", f"/push/{batch.lane or 'all'}", body)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise (TimedOut if isinstance(error, TimeoutError) else Refused)(str(error)) from error
        if kind := STATUSES.get(answer.status):
            raise kind(str(answer.status))


@contextlib.contextmanager
def target() -> Iterator[Target]:
    """A server in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("push_target.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Target(int(cast(IO[str], process.stdout).readline()))
        process.communicate()  # the end of its stdin is its end


def records(count: int, lanes: int) -> list[Record]:
    """Records of `KEYS` keys, in turn of each lane."""
    texts = (
        json.dumps({"key": f"{n % KEYS} of {n % lanes}", "number": n, "id": f"{n}", "text": "x" * 50})
        for n in range(count)
    )
    return [
        Record(text, len(text), f"lane-{n % lanes}" if lanes > 1 else "", n % KEYS)
        for n, text in enumerate(texts)
    ]


def push(to: Target, found: list[Record], limits: Limits, until: int) -> float:
    """The seconds until as many records are delivered, but for those of the slow lane."""
    to.call("POST", "/reset")
    done = list[float]()
    began = time.monotonic()
    with Engine(to.deliver, PushSettings(order=Order.BY_KEY, batch_records=BATCH), limits) as engine:

        def watch() -> None:
            while (
                sum(each["delivered"] for name, each in engine.lane_counts().items() if name != SLOW) < until
            ):
                time.sleep(0.002)
            done.append(time.monotonic() - began)
            to.call("POST", "/set", {"lanes": {}})  # what is left may come fast

        watcher = threading.Thread(target=watch)
        watcher.start()
        for start in range(0, len(found), CHUNK):
            engine.put(found[start : start + CHUNK], start + CHUNK)
        watcher.join()
    seen = to.call("GET", "/seen")
    if seen["distinct"] != len(found) or seen["out_of_order"]:
        raise RuntimeError(f"records are lost, or not in order: {seen}")
    return done[0]


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    windows, losses, stolen = list[float](), list[float](), Stolen()
    one, ten = records(given.records, 1), records(given.records, LANES)
    with target() as to:
        for _ in range(given.rounds):
            wait_idle()
            to.call("POST", "/set", {"latency": LATENCY_S, "lanes": {}})
            seconds = push(to, one, Limits(concurrency=given.concurrency), given.records)
            windows.append(given.records / BATCH / given.concurrency * LATENCY_S / seconds)
            both = list[float]()
            for lanes in ({}, {SLOW: SLOW_S}):
                to.call("POST", "/set", {"lanes": lanes})
                limits = Limits(concurrency=2 * LANES, buffer_records=given.records)
                both.append(push(to, ten, limits, given.records * (LANES - 1) // LANES))
            losses.append(both[1] / both[0] - 1)
            print(f"window {windows[-1]:.2f}, slow lane {both[0]:.2f} s -> {both[1]:.2f} s", flush=True)
    print(f"stolen: {stolen.share():.2f}")
    print(json.dumps({"window": statistics.median(windows), "slow_lane_loss": statistics.median(losses)}))


if __name__ == "__main__":
    main()
