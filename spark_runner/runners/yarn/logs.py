"""Copies the logs and the outcome of a driver on a YARN node.

The node keeps them for `yarn.nodemanager.log.retain-seconds` (three hours) after the end of the application.
With log aggregation they then move to the cluster's file system, where `yarn logs` shows them. Without it
they are deleted. At any time they are lost with the node.
"""

import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.files import replace_file
from spark_runner.errors import BackendUnreachable, SparkRunnerError
from spark_runner.plain_file import parse_json
from spark_runner.runners.base import LogFile
from spark_runner.runners.yarn.api import Container, ResourceManager, YarnApplication
from spark_runner.runners.yarn.executor_logs import MAX_LOG_BYTES, YarnExecutorLogs

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
        ):  # YARN's report must do, and the next look must not wait for the node again
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
