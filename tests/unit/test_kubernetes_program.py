"""What a pod runs: Java alone for jars, our program in Python for all others and where it is asked for."""

from pathlib import Path
from typing import Any

import pytest

from spark_runner.runners.base import SubmitRequest, Target
from spark_runner.runners.kubernetes.program import CODE, PodProgram, program_of

JAR = {"jar": {"class": "Main", "arguments": []}}


def program(
    folder: Path, plan: dict[str, Any], conf: dict[str, str] | None = None, **options: str
) -> PodProgram:
    (folder / "main.py").write_text("pass", "utf-8")
    request = SubmitRequest(
        "run-1", "one", "name", plan, Target("k8s://https://any", "cluster", options), conf or {}
    )
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
    assert set(made.code["data"]) == {*ours, "log4j2.properties"}


def test_what_a_definition_adds_to_the_paths_comes_after_ours(tmp_path: Path) -> None:
    conf = {"spark.submit.pyFiles": "local:///opt/own.py", "spark.executorEnv.PYTHONPATH": "/opt/own"}
    properties = program(tmp_path, {"sql": []}, conf).properties
    assert properties["spark.submit.pyFiles"] == f"local://{CODE}/driver.zip,local:///opt/own.py"
    assert properties["spark.executorEnv.PYTHONPATH"] == f"{CODE}/driver.zip:/opt/own"
