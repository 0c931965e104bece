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
        Command(
            "fmt",
            "orchestrator.cli.sql.fmt:fmt",
            "Write scripts in their canonical form, or in the other dialect of CREATE TABLE.",
            is_quick=True,
        ),
    ],
    help="Check, show and format SQL scripts.",
)
