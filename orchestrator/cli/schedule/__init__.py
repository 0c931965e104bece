"""`orchestrator schedule`: list, show, run, backfill, pause, resume, remove; `job submit` registers."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "list",
            "orchestrator.cli.schedule.commands:list_",
            "List all schedules with their next fire times and their last runs.",
        ),
        Command(
            "show",
            "orchestrator.cli.schedule.commands:show",
            "Show a schedule: its times, its last run, and the skipped fire times with the reasons.",
        ),
        Command(
            "run",
            "orchestrator.cli.schedule.runs:run",
            "Enqueue one run of a schedule now, and print its id; its fire times stay as they are.",
        ),
        Command(
            "backfill",
            "orchestrator.cli.schedule.runs:backfill",
            "Enqueue the runs of past fire times that have no job, oldest first.",
        ),
        Command(
            "pause",
            "orchestrator.cli.schedule.commands:pause",
            "Stop enqueueing runs of a schedule until it is resumed; runs already enqueued continue.",
        ),
        Command(
            "resume",
            "orchestrator.cli.schedule.commands:resume",
            "Enqueue runs of a paused schedule again; what the pause missed is skipped.",
        ),
        Command("remove", "orchestrator.cli.schedule.commands:remove", "Remove a schedule; its runs stay."),
    ],
    help="Inspect, run, backfill, pause and remove periodic jobs.",
)
