"""Apply one operation to several jobs, independently of each other."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from orchestrator.cli.exits import Exit, explain_error
from orchestrator.cli.options import OutputFormat, Verbosity
from orchestrator.cli.output import show_rows, stderr_console
from orchestrator.logs.visible import visible
from orchestrator.model.errors import NotConfirmed
from orchestrator.model.job_view import JobView


def confirm(question: str, *, yes: bool) -> None:
    """Ask on the terminal; exit with FAILED on a no, with INTERRUPTED on Ctrl-C.

    Raises NotConfirmed without a terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotConfirmed(f"{question} There is no terminal to ask on; confirm with --yes")
    try:
        agreed = typer.confirm(visible(question), err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        raise typer.Exit(Exit.INTERRUPTED) from None
    if not agreed:
        raise typer.Exit(Exit.FAILED)


def act_on_each(
    ids: Sequence[str],
    act: Callable[[str], JobView | None],
    words: Callable[[str, JobView | None], str],
    output: OutputFormat,
    *,
    quiet: bool,
) -> None:
    """Act on each job and report the outcome: a message on stderr, and a document on stdout for JSON.

    A failure does not stop the other jobs, except when ZooKeeper is unreachable. The exit code is that of the
    failures, 1 when they differ.
    """
    rows, codes = list[dict[str, Any]](), set[Exit]()
    for job_id in dict.fromkeys(ids):
        try:
            view = act(job_id)
        except Exception as error:  # noqa: BLE001 - reported, and counted in the exit code
            code = explain_error(error, verbose=Verbosity.verbose)
            rows.append(outcome(job_id, None, error))
            codes.add(code)
            if code is Exit.UNREACHABLE:  # each of the others would wait as long
                break
        else:
            rows.append(outcome(job_id, view, None))
            if not quiet:
                stderr_console().print(words(job_id, view), markup=False)
    if output is not OutputFormat.TABLE:
        show_rows(rows, {}, output)
    exit_with(codes)


def outcome(job_id: str, view: JobView | None, error: Exception | None) -> dict[str, Any]:
    """The outcome for one job, as a document."""
    document = {} if view is None else view.model_dump(mode="json")
    place = {name: document.get(name) for name in ("pool", "queue", "status", "attempt")}
    return {"id": job_id, **place, "error": None if error is None else str(error)}


def exit_with(codes: set[Exit]) -> None:
    """Exit with the code of the failures, 1 when they differ; return when there were none."""
    if codes:
        raise typer.Exit(codes.pop() if len(codes) == 1 else Exit.FAILED)
