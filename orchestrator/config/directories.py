"""The directories of this host: each must belong to this user alone before it is used."""

import contextlib
import tempfile
from pathlib import Path

from orchestrator.config.settings import Settings
from orchestrator.logs.pipeline import spool_root
from orchestrator.model.errors import StateDirectoryError
from queues import check_files, private_directory

_INSIDE = ("runs", "spark-conf", "starts", "warm", "warm/runs", "warm/spark-conf", "zookeeper", "ensemble")


def prepare_directories(settings: Settings) -> None:
    """Create the state directory, and check it, its folders, and the directories for logs, archive and cache.

    Raises UnsafeDirectory where another user may have changed one, and StateDirectoryError when the state
    directory cannot be written.
    """
    try:
        private_directory(settings.state_dir)
        with tempfile.TemporaryFile(dir=settings.state_dir):
            pass
    except OSError as error:
        raise StateDirectoryError(
            f"the state directory {settings.state_dir} cannot be written: {error.strerror}; "
            "set ORCHESTRATOR_STATE_DIR to one that can"
        ) from error
    for directory in used_directories(settings):
        with contextlib.suppress(OSError):  # the part that uses the directory reports the error
            private_directory(directory, make=False)
            if directory.name == "spark-conf":
                check_files(directory)


def spool_directory(settings: Settings) -> Path:
    """The folder of the log spools; raises UnsafeDirectory if another user may have written to it."""
    root = spool_root(settings.logs, settings.logs_dir)
    with contextlib.suppress(OSError):  # an unusable folder is reported when it is used
        private_directory(root, make=False)
    return root


def used_directories(settings: Settings) -> list[Path]:
    """The directories besides the state directory, and the folders in it; some may be missing."""
    # Also the folders of the state directory: files that were planted while it was open are still there.
    used = [settings.state_dir / name for name in _INSIDE]
    used += [settings.logs.dir or settings.logs_dir, spool_root(settings.logs, settings.logs_dir)]
    used.append(settings.archive.dir or settings.state_dir / "archive")
    if settings.class_archives:
        used += [settings.cache_dir, settings.cache_dir / "class-archives"]
    return used


def existing_above(directory: Path) -> Path:
    """The directory, or the first one above it that exists; raises OSError for one that cannot be read."""
    while True:
        try:
            directory.stat()
        except FileNotFoundError:
            directory = directory.parent
        else:
            return directory
