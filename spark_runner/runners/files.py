"""Files and directories of submissions: named by their content, and removed with all below."""

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
    """The file in this folder, made when it is not there; raises SubmissionError when it cannot be."""
    path = folder / f"{content_name(stem, data)}{suffix}"
    try:
        if not path.exists():
            # Not private, whatever the umask: the user of a driver, or of a cluster, may be another one.
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, data, mode=0o644)  # complete or absent, also with concurrent writers
    except OSError as error:
        raise SubmissionError(f"{path} could not be written: {error.strerror}") from error
    return path


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
