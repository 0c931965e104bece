"""`orchestrator job submit`, with a minimum of imports: scripts call it many times."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.connect import connected, connected_jobs
from orchestrator.cli.connection.lookup import cluster_connections
from orchestrator.cli.documents import print_json
from orchestrator.cli.folding import say
from orchestrator.cli.inputs import missing_here, refuse_missing
from orchestrator.cli.options import (
    Arguments,
    Output,
    OutputFormat,
    Quiet,
    Variables,
    Verbose,
    parse_checkpoint,
    parse_seconds_of,
    parse_variables,
)
from orchestrator.cli.submission import load_definition
from orchestrator.client.jobs import Jobs
from orchestrator.config.settings import load_settings
from orchestrator.model.definition import Definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import Plan, compile_program, literal_secrets, warning
from queues import QueueError, check_id

if TYPE_CHECKING:
    from orchestrator.client.client import Client


def submit(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A .sql script, a .py file, a definition (.yaml, .json), or -."),
    ],
    arguments: Arguments = None,
    job_id: Annotated[
        str | None, typer.Option("--id", help="The id of the job; default: a new UUID.")
    ] = None,
    pool: Annotated[str | None, typer.Option(help="The pool; default: the pool of the definition.")] = None,
    delay: Annotated[
        str | None, typer.Option(help="Start after this time at the earliest: 30s, 10m.")
    ] = None,
    variables: Variables = None,
    wait_: Annotated[bool, typer.Option("--wait", help="Wait for the end; exit 1 unless SUCCESS.")] = False,
    is_dry: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, enqueue nothing; takes some seconds for SQL.")
    ] = False,
    no_spark: Annotated[
        bool, typer.Option("--no-spark", help="With --dry-run: leave out Spark's analysis of a SQL script.")
    ] = False,
    output: Output = OutputFormat.TABLE,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the checkpoint of a stream with a changed script.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Put the checkpoint of a stream away, and read all data anew.")
    ] = False,
    positions: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="[TABLE=]POSITION",
            help="As --fresh, but begin there: for files a time such as 2026-11-01T00:00:00Z.",
        ),
    ] = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Enqueue a job and print its id, or register a schedule and print its name and next fire time.

    The syntax, tables, options and declared types of a SQL script are checked first. Its queries are checked
    only when the job runs: check their columns with `orchestrator sql lint` before, or use --dry-run.

    Example: orchestrator job submit examples/flights.sql --id flights-1 --wait
    """
    checkpoint = parse_checkpoint(resume=resume, fresh=fresh, positions=positions)
    definition = load_definition(
        file, parse_variables(variables), pool=pool, checkpoint=checkpoint, arguments=arguments
    )
    if no_spark and not is_dry:
        raise DefinitionError("--no-spark is for --dry-run: a submission does not start Spark")
    once_only: dict[str, object] = {"--id": job_id, "--delay": delay, "--wait": wait_}
    once_only |= {"--resume": resume, "--fresh": fresh, "--from": positions}
    if definition.schedule.is_set:
        refuse_once_only(definition, once_only)
    if is_dry:
        _dry_run(definition, file, output, job_id=job_id, delay=delay, with_spark=not no_spark, quiet=quiet)
        return
    if definition.schedule.is_set:
        from orchestrator.cli.schedule.register import register  # noqa: PLC0415 - few jobs are periodic
        from orchestrator.logs.console import configure_loguru  # noqa: PLC0415 - the modules just loaded may log

        configure_loguru()
        register(definition, output, quiet=quiet)
        return
    # An invalid job is refused before it is enqueued.
    with cluster_connections() as find:
        plan = compile_program(definition, find)
    if not quiet and (names := literal_secrets(definition, plan)):
        say(f"warning: {warning(names)}")
    if job_id is not None:
        check_id(job_id)
    seconds = parse_seconds_of("--delay", delay) or 0.0
    _enqueue(definition, plan, job_id, output, delay=seconds, is_awaited=wait_, quiet=quiet)


def _enqueue(
    definition: Definition,
    plan: Plan | None,
    job_id: str | None,
    output: OutputFormat,
    *,
    delay: float,
    is_awaited: bool,
    quiet: bool,
) -> None:
    with connected(start_own=False) if is_awaited else connected_jobs() as found:
        jobs = found if isinstance(found, Jobs) else found[0]
        _check_inputs(jobs, definition, plan, delay=delay, quiet=quiet)
        job = jobs.enqueue(definition, plan, job_id=job_id, delay=delay)
        _say_rule(jobs, definition, plan, job.id, quiet=quiet)
        if output is OutputFormat.TABLE:
            typer.echo(job.id)  # before the wait: other commands can name the job meanwhile
        elif is_awaited and not quiet:
            typer.echo(f"job {job.id}", err=True)
        if not isinstance(jobs, Jobs):
            from orchestrator.cli.follow import wait_for_end  # noqa: PLC0415 - imports rich, which is slow to load

            job = wait_for_end(jobs, job.id, quiet=quiet)
    if output is not OutputFormat.TABLE:
        print_json(job.model_dump(mode="json"), output)
    if is_awaited:
        from orchestrator.cli.output import exit_as  # noqa: PLC0415 - likewise

        exit_as(job, quiet=quiet)


def _check_inputs(
    jobs: "Jobs | Client", definition: Definition, plan: Plan | None, *, delay: float, quiet: bool
) -> None:
    """Refuse a job whose input files are missing where it runs; warn where that is not certain."""
    found = missing_here(definition, plan)
    if not found:
        return
    found = missing_here(definition, plan, load_settings())
    if not delay and jobs.run_here(definition.pool):
        refuse_missing(found)
    if not quiet:
        for error in found:
            say(f"warning: {error.shown()}")


def _say_rule(
    jobs: "Jobs | Client", definition: Definition, plan: Plan | None, job_id: str, *, quiet: bool
) -> None:
    """Write the rule that applies beside other jobs of the name; the job is enqueued in any case."""
    with suppress(QueueError):
        if not quiet and (rule := jobs.rule_applied(definition, plan, job_id)):
            say(rule)


def refuse_once_only(definition: Definition, options: dict[str, object]) -> None:
    """Raise DefinitionError for an option for a single run, if the definition has a schedule."""
    for option, value in options.items():
        if value:
            raise DefinitionError(
                f"{option} is for a single run, and {definition.name!r} has a schedule: it is registered "
                "under its name, and the ids of its runs contain their fire times"
            )


def _dry_run(
    definition: Definition,
    file: str,
    output: OutputFormat,
    *,
    job_id: str | None,
    delay: str | None,
    with_spark: bool,
    quiet: bool,
) -> None:
    from orchestrator.cli.job.dry_run import dry_run  # noqa: PLC0415 - imports much, and few submissions are dry
    from orchestrator.logs.console import configure_loguru  # noqa: PLC0415 - the modules just loaded may log

    configure_loguru()
    seconds = parse_seconds_of("--delay", delay) or 0.0
    dry_run(definition, file, output, job_id=job_id, delay=seconds, with_spark=with_spark, quiet=quiet)
