"""`orchestrator sql`: check and try SQL scripts."""

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
    help="Check and try SQL scripts.",
)
