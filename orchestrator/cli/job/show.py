"""`orchestrator job show`."""

from orchestrator.cli.connect import connected
from orchestrator.cli.job.page import show_detail
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import show_page
from orchestrator.client import JobDetail

_DETAILS = ("run_key", "record_path", "definition", "attempts", "progress", "held_by", "due")


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
        show_page(lambda: client.detail(job_id), show_detail, _document, output, watch)


def _document(detail: JobDetail) -> dict[str, object]:
    return {**detail.job.model_dump(mode="json"), **{name: getattr(detail, name) for name in _DETAILS}}
