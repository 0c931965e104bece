"""The statements that a script may have, and the parser of their heads.

Only heads are parsed here. Spark's own parser decides on every query, expression and type.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spark_runner.sql.grammar.clauses import QUERY_WORDS, column_names, query
from spark_runner.sql.text.cursor import CLOSING, Cursor
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import MAX_NESTING
from spark_runner.sql.text.tokens import SqlToken, TokenKind

SUPPORTED = "a script may have SET, CREATE TABLE, CREATE VIEW, INSERT INTO and INSERT OVERWRITE"
_PARENTHESES = frozenset({*CLOSING, *CLOSING.values()})


@dataclass(frozen=True)
class Statement:
    """The base of all statements: their text, and its tokens without space and comments."""

    passage: Passage
    tokens: Sequence[SqlToken]


@dataclass(frozen=True)
class SetStatement(Statement):
    """`SET key = value`."""

    key: str
    value: str


@dataclass(frozen=True)
class Option:
    """One option of a table, with the offsets of its key and value."""

    key: str
    value: str
    key_offset: int
    value_offset: int


@dataclass(frozen=True)
class CreateTable(Statement):
    """`CREATE TABLE` in either dialect; `connector` is empty if only the options name it (WITH)."""

    name: str
    name_offset: int
    replace: bool
    columns: Passage | None
    column_names: tuple[str, ...]
    connector: str
    connector_offset: int
    options: tuple[Option, ...]


@dataclass(frozen=True)
class CreateView(Statement):
    """`CREATE VIEW name AS query`."""

    name: str
    name_offset: int
    replace: bool
    query: Passage


@dataclass(frozen=True)
class Insert(Statement):
    """`INSERT INTO|OVERWRITE target [BY NAME] query`."""

    target: str
    target_offset: int
    overwrite: bool
    by_name: bool
    query: Passage


def parse(passage: Passage) -> SetStatement | CreateTable | CreateView | Insert:
    """Parse one statement; raises SqlError for one that a script may not have."""
    cursor = Cursor(passage)
    _check_nesting(cursor)
    if cursor.take_words("SET"):
        return _set(cursor)
    if cursor.take_words("INSERT"):
        return _insert(cursor)
    if cursor.take_words("CREATE"):
        replace = _take_modifiers(cursor)
        if cursor.take_words("TABLE"):
            return _create_table(cursor, replace=replace)
        if cursor.take_words("VIEW"):
            return _create_view(cursor, replace=replace)
    found = cursor.here or cursor.tokens[0]
    raise cursor.error(f"'{found.text}' is not supported here; {SUPPORTED}", found.start)


def declared_name(passage: Passage) -> tuple[str, int] | None:
    """The name that a statement declares, and its offset; None if it declares none, or none can be read."""
    cursor = Cursor(passage)
    if not cursor.take_words("CREATE"):
        return None
    _take_modifiers(cursor)
    if not (cursor.take_words("TABLE") or cursor.take_words("VIEW")):
        return None
    try:
        return cursor.name("table")
    except SqlError:
        return None


def _take_modifiers(cursor: Cursor) -> bool:
    """Skip `OR REPLACE` and `TEMPORARY`; returns whether the first was there. All names are temporary."""
    replace = cursor.take_words("OR", "REPLACE")
    _ = cursor.take_words("TEMPORARY") or cursor.take_words("TEMP")
    return replace


def _check_nesting(cursor: Cursor) -> None:
    depth = 0
    for token in cursor.tokens:
        if token.kind is TokenKind.SYMBOL and token.text in _PARENTHESES:
            depth += 1 if token.text in CLOSING else -1
            if depth > MAX_NESTING:
                message = f"more than {MAX_NESTING} parentheses are open here, which is the limit"
                raise cursor.error(message, token.start)


def _set(cursor: Cursor) -> SetStatement:
    start = cursor.index
    while cursor.here and not cursor.here.is_symbol("="):
        cursor.take()
    key = _setting_text(cursor, start)
    if not key or any(char.isspace() for char in key):
        raise cursor.error("write SET key = value", cursor.tokens[0].start)
    if cursor.here is None:
        raise cursor.expected("'=' and a value")
    cursor.need_symbol("=")
    start = cursor.index
    if cursor.here is None:
        raise cursor.expected("a value")
    cursor.index = len(cursor.tokens)
    return SetStatement(cursor.passage, cursor.tokens, key, _setting_text(cursor, start))


def _setting_text(cursor: Cursor, start: int) -> str:
    """The text from token `start` up to the cursor; of a single string its value."""
    tokens = cursor.tokens[start : cursor.index]
    if not tokens:
        return ""
    if len(tokens) == 1:
        return cursor.text_of(tokens[0])
    return cursor.passage.text[tokens[0].start : tokens[-1].end]


def _create_table(cursor: Cursor, *, replace: bool) -> CreateTable:
    name, name_offset = cursor.name("table")
    columns = None
    names: tuple[str, ...] = ()
    if cursor.here and cursor.here.is_symbol("("):
        columns = cursor.in_parentheses("the columns")
        names = column_names(columns)
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
        names,
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
    return Option(key, sign + cursor.text_of(cursor.take()), key_offset, value_offset)


def _create_view(cursor: Cursor, *, replace: bool) -> CreateView:
    name, name_offset = cursor.name("view")
    if not cursor.take_words("AS"):
        raise cursor.expected("AS and a query")
    return CreateView(cursor.passage, cursor.tokens, name, name_offset, replace, query(cursor))


def _insert(cursor: Cursor) -> Insert:
    overwrite = cursor.take_words("OVERWRITE")
    if not overwrite and not cursor.take_words("INTO"):
        raise cursor.expected("INTO or OVERWRITE")
    # TABLE may precede the name, and a table may be named `table`.
    following = cursor.peek(1)
    if (
        following
        and following.kind in {TokenKind.WORD, TokenKind.QUOTED}
        and not following.is_word(*QUERY_WORDS, "BY")
    ):
        cursor.take_words("TABLE")
    target, target_offset = cursor.name("table")
    by_name = cursor.take_words("BY", "NAME")
    return Insert(cursor.passage, cursor.tokens, target, target_offset, overwrite, by_name, query(cursor))
