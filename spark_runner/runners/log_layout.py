"""How Spark writes its own log: one JSON object in a line for each event, with its trace in it.

A driver of this host writes it to a file of its own; what runs on a cluster to stderr, which that keeps.
A pattern, and no JSON layout of log4j: that one loads further jars, and a short job would wait for them.
`spark_runner.spark_log` reads what it makes.
"""

from collections.abc import Mapping

from spark_runner.process import RUN_DIR_VARIABLE

_PATTERN = (
    """{"@timestamp":"%d{yyyy-MM-dd'T'HH:mm:ss.SSSSSS}{UTC}Z","log.level":"%p","""
    """"log.logger":"%enc{%c}{JSON}","process.thread.name":"%enc{%t}{JSON}","message":"%enc{%m}{JSON}\""""
    # Spark names the task in whose thread somebody speaks.
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


# In the run directory, whatever its path contains, and wherever the JVM works. It is opened for appending, so
# that `log_limit` may cut it.
LOG4J2_PROPERTIES = _properties(
    "file", f"appender.file.type = File\nappender.file.fileName = ${{env:{RUN_DIR_VARIABLE}}}/spark.log"
)
TO_STDERR = _properties("console", "appender.console.type = Console\nappender.console.target = SYSTEM_ERR")

DRIVER = "spark.driver.defaultJavaOptions"
EXECUTOR = "spark.executor.defaultJavaOptions"


def laid_out(conf: Mapping[str, str], location: str, *settings: str) -> dict[str, str]:
    """The settings, such as DRIVER or EXECUTOR, of JVMs that log as the file at `location` says.

    Options of the user come after ours: of two equal options a JVM takes the last.
    """
    option = f"-Dlog4j2.configurationFile={location}"
    return {name: f"{option} {conf.get(name, '')}".rstrip() for name in settings}
