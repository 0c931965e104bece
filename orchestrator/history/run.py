"""One run in the history: the outcome of an attempt, its settings, and its measurements."""

from typing import Any

from orchestrator.model.job import JobError
from orchestrator.model.spark import Spark
from orchestrator.model.times import seconds_between
from queues import encode
from spark_runner.protocol.attempt import Attempt, AttemptState
from spark_runner.protocol.sizing import MAX_VALUE_CHARACTERS, SIZING

MAX_RUN_BYTES = 3_800  # fifty of them and a name make less than 200 KiB

_MAX_MESSAGE_CHARACTERS = 300  # the attempt stores the whole message
_MAX_TEXT_CHARACTERS = 120


def is_run(attempt: Attempt) -> bool:
    """Whether an ended attempt belongs in the history: its driver started, or its submission failed finally.

    An attempt that was closed before its driver started, to be retried or cancelled, is not a run.
    """
    if attempt.state.is_open:
        return False
    failed = attempt.document.get("error") is not None and not attempt.is_passing
    return bool(attempt.incarnation) or failed


def run_of(attempt: Attempt, *, job_id: str, spark: Spark, error: JobError | None) -> dict[str, Any]:
    """The entry of an ended attempt, at most MAX_RUN_BYTES as JSON.

    `spark`: as it was submitted; `error`: why it did not succeed. A run of error class `memory` shows that it
    needs more memory than it had, not how much.
    """
    document = attempt.document
    metrics = document.get("metrics")
    metrics = dict(metrics) if isinstance(metrics, dict) else {}
    in_force = metrics.pop("settings", None)
    entry: dict[str, Any] = {
        "run": attempt.run,
        "job": job_id,
        "attempt": document.get("attempt"),
        "state": attempt.state.value,
        "class": None,
        "exit_code": document.get("exit_code"),
        "started": document.get("started"),
        "ended": document.get("ended"),
        "seconds": seconds_between(document.get("started"), document.get("ended")),
        "application_id": document.get("application_id"),
        "input_bytes": metrics.get("input_bytes"),
        "settings": in_force if isinstance(in_force, dict) else _settings(spark),
    }
    if attempt.state is not AttemptState.SUCCEEDED:
        entry["class"] = "killed" if error is None else error.error_class
    if error is not None:
        entry |= {"type": error.type, "message": error.message[:_MAX_MESSAGE_CHARACTERS]}
    entry["metrics"] = metrics
    return _fitting(entry)


def _settings(spark: Spark) -> dict[str, str]:
    """The requested settings, for a driver that reported none."""
    target = spark.target
    named = {"spark.master": target.master, "spark.submit.deployMode": target.deploy_mode}
    given = {**spark.properties, **named}
    return {name: given[name][:MAX_VALUE_CHARACTERS] for name in SIZING if name in given}


def _fitting(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry unchanged if it is small enough; otherwise without the fields that a driver may inflate."""
    if _size(entry) <= MAX_RUN_BYTES:
        return entry
    entry = {**entry, "metrics": {}, "left_out": "its measurements are too large"}
    if _size(entry) <= MAX_RUN_BYTES:
        return entry
    return {
        name: value[:_MAX_TEXT_CHARACTERS] if isinstance(value, str) else value
        for name, value in (entry | {"settings": {}, "input_bytes": None, "exit_code": None}).items()
    }


def _size(entry: dict[str, Any]) -> int:
    return len(encode(entry))
