"""The run of a schedule at one of its fire times: its id and its definition."""

from datetime import UTC, datetime

from orchestrator.errors import DefinitionError
from orchestrator.models.definition import Definition
from orchestrator.models.schedule import FIRE_TIME, Schedule
from orchestrator.plan import Plan, compile_program, decode_plan, encode_plan
from orchestrator.schedules.fires import to_text
from queues.errors import InvalidName
from queues.names import check_id

# As long as a fire time, so that all positions in the script stay, and of characters without another use.
_SOME_TIME = "\ue000" * len(to_text(0))


def run_id(name: str, fire: int) -> str:
    """The id of the run, for example `nightly-20261121T110000Z`: the same for every leader."""
    return f"{name}-{datetime.fromtimestamp(fire / 1000, UTC):%Y%m%dT%H%M%SZ}"


def run_definition(definition: Definition, fire: int) -> Definition:
    """The definition of the run: that of the schedule without `schedule`, with the fire time."""
    return _run_definition(definition, to_text(fire))


def run_plan(definition: Definition, plan: Plan | None, fire: int) -> Plan | None:
    """The plan of the run, from that of the schedule, without compiling; raises DefinitionError."""
    if plan is None:
        if definition.script:
            raise DefinitionError(
                "an older version registered it without compiling its script; register it again"
            )
        return None
    return decode_plan(encode_plan(plan).replace(_SOME_TIME.encode(), to_text(fire).encode()))


def _run_definition(definition: Definition, fire_time: str) -> Definition:
    fire = {FIRE_TIME: fire_time}
    changes: dict[str, object] = {"schedule": Schedule(), "labels": definition.labels | fire}
    if definition.script:
        changes["variables"] = fire | definition.variables
    return definition.model_copy(update=changes)


def compile_registration(definition: Definition) -> Plan | None:
    """The plan of the runs of a schedule, with a mark in place of their fire time.

    Raises DefinitionError or SqlError for a definition that cannot run periodically.
    """
    name = definition.name
    if not definition.schedule.is_set:
        raise DefinitionError(f"{name!r} has no schedule: give it 'schedule' with 'cron' or 'every'")
    try:
        check_id(run_id(name, 0))
    except InvalidName as error:
        added = len(run_id("", 0))
        raise DefinitionError(
            f"the name {name!r} has {len(name)} characters, but with a schedule {128 - added} are allowed: "
            f"the ids of its runs are <name>-<fire time>, at most 128 characters"
        ) from error
    compile_program(run_definition(definition, 0))  # so that its errors quote a time instead of the mark
    return compile_program(_run_definition(definition, _SOME_TIME))
