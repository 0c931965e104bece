"""Parses the columns and constraints of a table without Spark."""

from collections.abc import Sequence

from spark_runner.sql.grammar.columns import (
    Columns,
    ComputedColumn,
    Expectation,
    MetadataColumn,
    Violation,
    Watermark,
)
from spark_runner.sql.grammar.types import take_comment, take_type
from spark_runner.sql.grammar.windows import with_spark_functions
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import TokenKind

_IN_EXPRESSIONS = ("([", ")]")  # there < and > compare
_NAMES = frozenset({TokenKind.WORD, TokenKind.QUOTED})
_NOT_IN_COLUMNS = {
    "NULL": "a column may be NULL unless it is NOT NULL; remove this word",
    "DEFAULT": "a column has no DEFAULT; give the value in the query, as in coalesce(x, 0)",
}
_AFTER_CONSTRAINT_NAME = ("PRIMARY", "EXPECT", "FOREIGN", "UNIQUE", "CHECK")


def parse_columns(passage: Passage) -> Columns:
    """The columns in `a INT, b STRING, ...`; expressions are left to Spark.

    Raises SqlError at a definition that is missing, duplicate, or neither a column nor a constraint.
    """
    return _ColumnParser(passage).parse()


class _ColumnParser:
    """Reads one definition after another."""

    def __init__(self, passage: Passage) -> None:
        self._cursor = Cursor(passage)
        self._found = Columns(passage)
        self._names: dict[str, str] = {}  # lower case -> as declared
        self._constraints = set[str]()
        self._key_offset: int | None = None

    def parse(self) -> Columns:
        """All definitions; raises SqlError."""
        cursor = self._cursor
        while True:
            self._definition()
            if cursor.here is None:
                break
            cursor.need_symbol(",")
        self._check_names()
        return self._found

    def _definition(self) -> None:
        cursor = self._cursor
        following = [token.text.upper() if (token := cursor.peek(ahead)) else "" for ahead in range(3)]
        match following:
            case ["WATERMARK", "FOR", _]:
                self._watermark()
            case ["PRIMARY", "KEY", "("]:
                self._primary_key()
            case ["CONSTRAINT", _, kind] if kind in _AFTER_CONSTRAINT_NAME:
                self._constraint()
            case [("FOREIGN" | "UNIQUE" | "CHECK") as kind, "KEY" | "(", _]:
                raise cursor.error(f"{kind} is not supported; use CONSTRAINT name EXPECT (condition)")
            case _:
                self._column()

    def _column(self) -> None:
        cursor = self._cursor
        start = cursor.offset
        name, offset = cursor.name("column")
        if name.lower() in self._names:
            raise cursor.error(f"column '{name}' is declared twice", offset)
        self._names[name.lower()] = name
        if cursor.take_words("AS"):
            expression = self._to_comma(f"the expression of '{name}'")
            self._found.computed.append(ComputedColumn(name, with_spark_functions(expression)))
            return
        cursor.take_symbol(":")
        if cursor.here is None or cursor.here.kind not in _NAMES:
            raise cursor.expected(f"the type of column '{name}'")
        kind = take_type(cursor)
        cursor.take_words("NOT", "NULL")
        take_comment(cursor)
        behind = cursor.offset
        if cursor.take_words("METADATA"):
            self._metadata(name, kind)
        elif cursor.take_words("GENERATED", "ALWAYS", "AS"):
            expression = self._expression(f"the expression of '{name}'")
            take_comment(cursor)
            self._found.computed.append(ComputedColumn(name, expression, kind))
        else:
            self._found.stored[name] = cursor.passage.part(start, behind)
            if cursor.take_words("PRIMARY", "KEY"):
                self._key((name,), offset)
        self._end_column()

    def _end_column(self) -> None:
        """Raise SqlError unless the definition of a column ends here."""
        cursor = self._cursor
        if (token := cursor.here) is None or token.is_symbol(","):
            return
        hint = _NOT_IN_COLUMNS.get(token.text.upper())
        raise cursor.error(
            hint or f"expected ',' before '{cursor.written(token)}', or the end of the column", token.start
        )

    def _expression(self, what: str) -> Passage:
        """An expression in parentheses, for Spark."""
        behind = self._cursor.offset + 1
        expression = self._cursor.in_parentheses(what)
        if not expression.tokens:
            raise self._cursor.error(f"{what} is empty", behind)
        return with_spark_functions(expression)

    def _metadata(self, name: str, kind: Passage) -> None:
        cursor, key, offset = self._cursor, name, self._cursor.offset
        if cursor.take_words("FROM"):
            token = cursor.here
            if token is None or token.kind is not TokenKind.STRING:
                raise cursor.expected("the key of the metadata, a string")
            offset, key = token.start, cursor.text_of(cursor.take())
        cursor.take_words("VIRTUAL")  # no connector stores metadata
        take_comment(cursor)
        self._found.metadata.append(MetadataColumn(name, kind, key, offset))

    def _watermark(self) -> None:
        cursor = self._cursor
        offset = cursor.offset
        cursor.take_words("WATERMARK", "FOR")
        column, column_offset = cursor.name("column")
        if self._found.watermark is not None:
            raise cursor.error("a table has one watermark", offset)
        if not cursor.take_words("AS"):
            raise cursor.expected("AS and an expression")
        expression = self._to_comma("the expression of the watermark")
        self._found.watermark = Watermark(column, expression, column_offset)

    def _constraint(self) -> None:
        cursor = self._cursor
        cursor.take_words("CONSTRAINT")
        name, offset = cursor.name("constraint")
        if cursor.here and cursor.here.is_word("PRIMARY"):
            self._primary_key()
            return
        if not cursor.take_words("EXPECT"):
            raise cursor.expected("EXPECT (condition) or PRIMARY KEY (columns)")
        if name.lower() in self._constraints:
            raise cursor.error(f"constraint '{name}' is declared twice", offset)
        self._constraints.add(name.lower())
        condition = self._expression(f"the condition of '{name}'")
        if not cursor.take_words("ON", "VIOLATION"):
            raise cursor.expected("ON VIOLATION and FAIL, DROP ROW or QUARANTINE")
        action_offset = cursor.offset
        self._found.expectations.append(Expectation(name, condition, self._action(), action_offset))

    def _action(self) -> Violation:
        for action in Violation:
            if self._cursor.take_words(*action.upper().split()):
                self._cursor.take_words("UPDATE")  # the word of pipelines for FAIL
                return action
        raise self._cursor.expected("FAIL, DROP ROW or QUARANTINE")

    def _primary_key(self) -> None:
        cursor = self._cursor
        offset = cursor.offset
        if not cursor.take_words("PRIMARY", "KEY"):
            raise cursor.expected("PRIMARY KEY (columns)")
        cursor.need_symbol("(")
        names = [cursor.name("column")[0]]
        while cursor.take_symbol(","):
            names.append(cursor.name("column")[0])
        cursor.need_symbol(")")
        self._key(tuple(names), offset)

    def _key(self, names: tuple[str, ...], offset: int) -> None:
        if self._found.primary_key:
            raise self._cursor.error("a table has one primary key", offset)
        if not self._cursor.take_words("NOT", "ENFORCED"):
            raise self._cursor.expected("NOT ENFORCED; the job does not check that the key is unique")
        self._found.primary_key, self._key_offset = names, offset

    def _check_names(self) -> None:
        """Refuse constraints of columns that are not declared; they may precede the columns."""
        found, cursor = self._found, self._cursor
        if not found.stored:
            raise cursor.error("a table needs a column with a type", 0)
        found.names = tuple(self._names.values())
        stored = {name.lower() for name in found.stored}
        for name in found.primary_key:
            if name.lower() not in stored:
                message = f"the primary key names '{name}', which is not a stored column"
                raise cursor.error(message, self._key_offset)
        watermark = found.watermark
        if watermark is not None and watermark.column.lower() not in self._names:
            raise cursor.error(f"there is no column '{watermark.column}'", watermark.offset)

    def _to_comma(self, what: str) -> Passage:
        """The text up to the comma behind this definition, or to the end."""
        start = self._cursor.offset
        first = self._cursor.index
        self._skip((), first, _IN_EXPRESSIONS)
        if self._cursor.index == first:
            raise self._cursor.expected(what)
        return self._cursor.passage.part(start, self._cursor.offset)

    def _skip(self, words: Sequence[str], first: int, brackets: tuple[str, str]) -> None:
        """Move to the next comma, to one of `words` behind the token `first`, or to the end."""
        tokens, index, depth = self._cursor.tokens, self._cursor.index, 0
        opening, closing = brackets
        symbol, end = TokenKind.SYMBOL, len(tokens)
        while index < end:  # most tokens of a table are passed here
            token = tokens[index]
            is_symbol = token.kind is symbol
            if depth == 0:
                if is_symbol and token.text == ",":
                    break
                if index > first and words and token.is_word(*words):
                    break
            if is_symbol:
                depth += (token.text in opening) - (token.text in closing)
            index += 1
        self._cursor.index = index
