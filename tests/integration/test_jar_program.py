"""The main class of a jar, in the JVM of the driver."""

import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.attempt import AttemptState
from spark_runner.jvm_main import JvmError, run_main
from spark_runner.runners.base import RunState
from tests.jar_support import make_jar
from tests.runner_kits import open_kit

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def test_main_finds_the_session_that_is_there_and_gets_its_arguments(
    spark: SparkSession, tmp_path: Path
) -> None:
    run_main(spark, "Program", ["7", "write", str(tmp_path / "rows")])
    assert (tmp_path / "rows").read_text("utf-8") == f"7 {spark.sparkContext.appName}"


def test_what_main_throws_is_told_with_its_class_and_the_stack_of_java(spark: SparkSession) -> None:
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


@pytest.mark.usefixtures("process_mark")  # nothing is left of Python when the JVM is gone
def test_the_end_of_the_jvm_is_the_end_of_the_driver_with_its_exit_code(
    request: pytest.FixtureRequest, zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path
) -> None:
    with open_kit("local", request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path) as kit:
        attempt = kit.attempt()
        asked = kit.request(attempt, "pass")
        plan = {key: value for key, value in asked.plan.items() if key != "python"}
        plan["jar"] = {"class": "Program", "arguments": ["1", "exit"]}
        kit.runner.submit(replace(asked, plan=plan, conf={"spark.jars": str(make_jar("Program", tmp_path))}))
        (ended,) = kit.wait_ended(attempt.run)
        assert (ended.state, ended.exit_code, ended.outcome) == (RunState.EXITED, 3, None)
        assert kit.read(attempt.path).state is AttemptState.STARTED
        assert uuid.UUID(hex=kit.read(attempt.path).incarnation)
