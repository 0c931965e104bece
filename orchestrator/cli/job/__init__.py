"""`orchestrator job`: submit, list, show, wait, kill, retry, remove, history, logs."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "submit",
            "orchestrator.cli.job.submit:submit",
            "Enqueue a job and print its id; a definition with a schedule is registered instead: "
            "name and next time.",
            is_quick=True,
        ),
        Command("list", "orchestrator.cli.job.listing:list_", "List jobs of all pools, the newest first."),
        Command(
            "show",
            "orchestrator.cli.job.show:show",
            "Show all that is known of one job: states, attempts, what it wrote, why it failed, its node.",
        ),
        Command(
            "wait",
            "orchestrator.cli.job.wait:wait",
            "Wait until a job has ended; exit 0 on SUCCESS, 1 otherwise, 6 when it took too long.",
        ),
        Command(
            "kill",
            "orchestrator.cli.job.acts:kill",
            "Request the end of jobs in any queue; `job wait` returns when one has ended.",
        ),
        Command(
            "retry",
            "orchestrator.cli.job.acts:retry",
            "Run jobs again that have ended or are dead, with all their tries, in a new attempt.",
        ),
        Command(
            "remove",
            "orchestrator.cli.job.acts:remove",
            "Remove jobs with all that ZooKeeper has of them: definition, attempts, result.",
        ),
        Command(
            "history",
            "orchestrator.cli.job.history:history",
            "Show what the last 50 runs of a name took, failures among them, the latest last.",
        ),
        Command(
            "logs",
            "orchestrator.cli.job.logs:logs",
            "Print what a job and Spark said: stdout, stderr and Spark's own log of an attempt.",
        ),
    ],
    help="Enqueue jobs, show them, stop them, run them again.",
)
