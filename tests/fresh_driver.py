"""A driver that kills itself at a chosen point while it begins a checkpoint anew.

Arguments: the folder of the checkpoint, the point. It needs no Spark: the file system is that of this host.
"""

import os
import signal
import sys
from typing import Any

from spark_runner.sql.checkpoints.folders import LocalFolders
from spark_runner.sql.execution.checkpoints import Checkpoint


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, point: str) -> None:
    """Begin the checkpoint anew for the job `a`, until the point."""
    rename, replace = LocalFolders.rename, LocalFolders.replace

    def dying_rename(self: LocalFolders, url: str, new: str) -> None:
        if point == "before the rename":
            _die()
        rename(self, url, new)
        if point == "after the rename":
            _die()

    def dying_replace(self: LocalFolders, url: str, text: str) -> None:
        if point == "before the record":
            _die()
        replace(self, url, text)
        if point == "after the record":
            _die()

    LocalFolders.rename = dying_rename  # type: ignore[method-assign]  # the point of this program
    LocalFolders.replace = dying_replace  # type: ignore[method-assign]  # likewise
    session: Any = None
    with Checkpoint(session, f"file:{folder}", {"start": "fresh", "run_key": "a"}).opened("f" * 64):
        raise AssertionError


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
