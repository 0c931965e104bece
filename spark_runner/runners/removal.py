"""Removes directories in which a driver may have made anything."""

import os
import shutil
import subprocess
from pathlib import Path


def remove_tree(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a directory and all in it; raises OSError. One that is not there is no error.

    `rm` does it, and follows no link: folders in folders would take stack and open files of this process.
    """
    if not os.path.lexists(path) or _rm(path):
        return
    # A program may have left folders that not even their owner may write or list.
    subprocess.run(["chmod", "-R", "u+rwX", "--", str(path)], check=False, stderr=subprocess.DEVNULL)
    if _rm(path):
        return
    try:
        shutil.rmtree(path, ignore_errors=ignore_errors)  # it has all capabilities of ours, and says why not
    except (FileNotFoundError, RecursionError):
        return


def _rm(path: Path) -> bool:
    done = subprocess.run(["rm", "-rf", "--", str(path)], check=False, stderr=subprocess.DEVNULL)
    return done.returncode == 0
