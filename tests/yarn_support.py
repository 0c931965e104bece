"""Support for tests on YARN: settings for a Spark with small containers."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import psutil

from spark_runner.runners.installation import installed_spark_home
from tests.servers.yarn import Yarn

_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # as in tests/conftest.py for drivers of this host

WITHOUT_EXECUTORS = {
    "spark.executor.instances": "0",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.initialExecutors": "0",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "1",
}
"""For programs without tasks: executors start only for tasks."""


def spark_settings(staging: str) -> dict[str, str]:
    """Settings for a driver with one small executor, in cluster or client mode."""
    settings = {
        "spark.yarn.jars": f"local:{installed_spark_home()}/jars/*",
        "spark.pyspark.python": sys.executable,
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",  # inherited by executors
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.yarn.am.memory": "512m",
        "spark.executor.instances": "1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": _JVM,
        "spark.executor.extraJavaOptions": _JVM,
        "spark.yarn.am.extraJavaOptions": _JVM,
    }
    return settings | ({"spark.yarn.stagingDir": staging} if staging else {})


def spark_environment(conf_dir: Path) -> dict[str, str]:
    """The environment in which spark-submit finds the cluster, and listens on loopback only."""
    return {
        "SPARK_HOME": str(installed_spark_home()),
        "HADOOP_CONF_DIR": str(conf_dir),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def found_by_hadoop(yarn: Yarn) -> Iterator[None]:
    """Configure the cluster for this process and its children."""
    with mock.patch.dict(os.environ, spark_environment(yarn.conf_dir)):
        yield


def container_processes(application: str) -> list[psutil.Process]:
    """The live processes of all containers of an application on this host."""
    number = application.removeprefix("application_")
    found = []
    for process in psutil.process_iter():
        try:
            if number in process.environ().get("CONTAINER_ID", "") and process.is_running():
                found.append(process)
        except psutil.Error:
            continue  # ended meanwhile, or not readable
    return [process for process in found if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
