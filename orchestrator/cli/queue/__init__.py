"""`orchestrator queue`: the seven queues, their jobs, and the operations on them."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "list",
            "orchestrator.cli.queue.commands:list_",
            "List the pools with the number of jobs in each queue, and the limits of each pool.",
        ),
        Command(
            "show",
            "orchestrator.cli.queue.commands:show",
            "Show the jobs of a queue in the order of their due times.",
        ),
        Command(
            "pool",
            "orchestrator.cli.queue.pool:app",
            "List pools, and remove unused ones.",
        ),
        Command(
            "pause",
            "orchestrator.cli.queue.commands:pause",
            "Start no job of a pool and its low lane until it is resumed; running jobs continue.",
        ),
        Command("resume", "orchestrator.cli.queue.commands:resume", "Start jobs of a paused pool again."),
        Command(
            "requeue",
            "orchestrator.cli.queue.commands:requeue",
            "Set the due time of a job in its queue: sooner, later, or now.",
        ),
        Command(
            "move",
            "orchestrator.cli.queue.commands:move",
            "Move a job to another queue, and set the status that matches the queue and the job.",
        ),
        Command(
            "replay",
            "orchestrator.cli.queue.commands:replay",
            "Move jobs from dead back to their previous queues, and reset their error counts.",
        ),
    ],
    help="Inspect queues, pause pools, move jobs.",
)
