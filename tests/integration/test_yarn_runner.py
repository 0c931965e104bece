"""What is special about YARN; what all runners keep is in test_runner_contract.py."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.wiring import DRIVER_MAIN
from spark_runner.attempt import AttemptState
from spark_runner.runners.base import RunState, Submission, Target
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.yarn.backend import YarnBackend
from tests.class_archive import archives
from tests.runner_kits import END_S, Kit, open_kit
from tests.servers.yarn import Yarn
from tests.waiting import wait_until
from tests.yarn_support import container_processes

pytestmark = pytest.mark.spark


@pytest.fixture
def kit(
    request: pytest.FixtureRequest,
    zookeeper_hosts: str,
    zookeeper_root: str,
    tmp_path: Path,
    process_mark: str,
) -> Iterator[Kit]:
    assert process_mark
    with open_kit("yarn", request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path) as made:
        yield made


def application(submission: Submission) -> str:
    return submission.detail.partition(":")[0]


def test_each_end_of_a_driver_is_told_as_it_was(kit: Kit) -> None:
    ends = {
        "fail('no rows today')": 1,
        "leave(3)": 3,
        "os.kill(os.getpid(), signal.SIGKILL)": 137,
        "held = b'x' * (900 << 20); hang()": None,
        "os.kill(os.getppid(), signal.SIGKILL); hang()": 137,  # the JVM of its ApplicationMaster
    }
    attempts = {program: kit.attempt() for program in ends}
    for program, attempt in attempts.items():
        kit.submit(attempt, program)

    def ended() -> list[Submission]:
        found = kit.runner.poll_many([attempt.run for attempt in attempts.values()])
        return [each for (each,) in found.values() if each.state is not RunState.RUNNING]

    # Five at once take less than one after the other, but more than one.
    wait_until(lambda: len(ended()) == len(ends), 2 * END_S, "each of them has ended")
    found = dict(zip(ends, ended(), strict=True))
    failed, left, killed, grown, lost = found.values()
    assert (failed.exit_code, failed.failure) == (1, None)
    assert failed.outcome is not None, "read from the logs that YARN keeps"
    assert failed.outcome["error"]["message"] == "no rows today"
    assert (left.exit_code, left.failure, left.outcome) == (3, None, None)
    assert (killed.exit_code, killed.failure) == (128 + signal.SIGKILL, None)
    assert lost.failure is not None
    assert (lost.exit_code, lost.failure.type) == (128 + signal.SIGKILL, "Killed")
    assert grown.failure is not None
    assert (grown.failure.error_class, grown.failure.type) == ("memory", "MemoryLimit")
    assert "memory limit" in grown.failure.message
    errors = {log.stream: log.path for log in kit.runner.logs(attempts["fail('no rows today')"].run)}
    assert "no rows today" in errors["stderr"].read_text("utf-8")
    assert "ApplicationMaster" in errors["spark"].read_text("utf-8")


def test_what_yarn_refuses_is_said_in_words_and_runs_nothing(kit: Kit) -> None:
    attempts = {}
    for queue, conf, kind, is_passing in (
        ("full", {}, "QueueFull", True),
        ("stopped", {}, "QueueStopped", True),
        ("nowhere", {}, "UnknownQueue", False),
        ("default", {"spark.driver.memory": "100g"}, "Resources", False),
        ("default", {"spark.executor.memory": "100g"}, "Resources", False),
    ):
        attempt = kit.attempt()
        request = kit.request(attempt, "pass")
        target = replace(request.target, options={"queue": queue})
        kit.runner.submit(replace(request, target=target, conf={**request.conf, **conf}))
        attempts[attempt.run] = (kind, is_passing)
    for run, expected in attempts.items():
        (ended,) = kit.wait_ended(run)
        assert ended.failure is not None, ended
        assert (ended.failure.type, ended.failure.is_passing) == expected
        assert ended.failure.error_class == "submission"
        assert "Exception" not in ended.failure.message
        assert ended.exit_code != 0
    assert kit.ledger.starts() == {}


def test_a_driver_whose_room_was_taken_back_and_one_whose_node_was_lost_say_so(kit: Kit, yarn: Yarn) -> None:
    yarn.own_node()
    guest, owner = kit.attempt(), kit.attempt()
    for attempt, queue, memory in ((guest, "guest", "3g"), (owner, "default", "2500m")):
        request = kit.request(attempt, "hang()")
        target = replace(request.target, options={"queue": queue})
        kit.runner.submit(
            replace(request, target=target, conf={**request.conf, "spark.driver.memory": memory})
        )
        kit.wait_started(attempt)
    (preempted,) = kit.wait_ended(guest.run)
    yarn.lose_node()
    try:
        assert kit.only(owner.run).state is RunState.RUNNING, "YARN waits for the node"
        (lost,) = kit.wait_ended(owner.run)
    finally:
        yarn.bring_node_back()
    for ended, kind in ((preempted, "Preempted"), (lost, "NodeLost")):
        assert ended.failure is not None
        assert (ended.failure.error_class, ended.failure.type) == ("infrastructure", kind)
        assert ended.exit_code is None
    assert kit.read(owner.path).state is AttemptState.STARTED, "the verdict is the worker's to write"


def test_kill_leaves_no_container_and_is_known_as_such(kit: Kit, tmp_path: Path) -> None:
    attempt, busy = kit.attempt(), tmp_path / "busy"
    program = f"""
from pyspark.sql import SparkSession
def work(rows):
    import pathlib, time
    pathlib.Path({str(busy)!r}).touch()
    time.sleep(600)
SparkSession.builder.getOrCreate().sparkContext.parallelize([1], 1).foreachPartition(work)
"""
    kit.submit(attempt, program)
    wait_until(busy.exists, END_S, "an executor works")
    name = application(kit.only(attempt.run))
    assert container_processes(name)
    kit.runner.kill(attempt.run, grace_seconds=5)
    # A node ends a process group; PySpark's workers are in another one, and follow their executor.
    wait_until(lambda: not container_processes(name), 10, "no process of its containers is left")
    killed = kit.only(attempt.run)
    assert killed.failure is not None
    assert killed.failure.type == "Killed"


@pytest.fixture
def here(kit: Kit, tmp_path: Path) -> Kit:
    """The same for drivers of this host."""
    target = Target("yarn", "client")
    submits = SparkSubmits(tmp_path / "client", quick_start=archives())
    runner = YarnBackend(submits, driver_main=DRIVER_MAIN).runner_for(target)
    return replace(kit, runner=runner, target=target)


@pytest.mark.parametrize(
    ("queue", "conf", "words"),
    [
        ("nowhere", {}, "to unknown queue: nowhere"),
        ("default", {"spark.executor.memory": "100g"}, "Required executor memory (102400 MB)"),
    ],
)
def test_a_driver_of_this_host_that_yarn_refuses_says_so_and_runs_no_user_code(
    here: Kit, queue: str, conf: dict[str, str], words: str
) -> None:
    attempt = here.attempt()
    request = here.request(attempt, "say('here')")
    target = replace(request.target, options={"queue": queue})
    here.runner.submit(replace(request, target=target, conf={**request.conf, **conf}))
    (ended,) = here.wait_ended(attempt.run)
    error = here.read(attempt.path).document["error"]
    assert (ended.exit_code, error["class"]) == (1, "submission"), error
    assert error["message"].startswith("YARN refused the application: ")
    assert words in error["message"]
    assert "Exception" not in error["message"]
    assert here.ledger.starts() == {}


def test_a_driver_of_this_host_goes_on_when_an_executor_is_lost(kit: Kit, here: Kit, tmp_path: Path) -> None:
    attempt, first, go = here.attempt(), tmp_path / "first", tmp_path / "go"
    program = f"""
from pyspark.sql import SparkSession
def work(rows):
    import pathlib, psutil, time
    if not pathlib.Path({str(first)!r}).exists():
        pathlib.Path({str(first)!r}).touch()
        psutil.Process().parents()[1].kill()
    while not pathlib.Path({str(go)!r}).exists():
        time.sleep(0.05)
    return rows
print(SparkSession.builder.getOrCreate().sparkContext.parallelize([1, 2], 1).mapPartitions(work).count())
"""
    here.submit(attempt, program)

    def said() -> dict[str, str]:
        found = [log for log in here.runner.logs(attempt.run) if log.executor and log.stream == "stderr"]
        return {log.executor: log.path.read_text("utf-8") for log in found}

    wait_until(
        lambda: "Running task" in said().get("2", ""), END_S, "what the second executor says is copied"
    )
    go.touch()
    (ended,) = here.wait_ended(attempt.run)
    logs = here.runner.logs(attempt.run)
    words = {log.stream: log.path.read_text("utf-8") for log in logs if not log.executor}
    assert (ended.state, ended.exit_code) == (RunState.EXITED, 0), words
    assert words["stdout"] == "2\n"
    assert first.exists()
    place = here.runner.place()
    assert place.host == os.uname().nodename
    assert place.cluster == kit.runner.place().cluster
