"""Removes directories in which a driver may have created files of any kind."""

import os
import shutil
import subprocess
from pathlib import Path


def remove_tree(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a directory with its contents; raises OSError. A missing directory is no error.

    `rm` does it and follows no link; deep nesting would exhaust the stack and open files of this process.
    """
    if not os.path.lexists(path) or _rm(path):
        return
    # A program may have left folders without write or read permission for their owner.
    subprocess.run(["chmod", "-R", "u+rwX", "--", str(path)], check=False, stderr=subprocess.DEVNULL)
    if _rm(path):
        return
    try:
        shutil.rmtree(
            path, ignore_errors=ignore_errors
        )  # with this process's capabilities; it reports why it fails
    except (FileNotFoundError, RecursionError):
        return


def _rm(path: Path) -> bool:
    done = subprocess.run(["rm", "-rf", "--", str(path)], check=False, stderr=subprocess.DEVNULL)
    return done.returncode == 0
