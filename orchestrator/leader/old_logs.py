"""Daily indices of logs that are older than they are kept."""

from collections.abc import Callable

from loguru import logger

from orchestrator.logs.indices import DailyIndices

_LOOK_SECONDS = 3_600.0


class OldLogs:
    """Removes them. Two leaders for a moment would remove the same ones: their names say which they are."""

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
