"""The jars of Iceberg and Delta Lake in the JVM of tests, and scripts on a table of each."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers.daemons import fetched_jars
from tests.spark_support import LocalSpark

if TYPE_CHECKING:  # not loaded in a test run without Spark
    from pyspark.sql import SparkSession

KINDS = ("iceberg", "delta")
PACKAGES = {
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13": "1.11.0",
    "io.delta:delta-spark_2.13": "4.1.0",
}
CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.databricks.delta.snapshotPartitions": "1",
}
_OF_SPARK = ("scala-", "slf4j-", "log4j-", "jsr305-", "antlr4-")


def lake_jars() -> list[Path]:
    """The jars that Spark does not have itself."""
    folder = fetched_jars("spark-lake-4.1", PACKAGES, "jars of Iceberg and Delta Lake")
    return [jar for jar in sorted(folder.glob("*.jar")) if not jar.name.startswith(_OF_SPARK)]


@pytest.fixture(scope="module")
def lake_spark(local_spark: LocalSpark) -> "Iterator[SparkSession]":
    """A session with both; its context ends with the module."""
    jvm: Any = local_spark.session()._jvm  # noqa: SLF001 - PySpark has no public way to the class loader
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in lake_jars():
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    made = local_spark.other(CONF)
    yield made
    made.stop()


def target(kind: str, folder: Path) -> str:
    """The name of a table of the kind in a folder."""
    return "lake.db.t" if kind == "iceberg" else f"delta.`{folder}/delta/t`"


def catalog(kind: str, folder: Path) -> str:
    """Statements that name the catalog of the kind, each on a line of its own."""
    if kind == "delta":
        return "SET spark.sql.catalog.spark_catalog = org.apache.spark.sql.delta.catalog.DeltaCatalog;\n"
    return f"""SET spark.sql.catalog.lake = org.apache.iceberg.spark.SparkCatalog;
SET spark.sql.catalog.lake.type = hadoop;
SET spark.sql.catalog.lake.warehouse = '{folder}/iceberg';
"""


def table(kind: str, folder: Path, columns: str = "id INT, n BIGINT") -> str:
    """Those statements, and one that creates the table."""
    created = f"CREATE TABLE IF NOT EXISTS {target(kind, folder)} ({columns}) USING {kind};\n"
    return catalog(kind, folder) + created
