"""The events of histories."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypedDict


class Kind(StrEnum):
    """Kind of an event. `sent` is written before a request is sent, its answer after it has arrived.

    A request without an answer may have been applied: its actor died, or the outcome remained unknown.
    """

    STARTED = "started"  # the actor's process starts; written by History itself

    PUT_SENT = "put_sent"  # `queue`, `pool`, `run_key`; `due` when it is known before
    PUT_ACKED = "put_acked"  # `version` 0, `due` as in the token
    PUT_REFUSED = "put_refused"  # the id is in use or the queue is full: no put of this run key was applied
    PUT_FAILED = "put_failed"  # the outcome is unknown

    CLAIM_ACKED = "claim_acked"  # `version` after the claim; `queue`, `pool`, `due` of the claimed token
    HANDLER_STARTED = "handler_started"  # `version` of the claim; `wall_ms`, `attempt`
    HANDLER_ENDED = "handler_ended"

    STEP_SENT = "step_sent"  # `version` is the fence: that of the claim's own last accepted change
    STEP_ACKED = "step_acked"  # `version` after it; `queue` -> `to_queue`; `due` after it; `released`
    STEP_REFUSED = "step_refused"  # certainly not applied, first send included; `version` is the fence
    DEAD = "dead"  # moved to the dead queue: a step like others; without version if no record was written
    LOST = "lost"  # the claim was lost; `version` is the fence; earlier requests may have been applied

    REMOVED_SENT = "removed_sent"  # `version` is the fence
    REMOVED_ACKED = "removed_acked"  # `version` is the fence: a removal leaves no version

    FAULT = "fault"  # the nemesis applied a fault
    CORRUPT_SENT = "corrupt_sent"  # the nemesis overwrites a record; `version` is the fence
    CORRUPT_REFUSED = "corrupt_refused"  # the record had changed meanwhile and was not overwritten
    CORRUPTED = "corrupted"  # `version` after it


class Fields(TypedDict, total=False):
    """Optional fields of an event."""

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
    the ensemble's time as read by the actor. `incarnation` counts the earlier starts of the actor.
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
        """The process that wrote the event; a killed process leaves its successor no state."""
        return self.actor, self.incarnation

    def __str__(self) -> str:
        version = "" if self.version is None else f" v{self.version}"
        queue = f" {self.queue}" if self.queue else ""
        way = f"->{self.to_queue}" if self.to_queue else ""
        return f"{self.actor}#{self.incarnation} {self.kind}{version}{queue}{way} t={self.t}"
