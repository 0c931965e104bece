import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.runners.base import SparkTarget, SubmitRequest
from spark_runner.runners.driver_zip import driver_zip
from spark_runner.runners.launch import launch_driver
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_settings import MEMORY_MEASURES
from spark_runner.runners.yarn.launch import (
    PLAN,
    incarnation_of,
    incarnation_tag,
    launch_on_cluster,
    run_tag,
    yarn_properties,
)


def request(conf: Mapping[str, str] | None = None, **options: str) -> SubmitRequest:
    target = SparkTarget("yarn", "cluster", options)
    return SubmitRequest("Key-1", "ABC", "name", {"secret": "x"}, target, conf=conf or {})


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "runs" / "Key-1" / "ABC")
    made.create()
    return made


def test_tags_are_in_lower_case_and_beside_those_of_the_user(tmp_path: Path) -> None:
    conf = yarn_properties(request({"spark.yarn.tags": "team"}), tmp_path)
    assert conf["spark.yarn.tags"] == "team,orchestrator-run-key-1,orchestrator-incarnation-abc"
    assert (run_tag("Key-1"), incarnation_tag("ABC")) == (
        "orchestrator-run-key-1",
        "orchestrator-incarnation-abc",
    )


def test_the_incarnation_is_read_from_its_tag() -> None:
    assert incarnation_of(frozenset({"team", run_tag("key-1"), incarnation_tag("abc")})) == "abc"
    assert not incarnation_of(frozenset({"team"}))


def test_yarn_may_not_try_a_second_time_whatever_the_user_says(tmp_path: Path) -> None:
    assert (
        yarn_properties(request({"spark.yarn.maxAppAttempts": "4"}), tmp_path)["spark.yarn.maxAppAttempts"]
        == "1"
    )


def test_executors_measure_themselves_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    assert MEMORY_MEASURES.items() <= yarn_properties(request(), tmp_path).items()
    given = dict.fromkeys(MEMORY_MEASURES, "x")
    assert given.items() <= yarn_properties(request(given), tmp_path).items()


def test_the_queue_and_the_files_of_the_user_are_kept(tmp_path: Path) -> None:
    conf = yarn_properties(request({"spark.submit.pyFiles": "a.py,b.zip"}, queue="etl"), tmp_path)
    assert conf["spark.submit.pyFiles"] == f"a.py,b.zip,{driver_zip(tmp_path)}"
    assert conf["spark.yarn.queue"] == "etl"
    own = replace(request(), python_packages=("pip",))
    assert yarn_properties(own, tmp_path)["spark.submit.pyFiles"] == str(driver_zip(tmp_path, ("pip",)))
    assert "spark.yarn.queue" not in yarn_properties(request(), tmp_path)


def test_all_jvms_log_as_we_read_it_unless_the_user_says_otherwise(
    directory: RunDirectory, tmp_path: Path
) -> None:
    given = {"spark.executor.defaultJavaOptions": "-Dmine=1", "spark.yarn.dist.files": "mine.txt"}
    conf = yarn_properties(request(given), tmp_path)
    mine, layout = conf["spark.yarn.dist.files"].split(",")
    assert (mine, layout.endswith("#orchestrator-log4j2.properties")) == ("mine.txt", True)
    option = "-Dlog4j2.configurationFile=orchestrator-log4j2.properties"
    assert "spark.driver.defaultJavaOptions" not in conf, "a driver of this host has a file of its own"
    assert conf["spark.executor.defaultJavaOptions"] == f"{option} -Dmine=1"
    assert "SYSTEM_ERR" in Path(urlsplit(layout).path).read_text("utf-8")
    launch_on_cluster(request(), directory, driver_main=Path("/driver_main.py"), shared_dir=tmp_path)
    properties = (directory.path / "spark.properties").read_text("utf-8").replace("\\", "")
    assert f"spark.driver.defaultJavaOptions={option}\n" in properties


def test_settings_that_spark_would_ignore_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedSubmission, match=r"park\.x"):
        yarn_properties(request({"park.x": "1"}), tmp_path)


def test_the_plan_travels_in_a_private_file_and_no_setting_is_on_the_command_line(
    directory: RunDirectory, tmp_path: Path
) -> None:
    launch = launch_on_cluster(
        request({"spark.files": "data.csv", "spark.password": "p4ss"}),
        directory,
        driver_main=Path("/driver_main.py"),
        shared_dir=tmp_path,
    )
    properties = (directory.path / "spark.properties").read_text("utf-8").replace("\\", "")
    plan = (directory.path / "plan.json").as_uri()
    assert f"spark.files=data.csv,{plan}#{PLAN}" in properties
    assert "spark.password=p4ss" in properties
    assert not [argument for argument in launch.arguments if "p4ss" in argument]
    assert launch.arguments[-2:] == ["/driver_main.py", PLAN]
    assert (directory.path / "spark.properties").stat().st_mode & 0o077 == 0


def test_the_launcher_does_not_wait_and_its_interpreter_is_not_that_of_the_nodes(
    directory: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    launch = launch_on_cluster(request(), directory, driver_main=Path("/driver_main.py"), shared_dir=tmp_path)
    properties = (directory.path / "spark.properties").read_text("utf-8")
    assert "spark.yarn.submit.waitAppCompletion=false" in properties
    assert "PYSPARK_PYTHON" not in launch.environment
    options = launch.environment["SPARK_SUBMIT_OPTS"]
    assert "-Dlog4j2.configurationFile=" in options
    assert options.endswith(" -Dmine=1"), "the last of two equal options is the user's"


def test_a_driver_of_this_host_uses_its_own_interpreter_and_the_same_tags(
    directory: RunDirectory, tmp_path: Path
) -> None:
    asked = replace(request(), conf=yarn_properties(request(), tmp_path))
    launch = launch_driver(
        asked, directory, driver_main=Path("/driver_main.py"), conf_dir=tmp_path / "spark-conf"
    )
    properties = (directory.path / "spark.properties").read_text("utf-8")
    assert "orchestrator-run-key-1" in properties
    assert "spark.yarn.maxAppAttempts=1" in properties
    assert launch.environment["PYSPARK_PYTHON"] == sys.executable
