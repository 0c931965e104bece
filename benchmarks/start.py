"""What a short job costs through a running worker, against plain spark-submit of the same work.

The peer is the whole process of `spark-submit` with Spark's own settings and a main file that runs the SQL of
examples/flights.sql on the flights of one month; ours is from the start of `job submit` until SUCCESS is
recorded, with a warm class archive, and in a warm server. All alternate in one run; then four at once; before
them, with programs that do nothing, the time from a submission until the process of its driver exists. Last
line: JSON, with ratios of medians.

    python benchmarks/start.py [--rounds 5] [--fours 2] [--starts 20] [--start fast] [--cache-dir DIR]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute
import pyarrow.parquet
from run_overhead import spark_submit

from orchestrator import Client
from orchestrator.models.definition import Definition
from orchestrator.states import Status
from queues.embedded import EmbeddedZooKeeper, ServerConfig
from queues.errors import ItemNotFound
from spark_runner.attempt import run_name
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.class_archive.archives import ClassArchives
from spark_runner.runners.class_archive.fit import fit_of
from spark_runner.runners.java_flags import SHORT_JOB_FLAGS, chosen_options, quick_flags
from spark_runner.runners.launch import driver_environment
from spark_runner.runners.run_directory import RunDirectory, run_directories
from spark_runner.sql.compile import compile_script
from spark_runner.sql.source import Passage, Source

EXAMPLES = Path(__file__).parent.parent / "examples"
DEAD_SECONDS = 900.0
LOOK_SECONDS = 0.01
WARM_UPS = 5  # jobs before the first that counts: a server serves hundreds
WARM_LOOK_SECONDS = 2.5  # a worker looks every two seconds whether a server has opened
PEER = """
import json, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for step in json.load(open(sys.argv[1])):
    if step["kind"] == "set":
        spark.conf.set(step["key"], step["value"])
    elif step["kind"] == "read":
        spark.read.parquet(step["path"]).createOrReplaceTempView(step["name"])
    elif step["kind"] == "view":
        spark.sql(step["query"]).createOrReplaceTempView(step["name"])
    else:
        spark.sql(step["query"]).write.mode("overwrite").format(step["format"]).save(step["path"])
spark.stop()
"""


def small_input(folder: Path) -> Path:
    """The script and its input, of one month."""
    (folder / "data").mkdir(parents=True)
    for path in (EXAMPLES / "data").glob("*.parquet"):
        shutil.copy(path, folder / "data")
    flights = pyarrow.parquet.read_table(folder / "data" / "flights.parquet")
    january = flights.filter(pyarrow.compute.equal(flights["month"], 1))
    pyarrow.parquet.write_table(january, folder / "data" / "flights.parquet")
    return Path(shutil.copy(EXAMPLES / "flights.sql", folder))


def peer_steps(script: Path) -> list[dict[str, str]]:
    """The same statements for plain PySpark."""
    text = script.read_text("utf-8")
    plan = compile_script(text, file=script.name, base_dir=str(script.parent), variables={})
    source, tables, steps = Source(script.name, text), {}, []
    for step in plan["steps"]:
        if step["kind"] == "set":
            steps.append({"kind": "set", "key": step["key"], "value": step["value"]})
        elif step["kind"] == "table":
            tables[step["name"]] = step
            if not step["written"]:
                steps.append({"kind": "read", "name": step["name"], "path": step["location"]})
        else:
            query = Passage.from_json(source, step["query"]).text
            if step["kind"] == "view":
                steps.append({"kind": "view", "name": step["name"], "query": query})
            else:
                target = tables[step["target"]]
                steps.append(
                    {
                        "kind": "insert",
                        "query": query,
                        "path": f"{target['location']}-peer",
                        "format": target["connector"],
                    }
                )
    return steps


@dataclass
class Site:
    """One ZooKeeper, one worker, one client."""

    client: Client
    worker: subprocess.Popen[bytes]
    environment: dict[str, str]

    def submit(self, file: Path, job_id: str) -> "subprocess.Popen[bytes]":
        """`job submit`, begun."""
        command = [sys.executable, "-m", "orchestrator", "job", "submit", str(file), "--id", job_id]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL)

    def wait(self, job_id: str, status: Status) -> None:
        """Until the record says so; any other end is an error."""
        deadline = time.monotonic() + DEAD_SECONDS
        while time.monotonic() < deadline:
            with suppress(ItemNotFound):  # `job submit` has not come so far
                job = self.client.get(job_id)
                if job.status is status:
                    return
                if job.ended:
                    sys.exit(f"{job_id} is {job.status}: {job.error}")
            time.sleep(LOOK_SECONDS)
        sys.exit(f"{job_id} has not come to {status}")


@contextmanager
def site(folder: Path, cache_dir: Path, **environment: str) -> Iterator[Site]:
    """A running worker of its own."""
    folder.mkdir(parents=True)
    with EmbeddedZooKeeper(ServerConfig(folder / "zookeeper", long_run=True)) as server:
        mine = {
            **os.environ,
            "ZOOKEEPER_HOSTS": server.hosts,
            "ORCHESTRATOR_STATE_DIR": str(folder / "state"),
            "ORCHESTRATOR_CACHE_DIR": str(cache_dir),
            "ORCHESTRATOR_SLOTS": "4",
            "ORCHESTRATOR_LOAD_LIMIT": "0",  # the machine may be busy with other things
            **environment,
        }
        log = (folder / "worker.log").open("wb")
        worker = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "worker"], env=mine, stdout=log, stderr=log
        )
        try:
            with Client.connect(server.hosts) as client:
                while not client.status().workers:
                    time.sleep(LOOK_SECONDS)
                yield Site(client, worker, mine)
        finally:
            worker.terminate()
            worker.wait()


def make_archive(cache_dir: Path, *, is_short: bool) -> None:
    """What a worker does in the background on an idle host."""
    archives = ClassArchives(cache_dir)
    request = SubmitRequest("benchmark-1", uuid.uuid4().hex, "benchmark", {})
    conf_dir = archives.conf_dir(cache_dir)
    environment = driver_environment(request, RunDirectory(cache_dir), conf_dir)
    chosen = chosen_options(environment, {}) or []
    flags = quick_flags(SHORT_JOB_FLAGS, chosen) if is_short else []
    fit = fit_of(environment, {}, [*chosen, *flags], conf_dir)
    assert fit is not None  # noqa: S101 - else there is nothing to measure
    with archives.store.locked():
        if archives.store.find(fit.key) is None:
            began = time.monotonic()
            archives.maker.make(fit)
            print(f"class archive made in {time.monotonic() - began:.1f} s")


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


def run_ours(here: Site, files: list[Path]) -> float:
    """Wall seconds from the first `job submit` until the last SUCCESS."""
    began = time.monotonic()
    jobs = [(file, uuid.uuid4().hex) for file in files]
    started = [here.submit(file, job_id) for file, job_id in jobs]
    for _, job_id in jobs:
        here.wait(job_id, Status.SUCCESS)
    seconds = time.monotonic() - began
    for process in started:
        process.wait()
    return seconds


def wait_warm(state_dir: Path) -> None:
    """Until the worker has a warm server that is open, and has seen it."""
    deadline = time.monotonic() + DEAD_SECONDS
    while not list((state_dir / "warm" / "runs").glob("*/*/server.json")):
        if time.monotonic() > deadline:
            sys.exit("no warm server has opened")
        time.sleep(LOOK_SECONDS)
    time.sleep(WARM_LOOK_SECONDS)


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


@dataclass
class Work:
    """The same SQL as jobs with JVMs of their own, as one that says nothing of that, and for the peer."""

    jobs: list[Path]
    in_server: Path
    peer: Path
    steps: list[Path]

    @classmethod
    def prepare(cls, folder: Path, start: str) -> "Work":
        """Four times, each with input and targets of its own."""
        folders = [small_input(folder / f"job-{number}").parent for number in range(4)]
        for each in folders:
            job = {"name": "flights", "script": "flights.sql", "spark": {"start": start}}
            (each / "job.yaml").write_text(json.dumps(job), "utf-8")
            (each / "peer.json").write_text(json.dumps(peer_steps(each / "flights.sql")), "utf-8")
        in_server, peer = folders[0] / "warm.yaml", folder / "peer.py"
        in_server.write_text(json.dumps({"name": "flights", "script": "flights.sql"}), "utf-8")
        peer.write_text(PEER, "utf-8")
        return cls(
            [each / "job.yaml" for each in folders], in_server, peer, [f / "peer.json" for f in folders]
        )


def measure_rounds(here: Site, work: Work, rounds: int) -> dict[str, float]:
    """Median seconds of one job, after a round that does not count."""
    wait_warm(Path(here.environment["ORCHESTRATOR_STATE_DIR"]))
    for _ in range(WARM_UPS):
        run_ours(here, [work.in_server])
    times: dict[str, list[float]] = {"orchestrator": [], "warm": [], "spark_submit": []}
    for number in range(rounds + 1):
        times["orchestrator"].append(run_ours(here, work.jobs[:1]))
        times["spark_submit"].append(run_peers(work.peer, work.steps[:1]))
        times["warm"].append(run_ours(here, [work.in_server]))
        print(f"round {number}: {told(times)}", flush=True)
    return {who: statistics.median(seconds[1:]) for who, seconds in times.items()}


def measure_fours(here: Site, work: Work, rounds: int) -> dict[str, float]:
    """Median seconds of four at once."""
    times: dict[str, list[float]] = {"orchestrator": [], "spark_submit": []}
    for number in range(rounds):
        times["orchestrator"].append(run_ours(here, work.jobs))
        times["spark_submit"].append(run_peers(work.peer, work.steps))
        print(f"four at once {number}: {told(times)}", flush=True)
    return {who: statistics.median(seconds) for who, seconds in times.items()}


def told(times: dict[str, list[float]]) -> str:
    """The last of each."""
    return ", ".join(f"{who} {seconds[-1]:.2f} s" for who, seconds in times.items())


def rounded(seconds: dict[str, float]) -> dict[str, float]:
    """For the JSON."""
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
    print(json.dumps(result))


if __name__ == "__main__":
    main()
