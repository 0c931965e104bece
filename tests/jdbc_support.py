"""Runs scripts whose tables are in a database."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
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
