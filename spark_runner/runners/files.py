"""Files and directories of submissions: names by content, and the removal of whole trees."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from orchestrator.logs.files import replace_file
from spark_runner.protocol.errors import SubmissionError

_HASH_CHARACTERS = 16


def content_name(stem: str, *contents: bytes) -> str:
    """A name for these contents."""
    whole = hashlib.sha256()
    for data in contents:
        whole.update(hashlib.sha256(data).digest())
    return f"{stem}-{whole.hexdigest()[:_HASH_CHARACTERS]}"


def content_file(folder: Path, stem: str, suffix: str, data: bytes) -> Path:
    """The file with this content in a folder, created if missing; raises SubmissionError if that fails."""
    path = folder / f"{content_name(stem, data)}{suffix}"
    try:
        if not path.exists():
            # Readable by all, whatever the umask: the driver or the cluster may run as another user.
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, data, mode=0o644)  # complete or absent, even if another process creates it too
    except OSError as error:
        raise SubmissionError(f"{path} could not be written: {error.strerror}") from error
    return path


def remove_tree(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a directory with its contents; raises OSError. A missing directory is no error.

    It runs `rm`, which follows no link: deep nesting would exhaust the stack and open files of this process.
    """
    if not os.path.lexists(path) or _rm(path):
        return
    # A program may have left folders without write or read permission for their owner.
    subprocess.run(["chmod", "-R", "u+rwX", "--", str(path)], check=False, stderr=subprocess.DEVNULL)
    if _rm(path):
        return
    try:
        # With the capabilities of this process; it reports why it fails.
        shutil.rmtree(path, ignore_errors=ignore_errors)
    except (FileNotFoundError, RecursionError):
        return


def _rm(path: Path) -> bool:
    done = subprocess.run(["rm", "-rf", "--", str(path)], check=False, stderr=subprocess.DEVNULL)
    return done.returncode == 0
