"""The folders in which runs have their logs, and what is new in them at little cost."""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")  # as the runners name runs: parts of an id
_WHOLE_SECONDS = 30.0  # between looks at all runs: for one that is submitted again after a long time
_RECENT_SECONDS = 120.0  # a run is submitted again soon after its last submission, if ever
_TICK_NS = 2_000_000_000  # what changes after a look within the same tick of the clock shows no newer time


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of `<run>/<incarnation>/`."""

    path: Path
    plans: Path  # the same, of the submissions
    has_shims: bool = False  # these run what is in it
    has_ends: bool = True  # there is a file that tells of the end
    mark: str = ""  # of the streams, in ids: where another folder has logs of the same submissions
    sliding_bytes: int = 0  # from this size on a file is the end of a log, no more its beginning


@dataclass(slots=True)
class _Run:
    changed_ns: int = -1  # of its directory, when it was looked at
    looked: float = 0.0  # monotonic, when it had changed
    incarnations: set[str] = field(default_factory=set)


class FolderWatch:
    """Finds each submission of a folder once; a look costs a stat as long as there is nothing new."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._changed_ns = -1
        self._whole_at = 0.0  # monotonic
        self._runs = dict[str, _Run]()

    def new(self) -> Iterator[Path]:
        """The directories of submissions that were not there before."""
        now = time.monotonic()
        changed = _changed_ns(self.folder.path)
        if changed is None:
            return
        if changed != self._changed_ns or now >= self._whole_at:
            self._whole_at = now + _WHOLE_SECONDS
            names = set(_names(self.folder.path))
            for gone in self._runs.keys() - names:
                del self._runs[gone]
            for name in names - self._runs.keys():
                self._runs[name] = _Run()
            look_at = list(self._runs)
        else:
            look_at = [name for name, run in self._runs.items() if now - run.looked < _RECENT_SECONDS]
        self._changed_ns = _settled(changed)
        for name in look_at:
            yield from self._new_in(name, now)

    def _new_in(self, name: str, now: float) -> Iterator[Path]:
        run, path = self._runs[name], self.folder.path / name
        changed = _changed_ns(path)
        if changed is None or changed == run.changed_ns:
            return
        run.changed_ns, run.looked = _settled(changed), now
        for incarnation in _names(path):
            if incarnation not in run.incarnations:
                run.incarnations.add(incarnation)
                yield path / incarnation


def _names(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [
                entry.name
                for entry in entries
                if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _changed_ns(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _settled(changed_ns: int) -> int:
    """The time, if all that has happened by then must have been seen; else one that is no time."""
    return changed_ns if time.time_ns() - changed_ns > _TICK_NS else -1
