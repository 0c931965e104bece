"""Runs scripts whose tables are in a database."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from spark_runner.connectors.base import Writer
from spark_runner.connectors.jdbc.cursor import CursorReader
from spark_runner.connectors.options import to_plan, validate
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from tests.servers.databases import PASSWORD, DatabaseServer
from tests.stream_driver import plan_of

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run_script(jdbc_spark: SparkSession, tmp_path: Path) -> Run:
    """Runs a script, as an attempt of a run of its own or of the run of this key."""

    def run(
        text: str, key: str = "", attempt: int = 1, control: StreamControl | None = None
    ) -> list[dict[str, Any]]:
        writer = Writer(key or uuid.uuid4().hex, attempt)
        return execute(jdbc_spark, plan_of(text, tmp_path), lambda _: None, writer, control=control)

    return run


def reader(database: DatabaseServer, kind: str = "bigint", **more: Any) -> CursorReader:
    """The reader of the columns `id` and `text` of the table `src`."""
    given = {"url": database.url, "username": database.user, "password": PASSWORD, "cursor_column": "id"}
    own = {name: more.pop(name) for name in ("password", "url", "username") if name in more}
    options = to_plan(validate("jdbc", given | {"table": "src"} | own))
    options |= {"start": None, "reached": [], "columns": {"id": kind, "text": "longtext"}}
    options |= {"cursor_type": kind, "is_whole": kind == "bigint"} | more
    names = ["row"] if database.kind == "postgresql" else ["c0", "c1"]
    return CursorReader(options, StructType([StructField(name, StringType()) for name in names]))
