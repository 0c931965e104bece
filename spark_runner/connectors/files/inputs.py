"""The files that a query reads, compared with its target."""

import os
import urllib.parse

from pyspark.sql import DataFrame

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.java_classes import items, java_class


def refuse_own_input(frame: DataFrame, path: str) -> None:
    """Refuse a target that holds files which the query reads, under any name of theirs."""
    if found := file_read_below(frame, path):
        raise ConnectorError(f"refused: the query reads '{found}', which lies in its target '{path}'")


def file_read_below(frame: DataFrame, *paths: str) -> str | None:
    """A file in one of `paths` that a query reads under any name; None without one."""
    targets = [
        _local(urllib.parse.quote(path, safe="/:") if path.startswith("file:") else path) for path in paths
    ]
    for file in map(_local, _input_files(frame)):
        if any(file == target or file.startswith(target.rstrip("/") + "/") for target in targets):
            return file
    return None


def _input_files(frame: DataFrame) -> list[str]:
    """All files that a query reads; `DataFrame.inputFiles` omits those of subqueries and of cached rows."""
    files = frame.inputFiles()
    java = frame.sparkSession._jsparkSession  # noqa: SLF001 - no public way to subqueries
    if frame.sparkSession._jvm is not None:  # noqa: SLF001 - as above
        query = frame._jdf.queryExecution()  # noqa: SLF001 - as above
        plans = [query.analyzed(), *items(query.analyzed().subqueriesAll())]
        rows = java_class(frame.sparkSession, "org.apache.spark.sql.classic.Dataset").ofRows
        found = [rows(java, plan) for plan in plans[1:]]
        for plan, part in zip(plans, [frame._jdf, *found], strict=True):  # noqa: SLF001 - as above
            if part is not frame._jdf:  # noqa: SLF001 - as above
                files += part.inputFiles()
            leaves = items(part.queryExecution().optimizedPlan().collectLeaves())
            if any(leaf.getClass().getSimpleName() == "InMemoryRelation" for leaf in leaves):
                # The relations themselves are not cached.
                for relation in items(plan.collectLeaves()):
                    files += rows(java, relation).inputFiles()
    return files


def _local(location: str) -> str:
    """A local path with its links resolved; other locations unchanged."""
    if location.startswith("file:"):
        location = urllib.parse.unquote("/" + location.removeprefix("file:").lstrip("/"))
    return os.path.realpath(location) if location.startswith("/") else location
