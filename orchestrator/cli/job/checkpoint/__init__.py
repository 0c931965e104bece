"""`orchestrator job checkpoint`: list and remove the progress of jobs that read streams."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "list",
            "orchestrator.cli.job.checkpoint.commands:list_",
            "List the checkpoints of jobs that read streams.",
        ),
        Command(
            "remove",
            "orchestrator.cli.job.checkpoint.commands:remove",
            "Remove checkpoints of a job; its next run reads all data again.",
        ),
    ],
    help="List and remove the progress of jobs that read streams.",
)
