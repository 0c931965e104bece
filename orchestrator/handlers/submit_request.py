"""The request to a runner: what it submits, and whether the job is short enough for a quick JVM."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from orchestrator.config.references import ReferenceSettings
from orchestrator.handlers.checkpoints import Checkpoints
from orchestrator.handlers.event_logs import EventLogs
from orchestrator.handlers.functions import offered_functions, packages_of
from orchestrator.handlers.lakes import lakes_of, with_lakes
from orchestrator.handlers.packages import folder_of, with_packages
from orchestrator.logs.record.redaction import REDACTOR, secrets_in, secrets_of
from orchestrator.model.definition import Definition
from orchestrator.model.definition_parts import CheckpointUse
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import Plan, plan_references, program_of
from orchestrator.model.schedule import FIRE_TIME
from orchestrator.model.spark import Spark
from orchestrator.policy.policy import Policy
from queues import SessionSettings
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.registry import Connector, installed
from spark_runner.connectors.spark_modules import of_line
from spark_runner.protocol.attempt import Attempt, AttemptState
from spark_runner.protocol.run_plan import PlannedJob, RunPlan, SqlProgram
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.installation import SparkInstallation
from spark_runner.runners.packages.environment import Environment
from spark_runner.sql.python_modules import file_names
from spark_runner.sql.text.built_ins import values_of

SHORT_SECONDS = 60.0  # of a whole run; after that a JVM with both compilers is as fast
_LEAST_RUNS = 3  # a single run may have had nothing to do
_LAST_RUNS = 10


def is_short(history: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each of the last ten runs was short, and there are at least three; newest last.

    Runs are entries of the history; `seconds` is from the start of the driver to its end. Failed runs do not
    count. One long run suffices for the usual JVM: a long run loses more than short ones gain.
    """
    durations = [run.get("seconds") for run in history if run.get("state") == AttemptState.SUCCEEDED]
    known = [seconds for seconds in durations if isinstance(seconds, int | float)][-_LAST_RUNS:]
    return len(known) >= _LEAST_RUNS and max(known) <= SHORT_SECONDS


_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)  # s3a://, hdfs:, local: ...
_PATTERN = re.compile(r"[*?\[{]")  # Spark accepts patterns for several files


def submit_request(
    definition: Definition,
    plan: Plan | None,
    spark: Spark,
    attempt: Attempt,
    *,
    job_id: str,
    created: str,
    pool: str,
    incarnation: str,
    stop_path: str,
    zookeeper: SessionSettings,
    is_short: bool,
    is_warm: bool,
    policy: Policy,
    connector_jars: Mapping[str, tuple[str, ...]],
    functions: Mapping[str, str] | None = None,
    quarantine: str = "",
    checkpoints: Checkpoints | None = None,
    event_logs: EventLogs | None = None,
    references: ReferenceSettings | None = None,
    installation: SparkInstallation | None = None,
    delivered: Mapping[str, Any] | None = None,
    environment: Environment | None = None,
) -> SubmitRequest:
    """The request for one submission of an attempt; raises DefinitionError, also where the policy refuses.

    `plan` is that of a SQL script, as submitted; `spark` is the part of the definition with defaults filled
    in; `created` is when the job was submitted; `zookeeper` is the connection of the driver. `is_short`
    requests a JVM that starts quickly, `is_warm` a warm one, which only scripts may share. `connector_jars`
    replace the packages of connectors, `functions` are those of the operator, `references` are the sources of
    values for the plan, `quarantine` is the URL of the folder for rows that do not fit, `checkpoints` are the
    folders for the progress of streams, `event_logs` those of Spark's event logs, `installation` is the Spark
    of the pool, `delivered` is how far the pushes of earlier attempts have come, `environment` has the
    packages of `requirements`.
    """
    policy.check(pool, definition, spark=spark, plan=plan)
    policy.check_files(pool, definition, spark.target)
    program = program_of(definition, plan)
    connectors = connectors_of(plan)
    offered = offered_functions(plan, functions or {})
    policy.check_functions(pool, offered)
    directory = definition.directory
    used = plan_references(plan)
    scopes = {each.scope for each in used} - {""}
    references = references or ReferenceSettings()
    version = installation.version if installation else spark_version()
    full = with_lakes(spark, lakes_of(plan), connector_jars, version)
    conf = spark_properties(definition, full, connectors, connector_jars, version)
    if event_logs is not None:
        conf = event_logs.prepared(pool, spark) | conf
    if spark.target.backend == "kubernetes":
        conf |= {f"{_MOUNT}{name}": folder for name, folder in references.mounts(scopes).items()}
    if environment is not None:
        conf = with_packages(conf, environment, spark.target)
    script = program.script if isinstance(program, SqlProgram) else None
    own = [*secrets_in({**definition.variables, **conf}), *secrets_of(definition.arguments)]
    secrets = [*own, *secrets_of(script), *_passwords(zookeeper)]
    REDACTOR.add_of_job(secrets)
    if script is not None:
        denied = policy.denied_formats(pool)
        program = SqlProgram(
            {
                **script,
                "denied_formats": denied,
                "denied_catalogs": policy.denies_catalogs(pool),
                "built_ins": values_of(job_id, attempt.number, _time_of(definition, created)),
                "quarantine": f"{quarantine.rstrip('/')}/{job_id}/{attempt.run}" if quarantine else "",
                "checkpoints": (checkpoints or Checkpoints()).of_job(
                    definition.name, pool, spark.target.backend
                ),
                "checkpoint": {**_checkpoint_use(definition), "run_key": attempt.run_key},
                "connectors": {name: found.to_json() for name, found in connectors.items()},
                **python_code(conf, offered),
            }
        )
    run_plan = RunPlan(
        run=attempt.run,
        run_key=attempt.run_key,
        attempt_path=attempt.path,
        stop_path=stop_path,
        incarnation=incarnation,
        job=PlannedJob(job_id, definition.name, attempt.number, pool, spark.target.deploy_mode),
        lease_seconds=definition.timeout.lease,
        zookeeper=zookeeper.for_plan(),
        program=program,
        directory=directory,
        secrets=tuple(secrets),
        references=references.sources(scopes).to_json() if used else {},
        delivered=delivered or {},
        packages=None if environment is None else environment.planned(folder_of(environment, spark.target)),
    )
    may_share = script is not None and not (
        script["names_files"]
        or script["needs_own_jvm"]
        or offered
        or environment is not None
        or any(_of_connectors(connectors, connector_jars))
    )
    modules = {name for each in connectors.values() for name in each.python_packages()}
    modules.update(packages_of(offered))
    return SubmitRequest(
        run=attempt.run,
        incarnation=incarnation,
        name=definition.name,
        plan=run_plan.to_json(),
        target=spark.target,
        conf=conf,
        secrets=run_plan.secrets,
        python_packages=tuple(sorted(modules)),
        is_short=is_short,
        is_warm=is_warm and may_share,
        spark=installation,
    )


_MOUNT = "spark.kubernetes.driver.secrets."


def spark_properties(
    definition: Definition,
    spark: Spark,
    connectors: Mapping[str, Connector],
    connector_jars: Mapping[str, tuple[str, ...]],
    version: str,
) -> dict[str, str]:
    """The Spark properties of a definition, with absolute paths; raises DefinitionError for missing files.

    `connector_jars` replace the packages of connectors, which are those for the `version` of Spark.
    """
    directory = definition.directory
    jars = (*spark.jars, definition.jar) if definition.jar else spark.jars
    packages, more_jars = _of_connectors(connectors, connector_jars)
    try:
        packages = [of_line(each, version) for each in packages]
    except ConnectorError as error:
        raise DefinitionError(str(error)) from error
    found = spark.model_copy(
        update={
            "packages": (*spark.packages, *packages),
            "jars": (*_found(jars, "jar", directory), *_found(more_jars, "jar of a connector", directory)),
            "py_files": _found(spark.py_files, "Python file", directory),
            "files": _found(spark.files, "file", directory),
        }
    )
    return found.properties


@cache  # it reads and parses a file: a fifth of the time of a submission
def spark_version() -> str:
    """The version of the Spark that submits the jobs of this host."""
    return metadata.version("pyspark")


def python_code(conf: Mapping[str, str], offered: Mapping[str, str]) -> dict[str, Any]:
    """The parts of a plan that say where its functions are: in files of the job, or of the platform."""
    return {
        "python_files": file_names(conf.get("spark.submit.pyFiles", "").split(",")),
        "functions": dict(offered),
    }


def connectors_of(plan: Plan | None) -> dict[str, Connector]:
    """The connectors of the tables of a script; raises DefinitionError for one that is not installed here."""
    used = {step["connector"] for step in (plan or {}).get("steps", ()) if step.get("kind") == "table"}
    try:
        return installed(used)
    except ConnectorError as error:
        raise DefinitionError(str(error)) from error


def _of_connectors(
    connectors: Mapping[str, Connector], replaced: Mapping[str, tuple[str, ...]]
) -> tuple[list[str], list[str]]:
    """The Maven packages that the connectors need, and the jars that the operator gives instead."""
    packages = [
        package for name, each in connectors.items() if name not in replaced for package in each.packages
    ]
    return packages, [jar for name in connectors for jar in replaced.get(name, ())]


def _checkpoint_use(definition: Definition) -> dict[str, Any]:
    """How the job uses its checkpoint; jobs that older versions submitted continue."""
    return (definition.checkpoint or CheckpointUse()).model_dump(mode="json")


def _time_of(definition: Definition, created: str) -> datetime:
    """The fire time of a run of a schedule, or the time of the submission: the same for each attempt."""
    try:
        found = datetime.fromisoformat(definition.labels.get(FIRE_TIME) or created)
    except ValueError:  # a user may give any text to the label
        found = datetime.fromisoformat(created)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _passwords(zookeeper: SessionSettings) -> Iterator[str]:
    return (login.password for login in (zookeeper.sasl, zookeeper.digest) if login and login.password)


def _found(names: Iterable[str], kind: str, directory: str) -> tuple[str, ...]:
    """Files as Spark accepts them; raises DefinitionError for a missing file of this host."""
    return tuple(_one_found(name, kind, directory) for name in names)


def _one_found(name: str, kind: str, directory: str) -> str:
    if _ELSEWHERE.match(name):
        return name
    path, mark, alias = name.partition("#")  # for example archive.zip#environment
    full = Path(directory or "/", path)
    if not _PATTERN.search(path) and not full.exists():
        host = os.uname().nodename
        raise DefinitionError(f"there is no {kind} {full} on {host}, the host that submits the job")
    return f"{full}{mark}{alias}"
