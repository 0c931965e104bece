"""`orchestrator job show`."""

from orchestrator.cli.connect import connected
from orchestrator.cli.documents import print_json
from orchestrator.cli.job.page import show_detail
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import repeat

_DETAILS = ("run_key", "record_path", "definition", "attempts", "progress", "held_by")


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
