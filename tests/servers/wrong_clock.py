"""A real ZooKeeper that fails over to a server with another wall clock."""

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from queues import EmbeddedZooKeeper, ServerConfig
from tests.jar_support import make_jar
from tests.servers.zookeeper import TICK_MS


class FailingOver:
    """One server at a time on one data directory and one port. A context manager.

    Only the class from which the server reads its wall clock is replaced (tests/java/Time.java): clients and
    other servers see the effects of a wrong clock of its host.
    """

    def __init__(self, folder: Path) -> None:
        jar = make_jar("Time", folder)
        # The boot class path takes precedence over ZooKeeper's own jar.
        self._options = (f"-Xbootclasspath/a:{jar}", "-Dzookeeper.forceSync=no")
        self._config = ServerConfig(folder / "server", tick_ms=TICK_MS, owner="tests", long_run=True)
        self._server: EmbeddedZooKeeper | None = None
        self._ahead_seconds = 0.0
        self._ahead_ms = dict[str, int]()  # by name of a transaction log: the error of its times

    @property
    def data_dir(self) -> Path:
        """Folder of the transaction logs of the servers."""
        return self._config.data_dir

    @property
    def hosts(self) -> str:
        """Connection string for clients, the same for all servers."""
        assert self._server is not None
        return self._server.hosts

    def fail_over(self, ahead_seconds: float) -> None:
        """Replace the server by one whose wall clock is ahead of that of this host."""
        if self._server is not None:
            if ahead_seconds == self._ahead_seconds:
                return
            self._server.stop()
            self._note_logs()
        self._ahead_seconds = ahead_seconds
        shift = f"-Dtests.clock.ahead={round(ahead_seconds * 1000)}"
        config = replace(self._config, jvm_options=(*self._options, shift))
        self._server = EmbeddedZooKeeper(config).start()  # on the port of the previous run

    def crash(self) -> None:
        """`kill -9` of the server; `recover` starts it again."""
        assert self._server is not None
        self._server.kill()

    def recover(self) -> None:
        """Start the crashed server, with its former clock."""
        assert self._server is not None
        self._server.start()

    def ahead_ms(self, log: str) -> int:
        """By how much the times in a transaction log are ahead; each server starts a new log."""
        self._note_logs()
        return self._ahead_ms[log]

    def _note_logs(self) -> None:
        for log in self._config.data_dir.rglob("log.*"):
            self._ahead_ms.setdefault(log.name, round(self._ahead_seconds * 1000))

    def __enter__(self) -> Self:
        self.fail_over(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.stop()
