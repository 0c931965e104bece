"""Copies of what a driver on a YARN node has written: its logs, and its outcome.

The node has them for `yarn.nodemanager.log.retain-seconds` (three hours) after the end of the application.
With log aggregation they then go to the cluster's file system, and `yarn logs` shows them; without, they are
deleted, and they are lost with the node at any time.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_runner.errors import BackendUnreachable, SparkRunnerError
from spark_runner.runners.base import LogFile
from spark_runner.runners.yarn_api import Application, Container, ResourceManager

_MAX_LOG_BYTES = 8 * 1024 * 1024  # of each, its end: that is where errors stand
_MAX_OUTCOME_BYTES = 1024 * 1024
_FILES = {"stdout": ("stdout.log", "stdout"), "stderr": ("stderr.log",), "spark": ("stderr",)}
"""By stream, the files of the container in which it may be: the driver's own, and those of its JVM."""


class YarnLogs:
    """The copies of one state directory, one folder for each submission."""

    def __init__(self, state_dir: Path, manager: ResourceManager) -> None:
        self._folder = state_dir / "yarn-logs"
        self._manager = manager

    def copy(self, run: str, incarnation: str, application: Application) -> list[LogFile]:
        """What can be had of the logs by now; of a node that does not answer the copies made before."""
        container = Container.of_page(application.master_logs)
        folder = self._folder / run / incarnation
        for stream, names in _FILES.items() if container else ():
            try:
                for name in names:
                    found = self._manager.log(container, name, _MAX_LOG_BYTES) if container else None
                    if found is not None:
                        _write(folder / f"{stream}.log", found)
                        break
            except BackendUnreachable:
                break
        return [
            LogFile(incarnation, stream, path)
            for stream in _FILES
            if (path := folder / f"{stream}.log").exists()
        ]

    def outcome(self, application: Application) -> Mapping[str, Any] | None:
        """What the driver said of its end, None where that cannot be had; raises BackendUnreachable."""
        container = Container.of_page(application.master_logs)
        found = self._manager.log(container, "outcome.json", _MAX_OUTCOME_BYTES) if container else None
        try:
            outcome = json.loads(found) if found else None
        except ValueError:
            return None  # cut short by its end
        return outcome if isinstance(outcome, dict) else None

    def remove(self, run: str) -> None:
        """Remove the copies of a run; raises SparkRunnerError."""
        try:
            shutil.rmtree(self._folder / run)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise SparkRunnerError(f"logs of run {run} are still there: {error}") from error


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(path)
