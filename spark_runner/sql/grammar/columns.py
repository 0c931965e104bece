"""Parses the columns of a table without Spark."""

from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import TokenKind

_OPEN, _CLOSE = "(<[", ")>]"
_CONSTRAINTS = {
    ("PRIMARY", "KEY"),
    ("FOREIGN", "KEY"),
    ("UNIQUE", "("),
    ("CHECK", "("),
    ("WATERMARK", "FOR"),
}


def column_names(columns: Passage) -> tuple[str, ...]:
    """The names in `a INT, b STRING, ...`; the types are left to Spark.

    Raises SqlError at a definition that is missing, duplicate, or not a column.
    """
    cursor = Cursor(columns)
    names: dict[str, str] = {}
    while True:
        following = cursor.peek(1)
        pair = (cursor.here.text.upper() if cursor.here else "", following.text.upper() if following else "")
        if pair in _CONSTRAINTS or pair[0] == "CONSTRAINT":
            raise cursor.error(f"{pair[0]} is not supported; a table declares columns only")
        name, offset = cursor.name("column")
        if name.lower() in names:
            raise cursor.error(f"column '{name}' is declared twice", offset)
        names[name.lower()] = name
        cursor.take_symbol(":")
        if cursor.here is None or cursor.here.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
            raise cursor.expected(f"the type of column '{name}'")
        _skip_definition(cursor)
        if cursor.peek() is None:
            return tuple(names.values())
        cursor.need_symbol(",")


def _skip_definition(cursor: Cursor) -> None:
    """Move to the comma behind this definition, or to the end."""
    depth = 0
    while cursor.here and not (depth == 0 and cursor.here.is_symbol(",")):
        token = cursor.take()
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
