"""How ZooKeeper is reached."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How to reach ZooKeeper; times in seconds."""

    hosts: str
    session_timeout: float = 10.0
    connect_timeout: float = 10.0
    call_timeout: float = 30.0  # the deadline of every read and multi, retries included
    max_ephemeral_bytes: int = 512 * 1024  # of paths that one session may own; then another is opened
