"""A job with tables of Redis in pods: one secret would not hold the code of the driver and redis-py."""

from pathlib import Path

import pytest

from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from tests.integration.test_redis import table
from tests.jobs_support import Deployment
from tests.kubernetes_support import KubernetesSite
from tests.servers.redis import RedisServer


@pytest.mark.drawn("jobs on clusters")
@pytest.mark.spark
@pytest.mark.kubernetes
@pytest.mark.timeout(1800)  # the API server is built where it is not in the cache yet
def test_the_client_of_redis_reaches_driver_and_executors(
    deployment: Deployment,
    kubernetes_site: KubernetesSite,
    redis_server: RedisServer,
    redis_keys: str,
    tmp_path: Path,
) -> None:
    target = kubernetes_site.target()
    deployment.worker(runner=kubernetes_site.runner(spark_submit=None))
    options = {**redis_server.options, "key": f"{redis_keys}:{{id}}", "value": "{id}"}
    script = "".join((table("dst", options, "(id BIGINT)"), "INSERT INTO dst SELECT id FROM range(4);"))
    conf = {"spark.driver.memory": "512m", "spark.executor.memory": "512m", "spark.executor.instances": "1"}
    document = {
        "name": "counters",
        "script": script,
        "directory": str(tmp_path),
        "retry": {"attempts": 1},
        "spark": {
            "master": target.master,
            "deploy_mode": target.deploy_mode,
            "kubernetes": dict(target.options),
            "conf": conf,
        },
    }
    ended = deployment.wait(deployment.client.submit(build_definition(document, "test")).id, 240)
    assert ended.job.status is Status.SUCCESS, ended
    with redis_server.client() as client:
        assert client.mget([f"{redis_keys}:{number}" for number in range(4)]) == ["0", "1", "2", "3"]
