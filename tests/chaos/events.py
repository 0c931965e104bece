"""What an actor tells of what it did: the vocabulary of histories."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypedDict


class Kind(StrEnum):
    """What an event says. `sent` is written before a request leaves, its answer after it has come.

    A request without an answer may have been carried out: its actor died, or its outcome stayed unknown.
    """

    STARTED = "started"  # the actor's process begins; written by History itself

    PUT_SENT = "put_sent"  # `queue`, `pool`, `run_key`; `due` when it is known before
    PUT_ACKED = "put_acked"  # `version` 0, `due` as in the token
    PUT_REFUSED = "put_refused"  # the id is taken, the queue is full: nothing of this run key was done
    PUT_FAILED = "put_failed"  # the outcome is unknown

    CLAIM_ACKED = "claim_acked"  # `version` after the claim; `queue`, `pool`, `due` of the claimed token
    HANDLER_STARTED = "handler_started"  # `version` of the claim; `wall_ms`, `attempt`
    HANDLER_ENDED = "handler_ended"

    STEP_SENT = "step_sent"  # `version` is the fence: that of the claim's own last accepted change
    STEP_ACKED = "step_acked"  # `version` after it; `queue` -> `to_queue`; `due` after it; `released`
    STEP_REFUSED = "step_refused"  # for certain not done, first send included; `version` is the fence
    DEAD = "dead"  # brought to the dead queue: a step like others, or without version where none was written
    LOST = "lost"  # the claim was lost; `version` is the fence; says nothing of what was sent before

    REMOVED_SENT = "removed_sent"  # `version` is the fence
    REMOVED_ACKED = "removed_acked"  # `version` is the fence: a removal leaves no version

    FAULT = "fault"  # the nemesis did something
    CORRUPT_SENT = "corrupt_sent"  # the nemesis spoils a record; `version` is the fence
    CORRUPT_REFUSED = "corrupt_refused"  # the record had changed meanwhile: it is as it was
    CORRUPTED = "corrupted"  # `version` after it


class Fields(TypedDict, total=False):
    """What an event can carry besides kind, actor and time."""

    wall_ms: int
    id: str
    run_key: str
    version: int
    nonce: str
    queue: str
    pool: str
    to_queue: str
    to_pool: str
    due: int
    attempt: int
    released: bool
    extra: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a history.

    `t` is the machine's monotonic clock in nanoseconds, the same for all processes of a host; `wall_ms` is
    the ensemble's time as the actor knew it. `incarnation` counts the starts of the actor before it.
    """

    kind: Kind
    actor: str = ""
    t: int = 0
    wall_ms: int | None = None
    id: str = ""
    run_key: str = ""
    version: int | None = None
    nonce: str = ""
    queue: str = ""
    pool: str = ""
    to_queue: str = ""
    to_pool: str = ""  # empty: the pool is kept
    due: int | None = None
    attempt: int | None = None
    released: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    incarnation: int = 0

    @property
    def who(self) -> tuple[str, int]:
        """The process that wrote it: what a killed one knew, the next of its name does not know."""
        return self.actor, self.incarnation

    def __str__(self) -> str:
        version = "" if self.version is None else f" v{self.version}"
        place = f" {self.queue}" if self.queue else ""
        way = f"->{self.to_queue}" if self.to_queue else ""
        return f"{self.actor}#{self.incarnation} {self.kind}{version}{place}{way} t={self.t}"
