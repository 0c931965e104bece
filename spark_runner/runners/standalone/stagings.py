"""Records the folders outside the state directory that hold run directories, for the collection of logs."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from spark_runner.errors import SubmissionError
from spark_runner.runners.content_file import content_file

_FOLDER = "stagings"


def note_staging(state_dir: Path, staging: Path) -> None:
    """Record a folder permanently; without effect if the state directory cannot be written."""
    if staging != state_dir:
        with suppress(SubmissionError):
            content_file(state_dir / _FOLDER, "staging", "", os.fsencode(staging))


def noted_stagings(state_dir: Path) -> Iterator[Path]:
    """The folders that processes with this state directory have submitted to."""
    with suppress(OSError):
        for note in (state_dir / _FOLDER).glob("staging-*"):
            yield _staging_of(note)


@cache
def _staging_of(note: Path) -> Path:
    """The folder in a note. Cached: the note's name has its hash, and callers ask several times a second."""
    return Path(os.fsdecode(note.read_bytes()))
