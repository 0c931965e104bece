"""Where jobs that read streams keep their progress."""

import urllib.parse
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The URL of a folder that all nodes share, and that of a folder of this host; empty without one."""

    shared: str = ""
    own: str = ""

    def of_job(self, name: str, backend: str) -> str:
        """The URL of the folder of a job; empty if no folder outlives its driver.

        The name of the job is its identity: a job that is submitted again continues.
        """
        place = self.shared or (self.own if backend == "local" else "")
        return f"{place.rstrip('/')}/{urllib.parse.quote(name, safe='')}" if place else ""
