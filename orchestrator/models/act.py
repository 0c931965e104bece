"""What an operator did: recorded with the change, and shown by `job show`."""

import os
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from queues.documents import timestamp
from queues.session import Session, printable

KEPT_ACTS = 10
"""The last acts on one job; each has some 200 bytes."""

# Other programs may write these nodes too: what is read is bounded again.
Word = Annotated[str, AfterValidator(printable)]


class Act(BaseModel):
    """Who did what, and when; `by` is the login that ZooKeeper has seen, `host` what the client says."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    at: Word
    by: Word
    action: Word
    host: Word = ""
    detail: Word = ""  # from where to where, and the like

    @classmethod
    def now(cls, session: Session, action: str, detail: str = "") -> "Act":
        """An act of this session; raises as reads do."""
        host = os.uname().nodename
        return cls(at=timestamp(), by=str(session.whoami()), action=action, host=host, detail=detail)

    @classmethod
    def noted(cls, document: dict[str, Any], action: str) -> "Act | None":
        """The act that a node of `note` was made by; None where none is noted."""
        by = document.get("by")
        if not isinstance(by, str):
            return None
        return cls(
            at=str(document.get("since", "")), by=by, action=action, host=str(document.get("host", ""))
        )


def with_act(acts: Iterable[Act], act: Act) -> tuple[Act, ...]:
    """The last acts, this one among them."""
    return (*acts, act)[-KEPT_ACTS:]
