"""The disk quota of all spools of a host."""

import time
from collections.abc import Callable

from orchestrator.logs.spool.folder import SpoolFolder, bytes_in, orphans
from orchestrator.logs.spool.limits import SpoolLimits, WhenFull
from orchestrator.logs.spool.position import read_checkpoint
from orchestrator.logs.spool.reader import undelivered_in
from orchestrator.logs.spool.segments import Segment, segments_in

_LOOK_SECONDS = 0.05  # between measurements while the quota is exhausted
WARNING_LEVEL = 30  # as in loguru and logging


class DiskQuota:
    """Decides whether a new segment may be created, and drops old segments as the policy allows.

    `on_drop` receives the number of dropped records that were not delivered by the last checkpoint.
    """

    def __init__(self, folder: SpoolFolder, limits: SpoolLimits, on_drop: Callable[[int], None]) -> None:
        self._folder = folder
        self._limits = limits
        self._on_drop = on_drop
        self._full_until = 0.0  # monotonic; the disk is not measured before

    def ensure_space(self, level: int) -> bool:
        """Whether a record of this level may start a new segment; waits if the policy is BLOCK."""
        match self._limits.when_full:
            case WhenFull.DROP_OLDEST:
                return self._has_space() or self.drop_oldest()
            case WhenFull.DROP_BY_LEVEL:
                return self._has_space() or (level >= WARNING_LEVEL and self.drop_oldest())
            case WhenFull.BLOCK:
                return self._wait()

    def drop_oldest(self) -> bool:
        """Drop the oldest segments no other process holds until one fits; False if none is left to drop."""
        root, own = self._folder.path.parent, self._folder.path
        for orphan in orphans(root, {own}):
            for segment in segments_in(orphan.path):
                self._drop(orphan, segment)
                if self._has_space(now=True):
                    orphan.release()
                    return True
            orphan.remove()
        for segment in segments_in(own)[:-1]:  # the last one is being written
            self._drop(self._folder, segment)
            if self._has_space(now=True):
                return True
        return self._has_space(now=True)

    def _drop(self, folder: SpoolFolder, segment: Segment) -> None:
        try:
            count = undelivered_in(segment, read_checkpoint(folder.path))
            segment.remove()
        except OSError:  # delivered and removed in the meantime
            return
        self._on_drop(count)

    def _has_space(self, *, now: bool = False) -> bool:
        if not now and time.monotonic() < self._full_until:
            return False
        free = self._limits.max_bytes - bytes_in(self._folder.path.parent)
        if free >= self._limits.segment_bytes:
            return True
        self._full_until = time.monotonic() + _LOOK_SECONDS
        return False

    def _wait(self) -> bool:
        deadline = time.monotonic() + self._limits.block_seconds
        while not self._has_space():
            if time.monotonic() >= deadline:
                return False
            # Blocks the log call, as the policy says. Other processes may free space, too.
            time.sleep(_LOOK_SECONDS)
        return True
