"""The folders that contain the logs of runs, and a cheap way to find new ones."""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")  # names of runs, which are parts of ids
_WHOLE_SECONDS = 30.0  # between scans of all runs: finds one that is resubmitted after a long time
_RECENT_SECONDS = 1.0  # between scans of runs that were submitted in the last minutes
_RECENT_NS = 120_000_000_000  # a run is usually resubmitted soon after its last submission
_TICK_NS = 2_000_000_000  # a change within the same clock tick as a scan has no newer mtime


@dataclass(frozen=True, slots=True)
class LogFolder:
    """A folder whose subfolders are `<run>/<incarnation>/`."""

    path: Path
    plans: Path  # the folder of the same structure with the plans
    has_shims: bool = False  # its runs have a shim
    has_ends: bool = True  # a file records the end of a run
    mark: str = ""  # part of the ids of documents, if another folder has logs of the same runs
    is_mixed: bool = False  # stdout, stderr and Spark's log are one stream
    sliding_bytes: int = 0  # a file of this size contains the end of a log instead of its beginning


@dataclass(slots=True)
class _WatchedRun:
    changed_ns: int = -1  # mtime of its directory at the last scan
    recent_until_ns: int = 0  # by the clock of the file system
    incarnations: set[str] = field(default_factory=set)


class FolderWatch:
    """Finds each run directory of a folder once; a scan without news costs one `stat`."""

    def __init__(self, folder: LogFolder) -> None:
        self.folder = folder
        self._path = str(folder.path)  # a str: Path is too slow for thousands of calls
        self._changed_ns = -1
        self._whole_at = self._recent_at = 0.0  # monotonic
        self._runs = dict[str, _WatchedRun]()

    def new(self) -> Iterator[Path]:
        """The run directories that are new since the last call."""
        now = time.monotonic()
        changed = _changed_ns(self._path)
        if changed is None:
            return
        if changed != self._changed_ns or now >= self._whole_at:
            self._whole_at = now + _WHOLE_SECONDS
            names = set(_names(self._path))
            for gone in self._runs.keys() - names:
                del self._runs[gone]
            for name in names - self._runs.keys():
                self._runs[name] = _WatchedRun()
            candidates = list(self._runs)
        elif now >= self._recent_at:
            self._recent_at, wall = now + _RECENT_SECONDS, time.time_ns()
            candidates = [name for name, run in self._runs.items() if wall < run.recent_until_ns]
        else:
            return
        self._changed_ns = _settled(changed)
        for name in candidates:
            yield from self._new_in(name)

    def _new_in(self, name: str) -> Iterator[Path]:
        run, path = self._runs[name], f"{self._path}/{name}"
        changed = _changed_ns(path)
        if changed is None or changed == run.changed_ns:
            return
        run.changed_ns, run.recent_until_ns = _settled(changed), changed + _RECENT_NS
        for incarnation in _names(path):
            if incarnation not in run.incarnations:
                run.incarnations.add(incarnation)
                yield Path(path, incarnation)


def _names(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [
                entry.name
                for entry in entries
                if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _changed_ns(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - see FolderWatch
    except OSError:
        return None


def _settled(changed_ns: int) -> int:
    """The mtime, if a later change must have a newer one; else -1, so that the next scan looks again."""
    return changed_ns if time.time_ns() - changed_ns > _TICK_NS else -1
