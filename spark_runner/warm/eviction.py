"""Cancels everything that a dead driver left in the JVM of a warm server."""

import re
import time
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.process import is_alive
from spark_runner.warm.files import ServerFiles, Tenant

# Spark interrupts the tasks of a cancelled job, but one in a tight loop of generated code does not react.
# Such a query costs the JVM: its other drivers are lost and run again, as after a crash.
PATIENCE_SECONDS = 5.0
_TASK = re.compile(r"Executor task launch worker for task .* in stage (\d+)\.\d+ \(TID \d+\)")


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
        """Cancel the work of dead drivers, and remove those that have none left.

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
            message = f"what {tenant.mark} runs cannot be cancelled"
            raise TimeoutError(message)
        return False

    def _has_tasks(self, jobs: set[int], threads: dict[str, Any]) -> bool:
        """Whether a task of these jobs still runs: a cancelled job may have running tasks for a while."""
        infos = (self._tracker.getJobInfo(job) for job in jobs)
        stages = {stage for info in infos if info is not None for stage in info.stageIds}
        running = filter(None, map(_TASK.fullmatch, threads))
        return any(int(task[1]) in stages for task in running)

    def _threads(self) -> dict[str, Any]:
        """All threads of the JVM by name."""
        threads = self._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
        return {thread.getName(): thread for thread in threads}
