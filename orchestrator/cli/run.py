"""`orchestrator run`: one push job on this machine, from its script to its result."""

import contextlib
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.connect import command_session
from orchestrator.cli.connection.lookup import cluster_connections
from orchestrator.cli.exits import Exit
from orchestrator.cli.follow import follow
from orchestrator.cli.inputs import missing_here, refuse_missing
from orchestrator.cli.interrupt import Interrupt
from orchestrator.cli.live import Display, display
from orchestrator.cli.options import (
    Arguments,
    Output,
    OutputFormat,
    Quiet,
    Variables,
    Verbose,
    parse_variables,
)
from orchestrator.cli.own_server import zookeeper_for_run
from orchestrator.cli.program_output import ProgramOutput
from orchestrator.cli.result import local_tables, show_end, show_result
from orchestrator.cli.sql.script import script_name
from orchestrator.cli.sql.script_errors import refuse_script_errors
from orchestrator.cli.submission import load_definition
from orchestrator.client.client import Client
from orchestrator.compose import build_client, build_runners, build_worker, open_logs
from orchestrator.config.settings import Settings, load_settings
from orchestrator.logs.console import mask_uncaught
from orchestrator.model.definition import Definition
from orchestrator.model.errors import AlreadyEnded
from orchestrator.model.plan import compile_program
from orchestrator.model.states import Status
from queues import ItemNotFound, check_id, find_java

_LOOK_SECONDS = 0.25  # the longest time until Ctrl-C stops the job


def run(
    script: Annotated[
        Path,
        typer.Argument(
            metavar="SCRIPT", help="A .sql script, a .py file, or a job definition (.yaml, .json)."
        ),
    ],
    arguments: Arguments = None,
    variables: Variables = None,
    job_id: Annotated[
        str | None, typer.Option("--id", help="The id of the job; default: its name and a random suffix.")
    ] = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Enqueue one push job, run a worker for it here until the job has ended, and show its result.

    Use the ZooKeeper of the settings (ZOOKEEPER_HOSTS), else the running server of `orchestrator up` or
    `orchestrator zookeeper`, else start a server that ends with this command. If other workers serve that
    ZooKeeper, one of them may claim the job first: it then runs on that host. The worker of this command
    claims no other job.

    Example: orchestrator run examples/flights.sql --set bad_visibility=1

    Example: orchestrator run job.py -- --date 2026-01-01
    """
    interrupt = Interrupt.install()
    mask_uncaught()
    # A script without a definition runs once: a user at a terminal does not wait for a retry.
    definition = load_definition(str(script), parse_variables(variables), attempts=1, arguments=arguments)
    with cluster_connections() as find:
        plan = compile_program(definition, find)
        if plan is not None:  # a wrong column is found before Spark starts
            refuse_script_errors(definition, script_name(str(script), definition), find)
    job_id = check_id(f"{definition.name[:100]}-{uuid.uuid4().hex[:8]}" if job_id is None else job_id)
    settings = load_settings()
    refuse_missing(missing_here(definition, plan, settings))
    find_java()
    with ExitStack() as stack:
        screen = stack.enter_context(display(quiet=bool(quiet)))
        screen.say(f"job {job_id}")
        settings, kept, check_zookeeper = stack.enter_context(zookeeper_for_run(settings))
        if not kept:
            screen.say("another run is in progress: this job cannot be inspected after its end")
        logs = stack.enter_context(open_logs(settings))
        with interrupt.breaking():
            session = stack.enter_context(command_session(settings))
        client = build_client(session, settings)
        worker = build_worker(
            session, settings, owned=True, guarded=False, accepts=lambda item: item == job_id, logs=logs
        )
        if interrupt.is_set():
            raise typer.Exit(interrupt.exit_code)
        client.enqueue(definition, plan, job_id=job_id)
        printed = _output(build_client(session, _local_logs(settings)), definition, job_id, screen, output)
        if printed is not None:
            stack.callback(printed.stop)
        worker.start()
        stack.callback(worker.drain)
        _follow(client, job_id, screen, interrupt, check_zookeeper)
        if printed is not None:
            printed.finish(interrupt.is_set)
        detail = client.detail(job_id)
        local = local_tables(build_runners(settings, warm=False), detail)
    show_result(detail, local, output)
    if not quiet:
        show_end(detail, settings.root if kept else None)
    if interrupt.is_set():  # also if the job ended first: the exit code confirms the Ctrl-C
        raise typer.Exit(interrupt.exit_code)
    if detail.job.status is not Status.SUCCESS:
        raise typer.Exit(Exit.FAILED)


def _output(
    client: Client, definition: Definition, job_id: str, screen: Display, output: OutputFormat
) -> ProgramOutput | None:
    """Shows what the program prints; with JSON on stdout, its stderr alone.

    The driver of a script or a jar writes its error to stderr, which the result shows.
    """
    streams = ["stdout"] if output is OutputFormat.TABLE else []
    streams += ["stderr"] if definition.python else []
    if not streams:
        return None
    return ProgramOutput(client.logs(job_id, streams=streams, follow=True), screen, job_id)


def _local_logs(settings: Settings) -> Settings:
    """The settings without an index of logs, which records reach later than the files of this host."""
    return settings.model_copy(update={"logs": settings.logs.model_copy(update={"url": ""})})


def _follow(
    client: Client, job_id: str, screen: Display, interrupt: Interrupt, check: Callable[[], None]
) -> None:
    asked = False
    looks = follow(client, job_id, screen, look_seconds=_LOOK_SECONDS, has_own_worker=True, check=check)
    for _ in looks:
        if interrupt.is_set() and not asked:
            screen.say("stopping the job")
            with contextlib.suppress(AlreadyEnded, ItemNotFound):  # it has ended in the meantime
                client.kill(job_id)
            asked = True
