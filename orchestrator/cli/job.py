"""`orchestrator job`: submit, list, show, wait, kill, retry, remove, logs."""

from typing import Annotated, Any

import typer

from orchestrator.cli import job_acts
from orchestrator.cli.connect import connected
from orchestrator.cli.exits import Exit
from orchestrator.cli.job_logs import LogStream, print_logs
from orchestrator.cli.job_page import show_detail
from orchestrator.cli.options import Output, OutputFormat, Quiet, Variables, Verbose, Watch, parse_variables
from orchestrator.cli.output import elapsed, local_time, print_json, repeat, show_rows, stderr_console
from orchestrator.cli.schedule import register
from orchestrator.cli.submission import load_definition
from orchestrator.errors import DefinitionError
from orchestrator.models.fields import parse_seconds
from orchestrator.models.job import JobView
from orchestrator.plan import compile_program
from orchestrator.states import Queue, Status
from queues.names import check_id

app = typer.Typer(no_args_is_help=True, help="Enqueue jobs, look at them, stop them, run them again.")

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
_COLUMNS = {
    "id": "id",
    "name": "name",
    "pool": "pool",
    "queue": "queue",
    "status": "status",
    "attempt": "attempt",
    "created_here": "created",
    "took": "took",
    "error": "error",
}
_DETAILS = ("run_key", "record_path", "definition", "attempts", "progress", "held_by")
_MAX_ERROR_CHARACTERS = 60


def _seconds(text: str | None, option: str) -> float | None:
    if text is None:
        return None
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise DefinitionError(f"{option}: {error}") from error


@app.command()
def submit(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A .sql script, a .py file, a definition (.yaml, .json), or -."),
    ],
    job_id: Annotated[str | None, typer.Option("--id", help="The job's id; default: a new UUID.")] = None,
    pool: Annotated[str | None, typer.Option(help="The pool; default: that of the definition.")] = None,
    delay: Annotated[str | None, typer.Option(help="Start no sooner than after this long: 30s, 10m.")] = None,
    variables: Variables = None,
    wait_: Annotated[bool, typer.Option("--wait", help="Wait for the end; exit 1 unless SUCCESS.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Enqueue a job and print its id; a definition with a schedule is registered instead: name and next time.

    Example: orchestrator job submit examples/flights.sql --id flights-1 --wait
    """
    definition = load_definition(file, parse_variables(variables), pool=pool)
    if definition.schedule.is_set:
        once_only: dict[str, object] = {"--id": job_id, "--delay": delay, "--wait": wait_}
        register(definition, output, once_only=once_only, quiet=quiet)
        return
    # What cannot be run is refused before anybody is asked to take it.
    compile_program(definition)
    if job_id is not None:
        check_id(job_id)
    seconds = _seconds(delay, "--delay") or 0.0
    with connected(start_own=False) as (client, _):
        job = client.submit(definition, job_id=job_id, delay=seconds)
        if wait_:
            job = client.wait(job.id)
    if output is OutputFormat.TABLE:
        typer.echo(job.id)
    else:
        print_json(job.model_dump(mode="json"), output)
    if wait_:
        _exit_as(job, quiet=quiet)


@app.command(name="list")
def list_(
    pool: Annotated[list[str] | None, typer.Option(help="Only these pools.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="Only jobs of these names.")] = None,
    status: Annotated[list[Status] | None, typer.Option(help="Only these statuses.")] = None,
    queue: Annotated[list[Queue] | None, typer.Option(help="Only these queues.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many at most.")] = None,
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """List jobs of all pools, the newest first.

    Each option may be given several times. What cannot be read is left out: `queue show dead` names it.

    Example: orchestrator job list --status ERROR_FAIL --status KILL --limit 20 -o json
    """
    with connected() as (client, _):

        def show() -> None:
            jobs = client.list(
                pools=pool or (), names=name or (), statuses=status or (), queues=queue or (), limit=limit
            )
            show_rows([_row(job, output) for job in jobs], _COLUMNS, output)

        repeat(show, watch)


def _row(job: JobView, output: OutputFormat) -> dict[str, Any]:
    if output is not OutputFormat.TABLE:
        return job.model_dump(mode="json")
    lines = [] if job.error is None else [*job.error.message.splitlines(), job.error.type]
    message = next((line.strip() for line in lines if line.strip()), "")
    shown = message if len(message) <= _MAX_ERROR_CHARACTERS else message[: _MAX_ERROR_CHARACTERS - 1] + "…"
    return {
        **job.model_dump(mode="json"),
        "attempt": job.attempt,
        "created_here": local_time(job.created),
        "took": elapsed(job.started, job.ended),
        "error": shown,
    }


@app.command()
def show(
    job_id: JobId,
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show all that is known of one job: states, attempts, what it wrote, why it failed, its node.

    Example: orchestrator job show flights-1 -w 2
    """
    with connected() as (client, _):

        def show_once() -> None:
            detail = client.detail(job_id)
            if output is OutputFormat.TABLE:
                show_detail(detail)
            else:
                document = {name: getattr(detail, name) for name in _DETAILS}
                print_json({**detail.job.model_dump(mode="json"), **document}, output)

        repeat(show_once, watch)


@app.command()
def wait(
    job_id: JobId,
    timeout: Annotated[str | None, typer.Option(help="Give up (exit 6) after this long: 30s, 10m.")] = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Wait until a job has ended; exit 0 on SUCCESS, 1 otherwise, 6 when it took too long.

    Example: orchestrator job wait flights-1 --timeout 10m
    """
    seconds = _seconds(timeout, "--timeout")
    with connected(start_own=False) as (client, _):
        job = client.wait(job_id, timeout=seconds)
    if output is not OutputFormat.TABLE:
        print_json(job.model_dump(mode="json"), output)
    _exit_as(job, quiet=quiet)


def _exit_as(job: JobView, *, quiet: bool) -> None:
    if not quiet:
        error = f": {job.error.message}" if job.error is not None and job.status is not Status.SUCCESS else ""
        stderr_console().print(f"{job.id}: {job.status}{error}", markup=False)
    if job.status is not Status.SUCCESS:
        raise typer.Exit(Exit.FAILED)


for _act in (job_acts.kill, job_acts.retry, job_acts.remove):
    app.command()(_act)


@app.command()
def logs(
    job_id: JobId,
    attempt: Annotated[int | None, typer.Option(min=1, help="Which attempt; default: the last.")] = None,
    stream: Annotated[list[LogStream] | None, typer.Option(help="Only these; default: all.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Print what a job and Spark said: stdout, stderr and Spark's own log of an attempt.

    Example: orchestrator job logs flights-1 --stream stdout --follow
    """
    # Loaded where it is needed: the other commands start no worker and look for no run of a driver.
    from orchestrator.wiring import build_runners  # noqa: PLC0415

    with connected() as (client, settings):
        print_logs(
            client, build_runners(settings), job_id, attempt, tuple(stream or LogStream), follow=follow
        )
