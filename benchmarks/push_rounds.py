"""Pushes of `push.py` into the server of `push_target.py`."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from spark_runner.push.batch import Batch, DeadLetter, Record
from spark_runner.push.engine import Engine
from spark_runner.push.errors import Overloaded, Permanent, Refused, Retryable, TimedOut
from spark_runner.push.settings import Limits, Order, PushSettings

BATCH, CHUNK, KEYS, LANES = 100, 1000, 997, 10
LATENCY_S, SLOW_S = 0.02, 2.0
SLOW = "lane-3"
TIMEOUT_S, SHORT_TIMEOUT_S = 10.0, 0.5
STATUSES = {400: Permanent, 429: Overloaded, 500: Retryable}
FULL_RATE, LOW_RATE, PHASE_S = 200.0, 20.0, 10.0  # requests per second
BUFFER = 16 * 1024 * 1024  # bytes
LOOK_S = 0.02


class Target:
    """The server, and the connections of this process to it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._local = threading.local()
        self.timeout = TIMEOUT_S

    def call(self, method: str, path: str, document: object = None) -> Any:
        """The answer of the server, as JSON."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self._port)) as connection:
            connection.request(method, path, json.dumps(document))
            return json.loads(connection.getresponse().read())

    def set(self, **settings: object) -> None:
        """Forget what was taken, and answer so from now on."""
        usual = {"latency": LATENCY_S, "lanes": {}, "rate": 0.0, "errors": 0.0, "timeouts": 0.0}
        self.call("POST", "/set", {**usual, **settings})

    def deliver(self, batch: Batch) -> None:
        """Send a batch, on a connection of this thread."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self.timeout)
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

    def check(self, count: int) -> dict[str, int]:
        """What is lost of so many records, and what came out of order."""
        seen = self.call("GET", "/seen")
        if seen["other_ids"]:
            raise RuntimeError(f"records came again with other ids: {seen}")
        return {"lost": count - seen["distinct"], "out_of_order": seen["out_of_order"]}


@contextlib.contextmanager
def target() -> Iterator[Target]:
    """A server in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("push_target.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Target(int(cast(IO[str], process.stdout).readline()))
        process.communicate()  # the end of its stdin is its end


def records(count: int, lanes: int = 1, poison: float = 0.0) -> list[Record]:
    """Records of `KEYS` keys, in turn of each lane, of which a share is refused."""
    each = round(1 / poison) if poison else count + 1
    texts = (
        json.dumps(
            {
                "key": f"{n % KEYS} of {n % lanes}",
                "number": n,
                "id": f"{n}",
                "text": "x" * 50,
                **({"poison": True} if n % each == each - 1 else {}),
            }
        )
        for n in range(count)
    )
    return [
        Record(text, len(text), f"lane-{n % lanes}" if lanes > 1 else "", n % KEYS)
        for n, text in enumerate(texts)
    ]


def settings(**given: object) -> PushSettings:
    """In order by key."""
    return PushSettings(order=Order.BY_KEY, batch_records=BATCH, **given)  # type: ignore[arg-type]  # the caller names fields


def push(to: Target, found: list[Record], concurrency: int) -> float:
    """The seconds until all are delivered."""
    to.call("POST", "/reset")
    began = time.monotonic()
    with Engine(to.deliver, settings(key_groups=2 * concurrency), Limits(concurrency=concurrency)) as engine:
        for start in range(0, len(found), CHUNK):
            engine.put(found[start : start + CHUNK], start + CHUNK)
    seconds = time.monotonic() - began
    if any(to.check(len(found)).values()):
        raise RuntimeError(f"records are lost, or not in order: {to.check(len(found))}")
    return seconds


def window(to: Target, count: int, concurrency: int) -> dict[str, float]:
    """The rate against that of the window, and against one request at a time."""
    to.set()
    found = records(count)
    seconds = push(to, found, concurrency)
    few = count // 10
    began = time.monotonic()
    for start in range(0, few, BATCH):
        batch = Batch("", found[0].priority, 0.0, found[start : start + BATCH])
        to.deliver(batch)
    one_by_one = (time.monotonic() - began) * count / few
    foreach = one_by_one / seconds
    return {"window": foreach / concurrency, "foreach": foreach}


def slow_lane(to: Target, count: int) -> dict[str, float]:
    """How much later nine lanes are delivered because of a slow one."""
    found, seconds = records(count, LANES), list[float]()
    for slow in ({}, {SLOW: SLOW_S}):
        to.set(lanes=slow)
        to.call("POST", "/reset")
        began = time.monotonic()
        limits = Limits(concurrency=2 * LANES, buffer_records=count)
        with Engine(to.deliver, settings(), limits) as engine:
            for start in range(0, count, CHUNK):
                engine.put(found[start : start + CHUNK], start + CHUNK)
            while sum(n["delivered"] for name, n in engine.report()["lanes"].items() if name != SLOW) < (
                count * (LANES - 1) // LANES
            ):
                time.sleep(LOOK_S)
            seconds.append(time.monotonic() - began)
            to.set()  # what is left may come fast
    return {"slow_lane_loss": seconds[1] / seconds[0] - 1}


class Reader(threading.Thread):
    """Puts records as fast as the engine takes them, and keeps when."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(daemon=True)
        self._engine = engine
        self.times = list[float]()  # of each chunk
        self.is_ending = False

    def run(self) -> None:
        """Read until the end."""
        while not self.is_ending:
            self._engine.put(records(CHUNK))
            self.times.append(time.monotonic())

    def rate(self, since: float, until: float) -> float:
        """Records per second."""
        return sum(since < at <= until for at in self.times) * CHUNK / (until - since)


def throttled(to: Target, slow_seconds: float) -> dict[str, float]:
    """When reading stops as the target slows down, and is fast again; the buffer and the memory meanwhile."""
    to.set(rate=FULL_RATE)
    limits = Limits(concurrency=16, buffer_records=10**9, buffer_bytes=BUFFER)
    before = most_memory = resident()
    with Engine(to.deliver, settings(retry_timeout=slow_seconds * 6), limits) as engine:
        reader = Reader(engine)
        reader.start()
        time.sleep(PHASE_S)
        usual = reader.rate(time.monotonic() - PHASE_S / 2, time.monotonic())
        to.set(rate=LOW_RATE)
        slow_at, most = time.monotonic(), 0
        while time.monotonic() < slow_at + slow_seconds:
            most = max(most, engine.report()["buffered_bytes"])
            most_memory = max(most_memory, resident())
            time.sleep(LOOK_S)
        low = LOW_RATE * BATCH
        stop = next(
            seconds / 10
            for seconds in range(1, int(10 * slow_seconds))
            if reader.rate(slow_at + seconds / 10, slow_at + slow_seconds) < 2 * low
        )
        to.set(rate=FULL_RATE)
        fast_at = time.monotonic()
        while reader.rate(time.monotonic() - 1.0, time.monotonic()) < 0.9 * usual:
            time.sleep(LOOK_S)
        recover = time.monotonic() - fast_at
        reader.is_ending = True
        to.set()
        reader.join()
    memory = (most_memory - before) / BUFFER
    return {"stop_seconds": stop, "recover_seconds": recover, "buffer": most / BUFFER, "memory": memory}


def resident() -> int:
    """The bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def faults(to: Target, count: int) -> dict[str, float]:
    """What is lost, or out of order, where requests fail, have no answer, or are refused for one record."""
    poison = 0.001
    to.set(errors=0.01, timeouts=0.01)
    to.call("POST", "/reset")
    dead = list[DeadLetter]()
    faulty = Target(to._port)  # noqa: SLF001 - another client of the same server
    faulty.timeout = SHORT_TIMEOUT_S
    found = records(count, poison=poison)
    with Engine(faulty.deliver, settings(), Limits(concurrency=16), on_dead=dead.extend) as engine:
        for start in range(0, count, CHUNK):
            engine.put(found[start : start + CHUNK], start + CHUNK)
    refused = [letter for letter in dead if letter.errors[-1] == "400" and '"poison"' in letter.record.value]
    if len(refused) != len(dead):
        raise RuntimeError(f"{len(dead) - len(refused)} records are dead letters that were not refused")
    return {**to.check(count - len(dead)), "dead": len(dead) - round(count * poison)}
