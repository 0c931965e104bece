"""How Spark writes its own log: one JSON object in a line for each event, with its trace in it.

A pattern, and no JSON layout of log4j: that one loads further jars, and a short job would wait for them.
`spark_runner.spark_log` reads what it makes.
"""

_PATTERN = (
    """{"@timestamp":"%d{yyyy-MM-dd'T'HH:mm:ss.SSSSSS}{UTC}Z","log.level":"%p","""
    """"log.logger":"%enc{%c}{JSON}","process.thread.name":"%enc{%t}{JSON}","message":"%enc{%m}{JSON}\""""
    # Spark names the task in whose thread somebody speaks.
    """%notEmpty{,"task":"%enc{%X{task_name}}{JSON}"}"""
    """%notEmpty{,"error.stack_trace":"%enc{%ex}{JSON}"}}%n"""
)

# The file name is relative: the JVM's working directory is the run directory, whatever its path contains. It
# is opened for appending, so that `log_limit` may cut it.
LOG4J2_PROPERTIES = f"""\
status = error
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = spark.log
appender.file.layout.type = PatternLayout
appender.file.layout.charset = UTF-8
appender.file.layout.alwaysWriteExceptions = false
appender.file.layout.pattern = {_PATTERN}
"""
