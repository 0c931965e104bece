"""Parses CREATE TABLE in both dialects."""

from spark_runner.sql.grammar.column_parser import parse_columns
from spark_runner.sql.grammar.options import options as table_options
from spark_runner.sql.grammar.statements import CreateTable, Option
from spark_runner.sql.text.cursor import Cursor


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
            options = table_options(cursor)
    elif cursor.take_words("WITH"):
        options = table_options(cursor)
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
