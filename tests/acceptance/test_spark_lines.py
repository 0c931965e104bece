"""The supported lines of Spark, each in a pool of its own, on one worker at the same time."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.config.installations import pool_installations
from orchestrator.config.spark_defaults import pool_spark, warm_specs
from spark_runner.runners.installation import SparkInstallation, find_installation, own_installation
from spark_runner.runners.spark_submits import SparkSubmits
from tests.acceptance.fork_server import ForkServer
from tests.acceptance.support import SPARK_TIMEOUT_S, Running, Shell, assert_nothing_is_left, has_started
from tests.class_archive import archive_of
from tests.jar_support import make_jar
from tests.jobs_support import ENVIRONMENT_MARK
from tests.servers.spark_lines import environment_of, locked_lines
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

LINES = locked_lines()
OWN = "default"
"""The pool that uses the Spark of the worker."""

SQL = "CREATE TABLE shown USING print; INSERT INTO shown SELECT CONCAT('version: ', version()) AS v;"
TOGETHER = """
import os, sys, time
from pathlib import Path
import pyspark
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
name, *others = sys.argv[1:]
Path(name).touch()
while not all(map(os.path.exists, others)):
    time.sleep(0.1)
in_task = spark.sparkContext.parallelize([1], 1).map(lambda _: [pyspark.__version__, sys.prefix]).first()
maps = Path(f"/proc/{os.getppid()}/maps").read_text()
archives = {line.split("/")[-1] for line in maps.splitlines() if line.endswith(".jsa")} - {"classes.jsa"}
print("versions:", spark.version, pyspark.__version__, *in_task, *archives)
"""
STUCK = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession

started = sys.argv[1]  # that of the driver: a task has others

def wait(_):
    with open(started, "a") as file:
        file.write("started\\n")
    time.sleep(3600)

SparkSession.builder.getOrCreate().sparkContext.parallelize([1], 1).foreach(wait)
"""


def pool_of(line: str) -> str:
    """The pool that uses a line."""
    return f"spark-{line.replace('.', '-')}"


def warm_pool_of(line: str) -> str:
    """The pool of its warm server."""
    return f"warm-{line.replace('.', '-')}"


class Site:
    """A shell with a worker, whose pools have the lines of Spark."""

    def __init__(self, shell: Shell, installations: dict[str, SparkInstallation]) -> None:
        self.shell, self.installations = shell, installations
        tables = {"*": {"master": "local[1]", "start": "fast"}}
        for line, installation in installations.items():
            home = {"spark_home": str(Path(installation.python).parents[1])}
            tables |= {pool_of(line): home, warm_pool_of(line): {**home, "start": "warm"}}
        specs = warm_specs(tables, pool_spark(tables), pool_installations(tables).of)
        self.warm_keys = {spec.spark: spec.key for spec in specs}
        lines = [
            f"spark.{json.dumps(pool)}.{name} = {json.dumps(value)}"
            for pool, table in tables.items()
            for name, value in table.items()
        ]
        shell.environment["ORCHESTRATOR_CONFIG"] = str(shell.write("config.toml", "\n".join(lines)))
        self.worker: Running = shell.start("worker", "--slots", str(len(LINES) + 1))

    def submit(self, pool: str, **definition: Any) -> str:
        """Submit a job of one attempt to a pool."""
        job_id = f"job-{uuid.uuid4().hex[:8]}"
        text = yaml.safe_dump({"name": job_id, "pool": pool, "retry": {"attempts": 1}, **definition})
        file = self.shell.write(f"{job_id}.yaml", text)
        ended = self.shell.type("job", "submit", file.name, "--id", job_id)
        assert ended.code == 0, ended.stderr
        return job_id

    def output(self, job_id: str) -> str:
        """What a job has printed, after its success."""
        ended = self.shell.type("job", "wait", job_id, "--timeout", f"{SPARK_TIMEOUT_S}s")
        logs = self.shell.type("job", "logs", job_id)
        assert ended.code == 0, ended.stderr + logs.stdout + self.worker.stderr
        return logs.stdout

    def submission(self, job_id: str) -> Path:
        """The directory of the only submission of a job."""
        texts = {path: (path / "plan.json").read_text("utf-8") for path in self.shell.submissions()}
        (found,) = [path for path, text in texts.items() if json.loads(text)["job"]["id"] == job_id]
        return found

    def close(self) -> None:
        self.shell.close()
        # Warm servers would stay for 20 s without a worker, and drivers of a failed test for ever.
        for submits in map(SparkSubmits, (self.shell.state_dir, self.shell.state_dir / "warm")):
            for run in (submits.state_dir / "runs").glob("*"):
                submits.kill(run.name, grace_seconds=0)


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer, zookeeper_hosts: str
) -> Iterator[Site]:
    installations = {line: find_installation(environment_of(line)) for line in LINES}
    mark, folder = uuid.uuid4().hex, tmp_path_factory.mktemp("lines")
    shell = Shell(folder, fork_server)
    shell.environment |= {
        "ZOOKEEPER_HOSTS": zookeeper_hosts,
        "ORCHESTRATOR_ROOT": f"/lines-{mark}",
        ENVIRONMENT_MARK: mark,
    }
    made = Site(shell, installations)
    try:
        yield made
    finally:
        made.close()
    assert_nothing_is_left(mark)


def test_four_lines_run_side_by_side_on_one_worker_each_with_its_python_and_class_archive(site: Site) -> None:
    site.shell.write("together.py", TOGETHER)
    pools = {**{line: pool_of(line) for line in LINES}, OWN: OWN}
    jobs = {
        name: site.submit(pool, python="together.py", arguments=[name, *pools])
        for name, pool in pools.items()
    }
    found = {
        name: site.output(job).split("versions: ")[1].splitlines()[0].split() for name, job in jobs.items()
    }
    own = own_installation()
    assert own is not None
    assert found.pop(OWN)[:3] == [own.version] * 3
    for line, version in LINES.items():
        *versions, python, archive = [*found[line], "none"][:5]
        assert versions == [version] * 3
        assert python == str(environment_of(line))
        made = archive_of(site.installations[line])
        if made is None:
            unavailable(f"no class archive for Spark {version}: `make prepared` makes it")
        assert archive == made.name
    assert len({words[-1] for words in found.values()}) == len(LINES), "each line has an archive of its own"


@pytest.mark.parametrize("line", LINES)
def test_scripts_and_jars_run_with_the_spark_of_their_pool(site: Site, line: str) -> None:
    jar = make_jar("Program", site.shell.directory)
    site.shell.write("version.sql", SQL)
    script = site.submit(pool_of(line), script="version.sql")
    program = site.submit(pool_of(line), jar=jar.name, **{"class": "Program", "arguments": ["1", "version"]})
    for job in (script, program):
        assert f"version: {LINES[line]}" in site.output(job)


@pytest.mark.parametrize("line", LINES)
def test_a_kill_ends_a_job_of_each_line(site: Site, line: str) -> None:
    started = site.shell.directory / f"started-{line}"
    site.shell.write("stuck.py", STUCK)
    job = site.submit(pool_of(line), python="stuck.py", arguments=[str(started)])
    wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "a task runs")
    assert site.shell.type("job", "kill", job).code == 0
    assert site.shell.type("job", "wait", job, "--timeout", "60s").code == 1
    assert site.shell.job(job)["status"] == "KILL"
    assert (site.submission(job) / "exit.json").exists(), "its shim has ended all its processes"


@pytest.mark.parametrize("line", LINES)
def test_a_script_runs_in_the_warm_server_of_its_line(site: Site, line: str) -> None:
    key = site.warm_keys[site.installations[line]]
    site.worker.wait_for_words(f"the warm server warm-{key}-")
    site.shell.write("version.sql", SQL)
    job = site.submit(warm_pool_of(line), script="version.sql")
    assert f"version: {LINES[line]}" in site.output(job)
    assert (site.submission(job) / "warm").readlink().parent.name.startswith(f"warm-{key}-")
