"""The jobs that run in a warm server, and the end of a server's use."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.spark_defaults import pool_spark, warm_specs
from orchestrator.config.tables import WarmSettings
from orchestrator.model.spark import Spark
from spark_runner.protocol.warm_files import Gateway, Recycling, ServerFiles, ServerPlan
from spark_runner.runners.base import SparkTarget, SubmitRequest
from spark_runner.runners.run_directory import run_directory
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.warm import WarmServers, WarmSpec, WarmSupervisor

SPEC = WarmSpec("local[2]", {"spark.driver.memory": "2g"})
REQUEST = SubmitRequest(
    "run-1", "i", "job", {}, target=SparkTarget(SPEC.master), conf=dict(SPEC.conf), is_warm=True
)


@pytest.fixture
def servers(tmp_path: Path) -> WarmServers:
    return WarmServers(SparkSubmits(tmp_path), ServerPlan())


def server(servers: WarmServers, name: str) -> ServerFiles:
    directory = run_directory(servers.submits.state_dir, f"warm-{SPEC.key}-{name}", "i")
    directory.create()
    files = ServerFiles(directory.path)
    files.prepare()
    return files


def keeper_of(servers: WarmServers, *found: ServerFiles) -> WarmSupervisor:
    made = WarmSupervisor(servers, [SPEC])
    made._open[SPEC.key] = list(found)  # noqa: SLF001 - as a poll would find them
    return made


def test_the_newest_open_server_takes_a_job_with_its_settings(servers: WarmServers) -> None:
    old, new = server(servers, "a"), server(servers, "b")
    for each in (old, new):
        each.open(Gateway(1, "secret"))
    made = keeper_of(servers, old, new)
    assert made.choose(REQUEST) == new
    new.drain()
    assert made.choose(REQUEST) == old
    old.drain()
    assert made.choose(REQUEST) is None


@pytest.mark.parametrize(
    "other",
    [
        {"is_warm": False},
        {"conf": {**SPEC.conf, "spark.sql.ansi.enabled": "false"}},
        {"conf": {}},
        {"target": SparkTarget("local[1]")},
        {"environment": {"TZ": "UTC"}},
    ],
    ids=["not-asked-for", "settings-of-its-own", "less-memory", "another-master", "variables"],
)
def test_a_job_that_asks_for_something_else_gets_a_jvm_of_its_own(
    servers: WarmServers, other: dict[str, Any]
) -> None:
    files = server(servers, "a")
    files.open(Gateway(1, "secret"))
    assert keeper_of(servers, files).choose(replace(REQUEST, **other)) is None


def test_the_secret_of_a_server_is_for_its_user_alone(servers: WarmServers) -> None:
    files = server(servers, "a")
    files.open(Gateway(4711, "secret"))
    assert files.gateway() == Gateway(4711, "secret")
    modes = {path.name: path.stat().st_mode & 0o777 for path in files.path.iterdir()}
    assert modes == {"server.json": 0o600, "keepers": 0o700, "tenants": 0o700}


def test_there_is_a_server_for_each_spark_of_the_pools_that_start_warm() -> None:
    tables: dict[str, dict[str, Any]] = {
        "*": {"start": "warm", "master": "local[2]"},
        "small": {"driver": {"memory": "1g"}},
        "same": {"yarn": {"queue": "q"}},
        "cold": {"start": "full"},
        "cluster": {"master": "yarn"},
    }
    specs = warm_specs(tables, pool_spark(tables))
    assert specs == [WarmSpec("local[2]", {}), WarmSpec("local[2]", {"spark.driver.memory": "1g"})]
    assert warm_specs([], lambda _pool, own: own) == []
    assert Spark().start == ""


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"age": 10.0, "jobs": 2, "memory": 1 << 20}, ""),
        ({"age": 60.0, "jobs": 0, "memory": 0}, "it is 60 s old"),
        ({"age": 0.0, "jobs": 3, "memory": 0}, "3 drivers have used it"),
        ({"age": 0.0, "jobs": 0, "memory": 3 << 30}, "it uses 3072 MiB"),
    ],
    ids=["none", "age", "jobs", "memory"],
)
def test_a_server_is_replaced_by_age_jobs_or_memory(given: dict[str, Any], reason: str) -> None:
    assert Recycling(age=60.0, jobs=3, memory=3 << 30).reason(**given) == reason
    assert Recycling().reason(**given) == ""


def test_the_limits_of_a_server_come_from_the_settings() -> None:
    limits = WarmSettings(age="1h", jobs=7, memory="512m").recycling
    assert limits == Recycling(age=3600.0, jobs=7, memory=512 << 20)
    assert WarmSettings(memory="").recycling.memory == 0
    assert WarmSettings().recycling.memory == 3 << 30


def test_the_plan_of_a_server_is_read_as_it_was_written() -> None:
    plan = ServerPlan(Recycling(age=60.0, jobs=3, memory=3 << 30, alone=0.5, late=1.5), rehearsal=False)
    assert ServerPlan.of(json.loads(json.dumps(plan.to_json()))) == plan
    with pytest.raises(ValueError, match="not an amount of memory"):
        WarmSettings(memory="much")
