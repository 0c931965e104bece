"""Scripts with tables on the topics of one test."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.references.resolver import Resolver
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.preview import preview
from spark_runner.sql.execution.stream_control import StreamControl
from tests.servers.kafka import Topics
from tests.stream_driver import plan_of

STREAM, BATCH = "SET job.mode = 'available-now';\n", "SET job.mode = 'batch';\n"
COPY = "INSERT INTO dst SELECT * FROM src"


class Tables:
    """Scripts on the topics of one test."""

    def __init__(self, spark: SparkSession, topics: Topics, folder: Path) -> None:
        self.spark, self._topics, self.folder = spark, topics, folder
        self.bad_rows: list[dict[str, Any]] = []

    def kafka(self, name: str, columns: str, topic: str, **options: Any) -> str:
        """A table of one topic, or without a topic of those that an option names."""
        given = {"topic": topic} if topic else {}
        given |= {"bootstrap_servers": self._topics.kafka.servers, **options}
        listed = ", ".join(f"{key} '{value}'" for key, value in given.items())
        return f"CREATE TABLE {name} ({columns}) USING kafka OPTIONS ({listed});\n"

    def files(self, columns: str) -> str:
        return f"CREATE TABLE dst ({columns}) USING parquet OPTIONS (path '{self.folder}/out');\n"

    def run(
        self,
        script: str,
        control: StreamControl | None = None,
        resolver: Resolver | None = None,
        checkpoint: dict[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        self.bad_rows = []
        plan = {**plan_of(script, self.folder), "quarantine": f"{self.folder}/bad", "checkpoint": checkpoint}
        return execute(
            self.spark, plan, lambda _: None, control=control, bad_rows=self.bad_rows, resolver=resolver
        )

    def preview(self, script: str, name: str) -> list[list[str | None]]:
        rows: list[list[str | None]] = preview(
            self.spark, plan_of(f"{script}SELECT 1", self.folder), name, 10, 80
        )["rows"]
        return rows

    def written(self) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self.spark.read.parquet(f"{self.folder}/out").collect()), key=str)


def values(*rows: Any) -> list[bytes]:
    return [each if isinstance(each, bytes) else json.dumps(each).encode() for each in rows]
