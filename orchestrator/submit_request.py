"""What a runner is asked to submit."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from orchestrator.errors import DefinitionError
from orchestrator.logs.record.redaction import secrets_in
from orchestrator.models.definition import Definition
from orchestrator.models.spark import Spark
from orchestrator.plan import compile_program
from queues.session import SessionSettings
from spark_runner.attempt import Attempt
from spark_runner.runners.base import SubmitRequest

_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)  # s3a://, hdfs:, local: ...
_PATTERN = re.compile(r"[*?\[{]")  # Spark takes several files at once


def submit_request(
    definition: Definition,
    spark: Spark,
    attempt: Attempt,
    *,
    job_id: str,
    pool: str,
    incarnation: str,
    stop_path: str,
    zookeeper: SessionSettings,
    is_short: bool,
    is_warm: bool,
) -> SubmitRequest:
    """The request for one submission of an attempt; raises SqlError, DefinitionError.

    `spark` is what the definition says of it, filled up; `zookeeper` is how the driver reaches it; `is_short`
    asks for a JVM that starts quickly, `is_warm` for one that is there already; scripts alone may share one.
    """
    plan = {
        "run": attempt.run,
        "run_key": attempt.run_key,
        "attempt_path": attempt.path,
        "stop_path": stop_path,
        "incarnation": incarnation,
        "job": {  # as logs name it
            "id": job_id,
            "name": definition.name,
            "attempt": int(attempt.document["attempt"]),
            "pool": pool,
            "deploy_mode": spark.target.deploy_mode,
        },
        "lease_seconds": definition.timeout.lease,
        "zookeeper": zookeeper.for_plan(),
        **compile_program(definition),
    }
    directory = definition.directory
    jars = (*spark.jars, definition.jar) if definition.jar else spark.jars
    found = spark.model_copy(
        update={
            "jars": _found(jars, "jar", directory),
            "py_files": _found(spark.py_files, "Python file", directory),
            "files": _found(spark.files, "file", directory),
        }
    )
    conf = found.properties
    return SubmitRequest(
        run=attempt.run,
        incarnation=incarnation,
        name=definition.name,
        plan=plan,
        target=spark.target,
        conf=conf,
        secrets=tuple(secrets_in({**definition.variables, **conf})),
        is_short=is_short,
        is_warm=is_warm and "sql" in plan and not plan["sql"]["names_files"],
    )


def _found(names: Iterable[str], kind: str, directory: str) -> tuple[str, ...]:
    """Files as Spark takes them; raises DefinitionError for what should be on this host and is not."""
    return tuple(_one_found(name, kind, directory) for name in names)


def _one_found(name: str, kind: str, directory: str) -> str:
    if _ELSEWHERE.match(name):
        return name
    path, mark, alias = name.partition("#")  # as in archive.zip#environment
    full = Path(directory or "/", path)
    if not _PATTERN.search(path) and not full.exists():
        host = os.uname().nodename
        raise DefinitionError(f"there is no {kind} {full} on {host}, from where the job is submitted")
    return f"{full}{mark}{alias}"
