"""Splits a script into tokens by the rules of Spark's lexer; every character is in exactly one token."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from spark_runner.sql.text.source import ScriptSource


class TokenKind(StrEnum):
    """The kinds of tokens that the parser of statement heads distinguishes."""

    SPACE = "space"
    COMMENT = "comment"
    STRING = "string"  # '..', "..", r'..'
    QUOTED = "quoted"  # `..`
    WORD = "word"
    NUMBER = "number"
    VARIABLE = "variable"  # ${..}
    SYMBOL = "symbol"
    END = "end"  # ;


class SqlToken(NamedTuple):
    """A piece of text at an offset; a script may have hundreds of thousands."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset behind the last character."""
        return self.start + len(self.text)

    def is_word(self, *words: str) -> bool:
        """Whether this is one of `words` (given in upper case), in any case."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def is_symbol(self, symbol: str) -> bool:
        """Whether this is the symbol `symbol`."""
        return self.kind is TokenKind.SYMBOL and self.text == symbol


# Order matters: a raw string before the word that its `r` would be, `/*+` (a hint, which is SQL) before `/`.
# A word may follow the digits of a signed exponent at once, as in 1E+5USING; not those of a decimal.
# The digits behind a dot have no other dot: x.1.bd ends with the word bd, and 1.bd is a number.
_TOKEN = re.compile(
    r"""
      (?P<space>    [\s\ufeff]+ )
    | (?P<comment>  --(?:\\\n|[^\r\n])* )
    | (?P<string>   [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
    | (?P<quoted>   `(?:[^`]|``)*` )
    | (?P<variable> \$\{[^}\n]*\} )
    | (?P<number>   [0-9]+[eE][+-][0-9]+(?:[bB]?[dD]|[fF])?
                  | (?:(?<!\.)[0-9]+\.[0-9]*|(?<=\.)[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB]?[dD]|[fF])?
                    (?![0-9A-Za-z_\u0131\u017f])
                  | [0-9]\w* )
    | (?P<word>     [^\W\d]\w* )
    | (?P<end>      ; )
    | (?P<symbol>   /\*\+ | \*/ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_UNCLOSED = {
    "'": "this string has no closing quote",
    '"': "this string has no closing quote",
    "`": "this name has no closing back-tick",
}
_OPENING = frozenset({*_UNCLOSED, "/", "$"})
_SPACE, _COMMENT = TokenKind.SPACE, TokenKind.COMMENT
_KINDS = {
    kind.value: kind for kind in TokenKind
}  # `TokenKind(value)` takes longer than all other work on a token


def tokenize(source: ScriptSource) -> Iterator[SqlToken]:
    """The tokens of `source`, in order and without gaps; raises SqlError where a quote or comment is open."""
    text, take, kinds, symbol = source.text, _TOKEN.match, _KINDS, TokenKind.SYMBOL
    new_tuple = tuple.__new__  # `SqlToken(...)` takes twice as long
    offset, length = 0, len(source.text)
    while offset < length:
        match = take(text, offset)
        # The last alternative takes any character; this is for the type checker.
        if match is None or match.lastgroup is None:  # pragma: no cover
            raise source.error("this character cannot be read", offset)
        kind, found, end = kinds[match.lastgroup], match[0], match.end()
        if kind is symbol and found in _OPENING:
            if found == "/" and text.startswith("/*", offset):
                kind, end = TokenKind.COMMENT, _comment_end(source, offset)
                found = text[offset:end]
            elif found in _UNCLOSED:
                raise source.error(_UNCLOSED[found], offset)
            elif text.startswith("${", offset):
                raise source.error("this '${' has no closing '}'", offset)
        yield new_tuple(SqlToken, (kind, found, offset))
        offset = end


def _comment_end(source: ScriptSource, start: int) -> int:
    """The offset behind the comment that opens at `start`; comments nest, as in Spark."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(source.text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise source.error("this comment has no closing '*/'", start)


def split(source: ScriptSource) -> Iterator[list[SqlToken]]:
    """The statements of a script: their tokens without `;`, and without space and comments at both ends.

    Raises SqlError where a quote or comment is never closed.
    """
    current: list[SqlToken] = []
    for token in tokenize(source):
        if token.kind is not TokenKind.END:
            current.append(token)
            continue
        if statement := _trim(current):
            yield statement
        current = []
    if statement := _trim(current):
        yield statement


def meaningful(token: SqlToken) -> bool:
    """Whether a token is neither space nor comment."""
    return token.kind is not _SPACE and token.kind is not _COMMENT


def _trim(tokens: list[SqlToken]) -> list[SqlToken]:
    first, last = 0, len(tokens)
    while first < last and not meaningful(tokens[first]):
        first += 1
    while first < last and not meaningful(tokens[last - 1]):
        last -= 1
    return tokens[first:last]
