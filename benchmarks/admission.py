"""The cost of the guard of memory and pressure in throughput, on a host whose jobs keep it busy.

Three worker processes with two slots each, thirty jobs with real local drivers that do next to nothing, and
an embedded server; the peer is the same with the guard off, alternating in one run. A round takes about two
minutes on two idle cores. Last line: JSON; `ratio` is guarded / unguarded in jobs per second, `refusals` the
number of times that workers began to refuse jobs, which must be 0.

    python benchmarks/admission.py [--jobs 30] [--workers 3] [--slots 2] [--rounds 2]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from orchestrator import Client
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from queues import EmbeddedZooKeeper, ServerConfig

DEAD_SECONDS = 1800.0
LOOK_SECONDS = 0.05
PROGRAM = (
    "from pyspark.sql import SparkSession\nassert SparkSession.builder.getOrCreate().range(9).count() == 9\n"
)
UNGUARDED = {"ORCHESTRATOR_MEMORY_GUARD": "false", "ORCHESTRATOR_MEMORY_PRESSURE_LIMIT": "0"}


class Site:
    """One server, on which each round has its own root, state directory and workers."""

    def __init__(self, hosts: str, folder: Path, *, jobs: int, workers: int, slots: int) -> None:
        self._hosts, self._folder = hosts, folder
        self._jobs, self._workers, self._slots = jobs, workers, slots
        self._rounds = self.refusals = 0

    def jobs_per_second(self, guard: dict[str, str]) -> float:
        """From the first submission to the last end."""
        self._rounds += 1
        root, state = f"/round-{self._rounds}", self._folder / f"state-{self._rounds}"
        environment = {
            **os.environ,
            "ZOOKEEPER_HOSTS": self._hosts,
            "ORCHESTRATOR_ROOT": root,
            "ORCHESTRATOR_STATE_DIR": str(state),
            "ORCHESTRATOR_SLOTS": str(self._slots),
            "ORCHESTRATOR_CLASS_ARCHIVES": "false",  # else made in the first round
            **guard,
        }
        words = self._folder / f"workers-{self._rounds}.log"
        with words.open("wb") as log:
            command = [sys.executable, "-m", "orchestrator", "worker"]
            workers = [
                subprocess.Popen(command, env=environment, stdout=log, stderr=log)
                for _ in range(self._workers)
            ]
        try:
            with Client.connect(self._hosts, root=root) as client:
                return self._jobs / self._seconds(client)
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
            self.refusals += words.read_text("utf-8").count(" taken: ")

    def _seconds(self, client: Client) -> float:
        document = {"name": "next-to-nothing", "python": PROGRAM, "spark": {"master": "local[1]"}}
        definition = build_definition(document, "benchmark")
        while len(client.status().workers) < self._workers:
            time.sleep(LOOK_SECONDS)
        began = time.monotonic()
        for job in [client.submit(definition) for _ in range(self._jobs)]:
            ended = client.wait(job.id, timeout=DEAD_SECONDS)
            if ended.status is not Status.SUCCESS:
                sys.exit(f"{job.id} is {ended.status}: {ended.error}")
        return time.monotonic() - began


def main() -> None:
    """Alternate both, each first in every other round, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    kinds: dict[str, dict[str, str]] = {"guarded": {}, "unguarded": UNGUARDED}
    rates: dict[str, list[float]] = {kind: [] for kind in kinds}
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedZooKeeper(ServerConfig(Path(folder) / "zookeeper", long_run=True)) as server,
    ):
        site = Site(
            server.hosts,
            Path(folder),
            jobs=arguments.jobs,
            workers=arguments.workers,
            slots=arguments.slots,
        )
        for number in range(arguments.rounds):
            for kind in list(kinds)[:: 1 if number % 2 else -1]:
                rates[kind].append(site.jobs_per_second(kinds[kind]))
                print(f"{kind}: {arguments.jobs / rates[kind][-1]:.0f} s", flush=True)
    medians = {kind: statistics.median(found) for kind, found in rates.items()}
    figures = {f"{kind}_jobs_per_minute": 60 * rate for kind, rate in medians.items()}
    print(
        json.dumps({**figures, "refusals": site.refusals, "ratio": medians["guarded"] / medians["unguarded"]})
    )


if __name__ == "__main__":
    main()
