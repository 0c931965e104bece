"""The modules of Spark for Kafka and Avro in the session of tests, and tables on the broker of tests."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.spark_modules import VERSIONS
from tests.servers.daemons import fetched_jars

_VERSION = VERSIONS["4.1"]
MODULES = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": _VERSION,
    "org.apache.spark:spark-avro_2.13": _VERSION,
}
_OF_SPARK = ("hadoop-", "scala-", "slf4j-", "snappy-", "lz4-", "spark-tags", "xz-", "jsr305-")


def kafka_jars() -> list[Path]:
    """The jars of the modules that Spark does not have itself."""
    folder = fetched_jars(f"spark-kafka-{_VERSION}", MODULES, f"module of Spark {_VERSION} for Kafka")
    return [jar for jar in sorted(folder.glob("*.jar")) if not jar.name.startswith(_OF_SPARK)]


def add_kafka(spark: SparkSession) -> None:
    """Make the modules known to the JVM of a session."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to the class loader
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in kafka_jars():
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
