"""A script's text, and the limits of its size."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from spark_runner.sql.text.built_ins import readable
from spark_runner.sql.text.errors import SqlError

MAX_SCRIPT_CHARACTERS = 384 * 1024  # like the definition that carries it
MAX_STATEMENTS = 1_000
MAX_NESTING = 200  # open parentheses; the parser of Spark overflows its stack at some thousands
MAX_EXPANDED_CHARACTERS = 1024 * 1024  # of all statements, with variables replaced
MAX_VIEW_DEPTH = 100  # the default of spark.sql.view.maxNestedViewDepth
MAX_TABLE_READS = 10_000  # by one query through all its views; Spark inserts the text of a view at each use
MAX_CATALOG_TABLES = 500  # that a script reads; each DELETE is compared with all of them
MAX_PATH_CHARACTERS = 4_096  # PATH_MAX of Linux; no file system accepts more


@dataclass(frozen=True)
class ScriptSource:
    """One script as the user wrote it."""

    file: str
    text: str

    @cached_property
    def _line_starts(self) -> list[int]:
        # Only "\n" ends a line, as for Spark's parser; errors do not show the "\r" of a Windows file.
        return [0, *(index + 1 for index, char in enumerate(self.text) if char == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both from 1, counted in characters."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column."""
        return self._line_starts[line - 1] + column - 1

    def error(self, message: str, offset: int, kind: type[SqlError] = SqlError) -> SqlError:
        """An error that points at `offset`."""
        line, column = self.position(offset)
        start = self._line_starts[line - 1]
        source_line = self.text[start:].split("\n", 1)[0].rstrip("\r")
        return kind(readable(message), file=self.file, line=line, column=column, source_line=source_line)
