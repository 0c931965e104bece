"""Folders that a log makes a table: the files in them that the log does not have are no rows."""

import contextlib
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.files.hadoop import file_system_at

_LAKES = {"_delta_log": "Delta Lake", "metadata/*.metadata.json": "Iceberg"}
_LOGS = {"_spark_metadata": "a stream of Spark", ".hoodie": "Hudi", **_LAKES}


def refuse_logged_target(session: SparkSession, path: str) -> None:
    """Raise ConnectorError if a folder has a log: its readers would not see the files of an INSERT."""
    if log := _log_in(session, path, _LOGS):
        raise ConnectorError(
            f"refused: '{path}' is a table of {_LOGS[log]} ('{log}'), whose readers see only the files in its"
            f" log{_advice(log)}; choose another path"
        )


def refuse_lake(session: SparkSession, path: str) -> None:
    """Raise ConnectorError if a folder is a table of a lake: it has files with old and deleted rows, too.

    `path` may be a pattern. A location that cannot be read is no error here: who reads it reports that.
    """
    with contextlib.suppress(Py4JJavaError):
        if log := _log_in(session, path, _LAKES):
            raise ConnectorError(
                f"refused: '{path}' is a table of {_LAKES[log]} ('{log}'), whose files also have old and"
                f" deleted rows{_advice(log)}"
            )


def _log_in(session: SparkSession, path: str, logs: Mapping[str, str]) -> str:
    """The log in a folder, or in one that a pattern names; empty without one."""
    for log in logs:
        files, pattern = file_system_at(session, f"{path.rstrip('/')}/{log}")
        if files.globStatus(pattern):
            return log
    return ""


def _advice(log: str) -> str:
    if log not in _LAKES:
        return ""
    return "; name it as a table of a catalog (docs/connectors/lake.md)"
