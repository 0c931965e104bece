"""Where jobs that read streams keep their progress."""

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.config.tables import ALL_POOLS, of_pool


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The URLs of folders that all nodes share, by pool (* = all), and that of a folder of this host."""

    shared: Mapping[str, str] = field(default_factory=dict)
    own: str = ""

    def of_job(self, name: str, pool: str, backend: str) -> str:
        """The URL of the folder of a job; empty if no folder outlives its driver.

        The name of the job is its identity: a job that is submitted again continues.
        """
        place = of_pool(self.shared, pool) or (self.own if backend == "local" else "")
        return f"{place.rstrip('/')}/{urllib.parse.quote(name, safe='')}" if place else ""

    def places(self) -> dict[str, str]:
        """The pool of each folder with folders of jobs; `*` where it is that of several."""
        found = dict[str, str]()
        for pool, url in (*self.shared.items(), (ALL_POOLS, self.own)):
            if url:
                found.setdefault(url.rstrip("/"), pool)
        return found
