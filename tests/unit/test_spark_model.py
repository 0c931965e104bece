"""The settings of Spark in definitions and in the settings of workers."""

import pytest
from pydantic import ValidationError

from orchestrator.config.spark_defaults import pool_spark
from orchestrator.model.errors import SettingsError
from orchestrator.model.spark import Spark
from spark_runner.runners.base import SparkTarget

K8S = "k8s://https://127.0.0.1:6443"


def spark(**fields: object) -> Spark:
    return Spark.model_validate(fields)


@pytest.mark.parametrize(
    ("master", "backend", "mode"),
    [
        ("", "local", "client"),
        ("local", "local", "client"),
        ("local[4, 2]", "local", "client"),
        ("spark://a:7077,b-2.example.org:7078", "standalone", "client"),
        ("yarn", "yarn", "client"),
        (K8S, "kubernetes", "cluster"),
        ("k8s://https://example.org/k8s/clusters/c-1", "kubernetes", "cluster"),
    ],
)
def test_the_form_of_a_master_says_which_backend_serves_it(master: str, backend: str, mode: str) -> None:
    target = spark(master=master).target
    assert (target.backend, target.deploy_mode) == (backend, mode)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"master": "local[0]"}, "write local, local"),
        ({"master": "spark://a"}, "write spark://host:7077"),
        ({"master": "spark://a:7077,"}, "write spark://host:7077"),
        ({"master": "yarn://x"}, "HADOOP_CONF_DIR"),
        ({"master": "k8s://example.org"}, "write k8s://https://host:port"),
        ({"master": "mesos://a:5050"}, ": expected local,"),
        ({"master": "local[*]", "deploy_mode": "cluster"}, "needs a cluster"),
        ({"master": K8S, "deploy_mode": "client"}, "omit deploy_mode"),
        ({"packages": ["a:b"]}, "'a:b' is not group:artifact:version"),
        ({"jars": ["a.jar,b.jar"]}, "separates files by commas"),
        ({"executor": {"memory": "2"}}, "'2' is not an amount of memory"),
        ({"driver": {"overhead": "0.1"}}, "'0.1' is not an amount of memory"),
        ({"executor": {"overhead": "lots"}}, "'lots' is not an amount of memory"),
        ({"executor": {"instances": -1}}, "greater than or equal to 0"),
        ({"kubernetes": {"namespace": "Team_A"}}, "pattern"),
    ],
)
def test_settings_that_spark_would_refuse_or_misread_are_refused_at_once(
    fields: dict[str, object], words: str
) -> None:
    with pytest.raises(ValidationError, match=words.replace("[", r"\[")):
        spark(**fields)


def test_only_the_options_of_its_own_backend_go_with_a_target() -> None:
    fields = {"yarn": {"queue": "etl"}, "kubernetes": {"image": "spark:4"}, "options": {"x": 1}}
    assert spark(master="yarn", **fields).target == SparkTarget("yarn", "client", {"queue": "etl"})
    assert spark(master=K8S, **fields).target == SparkTarget(K8S, "cluster", {"image": "spark:4"})
    assert spark(**fields).target == SparkTarget("local[*]", "client", {"x": "1"})


def test_a_field_of_its_own_goes_before_the_property_and_lists_are_joined() -> None:
    made = spark(
        driver={"memory": "2g", "overhead": "600m"},
        executor={"instances": 3, "cores": 2, "overhead": "1g"},
        jars=["b.jar"],
        conf={
            "spark.driver.memory": "1g",
            "spark.driver.memoryOverhead": "9g",
            "spark.jars": "a.jar",
            "spark.executor.memory": "3g",
        },
    )
    assert made.properties == {
        "spark.driver.memory": "2g",
        "spark.driver.memoryOverhead": "600m",
        "spark.executor.instances": "3",
        "spark.executor.cores": "2",
        "spark.executor.memory": "3g",
        "spark.executor.memoryOverhead": "1g",
        "spark.jars": "a.jar,b.jar",
    }


def test_a_pool_fills_up_what_a_definition_leaves_empty() -> None:
    filled = pool_spark(
        {
            "*": {"conf": {"spark.a": "all", "spark.b": "all"}, "kubernetes": {"image": "spark:4"}},
            "etl": {
                "start": "fast",
                "master": K8S,
                "conf": {"spark.a": "etl"},
                "kubernetes": {"namespace": "etl"},
                "executor": {"overhead": "1g"},
            },
        }
    )
    own = spark(conf={"spark.c": "own"}, kubernetes={"service_account": "loader"}, driver={"memory": "2g"})
    etl = filled("etl", own)
    assert etl.target == SparkTarget(
        K8S, "cluster", {"image": "spark:4", "namespace": "etl", "service_account": "loader"}
    )
    assert etl.conf == {"spark.a": "etl", "spark.b": "all", "spark.c": "own"}
    assert etl.driver.memory == "2g"
    assert etl.properties["spark.executor.memoryOverhead"] == "1g"
    own = spark(executor={"overhead": "2g"})
    assert filled("etl", own).properties["spark.executor.memoryOverhead"] == "2g"
    assert filled("default", own).target == SparkTarget("local[*]")
    assert filled("etl", spark(master="local[2]")).target == SparkTarget("local[2]")
    assert [filled("etl", spark(start=own)).start for own in ("", "auto", "full")] == ["fast", "auto", "full"]


def test_contradictory_settings_are_refused_when_the_defaults_are_filled_in() -> None:
    filled = pool_spark({"etl": {"deploy_mode": "cluster"}})
    with pytest.raises(ValueError, match="needs a cluster"):
        filled("etl", spark(master="local[2]"))


def test_a_bad_table_of_a_pool_is_named() -> None:
    with pytest.raises(SettingsError, match="setting spark of pool 'etl': unknown field 'mster'"):
        pool_spark({"etl": {"mster": "yarn"}})
