"""The canonical form of a script: its statements, with the comments between them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from orchestrator.sql.format.layout import STEP
from orchestrator.sql.format.statement import formatted, set_begins
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import SqlToken, TokenKind, meaningful, tokenize

Rewrite = Callable[[ScriptSource, Sequence[SqlToken]], Sequence[SqlToken]]
"""Changes the tokens of a statement before it is formatted."""


def format_script(source: ScriptSource, rewrite: Rewrite = lambda _source, tokens: tokens) -> str:
    """The formatted text; raises SqlError where a quote or comment is never closed."""
    writer = _Writer(newline="\r\n" if "\r\n" in source.text else "\n")
    for part in _parts(list(tokenize(source))):
        if part.is_comment:
            writer.comment(part.tokens[0], part.space)
        else:
            writer.statement(rewrite(source, part.tokens), part.space)
    return writer.text()


@dataclass(frozen=True)
class _Part:
    """A statement, or a comment between two; `space` is what is before it."""

    tokens: Sequence[SqlToken]
    space: str
    is_comment: bool = False


def _parts(tokens: Sequence[SqlToken]) -> Iterator[_Part]:
    current, space = list[SqlToken](), ""
    for token in tokens:
        if token.kind is TokenKind.END or (not current and not meaningful(token)):
            if current:
                yield _Part(_without_space(current), space)
                current, space = [], ""
            if token.kind is TokenKind.SPACE:
                space += token.text
            elif token.kind is TokenKind.COMMENT:
                yield _Part([token], space, is_comment=True)
                space = ""
        else:
            current.append(token)
    if not current:
        return
    # Behind the last statement, comments are those of the script.
    last = max(index for index, token in enumerate(current) if meaningful(token)) + 1
    yield _Part(current[:last], space)
    space = ""
    for token in current[last:]:
        if token.kind is TokenKind.COMMENT:
            yield _Part([token], space, is_comment=True)
        space = token.text if token.kind is TokenKind.SPACE else ""


def _without_space(tokens: list[SqlToken]) -> list[SqlToken]:
    while tokens[-1].kind is TokenKind.SPACE:
        del tokens[-1]
    return tokens


@dataclass
class _Writer:
    """Collects the parts of a script."""

    newline: str
    pieces: list[str] = field(default_factory=list)
    indent: int = 0
    ends_line: bool = False  # the last part is a comment up to the end of its line

    def comment(self, token: SqlToken, space: str) -> None:
        """Write a comment: behind the part before it if it was on the same line."""
        self._begin(space, may_join=True)
        self.pieces.append(token.text)
        self.ends_line = token.text.startswith("--")

    def statement(self, tokens: Sequence[SqlToken], space: str) -> None:
        """Write a statement on a line of its own, those of a set indented."""
        if tokens[0].is_word("END"):
            self.indent = 0
        self._begin(space, may_join=False)
        last = tokens[-1]
        behind = self.newline if last.kind is TokenKind.COMMENT and last.text.startswith("--") else ""
        self.pieces.append(f"{formatted(tokens, self.indent, self.newline)}{behind};")
        self.ends_line = False
        if set_begins(tokens):
            self.indent = STEP

    def text(self) -> str:
        """The whole script, with a newline at its end."""
        return "".join([*self.pieces, self.newline]) if self.pieces else ""

    def _begin(self, space: str, *, may_join: bool) -> None:
        if not self.pieces:
            return
        lines = space.count("\n")
        if may_join and not lines and not self.ends_line:
            self.pieces.append(" ")
            return
        blank = self.newline if lines > 1 else ""
        self.pieces.append(f"{self.newline}{blank}{' ' * self.indent}")
