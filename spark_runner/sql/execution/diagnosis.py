"""Maps errors of Spark to the place in the script that caused them."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import PySparkException, QueryContext, QueryContextType
from pyspark.sql import SparkSession

from spark_runner.connectors.arrow_tasks import error_of_task
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""The errors that PySpark raises when Spark refuses a request or fails."""

_LINE_AND_COLUMN = (
    re.compile(r"\(line (\d+), pos (\d+)\)"),  # ParseException
    re.compile(r"; line (\d+) pos (\d+)"),  # AnalysisException without a query context
)
# Wrappers, whose cause has a better message.
_WRAPPERS = ("Job aborted", "Task failed", "[TASK_WRITE_FAILED]", "Exception thrown in awaitResult")


class SentTexts:
    """All texts of one script that were sent to Spark.

    An error of Spark may come from any of them: a view fails when it is read. So each text is sent behind
    enough spaces that no two texts share an offset, and the offset alone identifies the text.
    """

    def __init__(self) -> None:
        self._sent: list[tuple[int, Passage]] = []
        self._end = 0

    def copy(self) -> "SentTexts":
        """These texts at their offsets, for another thread to which the later ones do not belong."""
        found = SentTexts()
        found._sent, found._end = [*self._sent], self._end
        return found

    def send(self, passage: Passage) -> str:
        """The text to send to Spark for `passage`."""
        for start, known in self._sent:
            if known == passage:
                return " " * start + passage.text
        start = self._end
        self._sent.append((start, passage))
        self._end += len(passage.text) + 1  # Spark may point behind the last character
        return " " * start + passage.text

    def place(self, error: Exception, passage: Passage) -> tuple[Passage, int] | None:
        """The text and the offset in it that Spark names, if any; `passage` is the text that it processed."""
        for context in _contexts(error):
            for start, known in self._sent:
                if start <= context.startIndex() <= start + len(known.text):
                    return known, context.startIndex() - start
        text = str(error) if isinstance(error, PySparkException) else ""
        for pattern in _LINE_AND_COLUMN:
            match = pattern.search(text)
            if match:
                lines = self.send(passage).split("\n")
                before = sum(len(line) + 1 for line in lines[: int(match[1]) - 1])
                start = next(start for start, known in self._sent if known == passage)
                return passage, max(0, before + int(match[2]) - start)
        return None

    def located(self, error: Exception, passage: Passage) -> SqlError:
        """A SqlError at the place that Spark names, or at the start of `passage`."""
        found, offset = self.place(error, passage) or (passage, 0)
        return found.error(reason(error), offset)


_MAX_UNRESOLVED = 20  # of one query; each costs one analysis
_UNRESOLVED = "UNRESOLVED_COLUMN"


def further_unresolved(
    session: SparkSession, sent: SentTexts, query: Passage, first: BaseException | None
) -> Iterator[SqlError]:
    """The unknown columns of a query behind the first, at which Spark's analysis ends.

    Each one found is replaced by NULL, and the query is analysed again. A further error of another kind, or
    of the same name, may be a consequence of that: it is left out.
    """
    text, error, names = sent.send(query), first, set[str]()
    begin = len(text) - len(query.text)
    longer = list[tuple[int, int]]()  # the offsets of replacements, and by how much they are longer
    for _ in range(_MAX_UNRESOLVED):
        if not isinstance(error, PySparkException) or not condition(error).startswith(_UNRESOLVED):
            return
        context = next(iter(_contexts(error)), None)
        if context is None or context.startIndex() < begin:
            return
        start, end = context.startIndex(), context.stopIndex() + 1
        name = text[start:end].rpartition(".")[2].lower()
        if error is not first and name not in names:
            yield query.error(
                reason(error), start - begin - sum(more for place, more in longer if place < start)
            )
        names.add(name)
        text = f"{text[:start]}NULL{text[end:]}"
        more = len("NULL") - (end - start)
        longer = [(place + more * (place > start), added) for place, added in longer] + [(start, more)]
        try:
            session.sql(text)
        except SPARK_ERRORS as found:
            error = found
        else:
            return


def reason(error: Exception) -> str:
    """The message of Spark without logical plan, query dump and Java stack; of a connector, its own."""
    error = error_of_task(error)
    if isinstance(error, Py4JJavaError):
        return _java_reason(error)
    if isinstance(error, PySparkException):
        return without_trace((_message(error) or str(error)).strip())
    return str(error)


def _message(error: PySparkException) -> str | None:
    try:
        return error.getMessage()
    except Py4JJavaError:
        return None  # the condition is of another library, such as Delta Lake, and PySpark has no text for it


_PYTHON_FAILED = "An exception was thrown from the Python worker"
_FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+), in (.+)$', re.MULTILINE)
_OF_LIBRARIES = (
    "pyarrow/",
    "/spark_runner/",
    "/site-packages/",
    "/dist-packages/",
    "/pyspark.zip/",
    "/pyspark/",
    "/lib/python",
    "<frozen",
)


def without_trace(message: str) -> str:
    """The error of a Python function with its own line alone; another message as it is."""
    if _PYTHON_FAILED not in message:
        return message
    frames = list(_FRAME.finditer(message))
    if not frames:
        return message
    behind = message[frames[-1].end() :].split("\n")[1:]
    code = behind[0].strip() if behind else ""
    while behind and behind[0].startswith("    "):  # the line of the code, and marks below it
        del behind[0]
    words = re.sub(r"\s*SQLSTATE: \w{5}\)?\s*$", "", "\n".join(behind)).strip()
    own = [
        frame for frame in frames if "/" in frame[1] and not any(part in frame[1] for part in _OF_LIBRARIES)
    ]
    if not own:
        return words if ":" in words else f"{words} at `{code}`"
    file, line, name = own[-1].groups()
    return f"{words} ({PurePosixPath(file).name}, line {line}, in {name})"


def condition(error: Exception) -> str:
    """Spark's name for the error, like PATH_NOT_FOUND; empty if it has none."""
    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""


def _contexts(error: Exception) -> list[QueryContext]:
    if not isinstance(error, PySparkException):
        return []
    contexts = error.getQueryContext() or []
    # The text of a catalog view is not in the script.
    return [
        context
        for context in contexts
        if context.contextType() == QueryContextType.SQL and not context.objectType()
    ]


def _java_reason(error: Py4JJavaError) -> str:
    messages: list[str] = []
    cause = error.java_exception
    while cause is not None:
        message = (cause.getMessage() or cause.getClass().getSimpleName()).strip()
        cause = cause.getCause()
        if cause is not None and message.startswith(_WRAPPERS):
            continue
        first = message if not messages else message.split("\n", 1)[0]
        if not any(first in earlier for earlier in messages):
            messages.append(first)
    return without_trace(": ".join(message.split("\n\tat ", 1)[0] for message in messages))
