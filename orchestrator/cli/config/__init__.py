"""`orchestrator config`: what is set and where, and the limits that can change while everything runs."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "show",
            "orchestrator.cli.config.commands:show",
            "Show every setting, its value, and where that comes from.",
        ),
        Command(
            "set",
            "orchestrator.cli.config.commands:set_",
            "Set a limit for all workers; they go by it at once.",
        ),
        Command(
            "unset",
            "orchestrator.cli.config.commands:unset",
            "Take a limit back to its default, or to what each worker has in its own settings.",
        ),
        Command(
            "history",
            "orchestrator.cli.config.commands:history",
            "Show who changed which limit, of all workers and of the pools, from what to what, oldest first.",
        ),
    ],
    help="Show settings, and change limits while workers run.",
)
