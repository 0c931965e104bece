"""Copies the logs of the pods of drivers and executors: deleting a pod deletes its log."""

import json
import math
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from loguru import logger

from orchestrator.logs.files import folder_lock
from spark_runner.protocol.log_limit import OLDER, limit_log
from spark_runner.runners.base import LogFile
from spark_runner.runners.kubernetes.api import KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes.pod import Pod
from spark_runner.runners.run_directory import EXECUTOR, log_owner

TAIL_LINES = 50_000
"""Lines read from a log at once: the node itself keeps some megabytes of each log, and rotates them."""

_OVERLAP_SECONDS = 5
"""Reads overlap by this much because clocks differ a little; lines that are already copied are recognized."""

_MARK_BYTES = 1000
_LOG = "stdout.log"
_POSITION = "position.json"
_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class _Position:
    """The position up to which a log is copied."""

    size: int = 0  # of the copy, bytes
    last: str = ""  # the start of its last line, with a time in nanoseconds that makes the line unique
    asked: float = -math.inf  # when the last read began: seconds since the epoch, by this host's clock

    def since_seconds(self, now: float) -> int | None:
        """How far back the next read of the log starts, None for all of it; by this host's clock only."""
        passed = now - self.asked
        return math.ceil(passed) + _OVERLAP_SECONDS if 0 <= passed < math.inf else None


class PodLogs:
    """Files below `folder`, by run and incarnation; private, because a program may print secrets."""

    def __init__(self, api: KubernetesApi, namespace: str, folder: Path) -> None:
        self._api = api
        self._namespace = namespace
        self._folder = folder

    def save(self, pods: Iterable[Pod]) -> None:
        """Copy the new lines; if a log cannot be read, its earlier copy remains."""
        for pod in pods:
            try:
                self._save(pod)
            except (KubernetesError, OSError) as error:
                logger.debug("cannot copy the log of pod {}: {}", pod.name, error)

    def files(self, run: str) -> list[LogFile]:
        """The copies of a run, oldest first; those of executors come last."""
        paths = sorted((self._folder / run).glob(f"*/{_POSITION}"), key=_order)
        return [
            LogFile(incarnation, "stdout", log, executor, is_mixed=True)
            for path in paths
            for incarnation, executor in (log_owner(path.parent.name),)
            for part in (OLDER, "")
            if (log := path.with_name(f"{_LOG}{part}")).exists()
        ]

    def remove(self, run: str) -> None:
        """Remove the copies of a run."""
        shutil.rmtree(self._folder / run, ignore_errors=True)

    def _save(self, pod: Pod) -> None:
        name = pod.incarnation if pod.is_driver else f"{pod.incarnation}{EXECUTOR}{pod.executor}"
        folder = self._folder / pod.run / name
        # A worker and a `job logs` may copy at the same time.
        with folder_lock(folder, name=_LOCK, seconds=math.inf):
            position, asked = _read(folder), time.time()
            data = self._api.pod_log(
                self._namespace,
                pod.name,
                pod.container,
                tail_lines=TAIL_LINES,
                since_seconds=position.since_seconds(asked),
            )
            if data is not None:
                _append(folder, position, _new_lines(data, position.last, is_whole=pod.has_ended), asked)


def _new_lines(data: bytes, last: str, *, is_whole: bool) -> list[bytes]:
    """The lines after the last known one, with their times; an unfinished last line only if `is_whole`."""
    *whole, rest = data.split(b"\n")
    lines = [line + b"\n" for line in whole] + ([rest] if rest and is_whole else [])
    for index in range(len(lines) - 1, -1, -1):
        if _mark(lines[index]) == last:
            return lines[index + 1 :]
    since = last.partition(" ")[0].encode()
    return [line for line in lines if line.partition(b" ")[0] > since]


def _mark(line: bytes) -> str:
    """The start of a line, which identifies it."""
    return line.rstrip(b"\n")[:_MARK_BYTES].decode("utf-8", "replace")


def _append(folder: Path, position: _Position, lines: list[bytes], asked: float) -> None:
    log = folder / _LOG
    if not log.exists():
        log.touch(mode=0o600)
    # A file without news keeps its time: readers take a line as complete when its log has been quiet.
    if lines or log.stat().st_size != position.size:
        with log.open("r+b") as file:
            file.truncate(position.size)  # drop what was copied without a recorded position
            file.seek(position.size)
            file.writelines(line.partition(b" ")[2] for line in lines)
        limit_log(log)
    last = _mark(lines[-1]) if lines else position.last
    draft = folder / f".{_POSITION}"
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(_Position(log.stat().st_size, last, asked))), "ascii")
    draft.replace(folder / _POSITION)


def _read(folder: Path) -> _Position:
    try:
        position = _Position(**json.loads((folder / _POSITION).read_bytes()))
    except (OSError, ValueError, TypeError):
        return _Position()
    size = (folder / _LOG).stat().st_size  # less than recorded if the log was cut before a crash
    return position if position.size <= size else _Position(size, position.last, position.asked)


def _order(position: Path) -> tuple[bool, int]:
    _, executor = log_owner(position.parent.name)
    # The lock file is never written to, so its ctime is its creation time.
    return bool(executor), position.with_name(_LOCK).stat().st_ctime_ns
