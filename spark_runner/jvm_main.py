"""Runs the main method of a user's class in the JVM of the driver."""

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.sql import SparkSession

from spark_runner.errors import SparkRunnerError


class JvmError(SparkRunnerError):
    """An exception that the main method threw."""

    def __init__(self, error_type: str, message: str, stack: str) -> None:
        super().__init__(message or error_type)
        self.type = error_type  # the class of the exception
        self.stack = stack  # of Java


def run_main(spark: SparkSession, name: str, arguments: Sequence[str]) -> None:
    """Call `main` of the class; raises JvmError with the exception that it threw.

    `SparkSession.builder().getOrCreate()` in the class returns the session of the driver. An exit code with
    which the class ends the JVM, as in `System.exit(3)`, is the exit code of the driver.
    """
    context = spark.sparkContext
    jvm: Any = context._jvm  # noqa: SLF001 - PySpark has no public access to the JVM
    gateway: Any = context._gateway  # noqa: SLF001 - likewise
    texts = gateway.new_array(jvm.java.lang.String, len(arguments))
    for index, argument in enumerate(arguments):
        texts[index] = argument
    # spark-submit put the jars of the job into the class loader of its main thread, which Spark returns here.
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    try:
        program = jvm.java.lang.Class.forName(name, True, loader)
    except Py4JJavaError as error:
        message = f"there is no class {name} in the jars of the job"
        raise JvmError("ClassNotFoundException", message, "") from error
    try:
        main = program.getMethod("main", _array(gateway, jvm.java.lang.Class, texts.getClass()))
    except Py4JJavaError as error:
        raise JvmError("NoSuchMethodException", f"{name} has no public static main(String[])", "") from error
    jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)
    try:
        main.invoke(None, _array(gateway, jvm.java.lang.Object, texts))
    except Py4JJavaError as error:
        thrown = error.java_exception
        cause = thrown.getCause() or thrown  # reflection wraps the exception
        stack = jvm.org.apache.spark.util.Utils.exceptionString(cause)
        raise JvmError(cause.getClass().getName(), cause.getMessage() or "", stack) from error


def _array(gateway: Any, kind: Any, *items: Any) -> Any:
    made = gateway.new_array(kind, len(items))
    for index, item in enumerate(items):
        made[index] = item
    return made
