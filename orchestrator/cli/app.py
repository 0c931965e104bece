"""The command line as a whole."""

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from orchestrator.cli import job, queue, schedule, serve
from orchestrator.cli.exits import Exit, explain_error
from orchestrator.cli.interrupt import Interrupt
from orchestrator.cli.options import Verbosity
from orchestrator.cli.run import run
from orchestrator.logs.console import log_to_stderr

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=(
        "Runs PySpark push jobs through queues on ZooKeeper.\n\n"
        "Exit codes: 0 ok, 1 the job or operation failed, 2 usage, 3 ZooKeeper unreachable, 4 not found, "
        "5 conflict, 6 timeout, 130 interrupted."
    ),
)
app.command()(run)
app.command()(serve.up)
app.command()(serve.worker)
app.add_typer(job.app, name="job")
app.add_typer(queue.app, name="queue")
app.add_typer(schedule.app, name="schedule")
app.command()(serve.zookeeper)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(serve.zkcli)


def _version(value: bool) -> None:  # typer's flag
    if value:
        typer.echo(version("spark-job-orchestrator"))
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself; its help text is that of the app."""


def run_app(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code. No error ends as a traceback unless -v asks for it."""
    log_to_stderr("WARNING")
    try:
        code = app(args=arguments, standalone_mode=False)
    except BrokenPipeError:  # who read our output has seen enough
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for what is flushed at the end
        return Exit.OK
    except KeyboardInterrupt:
        return Interrupt.asked() or Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place: each error becomes words and an exit code
        if (asked := Interrupt.asked()) is not None:  # what failed after that is no news
            return asked
        show = getattr(error, "show", None)
        if callable(show):  # the command line itself was wrong: typer says how
            show()
            return int(getattr(error, "exit_code", Exit.USAGE))
        return explain_error(error, verbose=Verbosity.verbose)
    return int(code or 0)
