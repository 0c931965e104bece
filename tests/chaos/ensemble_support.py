"""An ensemble whose leader can be killed, and what an outsider can ask of it."""

import time
from pathlib import Path
from typing import Protocol, Self

from kazoo.client import KazooClient

from queues.embedded.packets import server_mode
from tests.servers.ensemble import EmbeddedEnsemble
from tests.waiting import wait_until

ELECTION_TIMEOUT_S = 60
"""Two seconds when the machine is idle; three servers on two busy cores have taken ten times that."""

ASK_TIMEOUT_S = 0.5


class Ensemble(Protocol):
    """What the nemesis needs of an ensemble."""

    def kill_leader(self) -> int | None:
        """End the leader at once; returns its number, None when nobody leads."""

    def restart_killed(self) -> list[int]:
        """Start the killed servers without waiting; returns their numbers."""


class BreakableEnsemble:
    """Three servers from the jars of PySpark, killed and started by their own handles. A context manager."""

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
        """Connection string with all servers, also with those that are away."""
        return self._ensemble.hosts

    def kill_leader(self) -> int | None:
        """End the leader at once; returns its number, None when nobody leads."""
        for number, server in self._ensemble.members.items():
            if server.is_running() and server_mode(server.hosts, ASK_TIMEOUT_S) == "leader":
                server.kill()
                self._killed.append(number)
                return number
        return None

    def restart_killed(self) -> list[int]:
        """Start the killed servers without waiting; returns their numbers."""
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
    """What to add to this machine's monotonic milliseconds to get the ensemble's time (`Rules`).

    Asked of a server by a client whose clocks nobody shifts; `path` is written.
    """
    client.ensure_path(path)
    before = time.monotonic_ns()
    stat = client.set(path, b"")
    middle_ms = (before + time.monotonic_ns()) // 2_000_000
    return int(stat.mtime) - middle_ms
