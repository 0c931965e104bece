"""The part of its worker's environment that a driver receives."""

import os
from pathlib import Path

import pytest

from orchestrator.config.settings import load_settings
from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.runners.base import SparkTarget, SubmitRequest
from spark_runner.runners.launch import launch_driver, spark_properties
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_settings import for_cluster_submit, for_drivers

OF_THE_WORKER = {
    "ORCHESTRATOR_ZOOKEEPER_LOGIN__PASSWORD_FILE": "/etc/password",
    "ZOOKEEPER_HOSTS": "zk:2181",
    "AWS_SECRET_ACCESS_KEY": "k",
    "ELASTIC_API_KEY": "k",
    "KUBECONFIG": "/etc/kube",
    "https_proxy": "http://user:word@proxy",
    "LD_PRELOAD": "/lib/other.so",
    "CREDENTIALS_DIRECTORY": "/run/credentials/worker",
}
GIVEN = {"PATH": "/bin", "JAVA_HOME": "/java", "LC_ALL": "C.UTF-8", "HADOOP_CONF_DIR": "/hadoop", "TZ": "UTC"}


def test_a_driver_gets_the_names_of_the_list_and_those_that_the_operator_adds() -> None:
    assert for_drivers((), GIVEN | OF_THE_WORKER) == GIVEN
    assert for_drivers(["https_proxy", "NOT_SET"], GIVEN | OF_THE_WORKER) == GIVEN | {
        "https_proxy": OF_THE_WORKER["https_proxy"]
    }


def test_a_launcher_gets_the_credentials_of_the_worker_for_its_cluster() -> None:
    assert for_cluster_submit((), GIVEN | OF_THE_WORKER) == GIVEN | {"KUBECONFIG": "/etc/kube"}


@pytest.mark.parametrize("text", ["AWS_REGION, EXTRA", '["AWS_REGION", "EXTRA"]'])
def test_the_environment_of_a_worker_names_what_drivers_get(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    (tmp_path / "empty.toml").touch()
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(tmp_path / "empty.toml"))
    variable = "ORCHESTRATOR_DRIVERS" if text.startswith("[") else "ORCHESTRATOR_DRIVERS__ENVIRONMENT"
    monkeypatch.setenv(variable, f'{{"environment": {text}}}' if text.startswith("[") else text)
    assert load_settings().drivers.environment == ("AWS_REGION", "EXTRA")


def test_nothing_of_the_worker_reaches_the_process_of_a_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in OF_THE_WORKER.items():
        monkeypatch.setenv(name, value)
    directory = RunDirectory(tmp_path / "runs" / "run-1" / "incarnation")
    directory.create()
    launch = launch_driver(
        SubmitRequest("run-1", "incarnation", "name", {}, SparkTarget("local[1]")),
        directory,
        driver_main=Path("/main.py"),
        conf_dir=tmp_path / "conf",
        passed_on=["KUBECONFIG"],
    )
    assert launch.environment.keys() & OF_THE_WORKER.keys() == {"KUBECONFIG"}
    assert launch.environment["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(
    ("conf", "set_for_it"),
    [
        ({}, {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}),
        ({"spark.authenticate": "false"}, {"spark.authenticate": "false"}),
    ],
)
def test_a_driver_with_a_local_master_requires_a_secret_that_is_stored_nowhere(
    tmp_path: Path, conf: dict[str, str], set_for_it: dict[str, str]
) -> None:
    directory = RunDirectory(tmp_path / "runs" / "run-1" / "incarnation")
    directory.create()
    request = SubmitRequest("run-1", "incarnation", "name", {}, SparkTarget("local[1]"), conf)
    launch_driver(request, directory, driver_main=Path("/main.py"), conf_dir=tmp_path / "conf")
    lines = (directory.path / "spark.properties").read_text("utf-8").splitlines()
    found = dict(line.split("=", 1) for line in lines if "authenticate" in line or "crypto" in line)
    assert found == set_for_it


def test_a_driver_on_a_cluster_is_authenticated_as_its_operators_have_set_it_up(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "runs" / "run-1" / "incarnation")
    directory.create()
    request = SubmitRequest("run-1", "incarnation", "name", {}, SparkTarget("spark://host:7077"))
    launch_driver(request, directory, driver_main=Path("/main.py"), conf_dir=tmp_path / "conf")
    assert "authenticate" not in (directory.path / "spark.properties").read_text("utf-8")


def test_the_tables_of_hive_are_in_no_folder_that_ends_with_the_run(tmp_path: Path) -> None:
    def warehouse(**conf: str) -> str | None:
        given = {name.replace("_", "."): value for name, value in conf.items()}
        request = SubmitRequest("run-1", "incarnation", "name", {}, SparkTarget("local[1]"), conf=given)
        return spark_properties(request, RunDirectory(tmp_path)).get("spark.sql.warehouse.dir")

    hive = {"spark_sql_catalogImplementation": "hive"}
    assert warehouse() == str(tmp_path / "spark-warehouse")
    assert warehouse(**hive, spark_sql_warehouse_dir="/data") == "/data"
    assert warehouse(**hive, spark_hadoop_hive_metastore_warehouse_dir="/data") is None
    with pytest.raises(RefusedSubmission, match=r"set spark\.sql\.warehouse\.dir in `conf`"):
        warehouse(**hive)
