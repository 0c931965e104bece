"""The file systems of Hadoop, as the session of Spark has them."""

from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.java_classes import java_class


def file_system_at(session: SparkSession, location: str) -> tuple[Any, Any]:
    """The file system of a location, and its path; errors of Java are raised as Py4JJavaError."""
    java: Any = session._jsparkSession  # noqa: SLF001 - PySpark has no public way to a file system
    path = java_class(session, "org.apache.hadoop.fs.Path")(location)
    return path.getFileSystem(java.sessionState().newHadoopConf()), path
