"""Removes daily indices of logs after their retention."""

from collections.abc import Callable

from loguru import logger

from orchestrator.logs.indices import DailyIndices

_LOOK_SECONDS = 3_600.0


class OldLogs:
    """Removes indices that are older than `days`.

    It needs no fence: two leaders remove the same indices, because the name of an index holds its day.
    """

    name = "old-logs"

    def __init__(self, indices: Callable[[], DailyIndices], days: int) -> None:
        self._indices, self._days = indices, days

    def step(self) -> float:
        """Remove all that are too old; raises TargetUnreachable, TargetRefuses."""
        indices = self._indices()
        for index in indices.older_than(self._days):
            indices.remove(index)
            logger.info("the logs of {} are removed: {:,} records", index.day, index.documents)
        return _LOOK_SECONDS
