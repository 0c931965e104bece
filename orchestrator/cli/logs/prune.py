"""`orchestrator logs prune`."""

from typing import Annotated

import typer

from orchestrator.cli.acting import confirm
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import show_rows
from orchestrator.errors import SettingsError
from orchestrator.logs.indices import daily_indices
from orchestrator.settings import load_settings

_COLUMNS = {"name": "index", "documents": "documents", "size_bytes": "bytes"}


def prune(
    days: Annotated[
        int | None, typer.Option(min=1, help="Keep so many; default: logs.retention_days.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Remove daily indices that are older than the retention; the leader does so every hour.

    Example: orchestrator logs prune --days 7 --yes
    """
    settings = load_settings().logs
    if not settings.urls:
        raise SettingsError(
            "logs.url is not set: there are no indices; the spool keeps itself within its bound"
        )
    indices = daily_indices(settings)
    old = indices.older_than(days or settings.retention_days)
    if old:
        confirm(f"Remove {', '.join(index.name for index in old)}?", yes=yes)
    for index in old:
        indices.remove(index)
    rows = [{"name": each.name, "documents": each.documents, "size_bytes": each.size_bytes} for each in old]
    show_rows(rows, _COLUMNS, output)
