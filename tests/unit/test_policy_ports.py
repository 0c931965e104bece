"""Settings that open ports of a driver on the worker's host: each spelling is refused."""

import pytest

from orchestrator.config.spark_defaults import pool_spark
from orchestrator.policy.policy import Policy
from orchestrator.policy.rules import PolicyRefused
from tests.opened_ports import OPENINGS
from tests.unit.test_policy import definition

OTHER_WAYS = [
    {"spark.ui.enabled": "${spark.mine}", "spark.mine": "true"},
    {"spark.ui.enabled": " TRUE "},
    {"spark.ui.killEnabled": "true"},
    {"spark.ui.filters": ""},
    {"spark.acls.enable": "false"},
    {"spark.plugins": "mine.Plugin, org.apache.spark.sql.connect.SparkConnectPlugin"},
    {"spark.plugins": "${spark.mine}", "spark.mine": "org.apache.spark.sql.connect.SparkConnectPlugin"},
    {"spark.plugins.defaultList": "org.apache.spark.sql.connect.SparkConnectPlugin"},
    {"spark.api.mode": "connect"},
    {"spark.remote": "local"},
    {"spark.driver.defaultJavaOptions": '-Dmine "-D"com.sun.management.jmxremote'},
    {"spark.driver.extraJavaOptions": "-Xrunjdwp:transport=dt_socket,server=y,address=*:0"},
    {"spark.driver.extraJavaOptions": "-Dmine @/tmp/options"},
    {"spark.driver.defaultJavaOptions": "\x01@/tmp/options"},
    {"spark.driver.extraJavaOptions": "-agentpath:/lib/libjdwp.so=transport=dt_socket,server=y,address=*:0"},
    {"spark.driver.extraJavaOptions": "-XX:Flags=/tmp/options"},
    {"spark.driver.extraJavaOptions": "-XX:VMOptionsFile=/tmp/options"},
]
OF_LOCAL_MASTERS = [
    {"spark.driver.host": "0.0.0.0"},  # noqa: S104 - what is refused
    {"spark.driver.bindAddress": "0.0.0.0"},  # noqa: S104 - likewise
    {"spark.authenticate": "false"},
    {"spark.authenticate.secret": "known"},
    {"spark.network.crypto.enabled": "false"},
]


@pytest.mark.parametrize("conf", [*OPENINGS, *OTHER_WAYS, *OF_LOCAL_MASTERS])
def test_settings_that_open_ports_are_refused_in_a_definition_and_not_in_the_pool(
    conf: dict[str, str],
) -> None:
    with pytest.raises(PolicyRefused, match="cannot set spark"):
        Policy().check("team", definition({"master": "local[2]", "conf": conf}))
    filled_in_later = definition({"conf": conf})
    with pytest.raises(PolicyRefused, match="cannot set spark"):
        Policy().check("team", filled_in_later, spark=filled_in_later.spark)
    own = definition()
    filled = pool_spark({"team": {"master": "local[2]", "conf": conf}})("team", own.spark)
    Policy().check("team", own, spark=filled)


@pytest.mark.parametrize("conf", [*OPENINGS[:1], *OTHER_WAYS])
def test_of_a_driver_in_client_mode_those_are_refused_that_open_more_than_executors_need(
    conf: dict[str, str],
) -> None:
    with pytest.raises(PolicyRefused, match="cannot set spark"):
        Policy().check(
            "team", definition({"master": "spark://one:7077", "conf": conf, "deploy_mode": "client"})
        )


@pytest.mark.parametrize("conf", OF_LOCAL_MASTERS)
def test_executors_may_need_the_ports_of_a_driver_in_client_mode(conf: dict[str, str]) -> None:
    job = definition({"master": "spark://one:7077", "conf": conf})
    Policy().check("team", job, spark=job.spark)


@pytest.mark.parametrize("conf", [*OPENINGS, *OTHER_WAYS, *OF_LOCAL_MASTERS])
def test_ports_of_a_driver_in_a_cluster_are_not_restricted(conf: dict[str, str]) -> None:
    job = definition({"master": "yarn", "deploy_mode": "cluster", "conf": conf})
    Policy().check("team", job, spark=job.spark)


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.ui.enabled": "false", "spark.ui.retainedStages": "10"},
        {"spark.ui.killEnabled": "false", "spark.acls.enable": "true", "spark.ui.view.acls": "ada"},
        {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "localhost"},
        {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"},
        {"spark.driver.extraJavaOptions": '-Dmine="with blank" -XX:+UseParallelGC -javaagent:/agent.jar=a@b'},
        {"spark.plugins": "mine.Plugin"},
        {"spark.api.mode": "classic"},
    ],
)
def test_settings_that_open_no_port_are_allowed(conf: dict[str, str]) -> None:
    job = definition({"conf": conf})
    Policy().check("team", job, spark=job.spark)
