"""The loop with real jobs for `benchmarks/tuning.py`: a worker that applies its decisions, on real Spark.

For each job: the smallest heap that works is bisected; then the job runs from ten times as much, with the
decisions applied; then its input grows; at the end runs of both sizes alternate, for their times.

A heap works if the run succeeds, spills no more than with a large one, and takes at most a quarter more of
processor time, collections included, which says more than a duration where other work shares the machine.
"""

import json
import math
import statistics
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from start_site import Site, site
from tuning_jobs import JOBS

from orchestrator.model.definition import build_definition
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.signals import Sample

OVERSIZE = 10
GROWTH = 1.8
GRAIN = 64  # MiB
LEAST = 512  # MiB; below 450 Spark refuses to start
_MORE_WORK = 1.25
_TIME_ROUNDS = 3
_LARGE = 3072  # MiB, from which the bisection starts


@dataclass(frozen=True)
class Place:
    """Where the jobs run, and which heap is the one that matters."""

    name: str
    spark: Mapping[str, Any]
    heap: Resource


@dataclass(frozen=True)
class Ran:
    """One job: whether it succeeded, and its attempts as the history has them."""

    is_good: bool
    samples: tuple[Sample, ...]

    @property
    def seconds(self) -> float:
        """Of the last attempt."""
        return self.samples[-1].seconds or math.inf

    @property
    def work(self) -> float:
        """Processor time of the tasks of the last attempt, and of its collections, in seconds."""
        metrics = self.samples[-1].metrics
        return float(metrics.get("cpu_seconds", math.inf)) + float(metrics.get("gc_seconds", math.inf))

    @property
    def spilled(self) -> float:
        """Bytes of the last attempt."""
        return self.samples[-1].spilled or 0.0

    @property
    def failures(self) -> int:
        """Attempts that did not succeed."""
        return sum(not sample.is_good for sample in self.samples)


class Loop:
    """One job at one place."""

    def __init__(self, here: Site, place: Place, job: str) -> None:
        self._client, self._place, self._job = here.client, place, job
        self._program, self._rows = JOBS[job]

    def run(self, name: str, heap: int, *, mode: str, rows: int) -> Ran:
        """Run it once, with this heap asked for."""
        process, field = self._place.heap.value.split(".")
        spark = {**self._place.spark}
        spark[process] = {**spark.get(process, {}), field: f"{heap}m"}
        definition = {
            "name": name,
            "python": self._program,
            "arguments": [str(rows)],
            "spark": spark,
            "tuning": {"mode": mode},
            "retry": {"attempts": 4 if mode == "apply" else 1, "delay": "1s", "on": ["memory"]},
        }
        job_id = f"{name}-{uuid.uuid4().hex[:8]}"
        self._client.submit(build_definition(definition, "benchmark"), job_id=job_id)
        ended = self._client.wait(job_id)
        if not ended.attempt or (ended.error and ended.error.error_class != "memory"):
            sys.exit(f"{job_id} is {ended.status.value}: {ended.error}")
        runs = [run for run in self._client.history(name) if run.get("job") == job_id]
        samples = tuple(map(Sample.of, runs))
        is_good = ended.status.value == "SUCCESS"
        last = samples[-1]
        measured = f"{last.seconds or 0:.1f} s, GC {last.gc_share or 0:.1%}, spilled {last.spilled or 0:.0f}"
        given = f"{name} {self.given(last):.0f}m"
        print(f"  {given}: {ended.status.value}, {len(samples)} attempts, {measured}", flush=True)
        return Ran(is_good, samples)

    def given(self, sample: Sample) -> float:
        """The heap that a run had, in MiB."""
        return sample.allocated(self._place.heap) or math.nan

    def smallest(self, large: int) -> int:
        """The smallest heap that works, by bisection up to a grain."""
        name = f"{self._place.name}-{self._job}-probe"
        best = self.run(name, large, mode="off", rows=self._rows)
        if not best.is_good:
            sys.exit(f"{self._job} does not run with {large}m")
        most = _MORE_WORK * max(best.work, self.run(name, large, mode="off", rows=self._rows).work)
        low, high = LEAST - GRAIN, large
        while high - low > GRAIN:
            middle = max(LEAST, round(math.sqrt(max(low, 64) * high) / GRAIN) * GRAIN)
            middle = min(max(middle, low + GRAIN), high - GRAIN)
            works = any(self._works(name, middle, most, best.spilled) for _ in range(2))
            low, high = (low, middle) if works else (middle, high)
        return high

    def _works(self, name: str, heap: int, most: float, spilled: float) -> bool:
        found = self.run(name, heap, mode="off", rows=self._rows)
        return found.is_good and found.work <= most and found.spilled <= spilled

    def measure(self, runs: int, large: int) -> dict[str, Any]:
        """The whole measurement of a job; `large` is the heap from which the bisection starts, in MiB."""
        smallest = self.smallest(large)
        asked = OVERSIZE * smallest
        name = f"{self._place.name}-{self._job}"
        print(f"{name}: the smallest heap that works is {smallest}m; asked for: {asked}m", flush=True)
        steady = [self.run(name, asked, mode="apply", rows=self._rows) for _ in range(runs)]
        sizes = [self.given(each.samples[-1]) for each in steady]
        reached = next((n for n, size in enumerate(sizes, 1) if size <= 1.5 * smallest), None)
        grown = [self.run(name, asked, mode="apply", rows=int(GROWTH * self._rows)) for _ in range(3)]
        times: dict[str, list[float]] = {"asked": [], "tuned": []}
        final = int(sizes[-1])
        for _ in range(_TIME_ROUNDS):
            for which, heap in (("asked", asked), ("tuned", final)):
                times[which].append(self.run(f"{name}-time", heap, mode="off", rows=self._rows).seconds)
        return {
            "smallest": smallest,
            "asked": asked,
            "sizes": [round(size) for size in sizes],
            "after_growth": [round(self.given(each.samples[-1])) for each in grown],
            "runs": reached,
            "to_smallest": round(sizes[-1] / smallest, 3),
            "oom": sum(each.failures for each in steady),
            "oom_after_growth": sum(each.failures for each in grown),
            "reversals": reversals(sizes),
            "time": round(statistics.median(times["tuned"]) / statistics.median(times["asked"]), 3),
        }


def measure_real(places: Sequence[str], jobs: Sequence[str], runs: int) -> dict[str, Any]:
    """The measurements by place and job."""
    found: dict[str, Any] = {}
    for name in places:
        with (
            TemporaryDirectory() as folder,
            _place(name, Path(folder) / "cluster") as place,
            site(Path(folder) / "site", Path(folder) / "cache") as here,
        ):
            for job in jobs:
                measured = found[f"{name}_{job}"] = Loop(here, place, job).measure(runs, _LARGE)
                print(f"{name} {job}: {json.dumps(measured)}", flush=True)
    return found


@contextmanager
def _place(name: str, folder: Path) -> Iterator[Place]:
    """A local master, or a standalone cluster of one worker."""
    conf = {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}
    if name == "local":
        yield Place(name, {"master": "local[2]", "conf": conf, "start": "full"}, Resource.DRIVER_MEMORY)
        return
    from tests.servers.standalone import standalone_cluster  # noqa: PLC0415 - needs pytest

    with standalone_cluster(folder) as cluster:
        conf |= {"spark.driver.host": "127.0.0.1", "spark.cores.max": "2"}
        spark = {
            "master": cluster.url,
            "conf": conf,
            "start": "full",
            "driver": {"memory": "1g"},
            "executor": {"cores": 2},
            "standalone": {"rest": cluster.rest, "ui": cluster.ui},
        }
        yield Place(name, spark, Resource.EXECUTOR_MEMORY)


def reversals(sizes: list[float]) -> int:
    """How often the direction of the changes changes."""
    signs = [later > earlier for earlier, later in pairwise(sizes) if later != earlier]
    return sum(one is not other for one, other in pairwise(signs))
