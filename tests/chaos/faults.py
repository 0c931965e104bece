"""Faults as values: what the nemesis can do to an actor, its connection, the ensemble and the records."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class SigKill:
    """End the actor's process at once; a Restart follows."""

    name: ClassVar[str] = "sigkill"
    actor: str


@dataclass(frozen=True, slots=True)
class Restart:
    """Start the actor again."""

    name: ClassVar[str] = "restart"
    actor: str


@dataclass(frozen=True, slots=True)
class SigStop:
    """Let the actor stand still, for longer than its session lives; a SigCont follows."""

    name: ClassVar[str] = "sigstop"
    actor: str


@dataclass(frozen=True, slots=True)
class SigCont:
    """Let the actor go on: it does not know that time has passed."""

    name: ClassVar[str] = "sigcont"
    actor: str


@dataclass(frozen=True, slots=True)
class CloseSession:
    """End the actor's session at the server, as an expiry does."""

    name: ClassVar[str] = "close_session"
    actor: str


@dataclass(frozen=True, slots=True)
class DropReply:
    """Lose the reply of the actor's next multi that is applied, and its connection."""

    name: ClassVar[str] = "drop_reply"
    actor: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Cut the actor off."""

    name: ClassVar[str] = "refuse"
    actor: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CutUpstream:
    """Hold back what the actor says."""

    name: ClassVar[str] = "cut_upstream"
    actor: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CutDownstream:
    """Hold back what the actor is told."""

    name: ClassVar[str] = "cut_downstream"
    actor: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ShiftClock:
    """Move the wall clock that the actor reads to so many seconds from the true one."""

    name: ClassVar[str] = "clock"
    actor: str
    seconds: float


@dataclass(frozen=True, slots=True)
class KillLeader:
    """End the leading server with SIGKILL; a RestartServers follows."""

    name: ClassVar[str] = "kill_leader"


@dataclass(frozen=True, slots=True)
class RestartServers:
    """Start the servers again that were killed."""

    name: ClassVar[str] = "restart_servers"


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Write garbage into so many records."""

    name: ClassVar[str] = "corrupt"
    items: int


Fault = (
    SigKill
    | Restart
    | SigStop
    | SigCont
    | CloseSession
    | DropReply
    | Refuse
    | CutUpstream
    | CutDownstream
    | ShiftClock
    | KillLeader
    | RestartServers
    | Corrupt
)
