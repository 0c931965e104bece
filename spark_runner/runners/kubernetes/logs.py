"""Copies of what driver pods wrote: a pod takes its log along when it is deleted."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from loguru import logger

from spark_runner.runners.base import LogFile
from spark_runner.runners.kubernetes.api import KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes.pod import Pod

TAIL_LINES = 50_000
"""What is read of a log: the node itself keeps some megabytes of each, and rotates them."""


class PodLogs:
    """Files below `folder`, by run and incarnation; private, as what a program prints may be."""

    def __init__(self, api: KubernetesApi, namespace: str, folder: Path) -> None:
        self._api = api
        self._namespace = namespace
        self._folder = folder

    def save(self, pods: Iterable[Pod]) -> None:
        """Copy what can be had by now; what cannot stays as it was copied before."""
        for pod in pods:
            try:
                data = self._api.pod_log(self._namespace, pod.name, pod.container, tail_lines=TAIL_LINES)
            except KubernetesError as error:
                logger.debug("the log of pod {} cannot be read: {}", pod.name, error)
                continue
            if data is not None:
                self._write(self._folder / pod.run / pod.incarnation, data)

    def files(self, run: str) -> list[LogFile]:
        """Those that have been copied, oldest first."""
        paths = sorted((self._folder / run).glob("*/stdout.log"), key=lambda path: path.stat().st_mtime_ns)
        return [LogFile(path.parent.name, "stdout", path) for path in paths]

    def remove(self, run: str) -> None:
        """Remove those of a run."""
        shutil.rmtree(self._folder / run, ignore_errors=True)

    @staticmethod
    def _write(folder: Path, data: bytes) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder / ".stdout.log"
        draft.touch(mode=0o600)
        draft.write_bytes(data)
        draft.replace(folder / "stdout.log")
