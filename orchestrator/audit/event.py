"""One change that an operator has made, as it stands in ZooKeeper until it is in a log spool."""

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from orchestrator.models.act import Act, Word
from orchestrator.states import Status
from queues.documents import decode, new_nonce
from queues.record import Record

_ID = re.compile(r"[A-Za-z0-9._:-]{1,200}")


def _as_id(name: str) -> str:
    """The name of a node as the id of a document: of other programs it may be anything."""
    return name if _ID.fullmatch(name) else f"sha256-{hashlib.sha256(name.encode()).hexdigest()}"


Kind = Literal["job", "pool", "config", "schedule", "cluster", "unreadable"]


class AuditEvent(BaseModel):
    """Who changed what, and when. Documents with the same id are of the same change."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    id: Annotated[str, AfterValidator(_as_id)]
    act: Act
    kind: Kind
    target: Word  # the id of a job, the name of a pool or a schedule, the path of a node
    pool: Word = ""
    run_key: Word = ""
    pid: int = 0  # of the client, as it says itself
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}

    @classmethod
    def of(cls, act: Act, kind: Kind, target: str, **facts: Any) -> "AuditEvent":
        """A change that this process makes now."""
        return cls(id=f"{act.at}-{new_nonce()}", act=act, kind=kind, target=target, pid=os.getpid(), **facts)

    @classmethod
    def of_job(cls, act: Act, record: Record) -> "AuditEvent":
        """The same of a job."""
        return cls.of(act, "job", record.id, pool=record.pool, run_key=record.run_key)

    @classmethod
    def of_submission(cls, record: Record) -> "AuditEvent | None":
        """How a job was submitted, always under the same id; None where its record does not say so."""
        told = record.payload.get("submitted")
        if not isinstance(told, dict):
            return None
        try:
            act = Act.model_validate(told)
        except ValueError:  # not ours
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
        """The event in a node; of bytes that are none, one that says so: nothing vanishes unseen."""
        try:
            return cls.model_validate({**decode(data), "id": name})
        except ValueError:
            act = Act(at=name[:24], by="", action="unreadable", detail=data[:200].decode("utf-8", "replace"))
            return cls(id=name, act=act, kind="unreadable", target=name)


def is_new(state: Mapping[str, Any]) -> bool:
    """Whether a job, by its payload, has never changed its status: no document says who submitted it."""
    return state.get("status") == Status.ACCEPT and state.get("previous") is None
