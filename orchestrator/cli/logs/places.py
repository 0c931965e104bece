"""Where the logs of this host are, for the commands of this group."""

from pathlib import Path

from orchestrator.logs.pipeline import spool_root
from orchestrator.settings import Settings


def logs_folder(settings: Settings) -> Path:
    """The folder of logs of this host, without what `logs.dir` may say."""
    return settings.state_dir / "logs"


def root_of(settings: Settings) -> Path:
    """The folder of the spools."""
    return spool_root(settings.logs, logs_folder(settings))
