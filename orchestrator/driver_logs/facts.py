"""The fields that all documents of one run share: job, attempt, host and application."""

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.record.document import ECS_VERSION
from spark_runner.protocol.plain_file import parse_json, read_json
from spark_runner.protocol.process import APPLICATION_FILE
from spark_runner.protocol.run_plan import PlanOutline
from spark_runner.runners.run_directory import SECRETS, RunDirectory, read_of_driver

_MAX_CHARACTERS = 200  # of an application id, which the driver writes


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a run's plan that its documents need."""

    fields: dict[str, str | int]
    is_handed_over: bool  # deploy mode cluster: this host runs only its spark-submit


def read_plan(directory: Path, run: str) -> Plan:
    """Read the plan of a run directory; fields it lacks come from the name of the run if possible."""
    plan = PlanOutline.of(_read(directory / "plan.json"))
    run_key, _, number = run.rpartition("-")
    fields: dict[str, str | int] = {
        name: value
        for name, value in (
            ("job.id", plan.job_id or _id_in(plan.attempt_path)),
            ("job.name", plan.job_name),
            ("job.pool", plan.pool),
            ("job.run_key", plan.run_key or (run_key if number.isdecimal() else "")),
        )
        if value
    }
    if "job.run_key" in fields and number.isdecimal():
        fields["job.attempt"] = int(number)
    return Plan(fields, plan.deploy_mode == "cluster")


def read_secrets(directory: Path) -> list[str]:
    """The secret values of a job's settings, which another process than the collector may have written.

    The plan has them, too: the file of secrets may be damaged, or removed.
    """
    found = _read(directory / SECRETS).get("values"), _read(directory / "plan.json").get("secrets")
    lists = [values for values in found if isinstance(values, list)]
    return [value for values in lists for value in values if isinstance(value, str)]


def read_application(directory: Path) -> str:
    """The id of the Spark application; empty until the driver has written it."""
    try:
        found = parse_json(read_of_driver(RunDirectory(directory).work, APPLICATION_FILE))
    except (OSError, ValueError):
        return ""
    return str(found.get("application_id", ""))[:_MAX_CHARACTERS] if isinstance(found, dict) else ""


def own_fields(dataset: str) -> dict[str, str | int]:
    """The fields that are equal for all runs of this host."""
    return {
        "event.dataset": dataset,
        "host.name": socket.gethostname(),
        "service.name": "spark",
        "ecs.version": ECS_VERSION,
    }


def _id_in(attempt_path: str) -> str:
    parts = attempt_path.split("/")
    return parts[-2] if len(parts) > 2 else ""  # noqa: PLR2004 - .../<id>/attempt-<n>-<run key>


def _read(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
