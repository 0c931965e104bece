"""`orchestrator sql`: check SQL scripts without Spark."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "lint",
            "orchestrator.cli.sql.lint:lint",
            "Check scripts without Spark, and show all errors and warnings.",
            is_quick=True,
        ),
    ],
    help="Check SQL scripts.",
)
