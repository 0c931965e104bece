"""`orchestrator job quarantine`: the rows of a run that did not fit."""

import itertools
from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.exits import Exit
from orchestrator.cli.job.quarantine_files import rows_of
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import show_rows, stderr_console
from orchestrator.model.errors import DefinitionError
from orchestrator.model.set_aside import set_aside_in

# The first column is the last one that a narrow terminal cuts.
_COLUMNS = {"record": "record", "source": "table", "reason": "reason", "rule": "rule", "file": "file"}
_DROP = ("file", "rule", "reason", "table")


def quarantine(
    job_id: JobId,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="Rows to show.")] = 20,
    replay: Annotated[
        bool, typer.Option("--replay", help="Run the script for these rows, as a job of its own.")
    ] = False,
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --replay: the table or INSERT, if several have such rows."),
    ] = None,
    script: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --replay: the corrected SQL script.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="With --replay: also rows that have been replayed.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --replay: wait for the end; exit 1 unless SUCCESS.")
    ] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show rows that did not fit in the last attempt of a job: their record, the rule and the reason.

    Exit 1 if this host cannot show some of them. With --replay they go again, and the id of their job is
    printed.

    Example: orchestrator job quarantine 3f1c -n 100 -o jsonl

    Example: orchestrator job quarantine 3f1c --replay --script mended.sql --wait
    """
    if (table or script or again or wait) and not replay:
        raise DefinitionError("--table, --script, --again and --wait need --replay")
    with connected(start_own=not replay) as (client, _):
        detail = client.detail(job_id)
        if replay:
            # Loads the compiler of scripts.
            from orchestrator.cli.job.replay_rows import replay_rows  # noqa: PLC0415 - few calls need it

            options: dict[str, Any] = {"table": table, "script": script, "again": again, "wait": wait}
            replay_rows(client, detail, output=output, quiet=quiet, **options)
            return
    last = detail.attempts[-1] if detail.attempts else {}
    places = set_aside_in(last)
    failures = list[str]()
    rows = list(itertools.islice(rows_of(places, str(last.get("run_key")), failures.append), limit))
    show_rows(rows, _COLUMNS, output, _DROP)
    for message in failures:
        stderr_console().print(message, markup=False)
    total = sum(each.quarantined for each in places)
    if not quiet and total > len(rows):
        stderr_console().print(f"{len(rows):,} of {total:,} rows are shown", markup=False)
    if not (quiet or places):
        stderr_console().print(f"job {job_id} has no rows in quarantine", markup=False)
    if failures:
        raise typer.Exit(Exit.FAILED)
