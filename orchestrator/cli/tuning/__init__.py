"""`orchestrator tuning`: the resources of runs, chosen from their history."""

from orchestrator.cli.lazy import Command, lazy_app

app = lazy_app(
    [
        Command("list", "orchestrator.cli.tuning.views:list_", "List the names with their last decisions."),
        Command(
            "show",
            "orchestrator.cli.tuning.views:show",
            "Show what the next run of a name gets, and why.",
        ),
        Command(
            "plot",
            "orchestrator.cli.tuning.plot:plot",
            "Draw what the runs of a name had and used, and what was decided.",
        ),
        Command(
            "report",
            "orchestrator.cli.tuning.views:report",
            "Show how much memory the decisions save, by name and in total.",
        ),
        Command(
            "simulate",
            "orchestrator.cli.tuning.simulate:simulate",
            "Show what past runs of a name would have got.",
        ),
        Command(
            "mode",
            "orchestrator.cli.tuning.acts:mode",
            "Set whether decisions about a name are made, shown, or given to its runs.",
        ),
        Command("pin", "orchestrator.cli.tuning.acts:pin", "Fix resources of all runs of a name."),
        Command("cap", "orchestrator.cli.tuning.acts:cap", "Limit resources of all runs of a name."),
        Command(
            "reset",
            "orchestrator.cli.tuning.acts:reset",
            "Forget the runs of a name: the next one gets what its definition asks for.",
        ),
    ],
    help="Inspect and control how the resources of runs are chosen from their history.",
)
