"""An archive that takes nothing is left alone for a while: it must not take the threads of all jobs."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from loguru import logger

from orchestrator.archive.base import Archive, Document
from orchestrator.archive.errors import ArchiveError, DocumentRefused
from orchestrator.backoff import growing

_FIRST_PAUSE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 600.0  # a day without Elasticsearch costs each due job a write in ten minutes

T = TypeVar("T")


class PausingArchive:
    """Passes on to `archive`; after a failure it refuses at once until a growing pause is over.

    Told are the first failure of a row and the first document that is taken again.
    """

    def __init__(self, archive: Archive, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._archive = archive
        self._clock = clock
        self._guard = threading.Lock()
        self._failures = 0
        self._until = clock()
        self._reason = ""

    def owner(self) -> str | None:
        """The name of the archive."""
        return self._pass_on(self._archive.owner)

    def position(self) -> str:
        """How far it is written."""
        return self._pass_on(self._archive.position)

    def write(self, document: Document, *, since: str = "") -> None:
        """Write into the archive; raises ArchiveError with the rest of the pause as its delay."""
        self._pass_on(lambda: self._archive.write(document, since=since))
        self._taken()

    def _pass_on(self, call: Callable[[], T]) -> T:
        with self._guard:
            left = self._until - self._clock()
            if left > 0:
                raise ArchiveError(self._reason, delay=left)
        try:
            return call()
        except DocumentRefused as error:
            logger.warning("{}; the job stays, and is tried again in {:g} s", error, error.delay)
            self._taken()  # it answers
            raise
        except ArchiveError as error:
            raise ArchiveError(str(error), delay=self._failed(str(error))) from error

    def _failed(self, reason: str) -> float:
        with self._guard:
            left = self._until - self._clock()
            if left > 0:  # another thread was told the same
                return left
            self._failures += 1
            pause = growing(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, self._failures)
            self._until = self._clock() + pause
            self._reason = reason
            first = self._failures == 1
        if first:
            logger.warning(
                "jobs cannot be archived, so none is removed: {}; tried again every 1 to 10 min", reason
            )
        return pause

    def _taken(self) -> None:
        with self._guard:
            failures, self._failures, self._until = self._failures, 0, self._clock()
        if failures:
            logger.info("jobs are archived again")
