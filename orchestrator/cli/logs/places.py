"""The spools of this host, and the reader of logs, for the commands of this group."""

import contextlib
from pathlib import Path

from orchestrator.cli.output import stderr_console
from orchestrator.config.settings import Settings
from orchestrator.logs.pipeline import spool_root
from orchestrator.logs.reading.reader import LogReader
from queues import private_directory


def root_of(settings: Settings) -> Path:
    """The folder of the spools; raises UnsafeDirectory if another user may have written to it."""
    root = spool_root(settings.logs, settings.logs_dir)
    with contextlib.suppress(OSError):  # an unusable folder is reported when it is used
        private_directory(root, make=False)
    return root


def reader_of(settings: Settings, *, quiet: bool = False) -> LogReader:
    """A reader of the logs that this host can read; it reports unreachable sources on stderr."""
    return LogReader(settings.logs, root_of(settings), report=lambda words: say(words, quiet=quiet))


def say(words: str, *, quiet: bool) -> None:
    """Print a message on stderr unless quiet."""
    if not quiet:
        stderr_console().print(words, markup=False)
