"""Several ZooKeeper servers on this machine that elect a leader."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from queues.embedded.config import LOOPBACK, EnsembleMember, ServerConfig, port_of_last_run
from queues.embedded.ports import free_ports, is_free
from queues.embedded.server import EmbeddedZooKeeper


class EmbeddedEnsemble:
    """An ensemble of real servers, for tests of a client while members die and come back.

    Members are numbered from 1 and keep their data in `data_dir/<number>`. Also a context manager.
    """

    def __init__(self, data_dir: Path, size: int = 3, *, tick_ms: int = 2000, owner: str = "") -> None:
        self._data_dir = data_dir
        self._size = size
        self._tick_ms = tick_ms
        self._owner = owner
        self._members: dict[int, EmbeddedZooKeeper] = {}

    @property
    def members(self) -> Mapping[int, EmbeddedZooKeeper]:
        """The servers by number; each can be stopped, killed and started separately."""
        return MappingProxyType(self._members)

    @property
    def hosts(self) -> str:
        """Connection string for clients with all members, `host:port,host:port,host:port`."""
        return ",".join(server.hosts for server in self._members.values())

    def leader(self) -> int | None:
        """Return the number of the leader, None while there is none."""
        for number, server in self._members.items():
            if server.mode() == "leader":
                return number
        return None

    def start(self) -> Self:
        """Start all members and return when all serve; raises what EmbeddedZooKeeper.start raises."""
        if not self._members:
            self._members = self._build()
        try:
            for server in self._members.values():
                server.launch()
            for server in self._members.values():
                server.wait_until_serving()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all members; does nothing if there are none."""
        for server in self._members.values():
            server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _build(self) -> dict[int, EmbeddedZooKeeper]:
        numbers = range(1, self._size + 1)
        recorded = {number: self._recorded_port(number) for number in numbers}
        ports = iter(set(free_ports(LOOPBACK, 4 * self._size)) - set(recorded.values()))
        servers = tuple((number, f"{LOOPBACK}:{next(ports)}:{next(ports)}") for number in numbers)
        return {
            number: EmbeddedZooKeeper(
                ServerConfig(
                    self._data_dir / str(number),
                    port=recorded[number] or next(ports),
                    tick_ms=self._tick_ms,
                    owner=self._owner,
                    member=EnsembleMember(number, servers),
                )
            )
            for number in numbers
        }

    def _recorded_port(self, number: int) -> int | None:
        port = port_of_last_run(self._data_dir / str(number))
        return port if port is not None and is_free(LOOPBACK, port) else None
