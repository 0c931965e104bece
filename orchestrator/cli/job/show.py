"""`orchestrator job show`."""

from orchestrator.cli.connect import connected
from orchestrator.cli.job.page import show_detail, show_gone
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import show_page
from orchestrator.client import Client
from orchestrator.errors import NotRunning
from orchestrator.logs.record.redaction import REDACTOR, secrets_of
from orchestrator.operating.views import JobDetail
from queues.errors import ItemNotFound

_DETAILS = ("run_key", "record_path", "definition", "attempts", "progress", "held_by", "due")


def show(
    job_id: JobId,
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show all that is known of one job: why it waits, states, attempts, what it wrote, why it failed.

    Of one that ZooKeeper does not have any more: its last state, as logs tell.

    Example: orchestrator job show flights-1 -w 2
    """
    try:
        with connected() as (client, _):
            show_page(lambda: _looked(client, job_id), show_detail, _document, output, watch)
    except (ItemNotFound, NotRunning):
        from orchestrator.cli.job.archived import archived_jobs  # noqa: PLC0415 - seldom, and slow

        gone = archived_jobs(job_id=job_id)
        if not gone:
            raise
        show_page(lambda: gone[0], show_gone, lambda job: job.model_dump(mode="json"), output, None)


def _looked(client: Client, job_id: str) -> JobDetail:
    detail = client.detail(job_id)
    REDACTOR.add(secrets_of(detail.definition))  # also where they stand in other words of the job
    return detail


def _document(detail: JobDetail) -> dict[str, object]:
    waiting = detail.waiting and detail.waiting.model_dump(exclude_defaults=True)
    facts = {name: getattr(detail, name) for name in _DETAILS}
    return {**detail.job.model_dump(mode="json"), **facts, "waiting": waiting}
