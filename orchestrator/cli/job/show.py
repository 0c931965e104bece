"""`orchestrator job show`: one job on one screen."""

from collections.abc import Mapping

from orchestrator.admin.views import JobDetail, Views
from orchestrator.cli.connect import connected_views
from orchestrator.cli.grid import Grid
from orchestrator.cli.job.attempts import application, attempts_table, set_aside, ui_of, written
from orchestrator.cli.job.pushes import pushes
from orchestrator.cli.job.streams import batch_limits
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import duration, elapsed, show_fact, show_page, stdout_console, table
from orchestrator.cli.states import states
from orchestrator.client.progress import describe_progress
from orchestrator.logs.record.redaction import REDACTOR, secrets_of
from orchestrator.model.errors import NotRunning
from orchestrator.model.job import JobError
from orchestrator.model.job_view import JobView
from orchestrator.model.program_files import PROGRAMS
from orchestrator.model.times import local_time
from queues import ItemNotFound


def show_detail(detail: JobDetail) -> None:
    """Write the details of a job to stdout."""
    console, job, progress = stdout_console(), detail.job, detail.progress or {}
    facts = {
        "job": f"{job.id} ({job.name})",
        "status": f"{job.status}, in queue {job.queue} of pool {job.pool}",
        "waits": detail.waiting.message if detail.waiting else "",
        "created": f"{local_time(job.created)}{_submitter(job)}",
        "next try": local_time(detail.due) if job.error else "",
        "at once": _at_once(detail),
        "labels": ", ".join(f"{name}={value}" for name, value in _labels(detail).items()),
        "attempts": str(job.attempt),
        "tuned": ", ".join(f"{name}={text}" for name, text in (job.tuned or {}).items()),
        "ran": elapsed(job.started, job.ended),
        "now": describe_progress(detail.progress),
        "spark": " · ".join(application(progress, ui_of(detail.attempts, progress))),
        "history": job.history or "",
        "progress": job.checkpoint or "",
        "callback": _callback(job),
        "held by": str((detail.held_by or {}).get("worker", "")),
        "node": detail.record_path,
    }
    _show_facts(facts)
    if job.warning:
        console.prose(f"warning:  {job.warning}", style="magenta")
    _show_error("error", job.error)
    _show_error("before that", job.buried_error)
    console.print()
    console.print(_states(job))
    _show_actions(job)
    if limits := list(batch_limits(progress)):
        console.print()
        console.print("\n".join(limits), markup=False, soft_wrap=True)
    for lines, lanes in pushes(progress):
        console.print()
        console.print("\n".join(lines), markup=False, soft_wrap=True)
        console.print(lanes)
    if detail.attempts:
        console.print()
        console.print(attempts_table(detail.attempts, progress))
        if (wrote := written(detail.attempts[-1])) is not None:
            console.print()
            console.print(wrote)
        if (bad := set_aside(detail.attempts[-1])) is not None:
            console.print()
            console.print(bad)


def show_archived(job: JobView) -> None:
    """Write the last logged state of a job that is no longer in ZooKeeper."""
    console = stdout_console()
    facts = {
        "job": f"{job.id} ({job.name}), no longer in ZooKeeper; this is its last logged state",
        "status": f"{job.status}, in queue {job.queue} of pool {job.pool}",
        "created": f"{local_time(job.created)}{_submitter(job)}",
        "labels": ", ".join(f"{name}={value}" for name, value in job.labels.items()),
        "attempts": str(job.attempt),
        "ran": elapsed(job.started, job.ended),
        "spark": job.application_id or "",
        "history": job.history or "",
    }
    _show_facts(facts)
    _show_error("error", job.error)
    console.print()
    console.print(_states(job))
    _show_actions(job)


def _show_facts(facts: Mapping[str, str]) -> None:
    for name, value in facts.items():
        if value:
            show_fact(name, value)


def _submitter(job: JobView) -> str:
    submitted = job.submitted
    if submitted is None:
        return ""  # written by a version that did not record it
    return f", by {submitted.by} on {submitted.host}" + (f" ({submitted.detail})" if submitted.detail else "")


def _labels(detail: JobDetail) -> Mapping[str, object]:
    """Those of the definition: the record has fewer of them, and none from an earlier version."""
    labels = detail.definition.get("labels")
    return labels if isinstance(labels, Mapping) else detail.job.labels


def _at_once(detail: JobDetail) -> str:
    limit = detail.definition.get("concurrency")
    return f"concurrency is {limit} for jobs named {detail.job.name}" if limit else ""


def _show_actions(job: JobView) -> None:
    """Write the actions of operators on the job, oldest first."""
    if job.actions:
        rows = [[act.action, local_time(act.at), act.by, act.host, act.detail] for act in job.actions]
        stdout_console().print()
        drop = ("host", "by", "detail")
        stdout_console().print(table(["action", "when", "by", "host", "detail"], rows, drop))


def _states(job: JobView) -> Grid:
    rows = [
        [str(queue), local_time(job.times[queue.value]), "" if left is None else duration(left - came)]
        for queue, came, left in states(job)
    ]
    return table(["state", "since", "for"], rows)


def _callback(job: JobView) -> str:
    """Callbacks that failed or are still retried; empty if there are none."""
    words = [
        f"given up: {lost.event} after {lost.tries} tries, {local_time(lost.at)}: {lost.error}"
        for lost in job.undelivered
    ]
    if job.callback.attempts and not job.callback.done:
        tries, error = job.callback.attempts, job.callback.error
        words.append(f"the callback of the end is not delivered yet, after {tries} tries: {error}")
    return "\n          ".join(words)


def _show_error(heading: str, error: JobError | None) -> None:
    if error is None:
        return
    traceback = f"\n\n{error.traceback.rstrip()}" if error.traceback else ""
    short = f", short of {error.short_of}" if error.short_of else ""
    words = f"\n{heading} ({error.error_class}{short}):\n{error.message}{traceback}"
    stdout_console().prose(words)


_DETAILS = ("run_key", "record_path", "definition", "attempts", "progress", "held_by", "due")


def show(
    job_id: JobId,
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show the details of a job: wait reason, states, attempts, results, error.

    For a job that is no longer in ZooKeeper, show its last logged state.

    Example: orchestrator job show flights-1 -w 2
    """
    try:
        with connected_views() as views:
            show_page(lambda: _read_detail(views, job_id), show_detail, document_of, output, watch)
    except (ItemNotFound, NotRunning):
        from orchestrator.cli.job.archived import archived_jobs  # noqa: PLC0415 - seldom used, and slow to load

        gone = archived_jobs(job_id=job_id)
        if not gone:
            raise
        show_page(lambda: gone[0], show_archived, lambda job: job.model_dump(mode="json"), output, None)


def _read_detail(views: Views, job_id: str) -> JobDetail:
    detail = views.detail(job_id)
    REDACTOR.add(secrets_of(detail.definition))  # also masked in the other texts of the job
    return detail


def document_of(detail: JobDetail) -> dict[str, object]:
    """The details of a job as JSON."""
    waiting = detail.waiting and detail.waiting.model_dump(exclude_defaults=True)
    facts = {name: getattr(detail, name) for name in _DETAILS}
    programs = {name: {"text": detail.definition[name]} for name in PROGRAMS if detail.definition.get(name)}
    facts["definition"] = detail.definition | programs  # as in a file, so that it can be submitted again
    facts["ui"] = ui_of(detail.attempts, detail.progress or {})
    return {**detail.job.model_dump(mode="json"), **facts, "waiting": waiting}
