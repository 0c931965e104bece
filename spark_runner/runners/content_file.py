"""A file whose name carries the hash of its contents: made once, the same for whoever makes it."""

import hashlib
from pathlib import Path

from orchestrator.logs.files import replace_file
from spark_runner.errors import SubmissionError

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
            replace_file(path, data, mode=0o644)  # whole or not at all, whoever else makes it
    except OSError as error:
        raise SubmissionError(f"{path} could not be written: {error.strerror}") from error
    return path
