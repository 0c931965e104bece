"""Recognizes Spark's error for a record of a file that does not fit the declared columns."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import PySparkException

from spark_runner.protocol.text import shortened

_FILE = re.compile(
    r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (?P<file>[^\n]+?)\.\s+SQL"
)
_RECORD = re.compile(
    r"\[MALFORMED_RECORD_IN_PARSING[.\w]*\] Malformed records are detected in record parsing: "
    r"(?P<record>.*?)\.\s*\nParse Mode",
    re.DOTALL,
)
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (?P<words>[^\n]+)$", re.MULTILINE)
_STATE = re.compile(r"\s*SQLSTATE: \w{5}\s*$")
_MAX_CHARACTERS = 300  # of a record: it may be a whole line of any length
_MOST_SEARCHED = 1_000
_SETTLED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Misfit:
    """The file, what Spark could read of the record, and what is wrong with it."""

    file: str
    record: str
    fault: str

    @property
    def is_settled(self) -> bool:
        """Whether the file is on this host, and nothing has written it for a minute.

        The end of a file that is still being written fits later.
        """
        try:
            modified = Path(unquote(urlsplit(self.file).path)).stat().st_mtime
        except (OSError, ValueError):
            return False
        return time.time() - modified > _SETTLED_SECONDS

    def __str__(self) -> str:
        """What is wrong, and what to do."""
        fault = f": {self.fault}" if self.fault else ""
        return (
            f"a record of '{self.file}' does not fit the declared columns{fault}, in {self.record}; correct"
            " the file or the columns, or let the job keep such rows aside, up to a limit:"
            " SET job.error.limit.rows = 100"
        )


def misfit(error: BaseException) -> Misfit | None:
    """The record of a file at which a read failed; None for another error."""
    if not isinstance(error, Py4JJavaError | PySparkException):
        return None
    try:
        text = str(error)  # with the causes, unless the JVM has ended meanwhile
    except Py4JError:
        return None
    file, record = _FILE.search(text), _RECORD.search(text)
    if file is None or record is None:
        return None
    causes = _CAUSE.findall(text)
    # Cut first: the pattern is slow on a long run of spaces, and a cell may have one.
    fault = _STATE.sub("", causes[-1][:_MOST_SEARCHED]) if causes else ""
    if "MALFORMED_RECORD" in fault or "FAILED_READ_FILE" in fault:
        fault = ""  # the words of the record again
    return Misfit(
        file["file"], shortened(record["record"], _MAX_CHARACTERS), shortened(fault, _MAX_CHARACTERS)
    )
