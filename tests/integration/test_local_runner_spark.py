"""The local runner with the real spark-submit."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import RunState, SparkTarget, SubmitRequest
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_log import spark_event
from spark_runner.runners.spark_submits import SparkSubmits
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

START_SECONDS = 90.0  # Spark's start on two busy cores; 8 s when they are free
DRIVER = "import json, sys; exec(json.load(open(sys.argv[1]))['code'])"
SESSION = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate(); "
OUTCOME = "json.dump({}, open('outcome.json', 'w')); "
SECRET = "correct-horse-battery"  # noqa: S105  # made up, to search for
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
    return SubmitRequest(
        run, str(uuid.uuid4()), "a name", {"code": code}, target=SparkTarget("local[2]"), **more
    )


def logs(runner: LocalRunner, run: str) -> dict[str, str]:
    return {
        log.stream: "".join(map(readable, log.path.read_bytes().splitlines(keepends=True)))
        for log in runner.logs(run)
    }


def readable(line: bytes) -> str:
    event = spark_event(line)
    return line.decode() if event is None else f"{event.level} {event.logger}: {event.message}\n{event.trace}"


def test_odd_settings_arrive_intact_secrets_show_nowhere_and_the_logs_of_a_success_are_clean(
    runner: LocalRunner, run: str
) -> None:
    read = "{k: v for k, v in spark.sparkContext.getConf().getAll() if k.startswith('spark.odd')}"
    mine = "spark.sparkContext._jvm.java.lang.System.getProperty('mine')"
    host = "spark.conf.get('spark.driver.host')"
    code = SESSION + "n = spark.range(1000).count(); print('counted', n); "
    code += OUTCOME.format(f"dict(n=n, read=[{read}, {mine}, {host}])")
    more = {"spark.driver.extraJavaOptions": '-Dmine="with blank"', "spark.driver.memory": "512m"}
    runner.submit(request(run, code, conf=ODD | more))
    commands: set[bytes] = set()

    def ended() -> Any:
        for pid in processes_of(run):
            try:
                commands.add(Path(f"/proc/{pid}/cmdline").read_bytes())
            except OSError:
                continue
        return runner.find(run)[0].state is not RunState.RUNNING

    wait_until(ended, START_SECONDS, "the driver's end")
    found, written = runner.find(run)[0], logs(runner, run)
    assert (found.state, found.exit_code) == (RunState.EXITED, 0), written
    assert found.outcome == {"n": 1000, "read": [ODD, "with blank", "127.0.0.1"]}
    assert any(b"org.apache.spark.deploy.SparkSubmit" in command for command in commands)
    assert not [command for command in commands if SECRET.encode() in command]
    # The JVM's one line; not ours to switch off, as Spark itself asks for the module.
    assert written["stderr"] in ("", "WARNING: Using incubator modules: jdk.incubator.vector\n")
    assert [line for line in written["stdout"].splitlines() if "Warning" not in line] == ["counted 1000"]
    assert "INFO org.apache.spark.SparkContext: Running Spark version" in written["spark"]
    assert not [line for line in written["spark"].splitlines() if line.startswith("WARN")]
    wait_until(lambda: not processes_of(run), 10, "the end of the shim")
