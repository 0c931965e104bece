"""The outcome that a driver reports, checked: its user can write both the file and the node.

Never from a Spark master's application state: it is FINISHED for applications that failed.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from orchestrator.handlers.actions import SetStatus
from orchestrator.model.job import JobError
from orchestrator.model.states import Status
from orchestrator.model.times import seconds_between, stored_time
from queues import Operation, Set, encode, timestamp
from spark_runner.protocol import exit_codes
from spark_runner.protocol.attempt import Attempt, AttemptState, application_in, outcome_facts
from spark_runner.runners.base import Failure, Submission

_ENDS = {state.value: state for state in (AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.LOST)}
_FACTS = {
    "tables": list,
    "bad_rows": list,
    "error": dict,
    "metrics": dict,
    "streamed": dict,
    "exit_code": int,
    "application_id": str,
    "ui": str,
}
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
    if not all(isinstance(each, dict) for name in ("tables", "bad_rows") for each in facts.get(name, ())):
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


_SIGNALLED = 128  # a shell's exit code for signal N is 128 + N
_STATES = {"lost": AttemptState.LOST, "killed": AttemptState.KILLED}
"""The state of an attempt whose driver left no outcome, by error class; for other classes `failed`."""

_CODES = {
    0: (
        "no_outcome",
        (
            "its driver ended with exit code 0 and reported no outcome, so it may not have done its work. "
            "A program has to end by returning or by sys.exit(), not by os._exit() or System.exit()"
        ),
    ),
    exit_codes.HEAP_FULL: (
        "memory",
        "its JVM ended because its heap was full: raise spark.driver.memory (`memory` of `driver`)",
    ),
    exit_codes.NO_CONTACT: ("lost", "its driver had no contact with ZooKeeper for its lease"),
    exit_codes.SUPERSEDED: ("lost", "its driver ended because the attempt was not its own"),
}
"""Error class and message by exit code, for a driver that started and left no outcome."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Success, or another end with its error."""

    status: Status
    error: JobError | None = None

    @classmethod
    def of_error(cls, error: JobError) -> "Verdict":
        """Failure, or KILL for a driver that was ended on its cluster; `retry.on` applies later."""
        return cls(Status.KILL if error.error_class == "killed" else Status.ERROR_FAIL, error)


def move_by(attempt: Attempt, verdict: Verdict, *extra: Operation, **changes: object) -> SetStatus:
    """The action that moves the job to the queue of its verdict."""
    facts = {
        "started": stored_time(attempt.document.get("started")),
        "ended": timestamp(),
        "application_id": application_in(attempt.document),
        "error": verdict.error,
        "warning": None,
        "submissions": 0,
    }
    return SetStatus(verdict.status, changes={**facts, **changes}, extra=tuple(extra))


def verdict_of_attempt(attempt: Attempt) -> Verdict:
    """The verdict of an ended attempt."""
    match attempt.state:
        case AttemptState.SUCCEEDED:
            return Verdict(Status.SUCCESS)
        case AttemptState.KILLED:
            return Verdict(Status.KILL)
        case AttemptState.FAILED | AttemptState.CLOSED | AttemptState.LOST:
            return Verdict.of_error(reported_error(attempt.document.get("error"), attempt.state))
        case AttemptState.INTENT | AttemptState.STARTED:
            message = f"attempt {attempt.run} is still open"
            raise ValueError(message)


def verdict_of_exit(attempt: Attempt, submission: Submission) -> tuple[Verdict, Set]:
    """The verdict on a started attempt whose driver has ended, and the operation that records it."""
    if (
        reported := reported_end(submission.outcome)
    ) is not None:  # it reached its end while ZooKeeper was unreachable
        state, facts = reported
        ended = attempt.advance(state, ended=_end_of(attempt, submission), recorded_by="worker", **facts)
        if state is AttemptState.SUCCEEDED:
            return Verdict(Status.SUCCESS), ended
        return Verdict.of_error(reported_error(facts.get("error"), state)), ended
    error = _error_of_exit(submission)
    state = _STATES.get(error.error_class, AttemptState.FAILED)
    recorded: dict[str, Any] = {
        "ended": _end_of(attempt, submission),
        "exit_code": submission.exit_code,
        "error": error.model_dump(),
        "recorded_by": "worker",
    }
    if submission.usage is not None:  # the only known figures of its use
        recorded["metrics"] = {"host": dict(submission.usage)}
    return Verdict.of_error(error), attempt.advance(state, **recorded)


def _end_of(attempt: Attempt, submission: Submission) -> str:
    """When a driver ended: its place may have recorded that while no worker ran."""
    ended = stored_time(submission.ended)
    ran = seconds_between(attempt.document.get("started"), ended)
    # Whole seconds, or another clock, may put the end before the start.
    return ended if ended is not None and ran is not None and ran >= 0 else timestamp()


def _error_of_exit(submission: Submission) -> JobError:
    code = submission.exit_code
    if submission.failure is not None:
        return error_of(submission.failure)
    if code is None:
        detail = f": {submission.detail}" if submission.detail else ""
        return JobError(error_class="lost", message=f"its driver is gone and left no exit code{detail}")
    if code in _CODES:
        error_class, message = _CODES[code]
        short_of = "driver.heap" if code == exit_codes.HEAP_FULL else None
        return JobError(error_class=error_class, message=message, short_of=short_of)
    if code > _SIGNALLED:
        name = _signal_name(code - _SIGNALLED)
        hint = "; the kernel does this when memory runs out" if code - _SIGNALLED == signal.SIGKILL else ""
        return JobError(
            error_class="infrastructure", message=f"its driver was ended by {name}{hint}", type=name
        )
    detail = f": {submission.detail}" if submission.detail else ""
    return JobError(
        error_class="user", message=f"its driver ended with exit code {code} and reported no error{detail}"
    )


def error_of(failure: Failure) -> JobError:
    """The failure that a backend reports, as the error of the job."""
    return JobError(
        error_class=failure.error_class,
        message=failure.message,
        type=failure.type,
        short_of=failure.short_of,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
