"""`orchestrator logs drain`."""

from typing import Annotated

import typer

from orchestrator.cli.exit_codes import Exit
from orchestrator.cli.logs.places import root_of, say
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, a_number
from orchestrator.cli.output import show_rows
from orchestrator.errors import SettingsError
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.targets import open_target
from orchestrator.settings import load_settings

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
        typer.Option(min=0.1, max=86_400, callback=a_number, metavar="SECONDS", help="So long at most."),
    ] = 600.0,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Ship now what processes that have ended left in the spools of this host.

    Those that run ship what is theirs. Ends with 6 when something is left after the timeout.

    Example: orchestrator logs drain --timeout 60
    """
    settings = load_settings()
    target = open_target(settings.logs)
    if target is None:
        raise SettingsError("logs.url is not set: there is nowhere to ship to, and the spool is the store")
    shipper = Shipper(root_of(settings), target, report=lambda words: say(words, quiet=bool(quiet)))
    shipper.adopt()
    shipper.start()
    drained = shipper.close(timeout)
    show_rows([shipper.status()], _COLUMNS, output)
    if not drained:
        raise typer.Exit(Exit.TIMEOUT)
