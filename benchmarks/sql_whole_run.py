"""Whole runs for benchmarks/sql.py: a job through a worker, and spark-submit of the same job by hand.

Ours is the time from the start of `job submit` until SUCCESS is recorded, in a JVM of its own with the usual
options and with the class archive that a worker makes on an idle host; the peer is the whole process of
`spark-submit` with the same Spark settings. They alternate, each on an idle machine.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from quiet import wait_idle
from run_overhead import spark_submit
from start_site import Site, make_archive, run_ours, site

_MASTER, _MEMORY = "local[2]", "1g"
_SETTINGS = {"spark.ui.enabled": "false"}


def whole_runs(folder: Path, script: str, by_hand: str, rounds: int) -> dict[str, float]:
    """Median seconds of both, without a first round that fills the caches of the host."""
    program, job = folder / "hand_written.py", folder / "job.json"
    program.write_text(by_hand, "utf-8")
    definition: dict[str, object] = {"name": "benchmark", "script": script, "directory": str(folder)}
    spark = {"master": _MASTER, "start": "full", "conf": _SETTINGS, "driver": {"memory": _MEMORY}}
    job.write_text(json.dumps({**definition, "spark": spark}), "utf-8")
    # Else the worker would make it beside the measured runs.
    make_archive(folder / "cache", is_short=False)
    with site(folder / "site", folder / "cache") as here:
        found = [_round(here, job, program, number) for number in range(rounds + 1)][1:]
    return {who: statistics.median(each[who] for each in found) for who in found[0]}


def _round(here: Site, job: Path, program: Path, number: int) -> Mapping[str, float]:
    wait_idle()
    seconds = {"hand_written": _run_by_hand(program)}
    wait_idle()
    seconds["script"] = run_ours(here, [job])
    print(f"whole run {number}: " + ", ".join(f"{who} {spent:.2f} s" for who, spent in seconds.items()))
    return seconds


def _run_by_hand(program: Path) -> float:
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    settings = [part for key, value in _SETTINGS.items() for part in ("--conf", f"{key}={value}")]
    command = [spark_submit(), "--master", _MASTER, "--driver-memory", _MEMORY, *settings, str(program)]
    nothing = subprocess.DEVNULL
    began = time.monotonic()
    subprocess.run(command, env=environment, stdout=nothing, stderr=nothing, check=True)
    return time.monotonic() - began
