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
# Ivy takes the newest version that any module names, and Maven the nearest one.
_NEWEST = {"org.xerial.snappy:snappy-java": "1.1.10.8", "org.slf4j:slf4j-api": "2.0.17"}
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


def ivy_settings(folder: Path) -> Path:
    """Settings for Ivy, by which Spark finds the packages of the modules on this host alone."""
    repository = fetched_jars(
        f"spark-kafka-repository-{_VERSION}",
        {**MODULES, **_NEWEST},
        f"module of Spark {_VERSION} for Kafka",
        as_repository=True,
    )
    file = folder / "ivysettings.xml"
    file.write_text(
        f"""<ivysettings><settings defaultResolver="here"/><caches defaultCacheDir="{folder}/ivy/cache"/>
        <resolvers><ibiblio name="here" m2compatible="true" root="{repository.as_uri()}/"/></resolvers>
        </ivysettings>""",
        "utf-8",
    )
    return file
