"""Parses CREATE TABLE in both dialects."""

from spark_runner.sql.grammar.column_parser import parse_columns
from spark_runner.sql.grammar.option_references import referring_pieces
from spark_runner.sql.grammar.statements import CreateTable, Option
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.tokens import TokenKind


def create_table(cursor: Cursor, *, replace: bool) -> CreateTable:
    """The rest of a CREATE TABLE from its name on; raises SqlError."""
    name, name_offset = cursor.name("table")
    columns = None
    if cursor.here and cursor.here.is_symbol("("):
        columns = parse_columns(cursor.in_parentheses("the columns"))
    connector, connector_offset = "", cursor.offset
    options: tuple[Option, ...] = ()
    if cursor.take_words("USING"):
        connector_offset = cursor.offset
        connector, _ = cursor.name("connector")
        if cursor.take_words("OPTIONS"):
            options = _options(cursor)
    elif cursor.take_words("WITH"):
        options = _options(cursor)
    else:
        raise cursor.expected("USING connector OPTIONS (...) or WITH ('connector' = '...', ...)")
    cursor.finish("nothing may follow the options of a table")
    return CreateTable(
        cursor.passage,
        cursor.tokens,
        name,
        name_offset,
        replace,
        columns,
        connector,
        connector_offset,
        options,
    )


def _options(cursor: Cursor) -> tuple[Option, ...]:
    cursor.need_symbol("(")
    options: dict[str, Option] = {}
    while True:
        option = _option(cursor)
        if option.key.lower() in options:
            raise cursor.error(f"option '{option.key}' is given twice", option.key_offset)
        options[option.key.lower()] = option
        if not cursor.take_symbol(","):
            break
    if not cursor.take_symbol(")"):
        raise cursor.expected("',' or ')'")
    return tuple(options.values())


def _option(cursor: Cursor) -> Option:
    key_offset = cursor.offset
    token = cursor.here
    if token is None or token.kind not in {TokenKind.STRING, TokenKind.WORD}:
        raise cursor.expected("the name of an option")
    parts = [cursor.text_of(cursor.take())]
    while token.kind is TokenKind.WORD and cursor.take_symbol("."):
        parts.append(cursor.take().text)
    key = ".".join(parts)
    _ = cursor.take_symbol("=")  # optional in Spark's OPTIONS
    value_offset = cursor.offset
    sign = "-" if cursor.take_symbol("-") else ""
    value = cursor.here
    simple = value is not None and (
        value.kind in {TokenKind.STRING, TokenKind.NUMBER} or value.is_word("TRUE", "FALSE", "NULL")
    )
    if not simple:
        raise cursor.expected(f"the value of option '{key}' (a string, a number, true or false)")
    token = cursor.take()
    places, pieces = referring_pieces(cursor, token)
    return Option(key, sign + cursor.text_of(token), key_offset, value_offset, pieces, places)
