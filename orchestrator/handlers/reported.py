"""The outcome that a driver reports, checked: its user can write both the file and the node."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from orchestrator.models.job import JobError
from queues.documents import encode
from spark_runner.attempt import AttemptState, outcome_facts

_ENDS = {state.value: state for state in (AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.LOST)}
_FACTS = {"tables": list, "error": dict, "exit_code": int, "application_id": str, "ui": str, "metrics": dict}
"""The fields of an outcome beside its state, with their types."""

_MAX_BYTES = 256 * 1024
"""Limit of the bytes that an outcome adds to its attempt: that of an honest driver has some 30 KiB."""


def reported_end(outcome: Mapping[str, Any] | None) -> tuple[AttemptState, dict[str, Any]] | None:
    """The state and the facts of an outcome; None without one, and for one that no driver writes."""
    state = _ENDS.get(str(outcome.get("state"))) if outcome is not None else None
    if outcome is None or state is None:
        return None
    facts = {name: outcome[name] for name in _FACTS if name in outcome}
    if not all(isinstance(value, _FACTS[name]) for name, value in facts.items()):
        return None
    if not all(isinstance(table, dict) for table in facts.get("tables", ())):
        return None
    try:
        recorded = outcome_facts(facts)
        return (state, recorded) if len(encode(recorded)) <= _MAX_BYTES else None
    except (TypeError, ValueError, RecursionError):
        return None


def reported_error(document: object, state: AttemptState) -> JobError:
    """The error in an attempt or an outcome."""
    if not isinstance(document, Mapping):
        return JobError(error_class="lost", message=f"the attempt is {state} and gives no reason")
    fields: dict[str, Any] = dict(document)
    fields["error_class"] = fields.pop("class", fields.get("error_class", "user"))
    try:
        return JobError.model_validate(fields)
    except ValidationError:
        return JobError(error_class="user", message=f"the attempt is {state}, and its reason cannot be read")
