"""The body of a callback: stable, documented in docs/callbacks.md, and without secrets."""

from collections.abc import Mapping
from typing import Any

from orchestrator.logs.record.redaction import REDACTOR, masked
from orchestrator.model.definition import Definition
from orchestrator.model.definition_parts import CallbackEvent
from orchestrator.model.job import JobState
from orchestrator.model.schedule import FIRE_TIME
from orchestrator.model.states import Status
from orchestrator.model.times import seconds_between
from orchestrator.model.web_address import application_ui
from queues import Record, encode
from spark_runner.runners.base import SubmissionPlace

VERSION = 2
"""The version grows if a field changes its meaning or is removed, not if one is added."""

_MAX_TABLES = 100
_MAX_TEXT_CHARACTERS = 500  # of text from drivers and backends: a warning, an address, the name of a table
_OF_THE_JOB = ("id", "name", "labels", "fire_time")  # the same in each event of a job
_MAX_KEPT_BYTES = 2_500
_LEFT_OUT_FIRST = ("warning", "ui", "cluster", "host")  # first, if the facts are too large to keep


def callback_body(
    record: Record,
    state: JobState,
    definition: Definition,
    attempt: Mapping[str, Any] | None,
    *,
    event: CallbackEvent,
    number: int,
    status: Status,
    progress: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The body for an event of a job; fields without a value are None.

    `attempt` is the document of the last attempt, `number` the number of the event among all events of the
    job, and `progress` what the driver reports while it runs. The body has no
    `handler_errors`: that counts attempts to handle the job that failed by an internal error, and is zero
    otherwise.
    """
    document, error = attempt or {}, state.error
    place = SubmissionPlace.of(document.get("place")) or SubmissionPlace("")
    return {
        "version": VERSION,
        "event": event,
        "number": number,
        "id": record.id,
        "run_key": record.run_key,
        "name": state.name,
        "labels": masked(definition.labels),
        "pool": record.pool,
        "status": status.value,
        "previous_status": _previous(state, status),
        "attempt": state.attempt,
        "times": {
            "created": state.created,
            "first_started": state.first_started,
            "started": state.started,
            "ended": state.ended,
        },
        "seconds": seconds_between(state.started, state.ended),
        "backend": place.backend or None,
        "cluster": {name: _text(value) for name, value in place.cluster.items()} or None,
        "host": _text(place.host or None),
        "application_id": state.application_id,
        "ui": _text(application_ui(place, state.application_id, progress or {})),
        "history": _text(state.history if event == "end" else None),
        "fire_time": _text(definition.labels.get(FIRE_TIME)),
        "counters": {
            "failures": state.failures,
            "submissions": state.submissions,
            "demotions": state.demotions,
        },
        "monitor": {"polls": state.polls, "unknown_answers": state.unknown_answers},
        "warning": _text(state.warning if event == "warn" else None),
        "error": None
        if error is None or event != "end"
        else {
            "class": error.error_class,
            "type": REDACTOR.mask(error.type),
            "message": REDACTOR.mask(error.message),
        },
        "written": _written(document),
    }


def kept(body: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a body that a record keeps, bounded in bytes, without those that all events share."""
    facts = {name: value for name, value in body.items() if value is not None and name not in _OF_THE_JOB}
    for name in _LEFT_OUT_FIRST:
        if kept_bytes(facts) > _MAX_KEPT_BYTES:
            facts.pop(name, None)
    return facts


def kept_bytes(facts: Mapping[str, Any]) -> int:
    """The bytes that these facts take in a record."""
    return len(encode(dict(facts)))


def restored(
    facts: Mapping[str, Any], record: Record, state: JobState, definition: Definition
) -> dict[str, Any]:
    """The body whose `facts` were kept."""
    whole = callback_body(record, state, definition, None, event="end", number=0, status=state.status)
    return {name: whole[name] if name in _OF_THE_JOB else facts.get(name) for name in whole}


def _previous(state: JobState, status: Status) -> str | None:
    before = state.previous if status is state.status else state.status
    return None if before is None else before.value


def _written(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Rows and bytes as Spark counted them, with the first tables; None if the attempt reports none."""
    tables, metrics = document.get("tables"), document.get("metrics")
    tables = tables if isinstance(tables, list) else []
    metrics = metrics if isinstance(metrics, Mapping) else {}
    if not tables and not metrics.get("output_bytes"):
        return None
    named = [table for table in tables[:_MAX_TABLES] if isinstance(table, Mapping)]
    return {
        "rows": _number(metrics.get("output_rows")),
        "bytes": _number(metrics.get("output_bytes")),
        "tables": [
            {
                "target": _text(table.get("target")),
                "connector": _text(table.get("connector")),
                "rows": _number(table.get("rows")),
                "location": _text(table.get("location")),
            }
            for table in named
        ],
        "tables_left_out": len(tables) - len(named) + (_number(document.get("tables_left_out")) or 0),
    }


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return None if value is None else REDACTOR.fit(str(value), _MAX_TEXT_CHARACTERS)
