"""Replaces `${name}` and `${name:-default}` in one statement; a value cannot break out of its place.

In place of a built-in variable it leaves a mark: `spark_runner.sql.text.built_ins`.
References such as `${secret:scope/key}` stay in the text: the compiler knows no values of them. In the value
of a variable they have no meaning.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from spark_runner.protocol.text import did_you_mean
from spark_runner.references.reference import InvalidReference, Reference, is_reference, parse_reference
from spark_runner.sql.text.built_ins import BUILT_INS, MARKS, NUMBERS
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.literals import escape_into
from spark_runner.sql.text.passage import Anchor, Passage, PlacedReference, moved_tokens
from spark_runner.sql.text.source import MAX_EXPANDED_CHARACTERS, ScriptSource
from spark_runner.sql.text.tokens import SqlToken, TokenKind, tokenize

# Without its `}` the rest of the line is text, matched in one step: no later `${` of it is closed either.
_VARIABLE = re.compile(r"\$\{([^}\n]*)(\})?")
# In '..' and ".." a backslash escapes the next character: '\${x}' is the text ${x}.
_ESCAPE_OR_VARIABLE = re.compile(r"\\.|\$\{([^}\n]*)(\})?", re.DOTALL)
_REFERENCE = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*?)(?::-(.*))?", re.DOTALL)


ONLY_IN_OPTIONS = "a reference can only be in the value of an option of a table"


class ExpandedTooLong(SqlError):
    """With variables replaced, the script exceeds a limit; statements after this one are not checked."""


def expand(
    source: ScriptSource,
    tokens: Sequence[SqlToken],
    variables: Mapping[str, str],
    limit: int = MAX_EXPANDED_CHARACTERS,
) -> Passage:
    """The text of a statement with its variables replaced; comments are left as they are.

    Outside of quotes a value is pasted as SQL; it must be whole tokens and may hold no `;` and no comment.
    Inside of quotes it is escaped. `limit` is in characters of the text. Raises SqlError at a variable.
    """
    pieces = _Pieces(source, limit)
    done = tokens[0].start  # the text between two variables is copied at once
    for token in tokens:
        if "${" not in token.text or token.kind is TokenKind.COMMENT:
            continue
        pieces.copy(source.text[done : token.start], done)
        done = token.end
        if token.kind is TokenKind.VARIABLE:
            if is_reference(token.text[2:-1]):
                message = f"the reference {token.text} must be in quotes; {ONLY_IN_OPTIONS}"
                raise source.error(message, token.start)
            value = _value(source, token.text[2:-1], token.start, variables)
            _check_pasted(source, value, token)
            pieces.paste(value, token.start)
        else:
            _expand_quoted(pieces, token, variables)
    pieces.copy(source.text[done : tokens[-1].end], done)
    passage = pieces.passage()
    if any(not anchor.verbatim for anchor in passage.anchors):
        joined = _check_joined(passage, tokens)
        return replace(passage, cut=lambda: joined)
    return replace(passage, cut=partial(moved_tokens, tokens, tokens[0].start))


class _Pieces:
    """Collects text and the anchors that map it to its origin."""

    def __init__(self, source: ScriptSource, limit: int) -> None:
        self.source = source
        self._limit = limit
        self._texts: list[str] = []
        self._anchors: list[Anchor] = []
        self._references: list[PlacedReference] = []
        self._length = 0

    def copy(self, text: str, origin: int) -> None:
        """Append text of the file; contiguous text shares one anchor."""
        if not text:
            return
        if not (self._anchors and self._anchors[-1].verbatim):
            self._anchors.append(Anchor(self._length, origin, verbatim=True))
        self._append(text, origin)

    def paste(self, text: str, origin: int) -> None:
        """Append a value in place of the variable at `origin`."""
        self._anchors.append(Anchor(self._length, origin, verbatim=False))
        self._append(text, origin)

    def keep(self, reference: Reference, text: str, origin: int) -> None:
        """Append a reference as it is."""
        start = self._length
        self.copy(text, origin)
        self._references.append(PlacedReference(start, self._length, reference))

    def _append(self, text: str, origin: int) -> None:
        self._length += len(text)
        if self._length > self._limit:
            message = (
                f"with the values of its variables the script has more than {MAX_EXPANDED_CHARACTERS:,}"
                " characters, which is the limit; let it read the long values from files"
            )
            raise self.source.error(message, origin, ExpandedTooLong)
        self._texts.append(text)

    def passage(self) -> Passage:
        """The passage of all pieces."""
        text, anchors = "".join(self._texts), tuple(self._anchors)
        return Passage(self.source, text, anchors, tuple(self._references))


def _expand_quoted(pieces: _Pieces, token: SqlToken, variables: Mapping[str, str]) -> None:
    opening = _opening(token.text)
    pattern = _ESCAPE_OR_VARIABLE if opening in {"'", '"'} else _VARIABLE
    done = 0
    for match in pattern.finditer(token.text):
        if match[2] is None:
            continue
        origin = token.start + match.start()
        if is_reference(match[1]):
            pieces.copy(token.text[done : match.start()], token.start + done)
            pieces.keep(_reference(pieces.source, match[1], origin), match[0], origin)
            done = match.end()
            continue
        value = _value(pieces.source, match[1], origin, variables)
        escaped = escape_into(opening, value)
        if escaped is None:
            message = f"the value of {match[0]} would end the string; use a plain '..' string here"
            raise pieces.source.error(message, origin)
        pieces.copy(token.text[done : match.start()], token.start + done)
        pieces.paste(escaped, origin)
        done = match.end()
    pieces.copy(token.text[done:], token.start + done)


def _reference(source: ScriptSource, inner: str, origin: int) -> Reference:
    try:
        return parse_reference(inner)
    except InvalidReference as error:
        raise source.error(str(error), origin) from error


def _opening(literal: str) -> str:
    return literal[:2] if literal[0] in "rR" else literal[0]


def _value(source: ScriptSource, reference: str, origin: int, variables: Mapping[str, str]) -> str:
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        message = f"'${{{reference}}}' is not a variable: write ${{name}} or ${{name:-default}}"
        raise source.error(message, origin)
    name, default = match[1], match[2]
    if name in variables:
        return variables[name]
    if name in MARKS:
        return MARKS[name]
    if default is not None:
        return str(default)
    hint = (
        did_you_mean(name, (*variables, *BUILT_INS)) or f"; give it a value, or a default: ${{{name}:-...}}"
    )
    raise source.error(f"unknown variable '{name}'{hint}", origin)


def _check_pasted(source: ScriptSource, value: str, token: SqlToken) -> None:
    built_in = next((name for name, mark in MARKS.items() if mark == value), None)
    if built_in is not None and built_in not in NUMBERS:  # without quotes 2026-01-31 is 1994
        message = f"the value of {token.text} is a text; put it in quotes: '{token.text}'"
        raise source.error(message, token.start)
    try:
        kinds = {part.kind for part in tokenize(ScriptSource(source.file, value))}
    except SqlError as error:
        message = f"the value of {token.text} cannot be pasted here: {error.message}"
        raise source.error(message, token.start) from error
    for kind, what in ((TokenKind.END, "a ';'"), (TokenKind.COMMENT, "a comment")):
        if kind in kinds:
            raise source.error(f"the value of {token.text} holds {what}; put it in quotes", token.start)


def _check_joined(passage: Passage, tokens: Sequence[SqlToken]) -> Sequence[SqlToken]:
    """The tokens of the joined text; refuses values that begin a comment or quote, as `-${n}` with -1."""
    comments = [token.text for token in tokens if token.kind is TokenKind.COMMENT]
    pasted = next(anchor for anchor in passage.anchors if not anchor.verbatim)
    message = "with its value, this variable changes where comments and quotes begin; put spaces around it"
    try:
        joined = list(tokenize(ScriptSource(passage.source.file, passage.text)))
    except SqlError as error:
        raise passage.error(message, pasted.offset) from error
    if [token.text for token in joined if token.kind is TokenKind.COMMENT] != comments:
        raise passage.error(message, pasted.offset)
    return moved_tokens(joined, 0)
