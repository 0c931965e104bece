"""The process of a warm server: it opens its JVM to drivers, evicts dead ones, and ends when it is due.

A JVM is replaced after some time or number of drivers: its leaks, and the remains of failed jobs, end with
it. The workers start the next one as soon as this one drains.
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.class_sample import run_sample
from spark_runner.folder import refuse_relative_paths
from spark_runner.own_process import end_with_parent, keep_streams_apart
from spark_runner.proc import rss
from spark_runner.sql.shared_jvm import JAVA_FUNCTIONS
from spark_runner.warm.eviction import Eviction
from spark_runner.warm.files import Gateway, ServerFiles

LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Recycling:
    """The limits after which a JVM is replaced; 0 = no limit."""

    age: float = 0.0  # seconds
    jobs: int = 0  # that have entered it
    memory: int = 0  # resident bytes
    alone: float = 20.0  # seconds without a worker: a restarted one finds its server again
    # Seconds. A driver enters half a second after the choice of its server; one that is later than this finds
    # no server, and is submitted again.
    late: float = 15.0

    def reason(self, *, age: float, jobs: int, memory: int) -> str:
        """The limit that was reached; empty before that."""
        if self.age and age >= self.age:
            return f"it is {age:.0f} s old"
        if self.jobs and jobs >= self.jobs:
            return f"{jobs} drivers have come"
        if self.memory and memory >= self.memory:
            return f"it takes {memory >> 20} MiB"
        return ""


def main(arguments: Sequence[str]) -> int:
    """Serve until a limit of the plan is reached, whose path is the only argument."""
    end_with_parent()
    keep_streams_apart()
    plan_file = Path(arguments[0])
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    recycling = Recycling(**plan["recycling"])
    spark = SparkSession.builder.getOrCreate()
    if plan["rehearsal"]:
        run_sample(spark)
    remove_java_functions(spark)
    # It serves definitions of many folders, and workers do not choose it for scripts that need their own.
    refuse_relative_paths(spark, "relative paths mean nothing in a warm server")
    files = ServerFiles(plan_file.parent)
    eviction = Eviction(spark, files)
    files.open(Gateway(int(os.environ["PYSPARK_GATEWAY_PORT"]), os.environ["PYSPARK_GATEWAY_SECRET"]))
    _say("open")
    _serve(files, eviction, recycling)
    spark.stop()
    return 0


def remove_java_functions(spark: SparkSession) -> None:
    """Remove the functions that call Java from all later sessions; no job here may call them."""
    catalyst: Any = spark._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]  # noqa: SLF001
    for name in JAVA_FUNCTIONS:
        catalyst.analysis.FunctionRegistry.builtin().dropFunction(catalyst.FunctionIdentifier(name))


def _serve(files: ServerFiles, eviction: Eviction, recycling: Recycling) -> None:
    jvm = os.getppid()
    began = kept = time.monotonic()
    draining_since: float | None = None
    while True:
        try:
            present, came = eviction.look()
        except TimeoutError as error:
            _say(f"ends at once: {error}")
            os.kill(
                jvm, signal.SIGKILL
            )  # which ends this process too; an orderly end would wait for the query
            raise
        now = time.monotonic()
        if files.is_kept():
            kept = now
        if draining_since is None:
            reason = recycling.reason(age=now - began, jobs=came, memory=rss(jvm))
            if now - kept > recycling.alone:
                reason = "no worker keeps it any more"
            if reason:
                files.drain()
                _say(f"drains after {came} drivers: {reason}")
                draining_since = now
        elif not present and now - draining_since > recycling.late:
            _say("ends")
            return
        time.sleep(LOOK_SECONDS)


def _say(words: str) -> None:
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {words}", flush=True)  # noqa: T201 - its log
