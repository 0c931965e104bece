"""One job on one screen."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from orchestrator.cli.live import describe_progress, states
from orchestrator.cli.output import duration, elapsed, local_time, short_path, stdout_console, table
from orchestrator.client import JobDetail
from orchestrator.models.job import JobError, JobView
from spark_runner.runners.base import Place


def show_detail(detail: JobDetail) -> None:
    """Write all that a person wants to know of a job to stdout."""
    console, job, progress = stdout_console(), detail.job, detail.progress or {}
    facts = {
        "job": f"{job.id} ({job.name})",
        "status": f"{job.status}, in queue {job.queue} of pool {job.pool}",
        "waits": detail.waiting.message if detail.waiting else "",
        "created": local_time(job.created),
        "next try": local_time(detail.due) if job.error else "",
        "attempts": str(job.attempt),
        "ran": elapsed(job.started, job.ended),
        "now": describe_progress(detail.progress),
        "spark": " · ".join(_application(progress)),
        "held by": (detail.held_by or {}).get("worker", ""),
        "node": detail.record_path,
    }
    _show_facts(facts)
    if job.warning:
        console.print(f"warning:  {job.warning}", markup=False, soft_wrap=True, style="yellow")
    _show_error("error", job.error)
    _show_error("before that", job.buried_error)
    console.print()
    console.print(_states(job))
    attempts = [
        [
            str(item.get("attempt", "")),
            item.get("state", ""),
            local_time(item.get("started")),
            elapsed(item.get("started"), item.get("ended")),
            "" if item.get("exit_code") is None else str(item["exit_code"]),
            item.get("application_id") or _application_of_running(item, progress),
            _where(item.get("place")),
        ]
        for item in detail.attempts
    ]
    if attempts:
        console.print(
            table(["attempt", "state", "started", "took", "exit", "application", "where"], attempts)
        )
    wrote = [
        [
            item["target"],
            item["connector"],
            item["rows"],
            duration(item["seconds"]),
            short_path(item["location"]),
        ]
        for item in (detail.attempts[-1].get("tables", []) if detail.attempts else [])
    ]
    if wrote:
        console.print()
        console.print(table(["wrote", "as", "rows", "took", "to"], wrote))


def show_gone(job: JobView) -> None:
    """Write what logs tell of a job that ZooKeeper does not have any more."""
    console = stdout_console()
    facts = {
        "job": f"{job.id} ({job.name}), gone from ZooKeeper; this is the last that logs tell",
        "status": f"{job.status}, in queue {job.queue} of pool {job.pool}",
        "created": local_time(job.created),
        "attempts": str(job.attempt),
        "ran": elapsed(job.started, job.ended),
        "spark": job.application_id or "",
    }
    _show_facts(facts)
    _show_error("error", job.error)
    console.print()
    console.print(_states(job))


def _show_facts(facts: Mapping[str, str]) -> None:
    for name, value in facts.items():
        if value:
            stdout_console().print(f"{name + ':':<10}{value}", markup=False, soft_wrap=True)


def _states(job: JobView) -> Table:
    rows = [
        [str(queue), local_time(job.times[queue.value]), "" if left is None else duration(left - came)]
        for queue, came, left in states(job)
    ]
    return table(["state", "since", "for"], rows)


def _application(progress: Mapping[str, Any]) -> Iterator[str]:
    yield from (str(progress[name]) for name in ("application_id", "ui") if progress.get(name))
    if executors := progress.get("executors"):
        yield f"executors: {executors['number']}, tasks: {executors['active_tasks']} running"
        if failed := executors["failed_tasks"]:
            yield f"{failed} failed"


def _application_of_running(attempt: Mapping[str, Any], progress: Mapping[str, Any]) -> str:
    return str(progress.get("application_id", "")) if attempt.get("state") == "started" else ""


def _where(document: object) -> str:
    place = Place.of(document)
    if place is None:
        return ""
    return " ".join(filter(None, ("" if place.backend == "local" else place.backend, place.host)))


def _show_error(heading: str, error: JobError | None) -> None:
    if error is None:
        return
    traceback = f"\n\n{error.traceback.rstrip()}" if error.traceback else ""
    words = f"\n{heading} ({error.error_class}):\n{error.message}{traceback}"
    stdout_console().print(words, markup=False, soft_wrap=True)
