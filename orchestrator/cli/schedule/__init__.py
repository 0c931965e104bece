"""`orchestrator schedule`: list, show, pause, resume, remove; `job submit` registers."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "list",
            "orchestrator.cli.schedule.commands:list_",
            "List all schedules with the next and the last fire time of each.",
        ),
        Command(
            "show",
            "orchestrator.cli.schedule.commands:show",
            "Show one schedule: its times, the last run, and the fire times that had none, with the reason.",
        ),
        Command(
            "pause",
            "orchestrator.cli.schedule.commands:pause",
            "Enqueue no further run of a schedule until it is resumed; runs that are enqueued go on.",
        ),
        Command(
            "resume",
            "orchestrator.cli.schedule.commands:resume",
            "Enqueue runs again, from the next fire time on; "
            "what was due while it was paused is not made up for.",
        ),
        Command("remove", "orchestrator.cli.schedule.commands:remove", "Forget a schedule; its runs stay."),
    ],
    help="Show periodic jobs, pause and remove them.",
)
