"""Which archive the settings ask for."""

from pathlib import Path

from orchestrator.archive.base import Archive
from orchestrator.archive.jsonl import JsonlArchive
from orchestrator.archive.pausing import PausingArchive
from orchestrator.archive.settings import ArchiveSettings


def open_archive(settings: ArchiveSettings, state_dir: Path) -> Archive:
    """The archive of this host; nothing is opened or asked before it is used."""
    if not settings.url:
        return PausingArchive(JsonlArchive(settings.dir or state_dir / "archive"))
    # Here, because it takes as long to load as all the rest of a worker, and most have none.
    from orchestrator.archive.elasticsearch import ElasticsearchArchive  # noqa: PLC0415 - see above

    return PausingArchive(
        ElasticsearchArchive(
            settings.url, settings.index, key_file=settings.key_file, ca_file=settings.ca_file
        )
    )
