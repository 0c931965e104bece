"""Collects the logs of the drivers of a host; one process at a time per state directory."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from loguru import logger

from orchestrator.driver_logs.folders import FolderWatch, LogFolder
from orchestrator.driver_logs.run_logs import RunLogs
from orchestrator.logs.files import folder_lock
from orchestrator.logs.record.document import Days
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.spool.writer import Spool
from orchestrator.loop import Loop
from spark_runner.runners.standalone.executor_logs import FOLDER
from spark_runner.runners.standalone.launch import noted_stagings
from spark_runner.runners.yarn.logs import MAX_LOG_BYTES

LOCK = "driver-logs.lock"
_LOOK_SECONDS = 0.25  # between scans for new runs and output
_STOP_SECONDS = 2.0
_STUCK_SECONDS = 3600.0  # logs written while no worker ran may be many gigabytes


class DriverLogs:
    """A thread that appends the output of drivers to the spool."""

    def __init__(self, state_dir: Path, spool: Spool, days: Days, redactor: Redactor) -> None:
        def root(path: Path, folders: Sequence[LogFolder]) -> "_Root":
            return _Root(path, folders, spool, days, redactor)

        self._state_dir, self._root = state_dir, root
        self._roots = {state_dir: root(state_dir, folders_of(state_dir))}
        self._loop = Loop("driver-logs", self._step, stuck_after=_STUCK_SECONDS)
        self.trouble = self._loop.trouble

    def start(self) -> None:
        """Start the thread."""
        self._loop.start()

    def stop(self) -> None:
        """Collect the present output within about two seconds; another process collects the rest."""
        deadline = time.monotonic() + _STOP_SECONDS
        if not self._loop.stop(_STOP_SECONDS):
            return  # the thread still runs, and holds its folders until the process ends
        for root in self._roots.values():
            while root.look(lambda: time.monotonic() > deadline, flush=True):
                pass
            root.release()

    def _step(self) -> float:
        for path in noted_stagings(self._state_dir):
            if path not in self._roots:
                self._roots[path] = self._root(path, _folders_of_staging(path))
        for root in self._roots.values():
            while root.look(lambda: self._loop.is_stopping):
                pass
        return _LOOK_SECONDS


def folders_of(state_dir: Path) -> list[LogFolder]:
    """The log folders of a state directory: those of its shims, and copies of logs on clusters."""
    runs = state_dir / "runs"
    warm = state_dir / "warm" / "runs"
    return [
        LogFolder(runs, runs, has_shims=True),
        LogFolder(warm, warm, has_shims=True),
        LogFolder(state_dir / "kubernetes-logs", runs, has_ends=False, mark="copy-", is_mixed=True),
        _executors_in(state_dir),
        LogFolder(state_dir / "yarn-logs", runs, has_ends=False, mark="copy-", sliding_bytes=MAX_LOG_BYTES),
    ]


def _folders_of_staging(path: Path) -> list[LogFolder]:
    return [LogFolder(path / "runs", path / "runs"), _executors_in(path)]


def _executors_in(path: Path) -> LogFolder:
    return LogFolder(path / FOLDER, path / "runs", has_ends=False, mark="copy-")


class _Root:
    """The folders below one directory, collected by one process at a time."""

    def __init__(
        self, path: Path, folders: Sequence[LogFolder], spool: Spool, days: Days, redactor: Redactor
    ) -> None:
        self._path, self._folders = path, folders
        self._spool, self._days, self._redactor = spool, days, redactor
        self._held: ExitStack | None = None
        self._watches: list[FolderWatch] = []
        self._active: dict[Path, RunLogs] = {}

    def look(self, is_over: Callable[[], bool], *, flush: bool = False) -> bool:
        """Append one chunk of each log, until `is_over`; whether there is more, and time for it."""
        if not self._hold():
            return False
        for run in self._found():
            self._active[run.directory] = run
        more, now = False, time.monotonic()
        for run in list(self._active.values()):
            if is_over():
                return False
            if flush or run.due <= now:
                more |= run.collect(flush=flush)
            if run.is_done:
                del self._active[run.directory]
        return more

    def release(self) -> None:
        """Release the lock, so that another process can continue."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _hold(self) -> bool:
        if self._held is not None:
            return True
        if not self._path.is_dir():
            return False
        stack = ExitStack()
        try:
            is_ours = stack.enter_context(folder_lock(self._path, name=LOCK))
        except OSError as error:
            logger.warning("logs of drivers in {} are not collected: {}", self._path, error)
            return False
        if not is_ours:
            stack.close()
            return False
        self._held = stack
        # Start anew: another process may have collected in between.
        self._watches, self._active = [FolderWatch(folder) for folder in self._folders], {}
        return True

    def _found(self) -> Iterator[RunLogs]:
        for watch in self._watches:
            for directory in watch.new():
                run = RunLogs(
                    watch.folder, directory, spool=self._spool, days=self._days, redactor=self._redactor
                )
                if not run.is_done:
                    yield run
