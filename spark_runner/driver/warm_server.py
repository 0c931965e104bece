"""The process of a warm server: it opens its JVM to drivers, cleans up after dead ones, and ends at a limit.

A JVM is replaced after some time or number of drivers, which ends its leaks and the leftovers of failed jobs.
The workers start the next one as soon as this one drains.
"""

import json
import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.driver.class_sample import run_sample
from spark_runner.protocol.proc import rss
from spark_runner.protocol.process import end_with_parent, is_alive, keep_streams_apart
from spark_runner.protocol.warm_files import Gateway, Recycling, ServerFiles, ServerPlan, Tenant
from spark_runner.sql.execution.folder import refuse_relative_paths
from spark_runner.sql.restrictions import JAVA_FUNCTIONS

# Spark interrupts the tasks of a cancelled job, but one in a tight loop of generated code does not react.
# Such a query costs the JVM: its other drivers are lost and run again, as after a crash.
PATIENCE_SECONDS = 5.0
_TASK = re.compile(r"Executor task launch worker for task .* in stage (\d+)\.\d+ \(TID \d+\)")
_TASK_CLASS = "org.apache.spark.executor.Executor$TaskRunner"


class Eviction:
    """Runs repeatedly in the process of the server; raises errors of py4j."""

    def __init__(self, spark: SparkSession, files: ServerFiles) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._scala: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - as below
        self._jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public access to the JVM
        self._files = files
        self._dead_since: dict[str, float] = {}
        self._gone = 0

    def look(self) -> tuple[int, int]:
        """Cancel the work of dead drivers, and remove those without remaining work.

        Returns the number of present drivers, dead ones included, and of all drivers so far. Raises
        TimeoutError for work that cannot be cancelled.
        """
        tenants = list(self._files.tenants())
        dead = [tenant for tenant in tenants if not is_alive(tenant.process)]
        self._dead_since = {
            tenant.mark: self._dead_since.get(tenant.mark, time.monotonic()) for tenant in dead
        }
        present = len(tenants) - sum(self._is_gone(tenant) for tenant in dead)
        self._gone += self._files.count_left()
        return present, present + self._gone

    def _is_gone(self, tenant: Tenant) -> bool:
        self._scala.cancelJobGroupAndFutureJobs(tenant.mark)
        jobs = set(self._tracker.getJobIdsForGroup(tenant.mark))
        threads = self._threads()
        # The thread serves the connection of the driver, and ends as soon as it is idle.
        if tenant.mark in threads:
            threads[tenant.mark].interrupt()
        elif jobs.isdisjoint(self._tracker.getActiveJobsIds()) and not self._has_tasks(jobs, threads):
            self._files.leave(tenant.incarnation)
            return True
        if time.monotonic() - self._dead_since[tenant.mark] > PATIENCE_SECONDS:
            message = f"the work of {tenant.mark} cannot be cancelled"
            raise TimeoutError(message)
        return False

    def _has_tasks(self, jobs: set[int], threads: dict[str, Any]) -> bool:
        """Whether a task of these jobs still runs: a cancelled job may have running tasks for a while."""
        infos = (self._tracker.getJobInfo(job) for job in jobs)
        stages = {stage for info in infos if info is not None for stage in info.stageIds}
        named = ((_TASK.fullmatch(name), thread) for name, thread in threads.items())
        return any(int(task[1]) in stages and _is_in_task(thread) for task, thread in named if task)

    def _threads(self) -> dict[str, Any]:
        """All threads of the JVM by name."""
        threads = self._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
        return {thread.getName(): thread for thread in threads}


def _is_in_task(thread: Any) -> bool:
    """Whether a thread with the name of a task runs it: before Spark 4.2, it keeps it while it is idle."""
    return any(frame.getClassName() == _TASK_CLASS for frame in thread.getStackTrace())


LOOK_SECONDS = 0.25


def main(arguments: Sequence[str]) -> int:
    """Serve until a limit of the plan is reached; the path of the plan is the only argument."""
    end_with_parent()
    keep_streams_apart()
    plan_file = Path(arguments[0])
    document = json.loads(plan_file.read_text(encoding="utf-8"))
    plan = ServerPlan.of(document)
    spark = SparkSession.builder.getOrCreate()
    if plan.rehearsal:
        run_sample(spark, document["sample"])
    remove_java_functions(spark)
    # It serves definitions of many folders, and workers do not choose it for scripts that need their own.
    refuse_relative_paths(spark, "relative paths mean nothing in a warm server")
    files = ServerFiles(plan_file.parent)
    eviction = Eviction(spark, files)
    files.open(Gateway(int(os.environ["PYSPARK_GATEWAY_PORT"]), os.environ["PYSPARK_GATEWAY_SECRET"]))
    _say("open")
    _serve(files, eviction, plan.recycling)
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
            # This ends this process too; an orderly end would wait for the query.
            os.kill(jvm, signal.SIGKILL)
            raise
        now = time.monotonic()
        if files.is_kept():
            kept = now
        if draining_since is None:
            reason = recycling.reason(age=now - began, jobs=came, memory=rss(jvm))
            if now - kept > recycling.alone:
                reason = "no worker keeps it running any more"
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
