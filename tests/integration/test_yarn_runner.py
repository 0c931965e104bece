"""Properties of the YARN runner; the common contract is in test_runner_contract.py."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from orchestrator.compose import DRIVER_MAIN
from spark_runner.protocol.attempt import AttemptState
from spark_runner.runners.base import RunState, SparkTarget
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.yarn.backend import YarnBackend
from tests.class_archive import archives
from tests.runner_kits import END_S, Kit, open_kit
from tests.servers.yarn import Yarn
from tests.waiting import wait_until

pytestmark = [pytest.mark.drawn("runners of clusters"), pytest.mark.spark, pytest.mark.yarn]


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


def test_what_yarn_refuses_is_said_in_words_and_runs_nothing(kit: Kit) -> None:
    attempts = {}
    for queue, conf, kind, is_passing in (
        ("full", {}, "QueueFull", True),
        ("default", {"spark.driver.memory": "100g"}, "Resources", False),
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


def test_a_driver_whose_node_was_lost_says_so(kit: Kit, yarn: Yarn) -> None:
    yarn.own_node()
    attempt = kit.attempt()
    kit.submit(attempt, "hang()")
    kit.wait_started(attempt)
    yarn.lose_node()
    try:
        assert kit.only(attempt.run).state is RunState.RUNNING, "YARN waits for the node"
        (lost,) = kit.wait_ended(attempt.run)
    finally:
        yarn.bring_node_back()
    assert lost.failure is not None
    assert (lost.failure.error_class, lost.failure.type) == ("infrastructure", "NodeLost")
    assert (lost.exit_code, lost.is_end_observed) == (None, False), "it may run there on"
    assert kit.read(attempt.path).state is AttemptState.STARTED, "the verdict is the worker's to write"


@pytest.fixture
def here(kit: Kit, tmp_path: Path) -> Kit:
    """The same for drivers of this host."""
    target = SparkTarget("yarn", "client")
    submits = SparkSubmits(tmp_path / "client", quick_start=archives())
    runner = YarnBackend(submits, driver_main=DRIVER_MAIN).runner_for(target)
    return replace(kit, runner=runner, target=target)


def test_a_driver_of_this_host_that_yarn_refuses_says_so_and_runs_no_user_code(here: Kit) -> None:
    attempt = here.attempt()
    request = here.request(attempt, "say('here')")
    target = replace(request.target, options={"queue": "nowhere"})
    here.runner.submit(replace(request, target=target))
    (ended,) = here.wait_ended(attempt.run)
    error = here.read(attempt.path).document["error"]
    assert (ended.exit_code, error["class"]) == (1, "submission"), error
    assert error["message"].startswith("YARN refused the application: ")
    assert "to unknown queue: nowhere" in error["message"]
    assert "Exception" not in error["message"]
    assert here.ledger.starts() == {}


def test_a_driver_of_this_host_ends_well_without_an_executor_and_what_they_say_is_copied_meanwhile(
    kit: Kit, here: Kit, tmp_path: Path
) -> None:
    attempt, tasks = here.attempt(), tmp_path / "tasks"
    tasks.mkdir()
    program = f"""
from pyspark.sql import SparkSession
def work(rows):
    import os, pathlib, time
    tasks = pathlib.Path({str(tasks)!r})
    (tasks / f"pid-{{os.getpid()}}").touch()
    while not (tasks / "go").exists():
        time.sleep(0.05)
    return rows
print(SparkSession.builder.getOrCreate().sparkContext.parallelize([1, 2], 1).mapPartitions(work).count())
"""
    here.submit(attempt, program)

    def said() -> dict[str, str]:
        found = [log for log in here.runner.logs(attempt.run) if log.executor and log.stream == "stderr"]
        return {log.executor: log.path.read_text("utf-8") for log in found}

    def pids() -> list[int]:
        return [int(path.name.removeprefix("pid-")) for path in tasks.glob("pid-*")]

    wait_until(lambda: "Running task" in said().get("1", ""), END_S, "what the executor says is copied")
    (first,) = wait_until(pids, END_S, "its task works")
    psutil.Process(first).parents()[1].kill()  # the executor above the daemon of its Python workers
    wait_until(lambda: "Running task" in said().get("2", ""), END_S, "what the next one says is copied too")
    wait_until(lambda: len(pids()) == 2, END_S, "its task works")
    (tasks / "go").touch()
    (ended,) = here.wait_ended(attempt.run)
    logs = here.runner.logs(attempt.run)
    words = {log.stream: log.path.read_text("utf-8") for log in logs if not log.executor}
    assert (ended.state, ended.exit_code) == (RunState.EXITED, 0), words
    assert words["stdout"] == "2\n"
    place = here.runner.place()
    assert place.host == os.uname().nodename
    assert place.cluster == kit.runner.place().cluster
