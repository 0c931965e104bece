"""The error of a script, with its place in the user's file."""

import unicodedata
from typing import Any

from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.text import shortened

_MESSAGE_CHARACTERS = 4_000  # a message may quote as much as the whole script
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # categories of Unicode
_PLAIN = "\t\n\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
_SHOWN_CHARACTERS = 160  # of a line: a generated script may be a single line


class SqlError(SparkRunnerError):
    """A script is invalid, or a statement failed, at `line` and `column` of `file` (both from 1).

    `others` are the further errors of the same script, in order.
    """

    others: tuple["SqlError", ...] = ()

    def __init__(self, message: str, *, file: str, line: int, column: int, source_line: str) -> None:
        message = shortened(message, _MESSAGE_CHARACTERS)
        super().__init__(message, file, line, column, source_line)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.source_line = source_line

    def __reduce__(self) -> tuple[object, ...]:
        return (
            _rebuild,
            (self.message, self.file, self.line, self.column, self.source_line),
            {"others": self.others},
        )

    def to_json(self) -> dict[str, Any]:
        """The named arguments of an equal error, without `others`."""
        return {
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "source_line": self.source_line,
        }

    def __str__(self) -> str:
        """The message, the line of the script, and a caret below the place; then the same of `others`."""
        return "\n".join(error.shown() for error in (self, *self.others))

    def shown(self) -> str:
        """The message with its place, without `others`."""
        return f"{self.file}:{self.line}:{self.column}: {_escaped(self.message)}\n{self.excerpt()}"

    def excerpt(self) -> str:
        """The line of the script, and a caret below the place."""
        number = str(self.line)
        start = (
            max(0, self.column - 1 - _SHOWN_CHARACTERS // 2)
            if len(self.source_line) > _SHOWN_CHARACTERS
            else 0
        )
        shown = _escaped(self.source_line[start : start + _SHOWN_CHARACTERS])
        indent = "".join(_blank(char) for char in self.source_line[start : self.column - 1])
        return f"  {number} | {shown}\n  {' ' * len(number)} | {indent}^"


def _escaped(text: str) -> str:
    """The text with characters that a terminal obeys or hides, and records replace, as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text.replace("\r\n", "\n")))


def _shown(char: str) -> str:
    if char in _PLAIN or unicodedata.category(char) not in _UNSEEN:
        return char
    return char.encode("ascii", "backslashreplace").decode() if char > "\x7f" else f"\\x{ord(char):02x}"


def _blank(char: str) -> str:
    # Tabs stay tabs and wide characters take two cells, so that the caret is below its character.
    if char == "\t":
        return "\t"
    if unicodedata.combining(char) or char in _PLAIN:
        return ""
    return "  " if unicodedata.east_asian_width(char) in "WF" else " " * len(_shown(char))


def _rebuild(message: str, file: str, line: int, column: int, source_line: str) -> SqlError:
    """Rebuild the error in another process; pickle does not keep keyword arguments."""
    return SqlError(message, file=file, line=line, column=column, source_line=source_line)
