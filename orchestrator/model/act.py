"""Acts of operators: each is recorded with its change, and shown by `job show`."""

import os
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from queues import Session, printable, timestamp

KEPT_ACTS = 10
"""The number of last acts that the record of a job keeps; each takes about 200 bytes."""

# Other programs may write these nodes, too, so reads apply the bounds again.
Word = Annotated[str, AfterValidator(printable)]


class Act(BaseModel):
    """One act; `by` is the login as ZooKeeper reports it, `host` the host as the client reports it."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    at: Word
    by: Word
    action: Word
    host: Word = ""
    detail: Word = ""  # for example the queues of a move

    @classmethod
    def now(cls, session: Session, action: str, detail: str = "") -> "Act":
        """An act of the login of this session, now; raises what reads raise."""
        host = os.uname().nodename
        return cls(at=timestamp(), by=str(session.whoami()), action=action, host=host, detail=detail)

    def note(self) -> dict[str, str]:
        """The fields of a node by which `noted` finds it."""
        return {"since": self.at, "by": self.by, "host": self.host}

    @classmethod
    def noted(cls, document: dict[str, Any], action: str) -> "Act | None":
        """The act in the document of a node; None where it names none."""
        by = document.get("by")
        if not isinstance(by, str):
            return None
        return cls(
            at=str(document.get("since", "")), by=by, action=action, host=str(document.get("host", ""))
        )


def with_act(acts: Iterable[Act], act: Act) -> tuple[Act, ...]:
    """The last acts, with this one added."""
    return (*acts, act)[-KEPT_ACTS:]
