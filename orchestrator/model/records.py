"""The state and the view of a job, from its record."""

from pydantic import ValidationError

from orchestrator.model.fields import explain
from orchestrator.model.job import JobState, JobView
from queues import CorruptRecord, Record


def state_of(record: Record) -> JobState:
    """The state that a record carries; raises CorruptRecord."""
    try:
        return JobState.model_validate(record.payload)
    except ValidationError as error:
        raise CorruptRecord(record.id, f"its payload is not a job: {_mistakes(error)}") from error


def decode_job(job_id: str, data: bytes) -> tuple[Record, JobState | str] | None:
    """The record in these bytes, with its state or the reason why it has none; None for a corrupt record."""
    try:
        record = Record.decode(job_id, data)
    except CorruptRecord:
        return None
    try:
        return record, state_of(record)
    except CorruptRecord as error:
        return record, str(error)


def view_of(record: Record) -> JobView:
    """The view of a record; raises CorruptRecord."""
    try:
        return JobView.of(record)
    except ValueError as error:  # of the state, or an unknown queue
        raise CorruptRecord(record.id, f"its payload is not a job: {_mistakes(error)}") from error


def _mistakes(error: ValueError) -> str:
    words = explain(error, JobState, "it") if isinstance(error, ValidationError) else str(error)
    return words.replace("\n", "; ")
