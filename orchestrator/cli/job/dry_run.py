"""`orchestrator job submit --dry-run`: every check of a submission and of its script; nothing is enqueued."""

import time
from collections.abc import Mapping
from typing import Any

from orchestrator.admin.prospects import would_wait
from orchestrator.admission.hosts import all_here
from orchestrator.cli.connect import command_session, reached_zookeeper
from orchestrator.cli.connection.lookup import cluster_connections
from orchestrator.cli.documents import print_json
from orchestrator.cli.inputs import missing_here, refuse_missing
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import duration, stderr_console, stdout_console
from orchestrator.cli.sql.analysis import analyse_definition
from orchestrator.cli.sql.lint import Finding, Severity, document_of, of_error, shown
from orchestrator.cli.sql.script import STANDARD_INPUT
from orchestrator.cli.sql.script_errors import raise_all, refuse_script_errors
from orchestrator.client.connect import build_queue_set, client_name
from orchestrator.config.settings import load_settings
from orchestrator.model.definition import Definition
from orchestrator.model.paths import Nodes
from orchestrator.model.plan import Plan, compile_program, literal_secrets, warning
from orchestrator.model.spark import DEFAULT_MASTER
from orchestrator.policy.policy import Policy
from orchestrator.schedules.runs import compile_registration, run_definition
from queues import check_id
from spark_runner.sql.grammar.statements import CatalogAction
from spark_runner.sql.text.errors import SqlError


def dry_run(
    definition: Definition,
    file: str,
    output: OutputFormat,
    *,
    job_id: str | None,
    delay: float,
    with_spark: bool,
    quiet: bool,
) -> None:
    """Check a submission, and print what would be submitted.

    Raises what the submission would raise, in the same order, and SqlError for errors that Spark finds.
    """
    is_periodic = definition.schedule.is_set
    with cluster_connections() as find:
        plan = (compile_registration if is_periodic else compile_program)(definition, find)
    if job_id is not None:
        check_id(job_id)
    settings = load_settings()
    with (
        reached_zookeeper(settings, start_own=False) as reached,
        command_session(reached) as session,
    ):
        Policy(settings.policy).check(definition.pool, definition, plan=plan)
        queue_set = build_queue_set(session, reached, client_name())
        waiting = would_wait(queue_set, definition, job_id=job_id, delay_seconds=delay)
        missing = missing_here(definition, plan, settings)
        if missing and not (is_periodic or delay) and all_here(session, Nodes(reached.root), definition.pool):
            refuse_missing(missing)
    started = time.monotonic()
    found = _analysed(definition, file, with_spark=with_spark, quiet=quiet) if definition.script else None
    said = found if found is not None else [of_error(error, Severity.WARNING) for error in missing]
    if names := literal_secrets(definition, plan):
        said = [
            *said,
            Finding(STANDARD_INPUT if file == "-" else file, 0, 0, Severity.WARNING, warning(names)),
        ]
    facts = _facts(definition, plan, job_id, waiting.message if waiting and not is_periodic else "")
    checked = ["definition", "program", "policy", "cluster"]
    skipped = "" if found is not None or not definition.script else "Spark's analysis (--no-spark)"
    if output is not OutputFormat.TABLE:
        checked += ["spark"] if found is not None else []
        warnings = [document_of(finding) for finding in said]
        print_json({**facts, "checked": checked, "warnings": warnings}, output)
        return
    _show(facts, said, quiet=quiet)
    if not quiet:
        checked += [f"Spark's analysis ({duration(time.monotonic() - started)})"] if found is not None else []
        words = f"checked: {', '.join(checked)}" + (f"; not checked: {skipped}" if skipped else "")
        stderr_console().print(f"{words}\nnothing was enqueued", markup=False)


def _analysed(definition: Definition, file: str, *, with_spark: bool, quiet: bool) -> list[Finding] | None:
    """The warnings of lint and Spark, None without Spark; raises SqlError with all errors."""
    name = definition.file or file
    if definition.schedule.is_set:  # its script may use the fire time
        definition = run_definition(definition, round(time.time()) * 1000)
    with cluster_connections() as find:
        refuse_script_errors(definition, name, find)
    if not with_spark:
        return None
    found = analyse_definition(definition, name, connect=False, with_plan=False, quiet=quiet)
    errors = [SqlError(**error) for error in found.report.get("errors", ())]
    raise_all(sorted(errors, key=lambda error: (error.line, error.column)))
    return found.findings


def _facts(definition: Definition, plan: Plan | None, job_id: str | None, waiting: str) -> dict[str, Any]:
    spark = definition.spark
    steps = [] if plan is None else plan["steps"]
    tables = {step["name"].lower(): step for step in steps if step["kind"] == "table"}
    targets = [
        _of_catalog(step) if step["kind"] == "catalog" else tables[step["target"].lower()]
        for step in steps
        if step["kind"] == "insert" or (step["kind"] == "catalog" and CatalogAction(step["action"]).writes)
    ]
    return {
        "would": "register" if definition.schedule.is_set else "submit",
        "name": definition.name,
        "id": job_id,
        "pool": definition.pool,
        "schedule": definition.schedule.when if definition.schedule.is_set else None,
        "program": definition.file or definition.jar or ("python" if definition.python else "script"),
        "directory": definition.directory,
        "variables": definition.variables,
        "targets": [
            {"table": table["name"], "connector": table["connector"], "location": table["location"]}
            for table in targets
        ],
        "master": spark.master or f"that of the pool, or {DEFAULT_MASTER}",
        "attempts": definition.retry.attempts,
        "waiting": waiting or None,
    }


def _of_catalog(step: Mapping[str, Any]) -> dict[str, str]:
    return {"name": step["target"], "connector": "catalog", "location": ""}


def _show(facts: Mapping[str, Any], found: list[Finding], *, quiet: bool) -> None:
    console = stdout_console()
    what = "job" if facts["would"] == "submit" else "schedule"
    where = f" of {facts['schedule']}" if facts["schedule"] else ""
    named = f" with id {facts['id']}" if facts["id"] else ""
    console.print(
        f"would {facts['would']} {what} {facts['name']}{where}{named} in pool {facts['pool']}", markup=False
    )
    lines = {
        "program": facts["program"],
        "folder": facts["directory"],
        "variables": ", ".join(f"{name}={value}" for name, value in facts["variables"].items()),
        "writes": ", ".join(_target(target) for target in facts["targets"]),
        "master": facts["master"],
        "attempts": str(facts["attempts"]),
        "start": facts["waiting"] or "",
    }
    for name, value in lines.items():
        if value:
            console.prose(f"{name + ':':<11}{value}", indent=2, hang=13)
    if not quiet:
        for finding in found:
            stderr_console().print(shown(finding), markup=False)


def _target(target: Mapping[str, Any]) -> str:
    where = f" in {target['location']}" if target["location"] else ""
    return f"{target['table']} ({target['connector']}){where}"
