"""A part of a script for Spark: its text and tokens, which keep their place in the user's file.

Variables are already replaced. Anchors map every offset to the file, so that an error after a long value
still points at the right column.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from spark_runner.references.reference import Reference
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import SqlToken, TokenKind, meaningful, tokenize


class Anchor(NamedTuple):
    """From `offset` of a passage on, the text is that of the file at `origin`, or was pasted there."""

    offset: int
    origin: int
    verbatim: bool  # False: the value of a variable; all of it belongs to `origin`


class PlacedReference(NamedTuple):
    """A reference that the user wrote in a string, from `start` to `end` of a passage."""

    start: int
    end: int
    reference: Reference


_new_tuple = tuple.__new__
_SPACE, _COMMENT = TokenKind.SPACE, TokenKind.COMMENT
_start, _offset = attrgetter("start"), attrgetter("offset")


def moved_tokens(tokens: Iterable[SqlToken], start: int) -> list[SqlToken]:
    """The tokens, without space and comments, of a text that begins at `start` of theirs."""
    if start == 0:
        return list(filter(meaningful, tokens))
    # A check makes most of its tokens here; `SqlToken(...)` takes twice as long.
    return [
        _new_tuple(SqlToken, (kind, text, at - start))
        for kind, text, at in tokens
        if kind is not _SPACE and kind is not _COMMENT
    ]


@dataclass(frozen=True)
class Passage:
    """Text made of a part of the script; `anchors` is never empty and is in order of `offset`."""

    source: ScriptSource
    text: str
    anchors: tuple[Anchor, ...]
    references: tuple[PlacedReference, ...] = field(
        default=(), compare=False
    )  # of a whole statement, in order
    cut: Callable[[], Sequence[SqlToken]] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def tokens(self) -> Sequence[SqlToken]:
        """The tokens of the text, without space and comments; raises SqlError where a quote is open."""
        if self.cut is not None:  # from tokens that are known already
            return self.cut()
        return [token for token in tokenize(ScriptSource(self.source.file, self.text)) if meaningful(token)]

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

    def written(self, start: int, end: int) -> str:
        """The text between two offsets as the file has it: with variables, whose values may be secrets."""
        pieces = list[str]()
        first, behind = self._anchor_index(start), bisect_left(self.anchors, end, key=_offset)
        edges = [start, *(anchor.offset for anchor in self.anchors[first + 1 : behind]), end]
        for anchor, (since, until) in zip(self.anchors[first:behind], pairwise(edges), strict=True):
            if anchor.verbatim or not self.source.text.startswith("${", anchor.origin):
                pieces.append(self.text[since:until])
            else:
                closing = self.source.text.find("}", anchor.origin)
                pieces.append(self.source.text[anchor.origin : closing + 1])
        return "".join(pieces)

    def part(self, start: int, end: int) -> "Passage":
        """The text from the token at `start` to the one at `end`, with its origin."""
        first = self._anchor_index(start)
        verbatim = self.anchors[first].verbatim
        behind = bisect_left(self.anchors, end, key=_offset)
        moved = (anchor._replace(offset=anchor.offset - start) for anchor in self.anchors[first + 1 : behind])
        anchors = (Anchor(0, self.origin(start), verbatim), *moved)
        cut = None if self.cut is None else partial(self._tokens_between, start, end)
        return Passage(self.source, self.text[start:end], anchors, cut=cut)

    def _tokens_between(self, start: int, end: int) -> list[SqlToken]:
        first, behind = (bisect_left(self.tokens, offset, key=_start) for offset in (start, end))
        return moved_tokens(self.tokens[first:behind], start)

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
    def verbatim(cls, source: ScriptSource, tokens: Sequence[SqlToken]) -> "Passage":
        """The text of adjacent tokens as it is in the file, with its variables."""
        start, end = tokens[0].start, tokens[-1].end
        anchors = (Anchor(0, start, verbatim=True),)
        return cls(source, source.text[start:end], anchors, cut=partial(moved_tokens, tokens, start))

    def rebuilt(self, pieces: Sequence["Passage | str"]) -> "Passage":
        """The texts of parts of this passage, and of words that the file does not hold.

        The words belong to the place of the part before them, those at the begin to that of this passage.
        """
        texts, anchors, offset, origin = list[str](), list[Anchor](), 0, self.origin(0)
        for piece in pieces:
            if isinstance(piece, Passage):
                origin = piece.origin(0)
                anchors += (anchor._replace(offset=offset + anchor.offset) for anchor in piece.anchors)
                text = piece.text
            else:
                anchors.append(Anchor(offset, origin, verbatim=False))
                text = piece
            texts.append(text)
            offset += len(text)
        return Passage(self.source, "".join(texts), tuple(anchors))

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
        return max(0, bisect_right(self.anchors, offset, key=_offset) - 1)
