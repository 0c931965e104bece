"""Opens the archive that the settings name."""

from pathlib import Path

from orchestrator.archive.base import Archive
from orchestrator.archive.jsonl import JsonlArchive
from orchestrator.archive.pausing import PausingArchive
from orchestrator.archive.settings import ArchiveSettings


def open_archive(settings: ArchiveSettings, state_dir: Path) -> Archive:
    """The archive of this host; it opens and connects to nothing before its first use."""
    if not settings.url:
        return PausingArchive(JsonlArchive(settings.dir or state_dir / "archive"))
    # Imported here: it takes as long to load as the rest of a worker, and most workers do not use it.
    from orchestrator.archive.elasticsearch import ElasticsearchArchive  # noqa: PLC0415 - see above

    return PausingArchive(
        ElasticsearchArchive(
            settings.url, settings.index, key_file=settings.key_file, ca_file=settings.ca_file
        )
    )
