"""What every archive does, and the document that stands in it for a job."""

import socket
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from orchestrator.logs.record.redaction import REDACTOR, secrets_of
from orchestrator.models.job import JobState
from queues.documents import timestamp
from queues.record import Record

Document = dict[str, Any]
"""A job as it is archived: JSON, with the run key that no other job ever has."""


class Archive(Protocol):
    """Takes documents for good. Safe to use from several threads. Every call may raise ArchiveError."""

    def owner(self) -> str | None:
        """The name of this archive, for marks; None where all hosts write into one that sees to `once`."""

    def position(self) -> str:
        """How far it is written: what `write` is given later stands behind it."""

    def write(self, document: Document, *, since: str = "") -> None:
        """Return when the document is there durably, once, whoever wrote it.

        `since` is a position from before the first try to write it: only behind it can it stand already.
        """


def document_of(
    record: Record,
    state: JobState,
    definition: Mapping[str, Any] | None,
    attempts: Sequence[Mapping[str, Any]],
    *,
    taken_over_from: str = "",
) -> Document:
    """All that ZooKeeper knows of a job, but for secrets; an archive may have other readers.

    `taken_over_from`: an archive in which it may stand as well.
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
