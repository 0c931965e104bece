"""The cost of a short job through a running worker, compared with plain spark-submit of the same work.

The peer is the whole process of `spark-submit` with Spark's own settings and a main file that runs the SQL of
examples/flights.sql on the flights of one month; ours is the time from the start of `job submit` until
SUCCESS is recorded, with a warm class archive, and in a warm server. All alternate in one run; then four at
once; before them, with programs that do nothing, the time from a submission until the process of its driver
exists. Each begins on an idle machine. Last line: JSON, with ratios of medians, and `stolen`, the share of
processor time that the host of this machine has given to others meanwhile.

    python benchmarks/start.py [--rounds 5] [--fours 2] [--starts 20] [--start fast] [--cache-dir DIR]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from quiet import Stolen, wait_idle
from run_overhead import spark_submit
from start_site import LOOK_SECONDS, Site, make_archive, run_ours, site, wait_warm
from start_work import Work

from orchestrator.model.definition import Definition
from orchestrator.model.states import Status
from spark_runner.protocol.attempt import run_name
from spark_runner.runners.run_directory import run_directories

WARM_UPS = 5  # jobs before the measurement: a server serves hundreds


def run_peers(program: Path, steps: list[Path]) -> float:
    """Wall seconds of plain spark-submits, all at once."""
    began = time.monotonic()
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    nothing = subprocess.DEVNULL
    started = [
        subprocess.Popen(
            [spark_submit(), str(program), str(file)], env=environment, stdout=nothing, stderr=nothing
        )
        for file in steps
    ]
    if any(process.wait() for process in started):
        sys.exit("spark-submit failed")
    return time.monotonic() - began


def start_seconds(here: Site, state_dir: Path) -> float:
    """From a submission until the process of its driver exists, to a hundredth of a second."""
    definition = Definition(name="nothing", python="pass")
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    job = here.client.submit(definition)
    run = run_name(here.client.detail(job.id).run_key, 1)
    while not (found := [d for d in run_directories(state_dir, run) if (d.path / "shim.json").exists()]):
        time.sleep(LOOK_SECONDS)
    driver = json.loads((found[0].path / "shim.json").read_bytes())["child"]
    here.client.kill(job.id)
    here.wait(job.id, Status.KILL)
    return driver["start"] / os.sysconf("SC_CLK_TCK") - began


def measure_overhead(folder: Path, starts: int) -> float:
    """The median of `start_seconds` with a Spark that does nothing."""
    program = folder / "spark" / "bin" / "spark-submit"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexec sleep 600\n", "ascii")
    program.chmod(0o755)
    off = {"SPARK_HOME": str(folder / "spark"), "ORCHESTRATOR_CLASS_ARCHIVES": "false"}
    with site(folder / "site", folder / "cache", **off) as here:
        state_dir = Path(here.environment["ORCHESTRATOR_STATE_DIR"])
        found = [start_seconds(here, state_dir) for _ in range(starts + 1)][1:]
    print("submission to driver: " + " ".join(f"{seconds:.2f}" for seconds in found))
    return statistics.median(found)


def measure_rounds(here: Site, work: Work, rounds: int) -> dict[str, float]:
    """Median seconds of one job, after a warm-up round."""
    wait_warm(Path(here.environment["ORCHESTRATOR_STATE_DIR"]))
    for _ in range(WARM_UPS):
        run_ours(here, [work.in_server])
    measured = {
        "orchestrator": lambda: run_ours(here, work.jobs[:1]),
        "spark_submit": lambda: run_peers(work.peer, work.steps[:1]),
        "warm": lambda: run_ours(here, [work.in_server]),
    }
    one_after_the_other(measured, "first round")
    return medians([one_after_the_other(measured, f"round {number + 1}") for number in range(rounds)])


def measure_fours(here: Site, work: Work, rounds: int) -> dict[str, float]:
    """Median seconds of four at once."""
    measured = {
        "orchestrator": lambda: run_ours(here, work.jobs),
        "spark_submit": lambda: run_peers(work.peer, work.steps),
    }
    return medians([one_after_the_other(measured, f"four at once {number + 1}") for number in range(rounds)])


def one_after_the_other(measured: Mapping[str, Callable[[], float]], title: str) -> dict[str, float]:
    """The seconds of each; each starts when the processes of the one before are idle."""
    seconds: dict[str, float] = {}
    for who, measure in measured.items():
        wait_idle()
        seconds[who] = measure()
    print(f"{title}: " + ", ".join(f"{who} {value:.2f} s" for who, value in seconds.items()), flush=True)
    return seconds


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The medians by measurement."""
    return {who: statistics.median(found[who] for found in rounds) for who in rounds[0]}


def rounded(seconds: dict[str, float]) -> dict[str, float]:
    """Rounded figures for the JSON."""
    return {who: round(value, 2) for who, value in seconds.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fours", type=int, default=2)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--start", choices=["auto", "fast", "full"], default="fast")
    parser.add_argument("--cache-dir", type=Path)
    given = parser.parse_args()
    stolen = Stolen()
    result: dict[str, object] = {"rounds": given.rounds, "start": given.start}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache_dir = given.cache_dir or folder / "cache"
        if given.starts:
            result["overhead_p50_seconds"] = round(measure_overhead(folder / "overhead", given.starts), 3)
        make_archive(cache_dir, is_short=given.start == "fast")
        work, config = Work.prepare(folder, given.start), folder / "config.toml"
        config.write_text('[spark."*"]\nstart = "warm"\n', "utf-8")
        with site(folder / "site", cache_dir, ORCHESTRATOR_CONFIG=str(config)) as here:
            if given.rounds:
                one = measure_rounds(here, work, given.rounds)
                result["seconds"] = rounded(one)
                result["ratio_archive"] = round(one["orchestrator"] / one["spark_submit"], 2)
                result["ratio_warm"] = round(one["warm"] / one["spark_submit"], 2)
            if given.fours:
                four = measure_fours(here, work, given.fours)
                result["seconds_four"] = rounded(four)
                result["ratio_four"] = round(four["orchestrator"] / four["spark_submit"], 2)
    result["stolen"] = round(stolen.share(), 2)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
