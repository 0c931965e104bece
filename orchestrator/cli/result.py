"""The result of a job: a table of its INSERTs, the first rows of each, and commands for details."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.admin.views import JobDetail
from orchestrator.cli.documents import print_json
from orchestrator.cli.job.attempts import set_aside, written
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import (
    elapsed,
    stderr_console,
    stdout_console,
    table,
)
from orchestrator.model.set_aside import set_aside_in
from orchestrator.model.states import Status
from spark_runner.protocol.attempt import run_name
from spark_runner.runners.base import SubmissionPlace
from spark_runner.runners.registry import Runners

_FRAME = '  File "'


def local_tables(runners: Runners, detail: JobDetail) -> list[dict[str, Any]]:
    """The tables of the last attempt with their first rows, which stay on the disk of its node."""
    attempt = detail.attempts[-1] if detail.attempts else {}
    place, incarnation = SubmissionPlace.of(attempt.get("place")), attempt.get("incarnation")
    runner = runners.at(place.of_files) if place else None
    if runner is None:
        return []
    run = run_name(detail.run_key, attempt["attempt"])
    for submission in runner.find(run):
        if submission.incarnation == incarnation:
            return list((submission.outcome or {}).get("tables", []))
    return []


def show_result(detail: JobDetail, local: list[dict[str, Any]], output: OutputFormat) -> None:
    """Write the result to stdout, and the error to stderr."""
    job = detail.job
    recorded = detail.attempts[-1].get("tables") if detail.attempts else None
    tables: list[dict[str, Any]] = recorded if isinstance(recorded, list) else []
    if output is not OutputFormat.TABLE:
        print_json({"job": job.model_dump(mode="json"), "tables": tables}, output)
    elif job.status is Status.SUCCESS:
        _show_tables(detail.attempts[-1] if tables else {}, local)
    if job.error is not None and job.status is not Status.SUCCESS:
        words = stderr_console()
        words.prose(f"error: {job.error.message}", style="red")
        if job.error.traceback.count(_FRAME) > 1:  # a single one says no more than the message
            words.prose(f"\n{job.error.traceback.rstrip()}")


def show_end(detail: JobDetail, root: str | None) -> None:
    """Write the end of the job to stderr, and commands for details unless `root` is None."""
    words, job = stderr_console(), detail.job
    took = f" in {elapsed(job.created, job.ended)}" if job.ended else ""
    words.print(f"\n{job.id}: {job.status}{took}", markup=False)
    if root is None:
        return
    has_rows = bool(detail.attempts) and bool(set_aside_in(detail.attempts[-1]))
    for purpose, command in (
        *([("rows that did not fit", f"job quarantine {job.id}")] if has_rows else []),
        ("job details", f"job show {job.id}"),
        ("job and Spark logs", f"job logs {job.id}"),
        ("queues in ZooKeeper", f"zkcli ls {root}/queues"),
    ):
        words.print(f"  {purpose + ':':<26}{program_name()} {command}", markup=False)


def program_name() -> str:
    """The name by which this program was called, so that its hints can be copied as they are."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{Path(sys.executable).name} -m orchestrator"
    return called.name if shutil.which(called.name) else os.path.relpath(called)


def _show_tables(attempt: Mapping[str, Any], local: list[dict[str, Any]]) -> None:
    console = stdout_console()
    if (wrote := written(attempt)) is None:
        return
    console.print(wrote)
    if (bad := set_aside(attempt)) is not None:
        console.print()
        console.print(bad)
    for item in local:
        if item["preview"]:
            console.print(f"\nfirst rows of {item['target']}", markup=False, style="bold")
            console.print(table(item["columns"], item["preview"]))
