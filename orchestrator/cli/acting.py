"""Doing something to several jobs, each by itself."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from orchestrator.cli.exits import Exit, explain_error
from orchestrator.cli.options import OutputFormat, Verbosity
from orchestrator.cli.output import show_rows, stderr_console
from orchestrator.logs.visible import visible
from orchestrator.model.errors import NotConfirmed
from orchestrator.model.job import JobView


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation at the terminal; raises NotConfirmed without a terminal, and exits on a no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotConfirmed(f"{question} There is no terminal to confirm it: give --yes")
    if not typer.confirm(visible(question), err=True):
        raise typer.Exit(Exit.FAILED)


def act_on_each(
    ids: Sequence[str],
    act: Callable[[str], JobView | None],
    words: Callable[[str, JobView | None], str],
    output: OutputFormat,
    *,
    quiet: bool,
) -> None:
    """Act on each job and report the result: words on stderr, documents on stdout unless it is a table.

    One that fails keeps no other from it. The exit code is that of the failures, 1 when they differ.
    """
    rows, codes = list[dict[str, Any]](), set[Exit]()
    for job_id in dict.fromkeys(ids):
        try:
            view = act(job_id)
        except Exception as error:  # noqa: BLE001 - reported, and counted in the exit code
            code = explain_error(error, verbose=Verbosity.verbose)
            rows.append(outcome(job_id, None, error))
            codes.add(code)
            if code is Exit.UNREACHABLE:  # the others would each wait as long
                break
        else:
            rows.append(outcome(job_id, view, None))
            if not quiet:
                stderr_console().print(words(job_id, view), markup=False)
    if output is not OutputFormat.TABLE:
        show_rows(rows, {}, output)
    end_as(codes)


def outcome(job_id: str, view: JobView | None, error: Exception | None) -> dict[str, Any]:
    """What became of one job, as a document."""
    document = {} if view is None else view.model_dump(mode="json")
    place = {name: document.get(name) for name in ("pool", "queue", "status", "attempt")}
    return {"id": job_id, **place, "error": None if error is None else str(error)}


def end_as(codes: set[Exit]) -> None:
    """End the command with the code of its failures, 1 when they differ; go on when there were none."""
    if codes:
        raise typer.Exit(codes.pop() if len(codes) == 1 else Exit.FAILED)
