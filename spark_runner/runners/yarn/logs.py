"""Copies of what a driver on a YARN node has written: its logs, and its outcome.

The node has them for `yarn.nodemanager.log.retain-seconds` (three hours) after the end of the application.
With log aggregation they then go to the cluster's file system, and `yarn logs` shows them; without, they are
deleted, and they are lost with the node at any time.
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
from spark_runner.runners.yarn.api import Application, Container, ResourceManager
from spark_runner.runners.yarn.executor_logs import MAX_LOG_BYTES, ExecutorLogs

_MAX_OUTCOME_BYTES = 1024 * 1024
_MAX_REMEMBERED = 1000  # outcomes of ended applications: looked at a few times each
_SILENT_SECONDS = 60.0  # a node that did not answer is left alone for so long
_FILES = {"stdout": ("stdout.log", "stdout"), "stderr": ("stderr.log",), "spark": ("stderr",)}
"""By stream, the files of the container in which it may be: the driver's own, and those of its JVM."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found of an outcome, and when to ask for it again."""

    outcome: Mapping[str, Any] | None
    ask_again: float = math.inf  # monotonic


class YarnLogs:
    """The copies of one state directory, one folder for each submission."""

    def __init__(self, state_dir: Path, manager: ResourceManager) -> None:
        self._folder = state_dir / "yarn-logs"
        self._manager = manager
        self.executors = ExecutorLogs(self._folder, manager)
        self._outcomes: dict[str, _Known] = {}  # by application

    def copy(self, run: str, incarnation: str, application: Application) -> list[LogFile]:
        """What can be had of the logs by now; of a node that does not answer the copies made before."""
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

    def outcome(self, application: Application) -> Mapping[str, Any] | None:
        """What the driver of an ended application said of its end, None where that cannot be had."""
        known = self._outcomes.get(application.id)
        if known is None or time.monotonic() >= known.ask_again:
            while len(self._outcomes) >= _MAX_REMEMBERED:
                self._outcomes.pop(next(iter(self._outcomes)), None)
            known = self._outcomes[application.id] = self._ask_outcome(application)
        return known.outcome

    def _ask_outcome(self, application: Application) -> "_Known":
        container = Container.of_page(application.master_logs)
        if container is None:
            return _Known(None)
        try:
            found = self._manager.log(container, "outcome.json", _MAX_OUTCOME_BYTES)
            outcome = parse_json(found) if found else None
        except BackendUnreachable:  # YARN's own word has to do, and the next look must not wait for it again
            return _Known(None, time.monotonic() + _SILENT_SECONDS)
        except ValueError:
            return _Known(None)  # cut short by its end
        return _Known(outcome if isinstance(outcome, dict) else None)

    def remove(self, run: str) -> None:
        """Remove the copies of a run; raises SparkRunnerError."""
        try:
            shutil.rmtree(self._folder / run)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise SparkRunnerError(f"logs of run {run} are still there: {error}") from error
