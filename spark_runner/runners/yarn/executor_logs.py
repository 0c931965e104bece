"""Copies the logs of executors on YARN nodes while they run: a node deletes them some time after the end."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from orchestrator.logs.files import replace_file
from spark_runner.errors import BackendUnreachable
from spark_runner.runners.base import LogFile
from spark_runner.runners.run_directory import EXECUTOR, log_owner
from spark_runner.runners.yarn.api import Container, ResourceManager, YarnApplication

# A node returns the end of a log, and the offset of that end within a longer log is unknown.
MAX_LOG_BYTES = 8 * 1024 * 1024
_STREAMS = ("stdout", "stderr")
_NUMBER = re.compile(rb"Starting executor ID (\d+) on host")


class YarnExecutorLogs:
    """Copies in folders `<run>/<incarnation>.executor-<number>/`, of logs below MAX_LOG_BYTES."""

    def __init__(self, folder: Path, manager: ResourceManager) -> None:
        self._folder, self._manager = folder, manager
        self._containers = dict[str, dict[str, Container]]()  # by application: the containers seen running
        self._numbers = dict[str, str]()  # of executors, by container
        self._copied = dict[tuple[str, str], int]()  # bytes, by container and stream

    def copy(self, run: str, incarnation: str, application: YarnApplication) -> list[LogFile]:
        """Copy the logs that have grown, as far as YARN answers, and return all copies so far."""
        with contextlib.suppress(BackendUnreachable, OSError):  # earlier copies remain
            for container in self._seen(application):
                self._copy(self._folder / run, incarnation, container)
                if application.has_ended:
                    self._forget(container)
        return list(self._files(run))

    def _seen(self, application: YarnApplication) -> list[Container]:
        """Its containers except the first; for an ended application, those of the last look once more."""
        if application.has_ended:
            return list(self._containers.pop(application.id, {}).values())
        master = Container.of_page(application.master_logs)
        known = self._containers.setdefault(application.id, {})
        for found in self._manager.containers(application):
            if master is None or found.id != master.id:
                known[found.id] = found
        return list(known.values())

    def _copy(self, folder: Path, incarnation: str, container: Container) -> None:
        sizes = self._manager.log_sizes(container)
        for stream in reversed(_STREAMS):  # stderr has the executor's number
            size = sizes.get(stream, 0)
            if not self._copied.get((container.id, stream), 0) < size < MAX_LOG_BYTES:
                continue
            data = self._manager.log(container, stream, MAX_LOG_BYTES)
            if data is None or (number := self._number(container, data)) is None:
                continue
            copies = folder / f"{incarnation}{EXECUTOR}{number}"
            copies.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(copies / f"{stream}.log", data, mode=None)
            self._copied[container.id, stream] = size

    def _number(self, container: Container, data: bytes) -> str | None:
        if container.id not in self._numbers and (found := _NUMBER.search(data)):
            self._numbers[container.id] = found[1].decode()
        return self._numbers.get(container.id)

    def _forget(self, container: Container) -> None:
        self._numbers.pop(container.id, None)
        for stream in _STREAMS:
            self._copied.pop((container.id, stream), None)

    def _files(self, run: str) -> Iterator[LogFile]:
        for folder in sorted((self._folder / run).glob(f"*{EXECUTOR}*")):
            incarnation, executor = log_owner(folder.name)
            for stream in _STREAMS:
                if (path := folder / f"{stream}.log").exists():
                    yield LogFile(incarnation, stream, path, executor)
