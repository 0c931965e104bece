"""The Protocol of archives: their document of a job, the mark in its record, and their errors."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from orchestrator.logs.record.redaction import REDACTOR, secrets_of
from orchestrator.model.errors import OrchestratorError
from orchestrator.model.job import JobState
from queues import Record, timestamp


class ArchiveError(OrchestratorError):
    """The archive cannot store documents at present; the next attempt is in `delay` seconds."""

    def __init__(self, message: str, delay: float = 60.0) -> None:
        super().__init__(message)
        self.delay = delay


class DocumentRefused(ArchiveError):
    """The archive works, but rejects this document."""

    def __init__(self, message: str) -> None:
        super().__init__(message, delay=600.0)  # only a change of the archive's settings can help


# An owner that restarts is back by then. After that another archive takes over.
STALE_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Mark:
    """Only the archive `owner` can determine whether it holds the job; if so, behind `position`."""

    owner: str
    since: str  # ISO 8601, UTC, by the clock of the owner's host
    position: str
    taken_over_from: str = ""  # the previous owner, which made no progress for a day

    @classmethod
    def now(cls, owner: str, position: str, taken_over_from: str = "") -> "Mark":
        """A new mark."""
        return cls(owner, timestamp(), position, taken_over_from)

    @classmethod
    def parse(cls, text: str | None) -> "Mark | None":
        """The mark in this text; None if there is none, or if it cannot be read."""
        words = (text or "").split(" ")
        match words:
            case [owner, since, position]:
                mark = cls(owner, since, position)
            case [owner, since, position, "from", before]:
                mark = cls(owner, since, position, before)
            case _:
                return None
        return mark if mark._made() is not None else None

    def __str__(self) -> str:
        text = f"{self.owner} {self.since} {self.position}"
        return f"{text} from {self.taken_over_from}" if self.taken_over_from else text

    def is_stale(self) -> bool:
        """Whether the time of its owner is over."""
        made = self._made()
        return made is None or datetime.now(UTC) - made > STALE_AFTER

    def _made(self) -> datetime | None:
        try:
            made = datetime.fromisoformat(self.since)
        except ValueError:
            return None
        return made if made.tzinfo is not None else None


Document = dict[str, Any]
"""An archived job: JSON, with its run key, which is never reused."""


class Archive(Protocol):
    """Stores documents permanently. Safe to use from several threads. Every call may raise ArchiveError."""

    def owner(self) -> str | None:
        """The name of this archive, for marks; None if all hosts share one that stores each document once."""

    def position(self) -> str:
        """The current end of the archive: later documents are stored behind it."""

    def write(self, document: Document, *, since: str = "") -> None:
        """Return once the document is stored durably and exactly once, even if another process wrote it.

        `since` is a position from before the first attempt to write it: a copy can only be behind it.
        """


def document_of(
    record: Record,
    state: JobState,
    definition: Mapping[str, Any] | None,
    attempts: Sequence[Mapping[str, Any]],
    *,
    taken_over_from: str = "",
) -> Document:
    """All data of a job in ZooKeeper, with known secrets masked, because an archive may have other readers.

    `taken_over_from`: another archive that may hold the job as well.
    """
    REDACTOR.add_of_job(secrets_of(definition))
    document = {
        "run_key": record.run_key,
        "id": record.id,
        "pool": record.pool,
        **state.to_payload(exclude={"archive"}, with_defaults=True),
        "definition": definition,
        "attempts": list(attempts),
        "archived": timestamp(),
        "host": socket.gethostname(),
    }
    masked: Document = REDACTOR.document(document)
    return {**masked, "taken_over_from": taken_over_from} if taken_over_from else masked
