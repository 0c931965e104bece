"""The local runner with the real spark-submit."""

import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_runner.process import processes_of
from spark_runner.runners.base import RunState, SubmitRequest, Target
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.spark_log import readable_lines
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

START_SECONDS = 90.0  # Spark's start on two busy cores; 8 s when they are free
DRIVER = "import json, sys; exec(json.load(open(sys.argv[1]))['code'])"
SESSION = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate(); "
OUTCOME = "json.dump({}, open('outcome.json', 'w')); "
SECRET = "correct-horse-battery"  # noqa: S105  # a made-up one, to be searched for
ODD = {
    "spark.odd.signs": "a=b:c#d!e \\ \"quoted\" 'single' $x ${nothing} %s;|&<>*",
    "spark.odd.unicode": "žluťoučký 😀 \u2028 €",
    "spark.odd.lines": "one\ntwo\r\n\tthree",
    "spark.odd.trailing": "C:\\dir\\",
    "spark.odd.empty": "",
    "spark.odd key=with:signs": "x",
    "spark.odd.secret": SECRET,
}


@pytest.fixture
def run() -> str:
    return f"{uuid.uuid4()}-1"


@pytest.fixture
def runner(tmp_path: Path, run: str) -> Iterator[LocalRunner]:
    main = tmp_path / "driver.py"
    main.write_text(DRIVER, "utf-8")
    # A blank and a letter beyond ASCII: the path goes through a shell script and two Java parsers.
    runner = LocalRunner(SparkSubmits(tmp_path / "stáv dir"), driver_main=main)
    yield runner
    runner.kill(run, grace_seconds=0)


def request(run: str, code: str, **more: Any) -> SubmitRequest:
    return SubmitRequest(run, str(uuid.uuid4()), "a name", {"code": code}, target=Target("local[2]"), **more)


def logs(runner: LocalRunner, run: str) -> dict[str, str]:
    return {log.stream: readable_lines(log.path.read_bytes()).decode() for log in runner.logs(run)}


def exited(runner: LocalRunner, run: str) -> Any:
    wait_until(lambda: runner.find(run)[0].state is not RunState.RUNNING, START_SECONDS, "the driver's end")
    return runner.find(run)[0]


def test_a_trivial_job_succeeds_and_leaves_clean_logs(runner: LocalRunner, run: str) -> None:
    runner.submit(
        request(
            run,
            SESSION + "n = spark.range(1000).count(); print('counted', n); " + OUTCOME.format("dict(n=n)"),
            conf={
                "spark.driver.extraJavaOptions": '-Dmine="with blank"',
                "spark.driver.memory": "512m",
            },
        )
    )
    found = exited(runner, run)
    written = logs(runner, run)
    assert (found.state, found.exit_code, found.outcome) == (RunState.EXITED, 0, {"n": 1000}), written
    # The JVM's one line; not ours to switch off, as Spark itself asks for the module.
    assert written["stderr"] in ("", "WARNING: Using incubator modules: jdk.incubator.vector\n")
    assert [line for line in written["stdout"].splitlines() if "Warning" not in line] == ["counted 1000"]
    assert "INFO SparkContext: Running Spark version" in written["spark"]
    wait_until(lambda: not processes_of(run), 10, "the end of the shim")


def test_odd_settings_arrive_intact_and_secrets_show_nowhere(runner: LocalRunner, run: str) -> None:
    read = "{k: v for k, v in spark.sparkContext.getConf().getAll() if k.startswith('spark.odd')}"
    mine = "spark.sparkContext._jvm.java.lang.System.getProperty('mine')"
    host = "spark.conf.get('spark.driver.host')"
    code = SESSION + OUTCOME.format(f"[{read}, {mine}, {host}]").replace("outcome.json", "read.json")
    code += "import time; time.sleep(60)"
    conf = ODD | {"spark.driver.extraJavaOptions": '-Dmine="with blank"'}
    runner.submit(request(run, code, conf=conf))
    path = runner.logs(run)[0].path.with_name("read.json") if runner.logs(run) else None
    commands: set[bytes] = set()

    def all_read() -> Any:
        nonlocal path
        path = path or next((log.path.with_name("read.json") for log in runner.logs(run)), None)
        for pid in processes_of(run):
            try:
                commands.add(Path(f"/proc/{pid}/cmdline").read_bytes())
            except OSError:
                continue
        assert runner.find(run)[0].state is RunState.RUNNING, logs(runner, run)
        try:
            return json.loads(path.read_bytes()) if path else None
        except (FileNotFoundError, ValueError):
            return None

    values, java_property, driver_host = wait_until(all_read, START_SECONDS, "the settings read by Spark")
    runner.kill(run, grace_seconds=10)
    assert values == ODD
    assert (java_property, driver_host) == ("with blank", "127.0.0.1")
    assert any(b"org.apache.spark.deploy.SparkSubmit" in command for command in commands)
    assert not [command for command in commands if SECRET.encode() in command]


def test_an_exit_code_is_kept(runner: LocalRunner, run: str) -> None:
    runner.submit(request(run, SESSION + "sys.exit(3)"))
    assert exited(runner, run).exit_code == 3, logs(runner, run)


def test_kill_during_a_job_leaves_no_process(runner: LocalRunner, run: str) -> None:
    work = (
        "import os, time; here = os.getcwd(); "
        "f = lambda n: (open(f'{here}/working-{os.getpid()}', 'w').close(), time.sleep(120)); "
        "spark.sparkContext.parallelize(range(2), 2).foreach(f)"
    )
    # exec of one namespace: what the lambda uses must be global where it is unpickled.
    runner.submit(request(run, SESSION + f"exec({work!r}, {{'spark': spark}})"))

    def workers() -> list[int]:
        paths = [log.path.parent for log in runner.logs(run)[:1]]
        return [int(found.name.split("-")[1]) for path in paths for found in path.glob("working-*")]

    wait_until(lambda: len(workers()) == 2, START_SECONDS, "two Python workers at work")
    pids = processes_of(run)
    assert len(pids) >= 6  # shim, JVM, driver, pyspark.daemon, two workers
    assert set(workers()) <= set(pids)
    groups = {os.getpgid(pid) for pid in pids}
    assert len(groups) > 2  # the daemon left the driver's group: a kill of the group is not enough
    before = time.monotonic()
    runner.kill(run, grace_seconds=20)
    assert time.monotonic() - before < 20
    assert processes_of(run) == []
    assert runner.find(run)[0].exit_code == 143
