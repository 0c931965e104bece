"""The Spark that the settings name for a pool: what is accepted, and where its drivers find it."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.config.installations import Installations, described, pool_installations
from orchestrator.config.spark_defaults import pool_spark, warm_specs
from orchestrator.model.errors import SettingsError
from orchestrator.model.spark import Spark
from spark_runner.protocol.warm_files import Gateway, ServerFiles, ServerPlan
from spark_runner.runners.base import SparkTarget, SubmitRequest
from spark_runner.runners.installation import (
    NEWEST_LINE,
    OLDEST_LINE,
    SparkInstallation,
    own_installation,
)
from spark_runner.runners.launch import cluster_submit_environment, launch_driver, spark_submit_command
from spark_runner.runners.run_directory import RunDirectory, run_directory
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.warm import WarmServers, WarmSpec, WarmSupervisor
from spark_runner.runners.yarn.launch import launch_on_cluster

PROJECT = Path(__file__).parents[2]


def distribution(folder: Path, version: str = "4.0.5") -> Path:
    """A folder that looks like a Spark distribution."""
    for name in (f"jars/spark-core_2.13-{version}.jar", "bin/spark-submit", "python/lib/pyspark.zip"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", "ascii")
    (folder / "bin/spark-submit").chmod(0o755)
    return folder


def environment(folder: Path, version: str = "4.2.1", *, python: str = "3, 12", pyspark: bool = True) -> Path:
    """A Python environment, whose Python answers only the question about its version and its pyspark."""
    home = distribution(folder / "lib/python3/site-packages/pyspark", version)
    origin = home / "__init__.py" if pyspark else ""
    program = folder / "bin" / "python"
    program.parent.mkdir(parents=True)
    answer = f'[[{python}], "{origin}"]'
    program.write_text(f"#!/bin/sh\necho {shlex.quote(answer)}\n", "ascii")
    program.chmod(0o755)
    return folder


def test_a_pool_may_name_a_distribution_or_a_python_environment(tmp_path: Path) -> None:
    old, new = distribution(tmp_path / "old"), environment(tmp_path / "new")
    found = pool_installations({"a": {"spark_home": str(old)}, "b": {"spark_home": str(new)}, "c": {}})
    assert found.of("a") == SparkInstallation(str(old), "4.0.5", "")
    home = new / "lib/python3/site-packages/pyspark"
    assert found.of("b") == SparkInstallation(str(home), "4.2.1", str(new / "bin" / "python"))
    assert found.of("c") is None
    own = own_installation()
    assert own is not None
    assert found.versions() == {"*": own.version, "a": "4.0.5", "b": "4.2.1"}


def test_the_setting_of_a_pool_wins_over_that_of_all_and_an_empty_one_is_the_workers(tmp_path: Path) -> None:
    home = str(distribution(tmp_path / "old"))
    found = pool_installations({"*": {"spark_home": home}, "own": {"spark_home": ""}})
    assert found.of("any") == SparkInstallation(home, "4.0.5")
    assert found.of("own") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("opt/spark", "opt/spark is not an absolute path"),
        ("{}/nowhere", "nowhere is not a folder on this host"),
        ("{}/empty", "neither a Spark distribution, .* nor a Python environment"),
        ("{}/3.5", "is Spark 3.5.6; supported are 4.0 to 4.3"),
        ("{}/4.4", "is Spark 4.4.0; supported are 4.0 to 4.3"),
        ("{}/no-core", "jars has no spark-core jar"),
        ("{}/no-submit", "spark-submit does not exist or is not executable"),
        ("{}/old-python", "is Python 3.10; drivers need 3.11"),
        ("{}/no-pyspark", "has no pyspark: `.*bin/python -m pip install pyspark`"),
        ("{}/broken", "bin/python does not work: no such library"),
        (4, "4 is not a path"),
    ],
)
def test_a_spark_that_cannot_be_used_is_an_error_of_the_settings(
    tmp_path: Path, given: object, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    distribution(tmp_path / "3.5", "3.5.6")
    distribution(tmp_path / "4.4", "4.4.0")
    (distribution(tmp_path / "no-core") / "jars/spark-core_2.13-4.0.5.jar").unlink()
    (distribution(tmp_path / "no-submit") / "bin/spark-submit").chmod(0o644)
    environment(tmp_path / "old-python", python="3, 10")
    environment(tmp_path / "no-pyspark", pyspark=False)
    broken = environment(tmp_path / "broken") / "bin/python"
    broken.write_text("#!/bin/sh\necho no such library >&2; exit 1\n", "ascii")
    home = given.format(tmp_path) if isinstance(given, str) else given
    with pytest.raises(SettingsError, match=f"setting spark_home of pool 'etl': .*{message}"):
        pool_installations({"etl": {"spark_home": home}})
    assert described(home).startswith("cannot be used: ")


def test_the_supported_lines_are_those_of_the_package() -> None:
    low, high = ".".join(map(str, OLDEST_LINE)), f"{NEWEST_LINE[0]}.{NEWEST_LINE[1] + 1}"
    assert f'"pyspark>={low},<{high}"' in (PROJECT / "pyproject.toml").read_text("utf-8")


def test_a_definition_cannot_name_a_spark_and_gets_none_as_a_default(
    tmp_path: Path,
) -> None:
    with pytest.raises(ValueError, match="spark_home"):
        Spark.model_validate({"spark_home": "/opt/spark"})
    tables = {"etl": {"spark_home": str(distribution(tmp_path)), "master": "local[3]"}}
    assert pool_spark(tables)("etl", Spark()) == Spark(master="local[3]")


# ---------------------------------------------------------------------- launches
@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "runs" / "run-1" / "i")
    made.create()
    return made


@pytest.fixture
def old(tmp_path: Path) -> SparkInstallation:
    return SparkInstallation(str(distribution(tmp_path / "old")), "4.0.5")


@pytest.fixture
def elsewhere(old: SparkInstallation) -> SparkInstallation:
    """One with a Python of its own."""
    return replace(old, python="/opt/python/bin/python")


def request(master: str, spark: SparkInstallation | None, mode: str = "client") -> SubmitRequest:
    return SubmitRequest("run-1", "i", "job", {}, target=SparkTarget(master, mode), spark=spark)


def properties(directory: RunDirectory) -> dict[str, str]:
    lines = (directory.path / "spark.properties").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("master", ["local[1]", "spark://host:7077", "yarn"])
def test_a_driver_of_this_host_starts_with_the_spark_of_its_pool(
    directory: RunDirectory,
    tmp_path: Path,
    old: SparkInstallation,
    master: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/of-the-worker")
    launch = launch_driver(
        request(master, old), directory, driver_main=Path("/main.py"), conf_dir=tmp_path / "conf"
    )
    assert spark_submit_command(launch.environment) == [f"{old.home}/bin/spark-submit"]
    assert launch.environment["PYSPARK_PYTHON"] == sys.executable
    assert "spark.submit.pyFiles" not in properties(directory), "the Python of the worker has the code"


def test_the_code_of_a_driver_travels_to_another_python(
    directory: RunDirectory, tmp_path: Path, elsewhere: SparkInstallation
) -> None:
    asked, main = request("local[1]", elsewhere), Path("/main.py")
    conf_dir, shared = tmp_path / "conf", tmp_path / "shared"
    launch = launch_driver(asked, directory, driver_main=main, conf_dir=conf_dir, shared_dir=shared)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        assert launch.environment[name] == elsewhere.python
    (code,) = (shared / "driver").glob("driver-*.zip")
    assert properties(directory)["spark.submit.pyFiles"] == str(code)
    alone = RunDirectory(tmp_path / "runs" / "run-2" / "i")
    alone.create()
    launch_driver(asked, alone, driver_main=main, conf_dir=conf_dir)
    (code,) = alone.path.glob("driver-*.zip")
    assert properties(alone)["spark.submit.pyFiles"] == str(code), "without a shared folder"


def test_the_spark_of_a_pool_submits_its_drivers_to_clusters(
    directory: RunDirectory, tmp_path: Path, elsewhere: SparkInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/of-the-worker")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    asked = request("yarn", elsewhere, "cluster")
    launch = launch_on_cluster(asked, directory, driver_main=Path("/main.py"), shared_dir=tmp_path)
    assert spark_submit_command(launch.environment) == [f"{elsewhere.home}/bin/spark-submit"]
    assert "PYSPARK_PYTHON" not in launch.environment, "nodes have their own"
    pods = request("k8s://https://host:6443", elsewhere, "cluster")
    found = cluster_submit_environment(pods, directory, conf_dir=tmp_path / "conf", quick_start=None)
    assert spark_submit_command(found) == [f"{elsewhere.home}/bin/spark-submit"]


# ---------------------------------------------------------------------- warm servers
def open_server(servers: WarmServers, spec: WarmSpec) -> ServerFiles:
    made = run_directory(servers.submits.state_dir, f"warm-{spec.key}-a", "i")
    made.create()
    files = ServerFiles(made.path)
    files.prepare()
    files.open(Gateway(1, "secret"))
    return files


def test_a_job_never_gets_a_warm_server_of_another_spark(
    tmp_path: Path, old: SparkInstallation, elsewhere: SparkInstallation
) -> None:
    servers = WarmServers(SparkSubmits(tmp_path / "state"), ServerPlan())
    upgraded = replace(old, version="4.0.6")
    specs = [WarmSpec("local[1]", {}, spark) for spark in (None, old, upgraded, elsewhere)]
    assert len({spec.key for spec in specs}) == len(specs)
    for spec in specs:
        keeper = WarmSupervisor(servers, specs)
        keeper._open = {spec.key: [open_server(servers, spec)]}  # noqa: SLF001 - as a poll would find it
        for other in specs:
            chosen = keeper.choose(replace(request("local[1]", other.spark), is_warm=True))
            assert (chosen is not None) == (other is spec)


def test_the_servers_of_a_worker_with_another_spark_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    before = WarmSpec("local[1]", {}).key
    monkeypatch.setenv("SPARK_HOME", "/opt/another")
    assert WarmSpec("local[1]", {}).key != before


def test_each_pool_that_starts_warm_has_a_server_of_its_own_spark(old: SparkInstallation) -> None:
    tables = {"a": {"start": "warm"}, "b": {"start": "warm"}, "c": {"start": "warm"}}
    found = warm_specs(tables, pool_spark(tables), Installations({"b": old, "c": old}).of)
    assert [spec.spark for spec in found] == [None, old]


def test_code_that_a_server_does_not_have_keeps_a_job_out_of_it(
    tmp_path: Path, elsewhere: SparkInstallation
) -> None:
    servers = WarmServers(SparkSubmits(tmp_path / "state"), ServerPlan())
    spec = WarmSpec("local[1]", {}, elsewhere)
    keeper = WarmSupervisor(servers, [spec])
    keeper._open = {spec.key: [open_server(servers, spec)]}  # noqa: SLF001 - as above
    asked = replace(request("local[1]", elsewhere), is_warm=True)
    assert keeper.choose(replace(asked, python_packages=("spark_runner",))) is not None
    assert keeper.choose(replace(asked, python_packages=("http_rows", "spark_runner"))) is None
