"""Runs scripts whose rows do not all fit, and replays of these rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from orchestrator.model.plan import Plan
from orchestrator.model.row_replay import chosen, replay_plan
from orchestrator.model.set_aside import set_aside_in
from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute

Bad = list[dict[str, Any]]


def run_script(
    spark: SparkSession,
    folder: Path,
    *parts: str,
    replays: Bad | None = None,
    table: str | None = None,
    first: str = "",
    of: str = "first",
    of_attempt: int = 1,
    key: str = "first",
    attempt: int = 1,
    more: Mapping[str, Any] | None = None,
    sink: str = "",
) -> Bad:
    """Run a script, or replay rows of a run, that of the key `of`; returns the counts of bad rows.

    `first` is the script of the run that set them aside, if another one; `more` is a further step, `sink` the
    class of the sink of connector `print`.
    """
    plan = replayed_plan(folder, "".join(parts), replays, table, first=first, of=of, of_attempt=of_attempt)
    plan = {**plan, "steps": [*plan["steps"], *([more] if more else [])]}
    if sink:
        plan = with_sink(plan, sink)
    bad = Bad()
    plan = {**plan, "quarantine": f"file:{folder}/bad/{key}", "checkpoints": f"file:{folder}/points"}
    execute(spark, plan, lambda _phase: None, Writer(key, attempt), bad_rows=bad)
    return bad


def replayed_plan(
    folder: Path,
    text: str,
    replays: Bad | None,
    table: str | None = None,
    *,
    first: str = "",
    of: str = "first",
    of_attempt: int = 1,
) -> Plan:
    """The plan of a script; for the rows of a run if `replays` are its counts."""

    def compiled(script: str) -> Plan:
        return compile_script(script, file="s.sql", base_dir=str(folder), variables={})

    plan = compiled(text)
    if replays is None:
        return plan
    rows = chosen(set_aside_in({"bad_rows": replays}), table, "job")
    before = compiled(first) if first else plan
    attempt = None if "mode" in before else of_attempt
    return replay_plan(plan, rows, text=text, run_key=of, attempt=attempt, before=lambda: before)


def with_sink(plan: Plan, sink: str) -> Plan:
    """The plan with another sink for the tables of connector `print`."""
    steps = [
        {**step, "connector": "other"} if step.get("connector") == "print" else step for step in plan["steps"]
    ]
    return {**plan, "steps": steps, "connectors": {"other": {"source": "", "sink": sink}}}


def rows(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    """The rows of Parquet files, in an order that does not depend on the files."""
    found = spark.read.parquet(str(folder)).collect()
    return sorted((tuple(row) for row in found), key=repr)


def files(folder: Path) -> dict[str, bytes]:
    """The Parquet files below a folder."""
    return {str(file): file.read_bytes() for file in folder.rglob("*.parquet")}
