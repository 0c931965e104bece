"""Permanent errors: a program raises them on every run, so they belong to its definition."""

import contextlib
import re

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import AnalysisException

from spark_runner.connectors.errors import ConnectorError, TargetChanged
from spark_runner.failures import PATTERNS
from spark_runner.jvm_main import JvmError
from spark_runner.sql.errors import SqlError

# Invalid programs, missing modules and missing files.
_OF_PYTHON = (SyntaxError, ImportError, FileNotFoundError, IsADirectoryError, NotADirectoryError)

_JAVA = re.compile(PATTERNS["definition"])


def is_permanent(error: BaseException) -> bool:
    """Whether a further attempt would end with the same error."""
    if isinstance(error, SqlError):
        # An error of the script alone has no cause.
        return error.__cause__ is None or is_permanent(error.__cause__)
    if isinstance(error, AnalysisException):
        # An error that another failure caused (a metastore does not answer) has a cause.
        cause = getattr(error, "_cause", None)
        return cause is None or is_permanent(cause)
    if isinstance(error, JvmError | Py4JJavaError):
        return _JAVA.match(_words(error)) is not None
    if isinstance(error, ConnectorError):
        return not isinstance(error, TargetChanged)
    # UnboundLocalError, of a name that only one branch assigns, may depend on the data.
    return isinstance(error, _OF_PYTHON) or type(error) is NameError


def _words(error: JvmError | Py4JJavaError) -> str:
    """The class and message of a Java error; empty if its JVM has ended meanwhile."""
    if isinstance(error, JvmError):
        return f"{error.type}: {error}"
    with contextlib.suppress(Py4JError):
        raised = error.java_exception
        return f"{raised.getClass().getName()}: {raised.getMessage()}"
    return ""
