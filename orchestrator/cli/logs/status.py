"""`orchestrator logs status`."""

from typing import Any

from orchestrator.cli.documents import print_json
from orchestrator.cli.logs.places import root_of
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import repeat, stdout_console, table
from orchestrator.logs.errors import TargetError
from orchestrator.logs.indices import daily_indices
from orchestrator.logs.spool.inventory import SpoolStatus, dead_letters_in, spools_in
from orchestrator.settings import Settings, load_settings

_HEADINGS = ["spool", "pid", "is", "bytes", "waiting", "delivered", "there already", "refused", "dropped"]


def status(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """Show the spools of this host, how far each is shipped, and the daily indices.

    Example: orchestrator logs status -w 2
    """
    settings = load_settings()
    repeat(lambda: _show(settings, output), watch)


def _show(settings: Settings, output: OutputFormat) -> None:
    root = root_of(settings)
    spools = spools_in(root)
    indices, trouble = _indices(settings)
    dead = dead_letters_in(root)
    if output is not OutputFormat.TABLE:
        document = {
            "folder": str(root),
            "limit_bytes": settings.logs.max_bytes,
            "url": settings.logs.url,
            "trouble": trouble,
            "spools": [spool.document() for spool in spools],
            "dead_letters": dead,
            "indices": indices,
        }
        print_json(document, output)
        return
    console = stdout_console()
    used = sum(spool.bytes for spool in spools)
    facts = [
        f"spools    {root}, {used:,} of {settings.logs.max_bytes:,} bytes",
        f"target    {settings.logs.url or 'none: the spool is the store'}",
        *([f"trouble   {trouble}"] if trouble else []),
        *[f"refused   {path}: {count:,} records, with the reasons" for path, count in dead.items()],
    ]
    for line in facts:
        console.print(line, markup=False, soft_wrap=True)
    if spools:
        console.print()
        console.print(table(_HEADINGS, [_row(spool) for spool in spools]))
    for spool in spools:
        if spool.trouble:
            console.print(f"{spool.producer}: {spool.trouble}", markup=False, soft_wrap=True, style="yellow")
    if indices:
        console.print()
        rows = [[row["name"], row["documents"], row["bytes"]] for row in indices]
        console.print(table(["index", "documents", "bytes"], rows))


def _row(spool: SpoolStatus) -> list[object]:
    shipped = spool.shipper
    numbers = [shipped.get(name, 0) for name in ("created", "duplicates", "dead", "dropped")]
    state = "live" if spool.is_live else "left over"
    return [spool.producer, str(spool.pid or ""), state, spool.bytes, spool.waiting, *numbers]


def _indices(settings: Settings) -> tuple[list[dict[str, Any]], str]:
    if not settings.logs.urls:
        return [], ""
    try:
        found = daily_indices(settings.logs).all()
    except TargetError as error:
        return [], str(error)
    return [{"name": each.name, "documents": each.documents, "bytes": each.size_bytes} for each in found], ""
