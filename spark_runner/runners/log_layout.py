"""The layout of Spark's own log: one JSON object per line and event, with its stack trace.

A driver on this host writes the log to its own file. A process on a cluster writes it to stderr, which the
cluster keeps. The layout is a pattern, not log4j's JSON layout, which loads further jars that delay a short
job. `spark_runner.spark_log` reads the result.
"""

from collections.abc import Mapping

from spark_runner.process import RUN_DIR_VARIABLE

_PATTERN = (
    """{"@timestamp":"%d{yyyy-MM-dd'T'HH:mm:ss.SSSSSS}{UTC}Z","log.level":"%p","""
    """"log.logger":"%enc{%c}{JSON}","process.thread.name":"%enc{%t}{JSON}","message":"%enc{%m}{JSON}\""""
    # Spark sets the task in the threads that run one.
    """%notEmpty{,"task":"%enc{%X{task_name}}{JSON}"}"""
    """%notEmpty{,"error.stack_trace":"%enc{%ex}{JSON}"}}%n"""
)


def _properties(appender: str, settings: str) -> str:
    return f"""\
status = error
rootLogger.level = info
rootLogger.appenderRef.{appender}.ref = {appender}
appender.{appender}.name = {appender}
{settings}
appender.{appender}.layout.type = PatternLayout
appender.{appender}.layout.charset = UTF-8
appender.{appender}.layout.alwaysWriteExceptions = false
appender.{appender}.layout.pattern = {_PATTERN}
"""


# In the run directory, with any path and any working directory of the JVM. log4j opens the file for
# appending, so that `log_limit` may cut it.
LOG4J2_PROPERTIES = _properties(
    "file", f"appender.file.type = File\nappender.file.fileName = ${{env:{RUN_DIR_VARIABLE}}}/spark.log"
)
TO_STDERR = _properties("console", "appender.console.type = Console\nappender.console.target = SYSTEM_ERR")

DRIVER = "spark.driver.defaultJavaOptions"
EXECUTOR = "spark.executor.defaultJavaOptions"


def with_log_layout(conf: Mapping[str, str], location: str, *settings: str) -> dict[str, str]:
    """The `settings`, such as DRIVER or EXECUTOR, that make JVMs log by the file at `location`.

    The user's options follow: of two equal options a JVM takes the last.
    """
    option = f"-Dlog4j2.configurationFile={location}"
    return {name: f"{option} {conf.get(name, '')}".rstrip() for name in settings}
