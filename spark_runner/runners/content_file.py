"""A file whose name carries the hash of its contents: made once, the same for whoever makes it."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from spark_runner.errors import SubmissionError

_HASH_CHARACTERS = 16


def content_name(stem: str, *contents: bytes) -> str:
    """A name for these contents."""
    return f"{stem}-{_hash(contents)}"


def content_file(folder: Path, stem: str, suffix: str, data: bytes) -> Path:
    """The file in this folder, made when it is not there; raises SubmissionError when it cannot be."""
    path = folder / f"{content_name(stem, data)}{suffix}"
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            draft = folder / f".{path.name}.{os.getpid()}"
            draft.write_bytes(data)
            draft.replace(path)  # whole or not at all, whoever else makes it
    except OSError as error:
        raise SubmissionError(f"{path} could not be written: {error.strerror}") from error
    return path


def _hash(contents: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for data in contents:
        whole.update(hashlib.sha256(data).digest())
    return whole.hexdigest()[:_HASH_CHARACTERS]
