"""The interface of an archive, and the document that it stores for a job."""

import socket
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from orchestrator.logs.record.redaction import REDACTOR, secrets_of
from orchestrator.models.job import JobState
from queues.documents import timestamp
from queues.record import Record

Document = dict[str, Any]
"""An archived job: JSON, with its run key, which is unique for ever."""


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
        **state.model_dump(mode="json", exclude={"archive"}),
        "definition": definition,
        "attempts": list(attempts),
        "archived": timestamp(),
        "host": socket.gethostname(),
    }
    masked: Document = REDACTOR.document(document)
    return {**masked, "taken_over_from": taken_over_from} if taken_over_from else masked
