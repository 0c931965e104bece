"""`orchestrator queue`: the seven queues, their jobs, and the operations on them."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "list",
            "orchestrator.cli.queue.commands:list_",
            "List the pools with the number of jobs in each queue, and what binds each pool.",
        ),
        Command(
            "show",
            "orchestrator.cli.queue.commands:show",
            "Show the jobs of a queue, in the order in which they are due.",
        ),
        Command(
            "pool",
            "orchestrator.cli.queue.pool:app",
            "Show the pools, and remove unused ones.",
        ),
        Command(
            "pause",
            "orchestrator.cli.queue.commands:pause",
            "Start no job of a pool, nor of its low lane, until it is resumed; "
            "those that run go on to their end.",
        ),
        Command("resume", "orchestrator.cli.queue.commands:resume", "Start jobs of a pool again."),
        Command(
            "requeue",
            "orchestrator.cli.queue.commands:requeue",
            "Make a job due after a delay in its queue: sooner, later, or now.",
        ),
        Command(
            "move",
            "orchestrator.cli.queue.commands:move",
            "Move a job to another queue; its status becomes a true one of that queue.",
        ),
        Command(
            "replay",
            "orchestrator.cli.queue.commands:replay",
            "Bring jobs back from dead to where they came from; what had gone wrong there is counted anew.",
        ),
    ],
    help="Show the queues, pause pools, move jobs.",
)
