"""The folders that may have checkpoints, and their access: this host's own file system, or a local Spark."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from orchestrator.cli.output import stderr_console
from orchestrator.cli.sql.local_spark import ask
from orchestrator.config.settings import Settings
from orchestrator.config.spark_defaults import pool_spark
from orchestrator.config.tables import ALL_POOLS
from orchestrator.handlers.checkpoints import Checkpoints
from orchestrator.model.spark import Spark
from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.folders import LocalFolders, local_path
from spark_runner.sql.checkpoints.listing import FoundCheckpoint, checkpoints_in
from spark_runner.sql.checkpoints.removal import remove


@dataclass(frozen=True)
class Place:
    """One folder with folders of jobs; `pool` is the one whose settings of Spark reach it."""

    url: str
    pool: str
    settings: Settings
    quiet: bool

    def checkpoints(self, name: str) -> list[FoundCheckpoint]:
        """The checkpoints of all jobs, or of one; raises SparkRunnerError if they cannot be read."""
        if local_path(self.url) is not None:
            return list(checkpoints_in(LocalFolders(), self.url, name))
        answer = self._ask(f"read {self.url}", {"action": "list", "place": self.url, "name": name})
        return [FoundCheckpoint.from_json(each) for each in answer["found"]]

    def remove(self, url: str) -> str:
        """Remove one checkpoint; returns the reason why it is not removed, empty if it is."""
        if local_path(self.url) is None:
            return str(self._ask(f"remove {url}", {"action": "remove", "url": url})["error"])
        try:
            remove(LocalFolders(), url)
        except ConnectorError as error:
            return str(error)
        return ""

    def _ask(self, purpose: str, request: dict[str, Any]) -> dict[str, Any]:
        conf = pool_spark(self.settings.spark)(self.pool, Spark()).properties
        whole = {"kind": "checkpoints", **request}
        return ask(whole, conf, self.settings, quiet=self.quiet, purpose=purpose)


def places_of(settings: Settings, of_jobs: Iterable[str], *, quiet: bool) -> list[Place]:
    """The folders of the settings, and those that jobs have used; says which are on another host."""
    found = Checkpoints(settings.checkpoints, settings.own_checkpoints).places()
    elsewhere = list[str]()
    for url in of_jobs:
        parent = url.rpartition("/")[0]
        path = local_path(parent)
        if parent not in found and path is not None and not path.is_dir():
            elsewhere.append(url)
        else:
            found.setdefault(parent, ALL_POOLS)
    if not quiet:
        for url in dict.fromkeys(elsewhere):
            stderr_console().print(f"{url} is not on this host", markup=False)
    return [Place(url, pool, settings, quiet) for url, pool in found.items()]
