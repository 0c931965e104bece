"""The main class of a jar, in the JVM of the driver."""

import os
import signal
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestrator.handlers.verdict import verdict_of_exit
from spark_runner.driver.program import JvmError, run_main
from spark_runner.protocol.attempt import AttemptState
from spark_runner.runners.base import RunState
from spark_runner.runners.run_directory import run_directories
from tests.jar_support import make_jar
from tests.runner_kits import END_S, open_kit
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def test_main_finds_the_session_that_is_there_and_gets_its_arguments(
    spark: SparkSession, tmp_path: Path
) -> None:
    run_main(spark, "Program", ["7", "write", str(tmp_path / "rows")])
    assert (tmp_path / "rows").read_text("utf-8") == f"7 {spark.sparkContext.appName}"


def test_an_exception_of_main_is_reported_with_its_class_and_the_java_stack(spark: SparkSession) -> None:
    with pytest.raises(JvmError, match="no rows today") as caught:
        run_main(spark, "Program", ["1", "throw"])
    assert caught.value.type == "java.lang.IllegalStateException"
    assert "at Program.main(Program.java:" in caught.value.stack


@pytest.mark.parametrize(
    ("name", "words"),
    [("Missing", "there is no class Missing in the jars"), ("java.lang.Object", "has no public static main")],
)
def test_a_class_that_cannot_be_run_is_named(spark: SparkSession, name: str, words: str) -> None:
    with pytest.raises(JvmError, match=words):
        run_main(spark, name, [])


@pytest.mark.usefixtures("process_mark")  # without the JVM Python has ended too
def test_the_end_of_the_jvm_is_the_end_of_the_driver_with_its_exit_code(
    request: pytest.FixtureRequest, zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path
) -> None:
    jar = str(make_jar("Program", tmp_path))
    with open_kit("local", request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path) as kit:
        attempts = {3: kit.attempt(), 0: kit.attempt()}
        for code, attempt in attempts.items():
            asked = kit.request(attempt, "pass")
            plan = {key: value for key, value in asked.plan.items() if key != "python"}
            plan["jar"] = {"class": "Program", "arguments": ["1", "exit", str(code)]}
            kit.runner.submit(replace(asked, plan=plan, conf={"spark.jars": jar}))
        for code, attempt in attempts.items():
            (ended,) = kit.wait_ended(attempt.run)
            assert (ended.state, ended.exit_code, ended.outcome) == (RunState.EXITED, code, None)
            started = kit.read(attempt.path)
            assert started.state is AttemptState.STARTED
            assert uuid.UUID(hex=started.incarnation)
            verdict, _ = verdict_of_exit(started, ended)
            assert verdict.error is not None
            assert verdict.error.error_class == ("user" if code else "no_outcome")


BUSY = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
say("busy")
spark.range(0, 6000, 1, 1).where("java_method('java.lang.Thread', 'sleep', 20L) <> ''").count()
"""


@pytest.mark.usefixtures("process_mark")
def test_a_program_that_fails_because_somebody_ends_its_jvm_has_no_outcome_and_is_not_to_blame(
    request: pytest.FixtureRequest, zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path
) -> None:
    with open_kit("local", request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path) as kit:
        attempt = kit.attempt()
        kit.submit(attempt, BUSY)
        (folder,) = run_directories(tmp_path / "state", attempt.run)
        log = folder.path / "spark.log"
        wait_until(lambda: log.exists() and b"Starting task" in log.read_bytes(), END_S, "its query runs")
        record = folder.shim()
        assert record is not None
        os.kill(record.driver.pid, signal.SIGTERM)  # the JVM alone
        (ended,) = kit.wait_ended(attempt.run)
        assert (ended.state, ended.exit_code, ended.outcome) == (RunState.EXITED, 143, None)
        # The JVM may end Python before it writes anything, or at any moment after that.
        said = (folder.path / "stderr.log").read_text("utf-8")
        assert "Traceback" not in said, said
        started = kit.read(attempt.path)
        assert started.state is AttemptState.STARTED
        verdict, _ = verdict_of_exit(started, ended)
        assert verdict.error is not None
        assert (verdict.error.error_class, verdict.error.type) == ("infrastructure", "SIGTERM")
