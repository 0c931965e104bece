"""A script's text within limits of its size, and passages of it that keep their place in the file.

A passage is text for Spark, in which variables are already replaced. Its anchors map every offset to the
user's file, so that an error after a long value still points at the right column.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from spark_runner.sql.errors import SqlError

MAX_SCRIPT_CHARACTERS = 384 * 1024  # like the definition that carries it
MAX_STATEMENTS = 1_000
MAX_NESTING = 200  # open parentheses; the parser of Spark overflows its stack at some thousands
MAX_EXPANDED_CHARACTERS = 1024 * 1024  # of all statements, with variables replaced
MAX_VIEW_DEPTH = 100  # the default of spark.sql.view.maxNestedViewDepth
MAX_TABLE_READS = 10_000  # by one query through all its views; Spark inserts the text of a view at each use
MAX_PATH_CHARACTERS = 4_096  # PATH_MAX of Linux; no file system accepts more


class Anchor(NamedTuple):
    """From `offset` of a passage on, the text is that of the file at `origin`, or was pasted there."""

    offset: int
    origin: int
    verbatim: bool  # False: the value of a variable; all of it belongs to `origin`


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

    def error(self, message: str, offset: int) -> SqlError:
        """An error that points at `offset`."""
        line, column = self.position(offset)
        start = self._line_starts[line - 1]
        source_line = self.text[start:].split("\n", 1)[0].rstrip("\r")
        return SqlError(message, file=self.file, line=line, column=column, source_line=source_line)


@dataclass(frozen=True)
class Passage:
    """Text made of a part of the script; `anchors` is never empty and is in order of `offset`."""

    source: ScriptSource
    text: str
    anchors: tuple[Anchor, ...]

    def origin(self, offset: int) -> int:
        """The offset in the file that `offset` of this text came from."""
        anchor = self.anchors[self._anchor_index(offset)]
        return anchor.origin + (offset - anchor.offset if anchor.verbatim else 0)

    def position(self, offset: int = 0) -> tuple[int, int]:
        """Line and column in the file of `offset` of this text."""
        return self.source.position(self.origin(offset))

    def error(self, message: str, offset: int = 0) -> SqlError:
        """An error that points at where `offset` of this text came from."""
        return self.source.error(message, self.origin(offset))

    def part(self, start: int, end: int) -> "Passage":
        """The text from `start` to `end`, with its origin."""
        first = self._anchor_index(start)
        verbatim = self.anchors[first].verbatim
        later = [anchor for anchor in self.anchors[first + 1 :] if anchor.offset < end]
        moved = (anchor._replace(offset=anchor.offset - start) for anchor in later)
        anchors = (Anchor(0, self.origin(start), verbatim), *moved)
        return Passage(self.source, self.text[start:end], anchors)

    def to_json(self, values: dict[str, int]) -> list[list[int]]:
        """The pieces for a plan, which holds no text twice.

        Text of the file is [origin, length]. A pasted text is added to `values`, and its piece is
        [origin, length, index in `values`].
        """
        ends = (*(anchor.offset for anchor in self.anchors[1:]), len(self.text))
        pieces = list[list[int]]()
        for anchor, end in zip(self.anchors, ends, strict=True):
            piece = [anchor.origin, end - anchor.offset]
            if not anchor.verbatim:
                piece.append(values.setdefault(self.text[anchor.offset : end], len(values)))
            pieces.append(piece)
        return pieces

    @classmethod
    def from_json(
        cls, source: ScriptSource, pieces: Iterable[Sequence[int]], values: Sequence[str]
    ) -> "Passage":
        """Read the pieces that `to_json` wrote."""
        texts, anchors, offset = list[str](), list[Anchor](), 0
        for origin, length, *number in pieces:
            text = values[number[0]] if number else source.text[origin : origin + length]
            anchors.append(Anchor(offset, origin, verbatim=not number))
            texts.append(text)
            offset += len(text)
        return cls(source, "".join(texts), tuple(anchors))

    def _anchor_index(self, offset: int) -> int:
        return max(0, bisect_right(self.anchors, offset, key=lambda anchor: anchor.offset) - 1)
