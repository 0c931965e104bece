"""The checkpoint of a job: which jobs have one, and what a submission may ask of it."""

from collections.abc import Mapping
from typing import Any

from orchestrator.model.definition import Definition
from orchestrator.model.definition_parts import CheckpointUse
from orchestrator.model.errors import DefinitionError
from spark_runner.connectors.errors import ConnectorError, OptionError
from spark_runner.connectors.options import options_of
from spark_runner.protocol.text import did_you_mean, shortened

ALL_TABLES = "*"
_BATCH = "batch"
_MAX_CHARACTERS = 100  # of a name or position in a message


def has_checkpoint(plan: Mapping[str, Any] | None) -> bool:
    """Whether a job with this plan reads streams; None is a program."""
    return plan is not None and plan.get("mode", _BATCH) != _BATCH


def check_checkpoint(definition: Definition, plan: Mapping[str, Any] | None) -> None:
    """Raise DefinitionError where the definition asks for what its program cannot do."""
    name, use = definition.name, definition.checkpoint
    if not has_checkpoint(plan):
        if use is not None:
            what = "a program" if plan is None else f"a script in mode '{_BATCH}'"
            raise DefinitionError(
                f"{name!r} is {what}, which has no checkpoint: remove 'checkpoint', or the options --resume,"
                " --fresh and --from"
            )
        return
    if definition.concurrency > 1:
        raise DefinitionError(
            f"{name!r} reads streams, and one checkpoint serves one running job: remove 'concurrency'"
        )
    if use is not None and plan is not None:
        _check_positions(use, plan)


def bound_to_checkpoint(definition: Definition, plan: Mapping[str, Any] | None) -> Definition:
    """The definition as it is enqueued: of jobs that share a checkpoint one runs at a time."""
    if not has_checkpoint(plan):
        return definition
    use = definition.checkpoint or CheckpointUse()
    return definition.model_copy(update={"concurrency": 1, "checkpoint": use})


def _check_positions(use: CheckpointUse, plan: Mapping[str, Any]) -> None:
    streams = {
        _declared(step).lower(): step
        for step in plan["steps"]
        if step.get("kind") == "table" and step.get("stream") and step.get("read")
    }
    for table, position in use.positions.items():
        if table != ALL_TABLES and table.lower() not in streams:
            shown = shortened(table, _MAX_CHARACTERS)
            raise DefinitionError(
                f"a position names table '{shown}', which the script does not read as a stream"
                f"{did_you_mean(shown, [_declared(step) for step in streams.values()])}"
            )
        for step in streams.values() if table == ALL_TABLES else [streams[table.lower()]]:
            try:
                options_of(step["connector"]).check_position(position)
            except (ConnectorError, OptionError) as error:
                given = shortened(position, _MAX_CHARACTERS)
                message = f"table '{_declared(step)}' cannot begin at {given!r}: {error}"
                raise DefinitionError(message) from error


def _declared(step: Mapping[str, Any]) -> str:
    """The name of the table in the script: a use with options of its own has another one in the plan."""
    return str(step.get("declared", step["name"]))
