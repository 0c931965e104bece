"""In place of spark-submit where a test needs many drivers, or one that dies at a chosen point.

It runs the real driver program with its real attempt protocol, without the JVM: seconds less per job. The
same tests with the real spark-submit are in tests/acceptance.
"""

import sys
from types import SimpleNamespace
from typing import Any

from spark_runner import driver, holder


class StandInSession:
    """As much of a SparkSession as the driver program itself touches."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(applicationId="local-standin")

    def stop(self) -> None:
        return


def no_stages(_spark: Any) -> dict[str, Any]:
    return {"application_id": "local-standin", "stages": []}


if __name__ == "__main__":
    session = StandInSession()
    builder = SimpleNamespace(getOrCreate=lambda: session)
    spark = SimpleNamespace(builder=builder, getActiveSession=lambda: session)
    setattr(driver, "SparkSession", spark)  # noqa: B010 - a replacement that mypy would refuse
    setattr(holder, "stage_progress", no_stages)  # noqa: B010 - likewise
    sys.exit(driver.main(sys.argv[-1:]))
