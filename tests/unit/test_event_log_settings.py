"""The settings of event logs, the properties that they add to jobs, and the addresses of ended runs."""

from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.config.event_logs import EventLogSettings
from orchestrator.handlers.event_logs import EventLogs
from orchestrator.model.spark import Spark

K8S = "k8s://https://127.0.0.1:6443"
ID = "local-1764412345678"
SERVER = "http://history:18080"
CLUSTER: dict[str, Any] = {"master": "spark://one:7077", "deploy_mode": "cluster"}


def logs(**table: Any) -> EventLogs:
    """The logs of all pools, in a folder of this host unless `table` has another."""
    return EventLogs({"*": EventLogSettings.model_validate({"url": "file:///logs/spark", **table})})


def spark(conf: dict[str, str] | None = None, **fields: Any) -> Spark:
    return Spark.model_validate({"conf": conf or {}, **fields})


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"url": "s3a://key:secret@bucket/logs"}, "must not contain a password"),
        ({"url": "/logs"}, "is not the URL of a folder"),
        ({"url": "file:logs"}, "is not the URL of a folder"),
        ({"url": "file://host/logs"}, "is not the URL of a folder"),
        ({"url": "file:///logs/../etc"}, "is not the URL of a folder"),
        ({"url": "s3a://bucket/logs?x=1"}, "is not the URL of a folder"),
        ({"url": "hdfs://one/my logs"}, "is not the URL of a folder"),
        ({"url": "hdfs://one/\u202elogs"}, "is not the URL of a folder"),
        ({"url": "hdfs://one/${env:X}"}, "is not the URL of a folder"),
        ({"file_size": "9m"}, "Spark accepts 10m and more"),
        ({"retention": -1}, "greater than or equal to 0"),
        ({"history_server": "history:18080"}, "is not the URL of a history server"),
        ({"history_server": "http://ada:x@history:18080"}, "is not the URL of a history server"),
        ({"history_server": "http://h/?a"}, "is not the URL of a history server"),
        ({"history_server": "javascript:alert(1)"}, "is not the URL of a history server"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        EventLogSettings.model_validate(table)


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("file:///logs/spark/", "/logs/spark"),
        ("file:/logs", "/logs"),
        ("s3a://bucket", ""),
        ("abfss://box@account.dfs.core.windows.net/logs", ""),
    ],
)
def test_the_folder_of_a_file_url_is_one_of_this_host(url: str, folder: str) -> None:
    assert EventLogSettings(url=url).local_folder == folder


def test_a_job_of_the_pool_gets_the_properties_and_its_own_win() -> None:
    assert logs().properties("etl", spark()) == {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": "file:///logs/spark",
        "spark.eventLog.compress": "true",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "128m",
        "spark.eventLog.logStageExecutorMetrics": "true",
    }
    own = {"spark.eventLog.compress": "false", "spark.eventLog.enabled": "true"}
    added = logs(file_size="").properties("etl", spark(own))
    assert not own.keys() & added.keys()
    assert added["spark.eventLog.rolling.enabled"] == "false"


@pytest.mark.parametrize(
    "job",
    [
        spark({"spark.eventLog.enabled": "false"}),
        spark({"spark.eventLog.dir": "file:///mine"}),
        spark(start="warm"),
        spark(**CLUSTER),
        spark(master=K8S),
    ],
    ids=["off", "own folder", "warm", "on a node", "in a pod"],
)
def test_no_job_gets_a_log_that_it_turns_off_or_could_not_write(job: Spark) -> None:
    assert logs().properties("etl", job) == {}
    assert EventLogs().properties("etl", job) == {}


def test_a_driver_on_a_cluster_gets_a_log_in_a_folder_that_all_nodes_reach() -> None:
    for job in (spark(**CLUSTER), spark(master=K8S), spark()):
        assert logs(url="s3a://bucket/logs").properties("etl", job)["spark.eventLog.enabled"] == "true"


def test_the_table_of_a_pool_replaces_that_of_all_pools_also_in_its_low_lane() -> None:
    tables = {"*": EventLogSettings(url="file:///all"), "quiet": EventLogSettings()}
    found = EventLogs(tables)
    assert found.properties("other", spark())["spark.eventLog.dir"] == "file:///all"
    assert found.properties("quiet", spark()) == found.properties("quiet.low", spark()) == {}


@pytest.mark.parametrize(
    ("table", "job", "application", "address"),
    [
        ({}, spark(), ID, f"file:///logs/spark/eventlog_v2_{ID}"),
        ({"file_size": ""}, spark(), ID, f"file:///logs/spark/{ID}.zstd"),
        ({"file_size": "", "compress": False}, spark(), ID, f"file:///logs/spark/{ID}"),
        ({"history_server": f"{SERVER}/"}, spark(), ID, f"{SERVER}/history/{ID}"),
        (
            {"history_server": SERVER, "url": "hdfs://one/logs"},
            spark(master="yarn", deploy_mode="cluster"),
            "application_1_0001",
            f"{SERVER}/history/application_1_0001/1",
        ),
        (
            {"history_server": SERVER},
            spark(master="yarn"),
            "application_1_0001",
            f"{SERVER}/history/application_1_0001",
        ),
        (
            {"history_server": SERVER},
            spark({"spark.eventLog.enabled": "true", "spark.eventLog.dir": "hdfs://mine/"}),
            ID,
            f"hdfs://mine/eventlog_v2_{ID}",
        ),
    ],
)
def test_the_address_of_an_ended_run_is_its_page_or_its_log(
    table: dict[str, Any], job: Spark, application: str, address: str
) -> None:
    assert logs(**table).address("etl", job, application) == address


@pytest.mark.parametrize(
    ("job", "application"),
    [
        (spark(), None),
        (spark(), "../../etc"),
        (spark(), "x\n"),
        (spark(), "x" * 201),
        (spark({"spark.eventLog.enabled": "false"}), ID),
        (spark({"spark.eventLog.dir": "file:///mine"}), ID),
        (spark({"spark.eventLog.enabled": "true", "spark.eventLog.dir": "s3a://k:s@bucket"}), ID),
        (spark({"spark.eventLog.enabled": "true", "spark.eventLog.dir": "https://host/logs?sig=s"}), ID),
        (spark({"spark.eventLog.enabled": "true", "spark.eventLog.dir": "${env:X}"}), ID),
        (spark({"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file:/a\x1b[2J"}), ID),
    ],
)
def test_what_a_driver_or_a_definition_invents_gives_no_address(job: Spark, application: str | None) -> None:
    assert logs(history_server=SERVER).address("etl", job, application) is None
