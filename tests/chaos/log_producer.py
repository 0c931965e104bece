"""Processes that log and are killed: forked in sequence from a process that has loaded all modules.

Run as `python -m tests.chaos.log_producer`; for each line of JSON it forks, kills and answers.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from orchestrator.logs.shipping.elasticsearch import ElasticsearchTarget
from orchestrator.logs.shipping.http import Http
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.target import ShipperOptions
from orchestrator.logs.spool.limits import SpoolLimits
from orchestrator.logs.spool.writer import Spool
from tests.chaos.log_points import Point, die_at
from tests.log_support import KIB, document

LIMITS = SpoolLimits(max_bytes=256 * KIB * KIB, segment_bytes=16 * KIB, fsync_seconds=0.01)
OPTIONS = ShipperOptions(max_actions=200, max_seconds=0.02, adopt_seconds=0.1, status_seconds=0.02)
DAYS = 3
_AT_ONCE = 25
_BREATH_S = 0.01  # between bursts: time for the delivery of the records


@dataclass(frozen=True)
class ProducerRun:
    """Parameters of one producer process, and the time of its end."""

    root: str
    url: str
    alias: str
    acks: str  # file: the number of each record that was appended
    first: int  # number
    seconds: float  # after which it is killed, if it still runs
    point: Point | None = None
    times: int = 1


class Zygote:
    """The forking process, as the test uses it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def execute(self, run: ProducerRun) -> tuple[int, bool]:
        """Run one producer; its exit code, and whether it died at its point."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(run)) + "\n")
        self._process.stdin.flush()
        code, has_died = map(int, self._process.stdout.readline().split())
        return code, bool(has_died)


@contextmanager
def zygote(errors: IO[bytes]) -> Iterator[Zygote]:
    """Start it; `errors` receives the stderr of its children."""
    command = [sys.executable, "-m", "tests.chaos.log_producer"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process:
        try:
            yield Zygote(process)
        finally:
            if process.stdin is not None:
                process.stdin.close()  # it ends with its input
            process.wait(30)


def _produce(run: ProducerRun) -> None:
    if run.point is not None:
        die_at(run.point, run.times)
    spool = Spool(Path(run.root), LIMITS)
    target = ElasticsearchTarget(Http([run.url]), run.alias)
    Shipper(Path(run.root), target, spool=spool, options=OPTIONS).start()
    acks = os.open(run.acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    number = run.first
    while True:
        for _ in range(_AT_ONCE):
            index = f"{run.alias}-2026-01-{number % DAYS + 1:02d}"
            if spool.append(index, document(number, "x" * 100)):
                os.write(acks, b"%d\n" % number)
            number += 1
        time.sleep(_BREATH_S)


def _serve() -> None:
    for line in sys.stdin:
        fields = json.loads(line)
        run = ProducerRun(**{**fields, "point": Point(fields["point"]) if fields["point"] else None})
        pid = os.fork()
        if not pid:
            try:
                _produce(run)
            finally:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        end = os.pidfd_open(pid)
        has_died = bool(select.select([end], [], [], run.seconds)[0])
        if not has_died:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        os.close(end)
        print(os.waitstatus_to_exitcode(status), int(has_died), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    _serve()
