"""Where drivers on nodes have their run directories, outside the state directory: for who collects logs."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from spark_runner.errors import SubmissionError
from spark_runner.runners.content_file import content_file

_FOLDER = "stagings"


def note_staging(state_dir: Path, staging: Path) -> None:
    """Remember a folder, for good; without effect where the state directory cannot be written."""
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
    """What a note says, for ever: its name has the hash of it, and it is asked for several times a second."""
    return Path(os.fsdecode(note.read_bytes()))
