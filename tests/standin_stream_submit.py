"""Replaces spark-submit where a test needs a driver of a stream: the real driver program, without the JVM.

Its query has a trigger every 50 ms with ten rows. Files in the folder of the job change it: `idle` (triggers
without rows), `hangs` (the current micro-batch does not end), `fails` (the micro-batch after the request to
stop fails), `crashes` (it kills the driver instead), `fails now` (removed by the failure), `late` (the driver
does not take its attempt yet, and creates `is late`).
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from queues import timestamp
from spark_runner.driver import driver, jvm
from spark_runner.protocol.run_plan import RunPlan
from spark_runner.sql.execution.stream_control import StreamControl
from tests.standin_submit import StandInWatch, stand_in_spark

_TRIGGER_SECONDS = 0.05


def run_stream(
    _spark: Any,
    plan: RunPlan,
    report: Callable[[str], None],
    _bad_rows: list[dict[str, Any]],
    control: StreamControl,
) -> list[dict[str, Any]]:
    """Trigger until the control asks for the end."""
    folder, batch, total = Path(plan.directory), 0, 0
    report("INSERT INTO sold")
    while True:
        if (folder / "fails now").exists():
            (folder / "fails now").unlink()
            raise RuntimeError("a micro-batch has failed")
        rows = 0 if (folder / "idle").exists() else 10
        batch, total = batch + (rows > 0), total + rows
        facts = {"batch": batch, "rows": rows, "total_rows": total, "at": timestamp()}
        control.triggered("sold", facts)
        is_last = control.stopping.wait(_TRIGGER_SECONDS)
        while (folder / "hangs").exists():
            time.sleep(_TRIGGER_SECONDS)
        if is_last:
            break
    if (folder / "fails").exists():
        raise RuntimeError("the last micro-batch has failed")
    if (folder / "crashes").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return [{"target": "sold", "rows": total, "batches": batch}]


def wait_for_start(plan: Path) -> None:
    """Wait until the driver may take its attempt."""
    folder = Path(json.loads(plan.read_bytes())["directory"])
    while (folder / "late").exists():
        (folder / "is late").touch()
        time.sleep(_TRIGGER_SECONDS)


if __name__ == "__main__":
    wait_for_start(Path(sys.argv[-1]))
    setattr(jvm, "SparkSession", stand_in_spark())  # noqa: B010 - a replacement that mypy would refuse
    setattr(driver, "SparkMonitor", StandInWatch)  # noqa: B010 - likewise
    setattr(driver, "run_program", run_stream)  # noqa: B010 - likewise
    sys.exit(driver.main(sys.argv[-1:]))
