"""Refuses a script whose input does not exist on the host of its driver, before Spark starts."""

import os
import socket
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark import SparkContext

from spark_runner.sql.execution.folder import is_accessible
from spark_runner.sql.execution.places import with_built_ins
from spark_runner.sql.missing_inputs import missing_inputs


def refuse_missing_inputs(plan: Mapping[str, Any]) -> None:
    """Raise SqlError for tables whose files Spark would not find, with the places of their paths."""
    if plan.get("replay") or not is_accessible(plan["directory"]):
        return  # it reads rows of an earlier run; or its relative paths have an error of their own
    plan = with_built_ins(plan)
    where = f" on {socket.gethostname()}"
    found = missing_inputs(plan, default_is_local=False, where=where)
    # The JVM is only asked where a path without a scheme is missing here.
    if not found and (others := missing_inputs(plan, default_is_local=True, where=where)):
        found = others if _default_is_local() else []
    if found:
        first, *others = found
        first.others = tuple(others)
        raise first


def _default_is_local() -> bool:
    """Whether the file system of paths without a scheme is that of this host; False if that is not known."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return False  # no JVM runs, and this does not start one
    try:
        SparkContext._ensure_initialized()  # noqa: SLF001 - PySpark connects so before it starts Spark
        jvm: Any = SparkContext._jvm  # noqa: SLF001 - likewise
        conf = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(
            jvm.org.apache.spark.SparkConf(True)
        )
        return str(conf.get("fs.defaultFS")).startswith("file:")
    except (OSError, Py4JError, TypeError):
        return False
