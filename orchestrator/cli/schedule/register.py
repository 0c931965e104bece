"""The registration of a definition with a schedule, for `job submit`."""

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.connection.lookup import cluster_connections
from orchestrator.cli.documents import print_json
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import stderr_console
from orchestrator.config.settings import load_settings
from orchestrator.model.definition import Definition
from orchestrator.model.plan import literal_secrets, warning
from orchestrator.model.times import local_time
from orchestrator.policy.policy import Policy
from orchestrator.schedules.runs import compile_registration
from orchestrator.schedules.view import ScheduleView


def register(definition: Definition, output: OutputFormat, *, quiet: bool) -> None:
    """Register a definition with a schedule, and print its first fire time."""
    with cluster_connections() as find:
        plan = compile_registration(definition, find)  # an invalid job is refused before a session is opened
    Policy(load_settings().policy).check(definition.pool, definition, plan=plan)
    if not quiet and (names := literal_secrets(definition, plan)):
        stderr_console().print(f"warning: {warning(names)}", markup=False)
    with connected(start_own=False) as (client, _):
        view = client.schedules.put(definition)
    if output is OutputFormat.TABLE:
        typer.echo(f"{view.name} {'paused' if view.paused else view.next or view.when}")
    else:
        print_json(view.model_dump(mode="json"), output)
    if not quiet:
        stderr_console().print(_following(view), markup=False)


def _following(view: ScheduleView) -> str:
    """What the registration means, beside the name and the time for scripts."""
    if view.paused:
        return f"{view.name} is paused; start its runs with `orchestrator schedule resume {view.name}`"
    first = f"its next run is at {local_time(view.next)}" if view.next else f"it runs {view.when}"
    return f"schedule {view.name} is registered; {first}"
