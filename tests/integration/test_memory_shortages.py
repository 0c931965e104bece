"""Programs that need more memory than they have: the error and the measurements of real Spark say which."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.handlers.verdict import Verdict, verdict_of_attempt, verdict_of_exit
from spark_runner.protocol.attempt import Attempt
from tests.runner_kits import Kit, open_kit

pytestmark = [pytest.mark.drawn("runners of clusters"), pytest.mark.spark, pytest.mark.timeout(600)]

SPARK = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()\n"
# One task: a second one may fail first, with the reason that its executor is ending.
TASK_NEEDS_HEAP = SPARK + "spark.range(0, 1, 1, 1).selectExpr('length(repeat(id, 1500000000))').collect()"
DRIVER_NEEDS = SPARK + "spark.sparkContext._jvm.java.nio.ByteBuffer.{}(2**30)"
# The first attempt of the task ends its executor as the killer of a kernel would.
TASK_IS_KILLED_ONCE = SPARK + (
    "def work(number):\n"
    "    import pathlib, os, signal\n"
    "    mark = pathlib.Path({mark!r})\n"
    "    if not mark.exists():\n"
    "        mark.touch()\n"
    "        stat = pathlib.Path(f'/proc/{{os.getppid()}}/stat').read_text()\n"
    "        jvm = int(stat.rpartition(')')[2].split()[1])\n"
    "        os.kill(jvm, signal.SIGKILL)\n"
    "    return number\n"
    "print(spark.sparkContext.parallelize([1], 1).map(work).sum())\n"
)
SMALL = {"spark.driver.memory": "512m", "spark.executor.memory": "512m", "spark.task.maxFailures": "1"}


@pytest.fixture(params=["local"])
def kit(
    request: pytest.FixtureRequest,
    zookeeper_hosts: str,
    zookeeper_root: str,
    tmp_path: Path,
    process_mark: str,
) -> Iterator[Kit]:
    assert process_mark
    with open_kit(
        request.param, request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path
    ) as made:
        yield made


def ended(kit: Kit, program: str, conf: Mapping[str, str]) -> tuple[Attempt, Verdict]:
    attempt = kit.attempt()
    kit.runner.submit(replace(kit.request(attempt, program), conf={**kit.conf, **conf}))
    (submission,) = kit.wait_ended(attempt.run)
    after = kit.read(attempt.path)
    return after, verdict_of_exit(after, submission)[0] if after.state.is_open else verdict_of_attempt(after)


def reason(verdict: Verdict) -> tuple[str, str | None]:
    assert verdict.error is not None
    return verdict.error.error_class, verdict.error.short_of


def executors(attempt: Attempt) -> dict[str, Any]:
    found: dict[str, Any] = attempt.document["metrics"]["executors"]
    return found


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param(TASK_NEEDS_HEAP, "driver.heap", id="heap of a task"),
        pytest.param(DRIVER_NEEDS.format("allocate"), "driver.heap", id="heap"),
        pytest.param(DRIVER_NEEDS.format("allocateDirect"), "driver.overhead", id="direct buffers"),
        pytest.param("raise MemoryError", "driver.overhead", id="Python"),
    ],
)
def test_a_local_program_lacks_memory_of_its_driver(kit: Kit, program: str, expected: str) -> None:
    _, verdict = ended(kit, program, SMALL)
    assert reason(verdict) == ("memory", expected)


@pytest.mark.standalone
@pytest.mark.parametrize("kit", ["standalone-client"], indirect=True)
def test_an_executor_whose_heap_was_full_is_the_reason_and_is_counted(kit: Kit) -> None:
    attempt, verdict = ended(kit, TASK_NEEDS_HEAP, SMALL)
    assert reason(verdict) == ("memory", "executor.heap")
    assert executors(attempt)["lost_memory"] == {"heap": 1}


@pytest.mark.standalone
@pytest.mark.parametrize("kit", ["standalone-client"], indirect=True)
def test_a_run_that_succeeded_says_which_executors_it_lost_for_lack_of_memory(
    kit: Kit, tmp_path: Path
) -> None:
    program = TASK_IS_KILLED_ONCE.format(mark=str(tmp_path / "mark"))
    attempt, verdict = ended(kit, program, {})
    assert verdict.error is None
    assert executors(attempt)["lost"] == 1
    assert executors(attempt)["lost_memory"] == {"container": 1}
