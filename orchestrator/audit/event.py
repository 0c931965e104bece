"""One change by an operator, as its node stores it until it is in a log spool."""

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from orchestrator.model.act import Act, Word
from orchestrator.model.states import Status
from queues import Record, decode, new_nonce

_ID = re.compile(r"[A-Za-z0-9._:-]{1,200}")


def _as_id(name: str) -> str:
    """The name of a node as the id of a document; another program may have used any name."""
    return name if _ID.fullmatch(name) else f"sha256-{hashlib.sha256(name.encode()).hexdigest()}"


TargetKind = Literal[
    "job", "pool", "config", "schedule", "connection", "tuning", "worker", "cluster", "unreadable"
]


class AuditEvent(BaseModel):
    """The author, the object and the time of a change. Documents with the same id are of the same change."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    id: Annotated[str, AfterValidator(_as_id)]
    act: Act
    kind: TargetKind
    target: Word  # the id of a job, the name of a pool or schedule, or the path of a node
    pool: Word = ""
    run_key: Word = ""
    pid: int = 0  # of the client, as it reports itself
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}

    @classmethod
    def of(cls, act: Act, kind: TargetKind, target: str, **facts: Any) -> "AuditEvent":
        """A change by this process at this moment."""
        return cls(id=f"{act.at}-{new_nonce()}", act=act, kind=kind, target=target, pid=os.getpid(), **facts)

    @classmethod
    def of_job(cls, act: Act, record: Record) -> "AuditEvent":
        """The same for a job."""
        return cls.of(act, "job", record.id, pool=record.pool, run_key=record.run_key)

    @classmethod
    def of_submission(cls, record: Record) -> "AuditEvent | None":
        """The submission of a job, always under the same id; None if its record does not store it."""
        submitted = record.payload.get("submitted")
        if not isinstance(submitted, dict):
            return None
        try:
            act = Act.model_validate(submitted)
        except ValueError:  # written by another program
            return None
        return cls(
            id=f"{record.run_key}-submit",
            act=act,
            kind="job",
            target=record.id,
            pool=record.pool,
            run_key=record.run_key,
        )

    @classmethod
    def read(cls, name: str, data: bytes) -> "AuditEvent":
        """The event in a node; for other bytes an event `unreadable`, so that none is lost unnoticed."""
        try:
            return cls.model_validate({**decode(data), "id": name})
        except ValueError:
            act = Act(at=name[:24], by="", action="unreadable", detail=data[:200].decode("utf-8", "replace"))
            return cls(id=name, act=act, kind="unreadable", target=name)


def is_new(state: Mapping[str, Any]) -> bool:
    """Whether a job, by its payload, has never changed its status: no document names its submitter yet."""
    return state.get("status") == Status.ACCEPT and state.get("previous") is None
