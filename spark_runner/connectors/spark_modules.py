"""Modules of Spark that it does not bring along, such as the one for Kafka: a version for each line."""

from spark_runner.connectors.errors import ConnectorError

SPARK = "{spark}"
"""Stands for the version in the coordinates of a module: `org.apache.spark:spark-avro_2.13:{spark}`."""

VERSIONS = {"4.0": "4.0.0", "4.1": "4.1.1", "4.2": "4.2.0"}
"""The version of the modules by the line of Spark; all modules of a line exist in this one.

A module runs on each version of its line. Lines without an entry have no modules.
"""


def of_line(package: str, spark: str) -> str:
    """The coordinates of a package for a version of Spark as 4.1.4; raises ConnectorError without one."""
    if SPARK not in package:
        return package
    line = ".".join(spark.split(".")[:2])
    if (version := VERSIONS.get(line)) is None:
        name = package.split(":")[1] if package.count(":") > 1 else package
        raise ConnectorError(
            f"'{name}' has no version for Spark {spark}; use Spark {', '.join(VERSIONS)}, or give its jars by"
            " the setting `connector_jars`"
        )
    return package.replace(SPARK, version)
