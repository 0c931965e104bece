"""The directories of this host: own and private, before anything in them is run, believed or written."""

import contextlib
import tempfile
from pathlib import Path

from orchestrator.errors import StateDirectoryError
from orchestrator.logs.pipeline import spool_root
from orchestrator.settings import Settings
from queues.private_directory import check_files, private_directory

_INSIDE = ("runs", "spark-conf", "starts", "warm", "warm/runs", "warm/spark-conf", "zookeeper")


def prepare_directories(settings: Settings) -> None:
    """Make the state directory, and check it, what is in it, and those for logs, archive and cache.

    Raises UnsafeDirectory where another user may have changed one, StateDirectoryError when the first cannot
    be written.
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
    for directory in _used(settings):
        with contextlib.suppress(OSError):  # what cannot be used is reported where it is used
            private_directory(directory, make=False)
            if directory.name == "spark-conf":
                check_files(directory)


def _used(settings: Settings) -> list[Path]:
    # Those in the state directory too: what was put there while it was open is there when it is closed.
    used = [settings.state_dir / name for name in _INSIDE]
    used += [settings.logs.dir or settings.logs_dir, spool_root(settings.logs, settings.logs_dir)]
    used.append(settings.archive.dir or settings.state_dir / "archive")
    if settings.class_archives:
        used += [settings.cache_dir, settings.cache_dir / "class-archives"]
    return used
