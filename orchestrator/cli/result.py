"""The result of a job: a table of its INSERTs, the first rows of each, and commands for details."""

import contextlib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from orchestrator.model.job import JobView
from orchestrator.model.states import Status
from spark_runner.protocol.attempt import run_name
from spark_runner.runners.base import Runner, SubmissionPlace
from spark_runner.runners.registry import Runners

_MAX_STDOUT_BYTES = 64 * 1024  # the last bytes that the program printed; `job logs` has all of them


@dataclass(frozen=True, slots=True)
class LocalResult:
    """The user's data, rows and printed text, which stay on the disk of the node that ran the job."""

    tables: list[dict[str, Any]] = field(default_factory=list)  # with columns and preview
    stdout: str = ""


def local_result(runners: Runners, detail: JobDetail) -> LocalResult:
    """The rows and the printed text of the submission of the last attempt."""
    attempt = detail.attempts[-1] if detail.attempts else {}
    place, incarnation = SubmissionPlace.of(attempt.get("place")), attempt.get("incarnation")
    runner = runners.at(place.of_files) if place else None
    if runner is None:
        return LocalResult()
    run = run_name(detail.run_key, attempt["attempt"])
    for submission in runner.find(run):
        if submission.incarnation == incarnation:
            tables = (submission.outcome or {}).get("tables", [])
            return LocalResult(tables, _printed(runner, run, submission.incarnation))
    return LocalResult()


def _printed(runner: Runner, run: str, incarnation: str) -> str:
    text = b""
    for log in runner.logs(run):
        if log.incarnation == incarnation and log.stream == "stdout" and not log.executor:
            with contextlib.suppress(FileNotFoundError):
                text = (text + log.path.read_bytes())[-_MAX_STDOUT_BYTES:]
    return text.decode(errors="replace")


def show_result(detail: JobDetail, local: LocalResult, output: OutputFormat) -> None:
    """Write the result to stdout, and the error to stderr."""
    job = detail.job
    recorded = detail.attempts[-1].get("tables") if detail.attempts else None
    tables: list[dict[str, Any]] = recorded if isinstance(recorded, list) else []
    if output is not OutputFormat.TABLE:
        print_json({"job": job.model_dump(mode="json"), "tables": tables}, output)
    elif job.status is Status.SUCCESS:
        _show_tables(detail.attempts[-1] if tables else {}, local)
    if job.error is not None and job.status is not Status.SUCCESS:
        stderr_console().print(f"error: {job.error.message}", markup=False, style="red")


def show_end(job: JobView, root: str | None) -> None:
    """Write the end of the job to stderr, and commands for details unless `root` is None."""
    words = stderr_console()
    took = f" in {elapsed(job.created, job.ended)}" if job.ended else ""
    words.print(f"\n{job.id}: {job.status}{took}", markup=False)
    if root is None:
        return
    for purpose, command in (
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


def _show_tables(attempt: Mapping[str, Any], local: LocalResult) -> None:
    console = stdout_console()
    if local.stdout:
        console.print(local.stdout.rstrip("\n"), markup=False, soft_wrap=True)
    if (wrote := written(attempt)) is None:
        return
    console.print(wrote)
    if (bad := set_aside(attempt)) is not None:
        console.print()
        console.print(bad)
    for item in local.tables:
        if item["preview"]:
            console.print(f"\nfirst rows of {item['target']}", markup=False, style="bold")
            console.print(table(item["columns"], item["preview"]))
