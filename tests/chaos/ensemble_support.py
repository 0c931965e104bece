"""An ensemble whose leader can be killed, and queries from outside."""

import time
from pathlib import Path
from typing import Protocol, Self

from kazoo.client import KazooClient

from queues.embedded.packets import server_mode
from tests.servers.ensemble import EmbeddedEnsemble
from tests.waiting import wait_until

ELECTION_TIMEOUT_S = 60
"""2 s on an idle machine; three servers on two busy cores have taken ten times as long."""

ASK_TIMEOUT_S = 0.5


class Ensemble(Protocol):
    """The interface of an ensemble for the nemesis."""

    def kill_leader(self) -> int | None:
        """Kill the leader; returns its number, None when there is no leader."""

    def restart_killed(self) -> list[int]:
        """Start the killed servers and return their numbers without waiting."""


class BreakableEnsemble:
    """Three servers from the jars of PySpark that can be killed and restarted. A context manager."""

    def __init__(self, data_dir: Path, *, tick_ms: int = 500) -> None:
        self._ensemble = EmbeddedEnsemble(data_dir, tick_ms=tick_ms, owner="chaos")
        self._killed: list[int] = []

    def __enter__(self) -> Self:
        self._ensemble.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ensemble.stop()

    @property
    def hosts(self) -> str:
        """Connection string with all servers, including those that are down."""
        return self._ensemble.hosts

    def kill_leader(self) -> int | None:
        """Kill the leader; returns its number, None when there is no leader."""
        for number, server in self._ensemble.members.items():
            if server.is_running() and server_mode(server.hosts, ASK_TIMEOUT_S) == "leader":
                server.kill()
                self._killed.append(number)
                return number
        return None

    def restart_killed(self) -> list[int]:
        """Start the killed servers and return their numbers without waiting."""
        back = list(self._killed)
        for number in back:
            self._ensemble.members[number].launch()
            self._killed.remove(number)
        return back

    def modes(self) -> dict[int, str | None]:
        """By number: leader, follower, or None for a server that does not serve."""
        return {
            number: server_mode(server.hosts, ASK_TIMEOUT_S) if server.is_running() else None
            for number, server in self._ensemble.members.items()
        }

    def wait_for_leader(self) -> int:
        """Return the number of the leader as soon as there is one."""
        return wait_until(
            lambda: next((number for number, mode in self.modes().items() if mode == "leader"), None),
            ELECTION_TIMEOUT_S,
            "a leader is elected",
        )

    def wait_until_whole(self) -> None:
        """Return when all servers serve."""
        self.restart_killed()
        wait_until(lambda: all(self.modes().values()), ELECTION_TIMEOUT_S, "all servers serve")


def ensemble_offset_ms(client: KazooClient, path: str) -> int:
    """The ensemble's time minus this machine's monotonic time, in milliseconds (see `Rules`).

    Measured through a client whose clock is not shifted; writes `path`.
    """
    client.ensure_path(path)
    before = time.monotonic_ns()
    stat = client.set(path, b"")
    middle_ms = (before + time.monotonic_ns()) // 2_000_000
    return int(stat.mtime) - middle_ms
