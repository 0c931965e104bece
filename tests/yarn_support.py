"""What tests on YARN share: settings that make a Spark of two small containers."""

import os
import sys

from spark_runner.runners.launch import installed_spark_home
from tests.servers.yarn import Yarn

_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # as tests/conftest.py has it for drivers of this host


def spark_settings(yarn: Yarn) -> dict[str, str]:
    """Settings for a driver with one small executor, in cluster or client mode."""
    settings = {
        "spark.yarn.jars": f"local:{installed_spark_home()}/jars/*",
        "spark.pyspark.python": sys.executable,
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",  # and of executors: it hands it on
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.yarn.am.memory": "512m",
        "spark.executor.instances": "1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": _JVM,
        "spark.executor.extraJavaOptions": _JVM,
        "spark.yarn.am.extraJavaOptions": _JVM,
    }
    return settings | ({"spark.yarn.stagingDir": yarn.staging} if yarn.staging else {})


def spark_environment(yarn: Yarn) -> dict[str, str]:
    """The environment in which spark-submit finds the cluster, and listens on loopback only."""
    return {
        **os.environ,
        "SPARK_HOME": str(installed_spark_home()),
        "HADOOP_CONF_DIR": str(yarn.conf_dir),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
