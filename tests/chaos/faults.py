"""Faults as values: on an actor, its connection, the ensemble and the records."""

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
    """Suspend the actor for longer than its session timeout; a SigCont follows."""

    name: ClassVar[str] = "sigstop"
    actor: str


@dataclass(frozen=True, slots=True)
class SigCont:
    """Resume the actor."""

    name: ClassVar[str] = "sigcont"
    actor: str


@dataclass(frozen=True, slots=True)
class CloseSession:
    """End the actor's session at the server, as an expiry does."""

    name: ClassVar[str] = "close_session"
    actor: str


@dataclass(frozen=True, slots=True)
class DropReply:
    """Discard the reply of the actor's next applied multi, and cut its connection."""

    name: ClassVar[str] = "drop_reply"
    actor: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse and cut all connections of the actor."""

    name: ClassVar[str] = "refuse"
    actor: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CutUpstream:
    """Hold back the bytes that the actor sends."""

    name: ClassVar[str] = "cut_upstream"
    actor: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CutDownstream:
    """Hold back the bytes that the actor would receive."""

    name: ClassVar[str] = "cut_downstream"
    actor: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ShiftClock:
    """Shift the wall clock of the actor by this many seconds from the true one."""

    name: ClassVar[str] = "clock"
    actor: str
    seconds: float


@dataclass(frozen=True, slots=True)
class KillLeader:
    """End the leading server with SIGKILL; a RestartServers follows."""

    name: ClassVar[str] = "kill_leader"


@dataclass(frozen=True, slots=True)
class RestartServers:
    """Start the killed servers."""

    name: ClassVar[str] = "restart_servers"


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Write garbage into this many records."""

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
