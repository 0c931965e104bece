"""A driver that is a plain process, a collector that is killed repeatedly, and the collected records.

`python -m tests.driver_logs_support write DIRECTORY LIMIT` writes the endless output of `words`;
`... collect STATE_DIR SEED KILLS` collects, and is killed KILLS times before it may reach the end;
`... die STATE_DIR COUNT` collects COUNT documents, and is killed before the next one.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from orchestrator.driver_logs.collector import DriverLogs
from orchestrator.driver_logs.positions import POSITIONS
from orchestrator.logs.record.document import Days
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.spool.folder import folders_in
from orchestrator.logs.spool.reader import SpoolReader
from orchestrator.logs.spool.writer import Spool
from spark_runner.protocol.log_limit import limit_log
from tests.waiting import wait_until

TRACE = 'Traceback (most recent call last):\n  File "job.py", line {0}, in f\nValueError: {0}\n'
JAVA = "java.lang.X: {0}\n\tat a.b.C.d(C.java:{0})\nCaused by: java.lang.Y: {0}\n\t... 2 more\n"
PAUSE_S = 0.002
END_S = 60.0


def words(stream: str) -> Iterator[str]:
    """The endless log of a driver; each piece is one record."""
    number = 0
    while True:
        number += 1
        match number % 10:
            case 3:
                yield TRACE.format(number)
            case 6:
                yield JAVA.format(number)
            case 8:
                yield "\n"
            case _:
                yield f"{stream} {number} {'x' * (number * 37 % 200)}\n"


def text_of(document: dict[str, Any], *, is_last: bool) -> str:
    """The text of a document in the log."""
    return str(document.get("error.stack_trace") or document["message"] + ("" if is_last else "\n"))


def in_spools(root: Path) -> dict[str, list[bytes]]:
    """All records below a root of spools, of all writers, by id."""
    found: dict[str, list[bytes]] = {}
    for folder in folders_in(root):
        reader = SpoolReader(folder, whole=True)
        while (batch := reader.read(1000, 1 << 20)) is not None:
            for record in batch.records:
                identity = json.loads(record.split(b"\n", 1)[0])["create"]["_id"]
                found.setdefault(identity, []).append(record)
    return found


def documents_in(root: Path, stream: str) -> list[dict[str, Any]]:
    """The documents of one stream in order, each once."""
    documents = [json.loads(records[0].split(b"\n")[1]) for records in in_spools(root).values()]
    wanted = [document for document in documents if document["log.stream"] == stream]
    return sorted(wanted, key=lambda document: int(document["event.sequence"]))


def is_collected(directory: Path) -> bool:
    try:
        return bool(json.loads((directory / POSITIONS).read_bytes())["done"])
    except FileNotFoundError:
        return False


def _write(directory: Path, limit: int) -> None:
    names = ("stdout", "stderr")
    logs = {
        name: os.open(directory / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) for name in names
    }
    said = {name: words(name) for name in names}
    while True:
        for name, log in logs.items():
            piece = next(said[name]).encode()
            half = len(piece) // 2
            for part in (piece[:half], piece[half:]):  # a reader may see the first half without the second
                os.write(log, part)
            limit_log(directory / f"{name}.log", limit)
        time.sleep(PAUSE_S)


def _collect(state_dir: Path) -> None:
    logs = DriverLogs(state_dir, Spool(state_dir / "spool"), Days("logs"), Redactor())
    logs.start()
    directory = next((state_dir / "runs").glob("*/*"))
    wait_until(lambda: is_collected(directory), END_S, "all is collected")
    logs.stop()


def _collect_and_die(state_dir: Path, seed: int, kills: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    for left in reversed(range(kills + 1)):
        child = os.fork()
        if not child:
            try:
                _collect(state_dir)
            finally:
                os._exit(0)
        if left:
            time.sleep(chance.uniform(0.01, 0.4))
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


class _ShortLived(Spool):
    left = 0

    def append_many(self, records: Iterable[tuple[bytes, int]]) -> int:
        for record in records:
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)
            self.left -= 1
            assert super().append_many([record])
        return 0  # not reached


def _collect_few(state_dir: Path, count: int) -> None:
    spool = _ShortLived(state_dir / "spool")
    spool.left = count
    DriverLogs(state_dir, spool, Days("logs"), Redactor()).start()
    signal.pause()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", directory, limit]:
            _write(Path(directory), int(limit))
        case ["collect", state_dir, seed, kills]:
            _collect_and_die(Path(state_dir), int(seed), int(kills))
        case ["die", state_dir, count]:
            _collect_few(Path(state_dir), int(count))
