"""The connection by which a thread of the JVM calls this process: py4j keeps it when the thread has ended."""

from typing import Any

from py4j.clientserver import ClientServer  # type: ignore[import-untyped]  # py4j publishes no types
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # likewise
from pyspark.sql import SparkSession


def calling_connection(session: SparkSession) -> Any:
    """The connection of the thread that calls this process now; None where threads share connections.

    `shutdown` on it ends a thread and closes a socket on this side, too.
    """
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - PySpark has no public access to it
    if not isinstance(gateway, ClientServer):
        return None
    try:
        return gateway.java_gateway_server.getCallbackClient().getPerThreadConnection()
    except Py4JError:  # it stays open then
        return None
