"""The time of a log call: loguru's file sink and the spool, in all states of Elasticsearch."""

import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from loguru import logger

from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.settings import LogSettings
from queues import free_ports

_RATE = 1_000  # records per second
_SLOW_SECONDS = 2.0


def measure(url: str, seconds: float, rounds: int) -> dict[str, Any]:
    """Medians over the rounds of p50 and p99 in microseconds, by state of the server.

    The ratio compares each round with the file sink of the same round: the speed of the machine varies.
    """
    kinds = ("file", "up", "slow", "hanging", "down")
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind in kinds:
            found[kind].append(_one(url, kind, seconds))
            p50, p99 = found[kind][-1]
            print(f"round {number + 1}: {kind:<8} p50 {p50:6.1f} us, p99 {p99:7.1f} us", flush=True)
    p50s = {kind: statistics.median(p50 for p50, _ in values) for kind, values in found.items()}
    p99s = {kind: statistics.median(p99 for _, p99 in values) for kind, values in found.items()}
    ratios = {
        kind: statistics.median(
            p50 / of_file for (p50, _), (of_file, _) in zip(found[kind], found["file"], strict=True)
        )
        for kind in kinds[1:]
    }
    return {
        "ratio_p50": round(max(ratios.values()), 2),
        "spread": round(max(ratios.values()) / min(ratios.values()), 2),
        "p50_us": {kind: round(value, 1) for kind, value in p50s.items()},
        "p99_us": {kind: round(value, 1) for kind, value in p99s.items()},
    }


def _one(url: str, kind: str, seconds: float) -> tuple[float, float]:
    logger.remove()
    with tempfile.TemporaryDirectory() as folder:
        if kind == "file":
            logger.add(Path(folder, "plain.log"))
            return _calls(seconds)
        alias = f"bench-calls-{kind}"
        with (
            _through(url, kind) as target,
            LogPipeline(LogSettings(url=target, alias=alias), Path(folder), "bench"),
        ):
            return _calls(seconds)


def _calls(seconds: float) -> tuple[float, float]:
    took = []
    start = time.perf_counter()
    for number in range(int(seconds * _RATE)):
        wait = start + number / _RATE - time.perf_counter()
        if wait > 0:
            time.sleep(wait)  # keeps the rate
        began = perf_counter_ns()
        logger.info("{} {} -> {} {}", "flights-9c97db62", "running", "success", number)
        took.append(perf_counter_ns() - began)
    cut = statistics.quantiles(took, n=100)
    return cut[49] / 1000, cut[98] / 1000


@contextmanager
def _through(url: str, kind: str) -> Iterator[str]:
    if kind == "up":
        yield url
        return
    (port,) = free_ports("127.0.0.1", 1)
    if kind == "down":
        yield f"http://127.0.0.1:{port}"
        return
    script = Path(__file__).with_name("log_proxy.py")
    proxy = subprocess.Popen([sys.executable, str(script), kind, str(port), url, str(_SLOW_SECONDS)])
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        proxy.kill()
        proxy.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # until the proxy listens
        else:
            return
