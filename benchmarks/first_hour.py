"""What commands and workers cost in the first hour: all figures of one run, in one JSON on the last line.

- `--help`, compared with a process that imports nothing but typer.
- `job list` of many jobs, `--limit 20`, and `job show`, each compared with a process that only imports what
  the command imports: the difference is the time after the start. All alternate.
- Running jobs on two workers (see running_jobs), and jobs through all states (see lifecycle).

Seconds are medians of wall time; `processor` are those of the processor, which other processes of the
machine influence less. `stolen` is the share of processor time that the host has given to other machines.

    python benchmarks/first_hour.py [--rounds 9] [--listed 10000] [--running 10000] [--seconds 120]
        [--lives 2000] [--lifecycles 3]
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import lifecycle
import running_jobs
from loguru import logger
from noop_jobs import noop_items
from quiet import Stolen

from orchestrator.compose import build_queue_set, open_session
from orchestrator.config.settings import Settings
from orchestrator.model.states import Queue
from queues import EmbeddedZooKeeper, ServerConfig

WORKERS = 2
_PYTHON = [sys.executable, "-c"]
_ORCHESTRATOR = [sys.executable, "-m", "orchestrator"]
_STARTED = "import orchestrator.cli.app, orchestrator.cli.job.{0}, orchestrator.admin.views, queues.queue_set"
COMMANDS = {
    "typer": [*_PYTHON, "import typer"],
    "help": [*_ORCHESTRATOR, "--help"],
    "list_start": [*_PYTHON, _STARTED.format("listing")],
    "list": [*_ORCHESTRATOR, "job", "list"],
    "list_json": [*_ORCHESTRATOR, "job", "list", "-o", "json"],
    "list_20": [*_ORCHESTRATOR, "job", "list", "--limit", "20"],
    "show_start": [*_PYTHON, _STARTED.format("show")],
    "show": [*_ORCHESTRATOR, "job", "show", "job-00007"],
}


def costs(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of wall time and of the processor of one process."""
    before, started = _children_seconds(), time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started, _children_seconds() - before


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure_commands(listed: int, rounds: int) -> dict[str, object]:
    """Alternate all commands on a tree with so many jobs."""
    taken: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedZooKeeper(ServerConfig(Path(directory) / "zookeeper", long_run=True)) as server,
    ):
        environment = {**os.environ, "ZOOKEEPER_HOSTS": server.hosts, "ORCHESTRATOR_STATE_DIR": directory}
        # Installed packages are compiled by pip, a checkout by its first command, unless disabled.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        settings = Settings(zookeeper_hosts=server.hosts, state_dir=Path(directory))
        with open_session(settings, server.hosts) as session:
            queue_set = build_queue_set(session, settings, owner="benchmark")
            queue_set.ensure_pool()
            queue_set.put_many(Queue.ACCEPT, noop_items(listed), max_wait=60)
        for number in range(rounds + 1):
            for name, command in COMMANDS.items():
                spent = costs(command, environment)
                if number:  # the first round compiles and fills the caches
                    taken[name].append(spent)
    wall, processor = ({name: _median(spent, part) for name, spent in taken.items()} for part in (0, 1))
    return {"listed": listed, **_compared(wall), "processor": _compared(processor)}


def _median(spent: Sequence[tuple[float, float]], part: int) -> float:
    return statistics.median(each[part] for each in spent)


def _compared(seconds: Mapping[str, float]) -> dict[str, float]:
    after = {
        "list_after_start": seconds["list"] - seconds["list_start"],
        "list_json_after_start": seconds["list_json"] - seconds["list_start"],
        "list_20_after_start": seconds["list_20"] - seconds["list_start"],
        "show_after_start": seconds["show"] - seconds["show_start"],
    }
    return {"help_ratio": round(seconds["help"] / seconds["typer"], 3), **_rounded({**seconds, **after})}


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(figure, 3) for name, figure in figures.items()}


def main() -> None:
    """Measure and print; a part whose number is 0 is left out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--listed", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--lives", type=int, default=2_000)
    parser.add_argument("--lifecycles", type=int, default=3)
    given = parser.parse_args()
    logger.remove()
    stolen = Stolen()
    result: dict[str, object] = {}
    if given.rounds:
        result["commands"] = measure_commands(given.listed, given.rounds)
        print(json.dumps(result["commands"]), flush=True)
    if given.lifecycles:
        result["lifecycle"] = _rounded(lifecycle.measure(given.lives, WORKERS, given.lifecycles))
        print(json.dumps(result["lifecycle"]), flush=True)
    if given.running:
        result["running"] = _rounded(running_jobs.measure(given.running, WORKERS, given.seconds))
    print(json.dumps({**result, "stolen": round(stolen.share(), 3)}))


if __name__ == "__main__":
    main()
