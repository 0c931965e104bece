"""Rewrites CREATE TABLE between its dialects: USING ... OPTIONS of Spark, and WITH of streaming engines."""

import re
from collections.abc import Sequence
from enum import StrEnum

from spark_runner.sql.compiler.option_keys import WITHOUT_EFFECT, current_key
from spark_runner.sql.grammar.parser import parse
from spark_runner.sql.grammar.statements import CreateTable, Option
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import SqlToken, TokenKind, tokenize

_FILE_FORMATS = ("parquet", "csv", "json", "orc", "text")
_TO_FLINK = {
    "csv": {
        "delimiter": "csv.field-delimiter",
        "null_value": "csv.null-literal",
        "escape": "csv.escape-character",
    }
}
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


class Dialect(StrEnum):
    """The dialect of CREATE TABLE."""

    SPARK = "spark"
    FLINK = "flink"


def rewritten(dialect: Dialect, source: ScriptSource, tokens: Sequence[SqlToken]) -> Sequence[SqlToken]:
    """The tokens of a statement in a dialect; the same ones where that cannot be done without a doubt.

    That is: for other statements, invalid ones, a variable in place of a connector or option, and a comment
    among the options.
    """
    try:
        statement = parse(Passage.verbatim(source, tokens))
        if not isinstance(statement, CreateTable) or bool(statement.connector) == (dialect is Dialect.SPARK):
            return tokens
        start = _options_start(statement)
        first = tokens[0].start
        behind = [token for token in tokens if token.start - first >= start]
        if any(token.kind is TokenKind.COMMENT for token in behind):
            return tokens
        options = {option.key: (option, _value(statement, option)) for option in statement.options}
        text = _with(statement, options) if dialect is Dialect.FLINK else _using(options)
        if text is None:
            return tokens
        made = [
            SqlToken(token.kind, token.text, token.start + behind[0].start)
            for token in tokenize(ScriptSource(source.file, text))
        ]
    except SqlError:
        return tokens
    return [*tokens[: len(tokens) - len(behind)], *made]


def _options_start(statement: CreateTable) -> int:
    """The offset of USING or WITH."""
    offset, depth = 0, 0
    for token in statement.tokens:
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.start > statement.name_offset and token.is_word("USING", "WITH"):
            offset = token.start
            break
    return offset


def _value(statement: CreateTable, option: Option) -> str:
    """The value as the script writes it."""
    found = [token for token in statement.tokens if token.start >= option.value_offset][:2]
    return found[0].text + (found[1].text if found[0].is_symbol("-") else "")


def _with(statement: CreateTable, options: dict[str, tuple[Option, str]]) -> str | None:
    connector = statement.connector.lower()
    if not options.keys().isdisjoint(("connector", "format")):
        return None
    keys = _TO_FLINK.get(connector, {})
    pairs = [("connector", _quoted(connector))]
    if connector in _FILE_FORMATS:
        pairs = [("connector", "'filesystem'"), ("format", _quoted(connector))]
    for key, (_, value) in options.items():
        its = keys.get(key.lower(), key)
        if current_key(its) != (key.lower() if key.lower() in keys else key) or its.lower() in WITHOUT_EFFECT:
            return None  # the other dialect would read it differently
        pairs.append((its, _quoted(value)))
    return f"WITH ({', '.join(f'{_quoted(key)} = {value}' for key, value in pairs)})"


def _using(options: dict[str, tuple[Option, str]]) -> str | None:
    found = dict[str, tuple[Option, str]]()
    for key, (option, value) in options.items():
        only = WITHOUT_EFFECT.get(key.lower())
        if only is None and current_key(key) not in found:
            found[current_key(key)] = (option, value)
        elif only is None or option.value.lower() != only:
            return None  # an error, which must stay one
    connector = _popped(found, "connector")
    if connector == "filesystem":
        connector = _popped(found, "format")
    if not re.fullmatch(r"[a-z_]\w*", connector or "", re.ASCII):
        return None
    shown = [
        f"{key if _PLAIN_KEY.fullmatch(key) else _quoted(key)} {value}" for key, (_, value) in found.items()
    ]
    return f"USING {connector} OPTIONS ({', '.join(shown)})" if shown else f"USING {connector}"


def _popped(options: dict[str, tuple[Option, str]], key: str) -> str:
    name = next((name for name in options if name.lower() == key), None)
    return options.pop(name)[0].value.lower() if name is not None else ""


def _quoted(text: str) -> str:
    """A literal as it is, and anything else in quotes."""
    if text[:1] in {"'", '"'} or text[:2].lower() in {"r'", 'r"'}:
        return text
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
