"""`orchestrator logs`: tail, drain, status, prune."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "tail",
            "orchestrator.cli.logs.tail:tail",
            "Print the last log records of all workers and jobs, and go on with -f.",
        ),
        Command(
            "drain",
            "orchestrator.cli.logs.commands:drain",
            "Ship now what processes that have ended left in the spools of this host.",
        ),
        Command(
            "status",
            "orchestrator.cli.logs.commands:status",
            "Show the spools of this host, how far each is shipped, and the daily indices.",
        ),
        Command(
            "prune",
            "orchestrator.cli.logs.commands:prune",
            "Remove daily indices that are older than the retention; the leader does so every hour.",
        ),
    ],
    help="Show logs, and their delivery to Elasticsearch.",
)
