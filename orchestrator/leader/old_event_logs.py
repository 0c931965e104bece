"""Removes Spark's event logs whose applications ended longer ago than their retention."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from loguru import logger

from orchestrator.config.event_logs import EventLogSettings

_INTERVAL_SECONDS = 3_600.0
_AT_ONCE = 100
_MAX_PARTS = 10_000  # of one log at once: a job can put any number of files into the folder of its log
_ABANDONED_SECONDS = 30 * 86_400.0
"""The log of a driver that was killed stays unfinished. A living driver, too, may be silent for days."""

_APPLICATION = r"(?:local-\d{10,20}|app-\d{14}-\d{4,10}|application_\d{10,20}_\d{4,10}|spark-[0-9a-f]{32})"
_LOG = re.compile(rf"{_APPLICATION}(?:_\d{{1,9}})?(?:\.(?:lz4|lzf|snappy|zstd))?(?:\.inprogress)?")
_ROLLED = re.compile(rf"eventlog_v2_{_APPLICATION}(?:_\d{{1,9}})?")
_PART = re.compile(r"\.?(?:events_\d{1,9}|appstatus)_[A-Za-z0-9_.-]{1,250}")
_UNFINISHED = ".inprogress"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Log(NamedTuple):
    """The log of one application: its last write in epoch seconds, and its files if it has its own folder."""

    name: str
    written: float
    is_finished: bool
    parts: tuple[str, ...] | None


class OldEventLogs:
    """Removes old logs in the folders of file: URLs, as far as the host of the leader has them.

    It needs no fence: two leaders remove the same files. Users of drivers can write to the folders, so it
    takes only names that Spark gives, follows no link, and reaches each file through its open folder.
    """

    name = "old-event-logs"

    def __init__(self, tables: Iterable[EventLogSettings], now_ms: Callable[[], int]) -> None:
        """`now_ms` returns the time that all clocks have reached, in epoch milliseconds."""
        self._now_ms = now_ms
        self._folders = _folders(tables)

    def step(self) -> float:
        """Remove at most a hundred logs; what cannot be removed is logged and stays."""
        now, left = self._now_ms() / 1000, _AT_ONCE
        for path, retention in self._folders.items():
            left -= self._clear(path, now - retention, now - max(retention, _ABANDONED_SECONDS), left)
        return _INTERVAL_SECONDS if left else 0.0

    def _clear(self, path: Path, before: float, unfinished_before: float, limit: int) -> int:
        """Remove logs that were last written before these times; returns how many of `limit`."""
        try:
            folder = os.open(path, _OPEN)
        except OSError:  # of another host, or not made yet
            return 0
        removed, errors = 0, list[str]()
        try:
            for log in _logs(folder):
                if removed == limit:
                    break
                if log.written >= (before if log.is_finished else unfinished_before):
                    continue
                try:
                    _remove(folder, log)
                    removed += 1
                except (
                    OSError
                ) as error:  # a file of another user is in its folder, or another leader was faster
                    errors.append(f"{log.name}: {error.strerror}")
        finally:
            os.close(folder)
        if errors:
            logger.warning(
                "{} event logs in {} cannot be removed, for example {}", len(errors), path, errors[0]
            )
        if removed:
            logger.info("{} event logs in {} are removed: their retention has passed", removed, path)
        return removed


def _folders(tables: Iterable[EventLogSettings]) -> Mapping[Path, float]:
    """The folders of this host with their retention; of several for one folder the longest, 0 = for ever."""
    found = dict[Path, list[float]]()
    for table in tables:
        if table.local_folder:
            found.setdefault(Path(table.local_folder), []).append(table.retention)
    return {path: max(each) for path, each in found.items() if all(each)}


def _logs(folder: int) -> Iterator[_Log]:
    """The logs of Spark in an open folder; other files are left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # removed or renamed meanwhile, or not readable
                if _LOG.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    written = entry.stat(follow_symlinks=False).st_mtime
                    yield _Log(entry.name, written, not entry.name.endswith(_UNFINISHED), None)
                elif _ROLLED.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    yield _rolled(folder, entry.name)


def _rolled(folder: int, name: str) -> _Log:
    inner = os.open(name, _OPEN, dir_fd=folder)
    try:
        with os.scandir(inner) as entries:
            parts = tuple(entry.name for entry in islice(entries, _MAX_PARTS))
        written = [os.stat(part, dir_fd=inner, follow_symlinks=False).st_mtime for part in parts]
        status = [part for part in parts if part.startswith("appstatus_")]
        is_finished = any(not part.endswith(_UNFINISHED) for part in status)
        return _Log(name, max([*written, os.fstat(inner).st_mtime]), is_finished, parts)
    finally:
        os.close(inner)


def _remove(folder: int, log: _Log) -> None:
    if log.parts is None:
        os.unlink(log.name, dir_fd=folder)
        return
    inner = os.open(log.name, _OPEN, dir_fd=folder)
    try:
        for part in log.parts:
            found = os.stat(part, dir_fd=inner, follow_symlinks=False)
            if _PART.fullmatch(part) and stat.S_ISREG(found.st_mode):
                os.unlink(part, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(log.name, dir_fd=folder)  # refused while a file of another user is in it
