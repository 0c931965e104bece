"""`orchestrator connection`: set, list, show, test, remove."""

from orchestrator.cli.lazy import Command, lazy_app

_COMMANDS = "orchestrator.cli.connection.commands"

app = lazy_app(
    [
        Command("set", f"{_COMMANDS}:set_", "Store a connection, or replace the one of its name."),
        Command("list", f"{_COMMANDS}:list_", "List all connections."),
        Command("show", f"{_COMMANDS}:show", "Show the options of a connection; references, never values."),
        Command(
            "test",
            f"{_COMMANDS}:probe",
            "Check the options of a connection, and read the values of its references here.",
        ),
        Command("remove", f"{_COMMANDS}:remove", "Remove a connection; jobs that use it keep its options."),
    ],
    help="Manage the connections that tables of scripts name.",
)
