"""Which errors come back however often a program is run again: those are of its definition."""

import re

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import AnalysisException

from spark_runner.connectors.errors import ConnectorError
from spark_runner.failures import PATTERNS
from spark_runner.jvm_main import JvmError
from spark_runner.sql.errors import SqlError

# Text that is no program, names and modules that are not there, files that are not there.
_OF_PYTHON = (SyntaxError, ImportError, FileNotFoundError, IsADirectoryError, NotADirectoryError)

_JAVA = re.compile(PATTERNS["definition"])


def is_permanent(error: BaseException) -> bool:
    """Whether a further attempt would end with the same error."""
    if isinstance(error, SqlError):
        # What is wrong by the script alone has no cause.
        return error.__cause__ is None or is_permanent(error.__cause__)
    if isinstance(error, AnalysisException):
        # What Spark could not find out because something else failed (a metastore is away) has a cause.
        cause = getattr(error, "_cause", None)
        return cause is None or is_permanent(cause)
    if isinstance(error, JvmError):
        return _is_java_permanent(error.type)
    if isinstance(error, Py4JJavaError):
        return _is_java_permanent(error.java_exception.getClass().getName())
    # A name that is assigned in one branch alone (UnboundLocalError) may depend on the data.
    return isinstance(error, (ConnectorError, *_OF_PYTHON)) or type(error) is NameError


def _is_java_permanent(name: str) -> bool:
    return _JAVA.match(f"{name}: ") is not None
