"""`orchestrator config`: settings with their origins, and limits that can change while workers run."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "show",
            "orchestrator.cli.config.commands:show",
            "Show every setting with its value and origin.",
        ),
        Command(
            "set",
            "orchestrator.cli.config.commands:set_",
            "Set a limit for all workers, or of a pool; it takes effect at once.",
        ),
        Command(
            "unset",
            "orchestrator.cli.config.commands:unset",
            "Reset a limit to its default, or to the setting of each worker.",
        ),
        Command(
            "history",
            "orchestrator.cli.config.commands:history",
            "Show the changes of limits with their author, old and new value, oldest first.",
        ),
    ],
    help="Show settings, and change limits while workers run.",
)
