"""`orchestrator queue`: the seven queues, what stands in them, and what operators do with it."""

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
            "Show what stands in a queue, in the order in which it is due.",
        ),
        Command(
            "pool",
            "orchestrator.cli.queue.pool:app",
            "Look at the pools, and remove those that nobody needs.",
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
            "Make a job due after a delay where it stands: sooner, later, or now.",
        ),
        Command(
            "move",
            "orchestrator.cli.queue.commands:move",
            "Bring a job to another queue by hand; its status becomes one that belongs there and is true.",
        ),
        Command(
            "replay",
            "orchestrator.cli.queue.commands:replay",
            "Bring jobs back from dead to where they came from; what had gone wrong there is counted anew.",
        ),
    ],
    help="Look at the queues, pause pools, move jobs by hand.",
)
