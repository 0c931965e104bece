"""The root of the command line: its commands, its options, and errors as exit codes."""

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from orchestrator.cli.interrupt import Interrupt
from orchestrator.cli.lazy import Command, lazy_app, leave_out_plugins
from spark_runner.protocol.text import without_prefix

_USAGE, _INTERRUPTED = 2, 130  # as in `exits`, which imports all errors and is slow to load

app = lazy_app(
    [
        Command(
            "run",
            "orchestrator.cli.run:run",
            "Run one push job on this machine and show its result.",
        ),
        Command(
            "new",
            "orchestrator.cli.new.command:new",
            "Write a SQL script and a definition that run at once.",
        ),
        Command(
            "up",
            "orchestrator.cli.serve:up",
            "Run ZooKeeper and a worker in the foreground, for development.",
        ),
        Command(
            "worker",
            "orchestrator.cli.serve:worker",
            "Run the jobs of the configured ZooKeeper until TERM or Ctrl-C.",
        ),
        Command("job", "orchestrator.cli.job:app", "Submit, inspect, stop and retry jobs."),
        Command("sql", "orchestrator.cli.sql:app", "Check and try SQL scripts."),
        Command("queue", "orchestrator.cli.queue:app", "Inspect queues and pools, pause pools, move jobs."),
        Command(
            "config", "orchestrator.cli.config:app", "Show settings, and change the limits of all workers."
        ),
        Command("schedule", "orchestrator.cli.schedule:app", "Inspect, pause and remove periodic jobs."),
        Command(
            "tuning",
            "orchestrator.cli.tuning:app",
            "Inspect and control how the resources of runs are chosen from their history.",
        ),
        Command(
            "connection",
            "orchestrator.cli.connection:app",
            "Manage the connections that tables of scripts name.",
        ),
        Command("cluster", "orchestrator.cli.cluster:app", "Inspect the cluster; find and fix problems."),
        Command(
            "logs",
            "orchestrator.cli.logs:app",
            "Read logs, and manage how they are shipped to Elasticsearch.",
        ),
        Command("zookeeper", "orchestrator.cli.serve:zookeeper", "Run a ZooKeeper server in the foreground."),
        Command(
            "zkcli",
            "orchestrator.cli.serve:zkcli",
            "Run ZooKeeper's own zkCli, connected and logged in.",
            passes_on=True,
        ),
    ],
    add_completion=True,
    pretty_exceptions_enable=False,
    help=(
        "Run PySpark push jobs through queues on ZooKeeper.\n\n"
        "Exit codes: 0 ok, 1 the job or operation failed, 2 usage, 3 ZooKeeper unreachable, 4 not found, "
        "5 conflict, 6 timeout, 130 interrupted."
    ),
)


def _version(value: bool) -> None:  # typer's flag
    if value:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and needed for this flag alone

        typer.echo(version("spark-job-orchestrator"))
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Handle the options of the program itself; the help text is that of the app."""
    from orchestrator.logs.console import log_to_stderr  # noqa: PLC0415 - not for help and completion

    log_to_stderr("WARNING")


def run_app(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; an error shows a traceback only with -v."""
    leave_out_plugins()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # escape what the encoding cannot write, such as \ud800
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(args=arguments, standalone_mode=False)
    except BrokenPipeError:  # the reader of the output has closed the pipe
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the flush at exit
        return 0
    except KeyboardInterrupt:
        return Interrupt.received_exit_code() or _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost handler: each error becomes a message and an exit code
        if (code := Interrupt.received_exit_code()) is not None:  # the signal explains later errors
            return code
        show = getattr(error, "show", None)
        if callable(show):  # a usage error, which typer reports
            if isinstance(message := getattr(error, "message", None), str):
                # pydantic checks the values of options, and typer passes its words on
                error.message = without_prefix(message)  # type: ignore[attr-defined]  # as above
            show()
            return int(getattr(error, "exit_code", _USAGE))
        return _explain(error)
    return int(code or 0)


def _explain(error: Exception) -> int:
    from orchestrator.cli.exits import explain_error  # noqa: PLC0415 - imports all errors, and is slow to load
    from orchestrator.cli.options import Verbosity  # noqa: PLC0415 - likewise

    return explain_error(error, verbose=Verbosity.verbose)
