"""The program of a pod: Java alone for jars; our Python program for all others and on request."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.runners.base import SparkTarget, SubmitRequest
from spark_runner.runners.kubernetes.launch import launch_pod
from spark_runner.runners.kubernetes.program import CODE, PodProgram, program_of
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_settings import MEMORY_MEASURES, render_properties

ACCOUNT = "spark.kubernetes.authenticate.driver.serviceAccountName"
JAR = {"jar": {"class": "Main", "arguments": []}}


def program(
    folder: Path,
    plan: dict[str, Any],
    conf: dict[str, str] | None = None,
    packages: tuple[str, ...] = (),
    **options: str,
) -> PodProgram:
    (folder / "main.py").write_text("pass", "utf-8")
    target = SparkTarget("k8s://https://any", "cluster", options)
    request = SubmitRequest("run-1", "one", "name", plan, target, conf or {}, python_packages=packages)
    return program_of(request, folder=folder, driver_main=folder / "main.py")


@pytest.mark.parametrize(
    ("plan", "driver", "is_java"),
    [
        (JAR, "", True),
        (JAR, "jvm", True),
        (JAR, "python", False),
        ({"sql": []}, "", False),
        ({"sql": []}, "jvm", False),  # a default of its pool, for the jars there
    ],
)
def test_jars_run_in_java_but_where_python_is_asked_for(
    tmp_path: Path, plan: dict[str, Any], driver: str, *, is_java: bool
) -> None:
    made = program(tmp_path, plan, driver=driver)
    assert bool(made.main_class) is is_java
    ours = {"JarDriver.java"} if is_java else {"driver.zip", "driver_main.py"}
    assert set(made.code[CODE]["data"]) == {*ours, "log4j2.properties"}


def test_paths_of_a_definition_come_after_ours(tmp_path: Path) -> None:
    conf = {"spark.submit.pyFiles": "local:///opt/own.py", "spark.executorEnv.PYTHONPATH": "/opt/own"}
    properties = program(tmp_path, {"sql": []}, conf).properties
    assert properties["spark.submit.pyFiles"] == f"local://{CODE}/driver.zip,local:///opt/own.py"
    assert properties["spark.executorEnv.PYTHONPATH"] == f"{CODE}/driver.zip:/opt/own"


def test_packages_of_connectors_have_secrets_of_their_own(
    tmp_path: Path,
) -> None:
    made = program(tmp_path, {"sql": []}, packages=("redis", "spark_runner"))
    folder = "/opt/orchestrator/packages/redis"
    assert set(made.code) == {CODE, folder}
    assert set(made.code[folder]["data"]) == {"redis.zip"}
    assert made.properties["spark.submit.pyFiles"] == f"local://{CODE}/driver.zip,local://{folder}/redis.zip"
    assert made.properties["spark.executorEnv.PYTHONPATH"] == f"{CODE}/driver.zip:{folder}/redis.zip"
    for secret in made.code.values():
        assert sum(len(base64.b64decode(each)) for each in secret["data"].values()) <= 1024 * 1024


def test_a_package_that_no_secret_holds_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large_package").mkdir()
    (tmp_path / "large_package" / "__init__.py").write_bytes(os.urandom(1_100_000))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SubmissionError, match=r"large_package .* install it in the image"):
        program(tmp_path, {"sql": []}, packages=("large_package",))


@pytest.mark.parametrize(("field", "account"), [("", "of-conf"), ("of-field", "of-field")])
def test_a_service_account_in_conf_counts_where_the_field_says_nothing(
    tmp_path: Path, field: str, account: str
) -> None:
    options = {"image": "spark:4"} | ({"service_account": field} if field else {})
    target = SparkTarget("k8s://https://any", "cluster", options)
    request = SubmitRequest("run-1", "one", "name", {"sql": []}, target, {ACCOUNT: "of-conf"})
    directory = RunDirectory(tmp_path / "runs" / "run-1" / "one")
    directory.create()
    launch_pod(request, program(tmp_path, {"sql": []}), directory, "default", context="", conf_dir=tmp_path)
    lines = (directory.path / "spark.properties").read_text("utf-8").splitlines()
    assert set(render_properties(MEMORY_MEASURES).splitlines()) <= set(lines)
    assert [line.rpartition("=")[2].strip() for line in lines if ACCOUNT in line] == [account]


def test_a_pod_template_in_conf_is_refused_and_not_left_out(tmp_path: Path) -> None:
    target = SparkTarget("k8s://https://any", "cluster", {"image": "spark:4"})
    conf = {"spark.kubernetes.executor.podTemplateFile": "/etc/passwd"}
    request = SubmitRequest("run-1", "one", "name", {"sql": []}, target, conf)
    made = program(tmp_path, {"sql": []})
    with pytest.raises(RefusedSubmission, match=r"set `spark\.kubernetes\.pod_template` in the definition"):
        launch_pod(request, made, RunDirectory(tmp_path), "default", context="", conf_dir=tmp_path)
