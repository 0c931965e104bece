"""`orchestrator logs drain`, `status` and `prune`."""

from typing import Annotated, Any

import typer

from orchestrator.cli.acting import confirm
from orchestrator.cli.documents import print_json
from orchestrator.cli.exits import Exit
from orchestrator.cli.logs.places import root_of, say
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch, a_number
from orchestrator.cli.output import show_rows, stdout_console, table
from orchestrator.cli.page import repeat
from orchestrator.config.settings import Settings, load_settings
from orchestrator.logs.errors import TargetError
from orchestrator.logs.shipping.indices import daily_indices
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.targets import open_target
from orchestrator.logs.spool.folder import SpoolStatus, dead_letters_in, spools_in
from orchestrator.model.errors import SettingsError

_COLUMNS = {
    "created": "delivered",
    "duplicates": "there already",
    "dead": "refused for good",
    "retried": "sent again",
    "trouble": "trouble",
}


def drain(
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=86_400, callback=a_number, metavar="SECONDS", help="Stop after this time."),
    ] = 600.0,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Ship the log records that ended processes left in the spools of this host.

    Running processes ship their own records. Exit with 6 if records are left after the timeout.

    Example: orchestrator logs drain --timeout 60
    """
    settings = load_settings()
    target = open_target(settings.logs)
    if target is None:
        raise SettingsError("logs.url is not set: there is no target to ship to, and the spool is the store")
    shipper = Shipper(root_of(settings), target, report=lambda words: say(words, quiet=bool(quiet)))
    shipper.adopt()
    shipper.start()
    drained = shipper.close(timeout)
    show_rows([shipper.status()], _COLUMNS, output)
    if not drained:
        raise typer.Exit(Exit.TIMEOUT)


_HEADINGS = ["spool", "pid", "is", "bytes", "waiting", "delivered", "there already", "refused", "dropped"]


def status(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """Show the spools of this host with their shipping progress, and the daily indices.

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
        console.prose(line, hang=10)
    if spools:
        console.print()
        console.print(table(_HEADINGS, [_row(spool) for spool in spools]))
    for spool in spools:
        if spool.trouble:
            console.prose(f"{spool.producer}: {spool.trouble}", style="yellow")
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
    if not settings.logs.has_search:
        return [], ""
    try:
        found = daily_indices(settings.logs).all()
    except TargetError as error:
        return [], str(error)
    return [{"name": each.name, "documents": each.documents, "bytes": each.size_bytes} for each in found], ""


_INDEX_COLUMNS = {"name": "index", "documents": "documents", "size_bytes": "bytes"}


def prune(
    days: Annotated[
        int | None, typer.Option(min=1, help="Days to keep; default: logs.retention_days.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Remove daily indices older than the retention; the leader also does so every hour.

    Example: orchestrator logs prune --days 7 --yes
    """
    settings = load_settings().logs
    if not settings.has_search:
        raise SettingsError(
            "logs.url names no Elasticsearch: there are no indices to prune; a spool limits its own size"
        )
    indices = daily_indices(settings)
    old = indices.older_than(days or settings.retention_days)
    if old:
        confirm(f"Remove {', '.join(index.name for index in old)}?", yes=yes)
    for index in old:
        indices.remove(index)
    rows = [{"name": each.name, "documents": each.documents, "size_bytes": each.size_bytes} for each in old]
    show_rows(rows, _INDEX_COLUMNS, output, none="" if quiet else "no index is older than the retention")
