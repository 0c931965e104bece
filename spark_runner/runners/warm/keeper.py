"""Keeps one warm server for each spec open on this host; any of its workers may start it."""

import logging
import threading
import time
from collections.abc import Sequence

from orchestrator.logs.files import folder_lock
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.warm.servers import WarmServers, WarmSpec
from spark_runner.warm.files import ServerFiles

log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 10.0, 600.0  # after servers that ended before they opened


class WarmKeeper:
    """Checks every two seconds, in its own thread; without specs it does nothing."""

    def __init__(
        self, servers: WarmServers, specs: Sequence[WarmSpec] = (), *, look_seconds: float = _LOOK_SECONDS
    ) -> None:
        self.servers, self._look_seconds = servers, look_seconds
        self._specs = {spec.key: spec for spec in specs}
        self._open: dict[str, list[ServerFiles]] = {}
        self._failed: dict[str, tuple[int, float]] = {}  # times in a row, and when to try again (monotonic)
        self._logged: set[str] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread that keeps servers open."""
        if self._specs and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="warm-servers", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop keeping servers: without another worker each ends after its last driver."""
        self._stopping.set()
        if self._thread is None:
            return
        self._thread.join()
        for spec in self._specs.values():
            for server in self.servers.of(spec):
                server.release()

    def choose(self, request: SubmitRequest) -> ServerFiles | None:
        """The server that can take this job now; None if the job needs its own JVM."""
        if not request.is_warm or request.environment:
            return None
        return self.choose_server(WarmSpec(request.target.master, request.conf))

    def choose_server(self, spec: WarmSpec) -> ServerFiles | None:
        """The newest open server with this Spark."""
        known = reversed(self._open.get(spec.key, ()))
        return next((server for server in known if not server.is_draining()), None)

    def _run(self) -> None:
        while True:
            for spec in self._specs.values():
                try:
                    self._look(spec)
                except Exception as error:  # noqa: BLE001 - e.g. a full disk: jobs start in their own JVMs
                    self._warn_once(f"cannot keep warm servers open: {error!r}")
            if self._stopping.wait(self._look_seconds):
                return

    def _look(self, spec: WarmSpec) -> None:
        found = self.servers.of(spec)
        running = [server for server in found if self.servers.runs(server)]
        self._open[spec.key] = [server for server in running if server.was_opened()]
        for server in running:
            server.keep()
        with folder_lock(self.servers.submits.state_dir) as is_mine:
            if not is_mine:
                return
            self._tidy([server for server in found if server not in running])
            if all(server.is_draining() for server in running) and self._is_due(spec, found):
                self.servers.start(spec)

    def _is_due(self, spec: WarmSpec, found: Sequence[ServerFiles]) -> bool:
        """Whether to start a server now; after one that never opened, only after a pause."""
        failures, until = self._failed.get(spec.key, (0, 0.0))
        last = found[-1] if found else None
        if last is None or last.was_opened():
            self._failed.pop(spec.key, None)
            return True
        if last.run not in self._logged:
            self._logged.add(last.run)
            pause = min(_MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**failures)
            self._failed[spec.key] = failures + 1, time.monotonic() + pause
            log.warning(
                "a warm server ended before it was open, jobs start in their own JVMs: see %s",
                last.path / "stderr.log",
            )
            return False
        return time.monotonic() >= until

    def _tidy(self, ended: Sequence[ServerFiles]) -> None:
        for server in ended[:-1]:  # the last one's logs may help an operator
            self.servers.submits.cleanup(server.run)

    def _warn_once(self, words: str) -> None:
        if words not in self._logged:
            self._logged.add(words)
            log.warning(words)
