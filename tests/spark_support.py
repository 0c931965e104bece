"""A real local Spark session for tests, one at a time per process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.class_archive import session_environment


def end_jvm() -> None:
    """End the JVM that an earlier session of this process has left."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark keeps it, and has no public way to let go
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - likewise


@contextmanager
def local_spark(warehouse: Path, conf: dict[str, str]) -> Iterator[SparkSession]:
    """A session with little noise and nothing that listens beyond loopback; stopped afterwards."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.sql.shuffle.partitions", "2")
    )
    for key, value in conf.items():
        builder = builder.config(key, value)
    end_jvm()  # what the command line of a JVM says, as jars, counts for its first session alone
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # what it imports is there for this interpreter
        for name, value in session_environment().items():
            patch.setenv(name, value)
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
