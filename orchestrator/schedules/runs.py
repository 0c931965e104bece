"""The run of a schedule at one of its fire times: its id and its definition."""

from datetime import UTC, datetime

from orchestrator.errors import DefinitionError
from orchestrator.models.definition import Definition
from orchestrator.models.schedule import FIRE_TIME, Schedule
from orchestrator.plan import Plan, compile_program, decode_plan, encode_plan
from orchestrator.schedules.fires import to_text
from queues.errors import InvalidName
from queues.names import check_id

# As long as a fire time, so that all places stay, and of characters that have no other use.
_SOME_TIME = "\ue000" * len(to_text(0))


def run_id(name: str, fire: int) -> str:
    """The id of the run, for example `nightly-20261121T110000Z`: the same for whoever leads."""
    return f"{name}-{datetime.fromtimestamp(fire / 1000, UTC):%Y%m%dT%H%M%SZ}"


def run_definition(definition: Definition, fire: int) -> Definition:
    """The definition of the run: that of the schedule without its schedule, with the fire time."""
    return _run_definition(definition, to_text(fire))


def run_plan(definition: Definition, plan: Plan | None, fire: int) -> Plan | None:
    """The plan of the run, from that of the schedule: nothing is compiled again. Raises DefinitionError."""
    if plan is None:
        if definition.script:
            raise DefinitionError(
                "its script was not compiled when it was registered, by an older version; register it again"
            )
        return None
    return decode_plan(encode_plan(plan).replace(_SOME_TIME.encode(), to_text(fire).encode()))


def _run_definition(definition: Definition, fire_time: str) -> Definition:
    told = {FIRE_TIME: fire_time}
    changes: dict[str, object] = {"schedule": Schedule(), "labels": definition.labels | told}
    if definition.script:
        changes["variables"] = told | definition.variables
    return definition.model_copy(update=changes)


def compile_registration(definition: Definition) -> Plan | None:
    """The plan of its runs, with a mark where their fire time stands.

    Refuses what could never be run periodically: raises DefinitionError, SqlError.
    """
    name = definition.name
    if not definition.schedule.is_set:
        raise DefinitionError(f"{name!r} has no schedule: give it 'schedule' with 'cron' or 'every'")
    try:
        check_id(run_id(name, 0))
    except InvalidName as error:
        added = len(run_id("", 0))
        raise DefinitionError(
            f"the name {name!r} has {len(name)} characters, {128 - added} are the most for a job with a "
            f"schedule: its runs are called <name>-<fire time>, and an id may have 128"
        ) from error
    compile_program(run_definition(definition, 0))  # its errors quote a time, and not the mark
    return compile_program(_run_definition(definition, _SOME_TIME))
