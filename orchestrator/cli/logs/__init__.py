"""`orchestrator logs`: tail, drain, status, prune."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "tail",
            "orchestrator.cli.logs.tail:tail",
            "Print the last log records of all workers and jobs; follow new ones with -f.",
        ),
        Command(
            "drain",
            "orchestrator.cli.logs.commands:drain",
            "Ship the log records that ended processes left in the spools of this host.",
        ),
        Command(
            "status",
            "orchestrator.cli.logs.commands:status",
            "Show the spools of this host with their shipping progress, and the daily indices.",
        ),
        Command(
            "prune",
            "orchestrator.cli.logs.commands:prune",
            "Remove daily indices older than the retention; the leader also does so every hour.",
        ),
    ],
    help="Read logs, and manage how they are shipped to Elasticsearch.",
)
