"""The spools of this host, and the reader of logs, for the commands of this group."""

from orchestrator.cli.output import stderr_console
from orchestrator.config.directories import spool_directory as root_of
from orchestrator.config.settings import Settings
from orchestrator.logs.reading.reader import LogReader

__all__ = ["reader_of", "root_of", "say"]


def reader_of(settings: Settings, *, quiet: bool = False) -> LogReader:
    """A reader of the logs that this host can read; it reports unreachable sources on stderr."""
    return LogReader(settings.logs, root_of(settings), report=lambda words: say(words, quiet=quiet))


def say(words: str, *, quiet: bool) -> None:
    """Print a message on stderr unless quiet."""
    if not quiet:
        stderr_console().print(words, markup=False)
