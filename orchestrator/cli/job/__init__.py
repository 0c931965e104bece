"""`orchestrator job`: submit and inspect jobs, act on them, and on what they leave behind."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command(
            "submit",
            "orchestrator.cli.job.submit:submit",
            "Enqueue a job and print its id, or register a schedule and print its name and next fire time.",
            is_quick=True,
        ),
        Command(
            "list",
            "orchestrator.cli.job.listing:list_",
            "List the jobs of all pools, newest first.",
            is_quick=True,
        ),
        Command(
            "show",
            "orchestrator.cli.job.show:show",
            "Show the details of a job: wait reason, states, attempts, results, error.",
            is_quick=True,
        ),
        Command(
            "wait",
            "orchestrator.cli.job.wait:wait",
            "Wait for the end of a job; exit 0 on SUCCESS, 1 on another status, 6 on a timeout.",
        ),
        Command(
            "kill",
            "orchestrator.cli.job.acts:kill",
            "Request the stop of jobs in any queue; wait for their end with `job wait`.",
        ),
        Command(
            "adjust",
            "orchestrator.cli.job.adjust:adjust",
            "Change the limits of the pushes of a job while it runs.",
        ),
        Command(
            "retry",
            "orchestrator.cli.job.acts:retry",
            "Run ended or dead jobs again in a new attempt, with all their retries.",
        ),
        Command(
            "remove",
            "orchestrator.cli.job.acts:remove",
            "Remove jobs from ZooKeeper, with their definitions, attempts and results.",
        ),
        Command(
            "history",
            "orchestrator.cli.job.history:history",
            "Show the duration and resources of the last 50 runs of a name, latest last.",
        ),
        Command(
            "quarantine",
            "orchestrator.cli.job.quarantine:quarantine",
            "Show rows that did not fit in the last attempt of a job.",
        ),
        Command(
            "checkpoint",
            "orchestrator.cli.job.checkpoint:app",
            "List and remove the progress of jobs that read streams.",
        ),
        Command(
            "logs",
            "orchestrator.cli.job.logs:logs",
            "Print the logs of an attempt: stdout, stderr and the log of Spark.",
        ),
    ],
    help="Submit, inspect, stop and retry jobs.",
)
