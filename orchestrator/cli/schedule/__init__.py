"""`orchestrator schedule`: list, show, pause, resume, remove; `job submit` registers."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "list",
            "orchestrator.cli.schedule.commands:list_",
            "List all schedules with their next and last fire times.",
        ),
        Command(
            "show",
            "orchestrator.cli.schedule.commands:show",
            "Show a schedule: its times, its last run, and the skipped fire times with the reasons.",
        ),
        Command(
            "pause",
            "orchestrator.cli.schedule.commands:pause",
            "Stop enqueueing runs of a schedule until it is resumed; runs already enqueued continue.",
        ),
        Command(
            "resume",
            "orchestrator.cli.schedule.commands:resume",
            "Enqueue runs of a paused schedule again; fire times missed during the pause are skipped.",
        ),
        Command("remove", "orchestrator.cli.schedule.commands:remove", "Remove a schedule; its runs stay."),
    ],
    help="Inspect, pause and remove periodic jobs.",
)
