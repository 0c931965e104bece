"""The process of a warm server: it opens its JVM to drivers, sees dead ones off, and ends when it is time to.

A JVM that has worked for long, or for many, is replaced: what leaks in it, and what an unlucky job has left
there, goes with it. The workers start the next one as soon as this one drains.
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

from spark_runner.class_sample import go_through
from spark_runner.folder import refuse
from spark_runner.own_process import end_with_parent, keep_streams_apart
from spark_runner.proc import rss
from spark_runner.sql.shared_jvm import JAVA_FUNCTIONS
from spark_runner.warm.eviction import Eviction
from spark_runner.warm.files import Gateway, ServerFiles

LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Recycling:
    """When a JVM has served for long enough; 0 = no limit."""

    age: float = 0.0  # seconds
    jobs: int = 0  # that have entered it
    memory: int = 0  # bytes that it has resident
    alone: float = 20.0  # seconds without a worker: one that is started anew finds the server that it had
    # From the choice of a server to the driver's entry takes half a second; a driver that comes later than so
    # many seconds finds none, and is submitted again.
    late: float = 15.0

    def reason(self, *, age: float, jobs: int, memory: int) -> str:
        """Why it has; empty while it has not."""
        if self.age and age >= self.age:
            return f"it is {age:.0f} s old"
        if self.jobs and jobs >= self.jobs:
            return f"{jobs} drivers have come"
        if self.memory and memory >= self.memory:
            return f"it takes {memory >> 20} MiB"
        return ""


def main(arguments: Sequence[str]) -> int:
    """Serve until the end; the plan in the only argument says when that is."""
    end_with_parent()
    keep_streams_apart()
    plan_file = Path(arguments[0])
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    recycling = Recycling(**plan["recycling"])
    spark = SparkSession.builder.getOrCreate()
    if plan["rehearsal"]:
        go_through(spark)
    forget_java(spark)
    # It works for definitions of many folders, and a worker chooses it for none that needs its own.
    refuse(spark, "relative paths mean nothing in a warm server")
    files = ServerFiles(plan_file.parent)
    eviction = Eviction(spark, files)
    files.open(Gateway(int(os.environ["PYSPARK_GATEWAY_PORT"]), os.environ["PYSPARK_GATEWAY_SECRET"]))
    _say("open")
    _serve(files, eviction, recycling)
    spark.stop()
    return 0


def forget_java(spark: SparkSession) -> None:
    """Take the functions that call Java from all sessions to come; no job that calls them should be here."""
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
            os.kill(jvm, signal.SIGKILL)  # which takes us along; its own way out would wait for the query
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
