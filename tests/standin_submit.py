"""Replaces spark-submit in tests that need many drivers, or a driver that dies at a chosen point.

It runs the real driver program with the real attempt protocol, without a JVM: seconds less per job.
tests/acceptance covers the same with the real spark-submit.
"""

import sys
from types import SimpleNamespace
from typing import Any, ClassVar

from spark_runner.driver import driver, jvm


class StandInSession:
    """The part of a SparkSession that the driver program uses."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(applicationId="local-standin")

    def stop(self) -> None:
        return


class StandInWatch:
    """Replaces the monitor of Spark."""

    application: ClassVar[dict[str, str]] = {"application_id": "local-standin"}

    def __init__(self, _spark: Any, _on_news: Any, _job_group: Any) -> None:
        return

    def start(self) -> None:
        return

    def shown(self) -> dict[str, Any]:
        sample = {
            "metrics": {"driver": {"heap_live_peak_bytes": 1 << 20}},
            "settings": {"spark.driver.memory": "1g"},
        }
        return {**self.application, "stages": [], "sample": sample}

    def finish(self) -> dict[str, Any]:
        return self.measured()

    def measured(self) -> dict[str, Any]:
        return {"input_bytes": 1000, "input_rows": 10}


def stand_in_spark() -> Any:
    """Replaces the class SparkSession."""
    session = StandInSession()
    builder = SimpleNamespace(getOrCreate=lambda: session)
    builder.config = lambda **_: builder
    return SimpleNamespace(builder=builder, getActiveSession=lambda: session)


if __name__ == "__main__":
    setattr(jvm, "SparkSession", stand_in_spark())  # noqa: B010 - a replacement that mypy would refuse
    setattr(driver, "SparkMonitor", StandInWatch)  # noqa: B010 - likewise
    sys.exit(driver.main(sys.argv[-1:]))
