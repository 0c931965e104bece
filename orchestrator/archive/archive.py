"""The archive that the settings name, paused for a while when it refuses documents."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from loguru import logger

from orchestrator.archive.base import Archive, ArchiveError, Document, DocumentRefused
from orchestrator.archive.jsonl import JsonlArchive
from orchestrator.config.tables import ArchiveSettings
from orchestrator.model.backoff import growing

_FIRST_PAUSE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 600.0  # a day without Elasticsearch costs each due job a write in ten minutes

T = TypeVar("T")


class PausingArchive:
    """Delegates to `archive`; after a failure it raises at once until a growing pause is over.

    It logs the first of consecutive failures, and the first document that is stored after them.
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
        return self._call(self._archive.owner)

    def position(self) -> str:
        """The current end of the archive."""
        return self._call(self._archive.position)

    def write(self, document: Document, *, since: str = "") -> None:
        """Write into the archive; raises ArchiveError whose delay is the rest of the pause."""
        self._call(lambda: self._archive.write(document, since=since))
        self._succeeded()

    def _call(self, call: Callable[[], T]) -> T:
        with self._guard:
            left = self._until - self._clock()
            if left > 0:
                raise ArchiveError(self._reason, delay=left)
        try:
            return call()
        except DocumentRefused as error:
            logger.warning("{}; the job stays, and is retried in {:g} s", error, error.delay)
            self._succeeded()  # the archive itself works
            raise
        except ArchiveError as error:
            raise ArchiveError(str(error), delay=self._failed(str(error))) from error

    def _failed(self, reason: str) -> float:
        with self._guard:
            left = self._until - self._clock()
            if left > 0:  # another thread has failed as well
                return left
            self._failures += 1
            pause = growing(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, self._failures)
            self._until = self._clock() + pause
            self._reason = reason
            first = self._failures == 1
        if first:
            logger.warning(
                "jobs cannot be archived, so none is removed: {}; next attempts every 1 to 10 min", reason
            )
        return pause

    def _succeeded(self) -> None:
        with self._guard:
            failures, self._failures, self._until = self._failures, 0, self._clock()
        if failures:
            logger.info("jobs are archived again")


def open_archive(settings: ArchiveSettings, state_dir: Path) -> Archive:
    """The archive of this host; it opens and connects to nothing before its first use."""
    if not settings.url:
        return PausingArchive(JsonlArchive(settings.dir or state_dir / "archive"))
    # Imported here: it takes as long to load as the rest of a worker, and most workers do not use it.
    from orchestrator.archive.elasticsearch import ElasticsearchArchive  # noqa: PLC0415 - see above

    return PausingArchive(
        ElasticsearchArchive(
            settings.url, settings.index, key_file=settings.key_file, ca_file=settings.ca_file
        )
    )
