"""Copies of the logs of drivers and executors on YARN nodes, and the outcome of a driver there.

The node keeps them for `yarn.nodemanager.log.retain-seconds` (three hours) after the end of the application.
With log aggregation they then move to the cluster's file system, where `yarn logs` shows them. Without it
they are deleted. At any time they are lost with the node.
"""

import contextlib
import math
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.files import replace_file
from spark_runner.protocol.errors import BackendUnreachable, SparkRunnerError
from spark_runner.protocol.plain_file import parse_json
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


_MAX_OUTCOME_BYTES = 1024 * 1024
_MAX_REMEMBERED = 1000  # outcomes of ended applications: each is read a few times
_SILENT_SECONDS = 60.0  # the pause before the next request to a node that did not answer
_FILES = {"stdout": ("stdout.log", "stdout"), "stderr": ("stderr.log",), "spark": ("stderr",)}
"""By stream, the files of the container that may hold it: the driver's own, and those of its JVM."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The known outcome, and when to ask for it again."""

    outcome: Mapping[str, Any] | None
    ask_again: float = math.inf  # monotonic


class YarnLogs:
    """The copies of one state directory, one folder for each submission."""

    def __init__(self, state_dir: Path, manager: ResourceManager) -> None:
        self._folder = state_dir / "yarn-logs"
        self._manager = manager
        self.executors = YarnExecutorLogs(self._folder, manager)
        self._outcomes: dict[str, _Known] = {}  # by application

    def copy(self, run: str, incarnation: str, application: YarnApplication) -> list[LogFile]:
        """Copy the existing logs and return the copies; if the node does not answer, the earlier ones."""
        container = Container.of_page(application.master_logs)
        folder = self._folder / run / incarnation
        for stream, names in _FILES.items() if container else ():
            try:
                for name in names:
                    found = self._manager.log(container, name, MAX_LOG_BYTES) if container else None
                    if found is not None:
                        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                        replace_file(folder / f"{stream}.log", found, mode=None)
                        break
            except BackendUnreachable:
                break
        return [
            LogFile(incarnation, stream, path)
            for stream in _FILES
            if (path := folder / f"{stream}.log").exists()
        ]

    def outcome(self, application: YarnApplication) -> Mapping[str, Any] | None:
        """The outcome that the driver of an ended application wrote; None if it is not available."""
        known = self._outcomes.get(application.id)
        if known is None or time.monotonic() >= known.ask_again:
            while len(self._outcomes) >= _MAX_REMEMBERED:
                self._outcomes.pop(next(iter(self._outcomes)), None)
            known = self._outcomes[application.id] = self._ask_outcome(application)
        return known.outcome

    def _ask_outcome(self, application: YarnApplication) -> "_Known":
        container = Container.of_page(application.master_logs)
        if container is None:
            return _Known(None)
        try:
            found = self._manager.log(container, "outcome.json", _MAX_OUTCOME_BYTES)
            outcome = parse_json(found) if found else None
        except (
            BackendUnreachable
        ):  # YARN's report must suffice, and the next look must not wait for the node again
            return _Known(None, time.monotonic() + _SILENT_SECONDS)
        except ValueError:
            return _Known(None)  # incomplete: the driver ended while it wrote
        return _Known(outcome if isinstance(outcome, dict) else None)

    def remove(self, run: str) -> None:
        """Remove the copies of a run; raises SparkRunnerError."""
        try:
            shutil.rmtree(self._folder / run)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise SparkRunnerError(f"cannot remove the logs of run {run}: {error}") from error
