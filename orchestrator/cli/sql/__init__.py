"""`orchestrator sql`: check, show and format SQL scripts without Spark."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "lint",
            "orchestrator.cli.sql.lint:lint",
            "Check scripts without Spark, and show all errors and warnings.",
            is_quick=True,
        ),
        Command(
            "plan",
            "orchestrator.cli.sql.plan:plan",
            "Show what each statement of a script reads and writes.",
            is_quick=True,
        ),
    ],
    help="Check and show SQL scripts.",
)
