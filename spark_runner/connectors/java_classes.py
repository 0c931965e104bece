"""Classes of the JVM of the driver, and its collections."""

from typing import Any

from pyspark.sql import SparkSession


def java_class(session: SparkSession, name: str) -> Any:
    """The class with this full name.

    As `jvm.org.apache...`, py4j would look for a class of each package's name in all jars: milliseconds each.
    """
    return getattr(session._jvm, name)  # noqa: SLF001 - PySpark has no public access to the JVM


def items(found: Any) -> list[Any]:
    """The items of a Seq of Scala."""
    return [found.apply(index) for index in range(found.size())]
