"""Cuts a script into tokens by the rules of Spark's lexer; every character lands in exactly one token."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from spark_runner.sql.source import Source


class Kind(StrEnum):
    """What a token is, as far as a script's headers need to know."""

    SPACE = "space"
    COMMENT = "comment"
    STRING = "string"  # '..', "..", r'..'
    QUOTED = "quoted"  # `..`
    WORD = "word"
    NUMBER = "number"
    VARIABLE = "variable"  # ${..}
    SYMBOL = "symbol"
    END = "end"  # ;


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text at an offset."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset behind the last character."""
        return self.start + len(self.text)

    def is_word(self, *words: str) -> bool:
        """Whether this is one of `words` (given in upper case), in any case."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_symbol(self, symbol: str) -> bool:
        """Whether this is the symbol `symbol`."""
        return self.kind is Kind.SYMBOL and self.text == symbol


# Order matters: a raw string before the word that its `r` would be, `/*+` (a hint, which is SQL) before `/`.
_TOKEN = re.compile(
    r"""
      (?P<space>    [\s\ufeff]+ )
    | (?P<comment>  --(?:\\\n|[^\r\n])* )
    | (?P<string>   [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
    | (?P<quoted>   `(?:[^`]|``)*` )
    | (?P<variable> \$\{[^}\n]*\} )
    | (?P<number>   \d[\w.]* )
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


def tokenize(source: Source) -> Iterator[Token]:
    """The tokens of `source`, in order and without gaps; raises SqlError where a quote or comment is open."""
    offset = 0
    while offset < len(source.text):
        token = _token_at(source, offset)
        yield token
        offset = token.end


def _token_at(source: Source, offset: int) -> Token:
    text = source.text
    if text.startswith("/*", offset) and not text.startswith("/*+", offset):
        return Token(Kind.COMMENT, text[offset : _comment_end(source, offset)], offset)
    match = _TOKEN.match(text, offset)
    # The last alternative takes any character; this is for the type checker.
    if match is None or match.lastgroup is None:  # pragma: no cover
        raise source.error("this character cannot be read", offset)
    kind = Kind(match.lastgroup)
    found = match[0]
    if kind is Kind.SYMBOL and found in _UNCLOSED:
        raise source.error(_UNCLOSED[found], offset)
    if kind is Kind.SYMBOL and text.startswith("${", offset):
        raise source.error("this '${' has no closing '}'", offset)
    return Token(kind, found, offset)


def _comment_end(source: Source, start: int) -> int:
    """The offset behind the comment that opens at `start`; comments nest, as in Spark."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(source.text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise source.error("this comment has no closing '*/'", start)


def split(source: Source) -> list[list[Token]]:
    """The statements of a script: their tokens from the first to the last that means something, no `;`."""
    statements: list[list[Token]] = []
    current: list[Token] = []
    for token in tokenize(source):
        if token.kind is Kind.END:
            statements.append(current)
            current = []
        else:
            current.append(token)
    statements.append(current)
    return [trimmed for statement in statements if (trimmed := _trim(statement))]


def meaningful(token: Token) -> bool:
    """Whether a token is more than space or comment."""
    return token.kind not in {Kind.SPACE, Kind.COMMENT}


def _trim(tokens: list[Token]) -> list[Token]:
    kept = [index for index, token in enumerate(tokens) if meaningful(token)]
    return tokens[kept[0] : kept[-1] + 1] if kept else []
