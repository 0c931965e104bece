"""The folders in which runs have their logs, and what is new in them at little cost."""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")  # as the runners name runs: parts of an id
_WHOLE_SECONDS = 30.0  # between looks at all runs: for one that is submitted again after a long time
_RECENT_SECONDS = 1.0  # between looks at runs that were submitted in the last minutes
_RECENT_NS = 120_000_000_000  # a run is submitted again soon after its last submission, if ever
_TICK_NS = 2_000_000_000  # what changes after a look within the same tick of the clock shows no newer time


@dataclass(frozen=True, slots=True)
class LogFolder:
    """A folder of `<run>/<incarnation>/`."""

    path: Path
    plans: Path  # the same, of the submissions
    has_shims: bool = False  # these run what is in it
    has_ends: bool = True  # there is a file that tells of the end
    mark: str = ""  # of the streams, in ids: where another folder has logs of the same submissions
    is_mixed: bool = False  # stdout and stderr are one, with what Spark says among it
    sliding_bytes: int = 0  # from this size on a file is the end of a log, no more its beginning


@dataclass(slots=True)
class _WatchedRun:
    changed_ns: int = -1  # of its directory, when it was looked at
    recent_until_ns: int = 0  # by the clock of the file system
    incarnations: set[str] = field(default_factory=set)


class FolderWatch:
    """Finds each submission of a folder once; a look costs a stat as long as there is nothing new."""

    def __init__(self, folder: LogFolder) -> None:
        self.folder = folder
        self._path = str(folder.path)  # thousands of times: without a Path's detours
        self._changed_ns = -1
        self._whole_at = self._recent_at = 0.0  # monotonic
        self._runs = dict[str, _WatchedRun]()

    def new(self) -> Iterator[Path]:
        """The directories of submissions that were not there before."""
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
            look_at = list(self._runs)
        elif now >= self._recent_at:
            self._recent_at, wall = now + _RECENT_SECONDS, time.time_ns()
            look_at = [name for name, run in self._runs.items() if wall < run.recent_until_ns]
        else:
            return
        self._changed_ns = _settled(changed)
        for name in look_at:
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
    """The time, if all that has happened by then must have been seen; else one that is no time."""
    return changed_ns if time.time_ns() - changed_ns > _TICK_NS else -1
