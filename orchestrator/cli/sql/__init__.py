"""`orchestrator sql`: check, try, show and format SQL scripts."""

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
        Command(
            "explain",
            "orchestrator.cli.sql.explain:explain",
            "Analyse a script with Spark, and show columns, guarantees and all errors of its statements.",
        ),
        Command(
            "preview",
            "orchestrator.cli.sql.preview:preview",
            "Show the first rows of a table or view of a script, and write nothing.",
        ),
    ],
    help="Check, try, show and format SQL scripts.",
)
