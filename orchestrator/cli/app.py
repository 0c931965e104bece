"""The root of the command line: its commands, its options, and errors as exit codes."""

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated

import typer

from orchestrator.cli.interrupt import Interrupt
from orchestrator.cli.lazy import Command, lazy_app, leave_out_plugins
from spark_runner.protocol.text import without_prefix

_USAGE, _INTERRUPTED = 2, 130  # as in `exits`, which imports all errors and is slow to load
_CLOSED_PIPE = 128 + signal.SIGPIPE  # as of programs that the signal ends; 0 would be the success of a job

app = lazy_app(
    [
        Command(
            "run",
            "orchestrator.cli.run:run",
            "Enqueue one push job, run a worker for it here, and show its result.",
        ),
        Command(
            "new",
            "orchestrator.cli.new.command:new",
            "Write a SQL script and a definition that run at once.",
        ),
        Command(
            "init",
            "orchestrator.cli.init:init",
            "Write a file of settings: each with its description and default.",
            is_quick=True,
        ),
        Command(
            "doctor",
            "orchestrator.cli.doctor:doctor",
            "Check this host before its first run: Java, memory, disks, ports, clock.",
        ),
        Command(
            "up",
            "orchestrator.cli.serve:up",
            "Run ZooKeeper and a worker in the foreground, for development.",
        ),
        Command(
            "worker",
            "orchestrator.cli.worker:app",
            "Run the jobs of the configured ZooKeeper; list and drain workers.",
        ),
        Command("job", "orchestrator.cli.job:app", "Submit, inspect, stop and retry jobs."),
        Command("sql", "orchestrator.cli.sql:app", "Check and try SQL scripts."),
        Command("queue", "orchestrator.cli.queue:app", "Inspect queues and pools, pause pools, move jobs."),
        Command(
            "config", "orchestrator.cli.config:app", "Show settings, and change the limits of all workers."
        ),
        Command(
            "schedule",
            "orchestrator.cli.schedule:app",
            "Inspect, run, backfill, pause and remove periodic jobs.",
        ),
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
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as ended:  # typer replaces the error of a closed pipe by the other
        if not isinstance(ended, BrokenPipeError) and not isinstance(ended.__context__, BrokenPipeError):
            raise
        return _CLOSED_PIPE
    except KeyboardInterrupt:
        return Interrupt.received_exit_code() or _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost handler: each error becomes a message and an exit code
        return _report(error, sys.argv[1:] if arguments is None else arguments)
    if code == _INTERRUPTED:  # typer's code for KeyboardInterrupt, which SIGTERM raises, too
        return Interrupt.received_exit_code() or _INTERRUPTED
    return int(code or 0)


def _report(error: Exception, words: Sequence[str]) -> int:
    if (code := Interrupt.received_exit_code()) is not None:  # the signal explains later errors
        return code
    show = getattr(error, "show", None)
    if not callable(show):
        return _explain(error)
    # A usage error, which typer reports.
    if isinstance(message := getattr(error, "message", None), str):
        # pydantic checks the values of options, and typer passes its words on
        error.message = without_prefix(message)  # type: ignore[attr-defined]  # as above
    with suppress(OSError):  # stderr is closed: the exit code is the same
        show()
        if hint := _for_the_program(error, words):
            typer.echo(hint, err=True)
    return int(getattr(error, "exit_code", _USAGE))


def _for_the_program(error: Exception, words: Sequence[str]) -> str | None:
    """How an unknown option reaches a program; None where no program takes arguments, as with SQL scripts."""
    option, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    if type(error).__name__ != "NoSuchOption" or context is None:
        return None
    takes_arguments = any(each.name == "arguments" for each in context.command.params)
    if not takes_arguments or any(word.lower().endswith(".sql") for word in words):
        return None
    from orchestrator.logs.visible import visible  # noqa: PLC0415 - for this hint alone

    return visible(
        f"If {option} is for the program, write -- before its arguments: "
        f"{context.command_path} SCRIPT -- {option} ..."
    )


def _explain(error: Exception) -> int:
    from orchestrator.cli.exits import explain_error  # noqa: PLC0415 - imports all errors, and is slow to load
    from orchestrator.cli.options import Verbosity  # noqa: PLC0415 - likewise

    return explain_error(error, verbose=Verbosity.verbose)
