"""Where the logs of this host are, for the commands of this group."""

import contextlib
from pathlib import Path

from orchestrator.cli.output import stderr_console
from orchestrator.config.settings import Settings
from orchestrator.logs.pipeline import spool_root
from orchestrator.logs.reading.reader import LogReader
from queues import private_directory


def root_of(settings: Settings) -> Path:
    """The folder of the spools; raises UnsafeDirectory where another user may have written there."""
    root = spool_root(settings.logs, settings.logs_dir)
    with contextlib.suppress(OSError):  # what cannot be used is reported where it is used
        private_directory(root, make=False)
    return root


def reader_of(settings: Settings, *, quiet: bool = False) -> LogReader:
    """The logs that can be read from here; unreachable sources are reported on stderr."""
    return LogReader(settings.logs, root_of(settings), report=lambda words: say(words, quiet=quiet))


def say(words: str, *, quiet: bool) -> None:
    """Words for people."""
    if not quiet:
        stderr_console().print(words, markup=False)
