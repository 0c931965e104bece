"""Input files of a script that are missing on this host: an error where the job runs here, else a warning."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.config.settings import Settings
from orchestrator.model.definition import Definition
from orchestrator.model.plan import Plan, with_text
from spark_runner.sql.missing_inputs import missing_inputs
from spark_runner.sql.text.errors import SqlError

_ELSEWHERE = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR")  # they may name another file system
_DEFAULT = "spark.hadoop.fs.defaultFS"


def missing_here(
    definition: Definition, plan: Plan | None, settings: Settings | None = None, *, file: str = ""
) -> list[SqlError]:
    """The errors of files that a Spark of this host would not find; none where it runs elsewhere.

    `settings` have the defaults of pools; `file` is the name of the script in errors.
    """
    if plan is None or not definition.script:
        return []
    document = with_text(definition, plan, file)
    if not missing_inputs(document, default_is_local=True):  # the usual case needs no settings
        return []
    spark, default_is_local = definition.spark, not any(os.environ.get(name) for name in _ELSEWHERE)
    if settings is not None:
        from orchestrator.config.spark_defaults import pool_spark  # noqa: PLC0415 - slow to load, seldom used

        spark = pool_spark(settings.spark)(definition.pool, spark)
        default_is_local &= not _names_installation(settings.spark)
    if spark.target.backend != "local":
        return []
    return missing_inputs(document, default_is_local=default_is_local and _DEFAULT not in spark.conf)


def refuse_missing(found: Sequence[SqlError]) -> None:
    """Raise the first of the errors, with the others."""
    if found:
        first, *others = found
        first.others = tuple(others)
        raise first


def _names_installation(tables: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a pool has a Spark of its own, whose files of configuration may name another file system."""
    return any(table.get("spark_home") for table in tables.values())
