"""A job with a table of Kafka, as a worker submits it: Spark finds its modules by their packages."""

from pathlib import Path

import pytest

from orchestrator.compose import build_runners
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from spark_runner.runners.base import SparkTarget
from tests.jobs_support import Deployment
from tests.kafka_support import ivy_settings
from tests.servers.kafka import Topics

pytestmark = [pytest.mark.spark, pytest.mark.drawn("jobs on clusters"), pytest.mark.timeout(300)]
INSERT = "INSERT INTO dst SELECT id * 10 AS id FROM src"


def test_a_submitted_job_gets_the_modules_of_its_line_and_drains_a_topic(
    deployment: Deployment, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.new("source"), topics.new("target")
    topics.kafka.produce(source, [b'{"id": 1}', b'{"id": 2}'])
    where = f"bootstrap_servers '{topics.kafka.servers}'"
    tables = "".join(
        f"CREATE TABLE {name} (id BIGINT) USING kafka OPTIONS (topic '{topic}', {where});\n"
        for name, topic in (("src", source), ("dst", target))
    )
    runners = build_runners(deployment.settings.model_copy(update={"class_archives": False}), warm=False)
    deployment.worker(runner=runners.for_target(SparkTarget("local[2]")))
    document = {
        "name": "drain",
        "script": tables + INSERT,
        "retry": {"attempts": 1},
        "spark": {"master": "local[2]", "conf": {"spark.jars.ivySettings": str(ivy_settings(tmp_path))}},
    }
    detail = deployment.wait(deployment.client.submit(build_definition(document, "test")).id, 240)
    assert detail.job.status is Status.SUCCESS, str(detail.job.error)
    assert sorted(each.value or b"" for each in topics.kafka.records(target)) == [b'{"id":10}', b'{"id":20}']
