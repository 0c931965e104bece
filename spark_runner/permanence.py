"""Which errors come back however often a program is run again: those are of its definition."""

import contextlib
import re

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import AnalysisException

from spark_runner.connectors.errors import ConnectorError, TargetChanged
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
    if isinstance(error, JvmError | Py4JJavaError):
        return _JAVA.match(_words(error)) is not None
    if isinstance(error, ConnectorError):
        return not isinstance(error, TargetChanged)
    # A name that is assigned in one branch alone (UnboundLocalError) may depend on the data.
    return isinstance(error, _OF_PYTHON) or type(error) is NameError


def _words(error: JvmError | Py4JJavaError) -> str:
    """The class of an error of Java and its message; empty where its JVM has gone meanwhile."""
    if isinstance(error, JvmError):
        return f"{error.type}: {error}"
    with contextlib.suppress(Py4JError):
        raised = error.java_exception
        return f"{raised.getClass().getName()}: {raised.getMessage()}"
    return ""
