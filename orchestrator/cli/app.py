"""The command line as a whole."""

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from orchestrator.cli.interrupt import Interrupt
from orchestrator.cli.lazy import Command, lazy_app, leave_out_plugins

_USAGE, _INTERRUPTED = 2, 130  # as in `exits`, which imports all errors and loads slowly

app = lazy_app(
    [
        Command(
            "run", "orchestrator.cli.run:run", "Run one push job here, watch it, and show what it wrote."
        ),
        Command("up", "orchestrator.cli.serve:up", "Run ZooKeeper and a worker, for development."),
        Command("worker", "orchestrator.cli.serve:worker", "Run a worker until it is stopped."),
        Command("job", "orchestrator.cli.job:app", "Enqueue jobs, show them, stop them."),
        Command("queue", "orchestrator.cli.queue:app", "Show the queues."),
        Command("config", "orchestrator.cli.config:app", "Show settings, and change those of all workers."),
        Command("schedule", "orchestrator.cli.schedule:app", "Show periodic jobs, pause and remove them."),
        Command("cluster", "orchestrator.cli.cluster:app", "Show the cluster; find and fix problems."),
        Command("logs", "orchestrator.cli.logs:app", "Show logs, and their delivery to Elasticsearch."),
        Command("zookeeper", "orchestrator.cli.serve:zookeeper", "Run a ZooKeeper server in the foreground."),
        Command("zkcli", "orchestrator.cli.serve:zkcli", "The real zkCli, connected.", passes_on=True),
    ],
    add_completion=True,
    pretty_exceptions_enable=False,
    help=(
        "Runs PySpark push jobs through queues on ZooKeeper.\n\n"
        "Exit codes: 0 ok, 1 the job or operation failed, 2 usage, 3 ZooKeeper unreachable, 4 not found, "
        "5 conflict, 6 timeout, 130 interrupted."
    ),
)


def _version(value: bool) -> None:  # typer's flag
    if value:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and for this flag alone

        typer.echo(version("spark-job-orchestrator"))
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself; its help text is that of the app."""
    from orchestrator.logs.console import log_to_stderr  # noqa: PLC0415 - not for help and completion

    log_to_stderr("WARNING")


def run_app(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code. No error ends as a traceback unless -v asks for it."""
    leave_out_plugins()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what it cannot write, as in JSON: \ud800
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(args=arguments, standalone_mode=False)
    except BrokenPipeError:  # who read our output has seen enough
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for what is flushed at the end
        return 0
    except KeyboardInterrupt:
        return Interrupt.asked() or _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place: each error becomes words and an exit code
        if (asked := Interrupt.asked()) is not None:  # what failed after that is no news
            return asked
        show = getattr(error, "show", None)
        if callable(show):  # the command line itself was wrong: typer says how
            show()
            return int(getattr(error, "exit_code", _USAGE))
        return _explain(error)
    return int(code or 0)


def _explain(error: Exception) -> int:
    from orchestrator.cli.exits import explain_error  # noqa: PLC0415 - imports all errors
    from orchestrator.cli.options import Verbosity  # noqa: PLC0415 - likewise

    return explain_error(error, verbose=Verbosity.verbose)
