"""Reads types as Spark does, without Spark: `ARRAY<STRNG>` has an unknown one."""

import re
from collections.abc import Mapping

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.grammar.intervals import RANGES, UNITS
from spark_runner.sql.grammar.spark_line import OLDEST, need_line
from spark_runner.sql.text.built_ins import has_mark, readable
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import TokenKind

PLAIN = (
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL"),
    *("DOUBLE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "STRING", "BINARY"),
    *("DECIMAL", "DEC", "NUMERIC", "VOID", "INTERVAL", "VARIANT"),
)
"""Types without types in them, which need no parameter."""
WITH_LENGTH = ("CHAR", "CHARACTER", "VARCHAR")
"""Types that need a parameter, the number of characters."""
_OF_PLACES = ("GEOMETRY", "GEOGRAPHY")
_NESTED = {"ARRAY": "ARRAY<INT>", "MAP": "MAP<STRING, INT>", "STRUCT": "STRUCT<name: STRING>"}
_NAMES = (*PLAIN, *WITH_LENGTH, *_OF_PLACES, *_NESTED)
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_WITH_NUMBERS = (*_DECIMALS, *WITH_LENGTH, *_OF_PLACES, *_TIMESTAMPS, "TIME")
_TEXTS = ("STRING", *WITH_LENGTH)
_MAX_PRECISION = 38
_MAX_LENGTH = 2**31 - 1
_MAX_DIGITS = 20  # of a number that is read; longer ones are too large in any case
_MICROSECONDS = 6  # digits behind the seconds: of a TIMESTAMP at least, of a TIME before Spark 4.3 at most
_MAX_DIGITS_OF_SECONDS = 9
_MAX_DEPTH = 50  # of types in types; the parser of Spark is recursive, too
_SAME = {"TEXT": "STRING", "DATETIME": "TIMESTAMP", "BOOL": "BOOLEAN", "BYTES": "BINARY", "UUID": "STRING"}
"""Types of other systems, for which Spark has another name."""
_TIME_ZONES = {
    "TIME": (("WITHOUT", "TIME", "ZONE"),),
    "TIMESTAMP": (("WITHOUT", "TIME", "ZONE"), ("WITH", "LOCAL", "TIME", "ZONE")),
}
_TIME_ZONES_SINCE = {"WITHOUT": ((4, 1), "TIMESTAMP_NTZ"), "WITH": ((4, 2), "TIMESTAMP_LTZ")}
"""The line of Spark, and the same type of all lines, by the first word behind TIMESTAMP."""
_BEHIND: Mapping[str, Mapping[str, str]] = {
    "DOUBLE": {"PRECISION": "write DOUBLE"},
    "TIMESTAMP": {"WITH": "a TIMESTAMP has the time zone of the session; write TIMESTAMP"},
}
"""What other systems write behind a type."""
_SINCE = dict.fromkeys(("TIME", *_OF_PLACES), (4, 1))
"""The lines of Spark that brought types, after the oldest one."""
_LITERAL = re.compile(r"[0-9]+(?:[lsy]|(?:e[0-9]+)?(?:bd|[df])?)", re.IGNORECASE)  # and no name


def take_type(cursor: Cursor) -> Passage:
    """Skip the type that comes next; returns its text. Raises SqlError where Spark would refuse it."""
    start = cursor.offset
    _take(cursor, 0)
    return cursor.passage.part(start, cursor.tokens[cursor.index - 1].end)


def take_comment(cursor: Cursor) -> None:
    """Skip the comment of a column, if one comes next; raises SqlError for one without a text."""
    if not cursor.take_words("COMMENT"):
        return
    if cursor.here is None or cursor.here.kind is not TokenKind.STRING:
        raise cursor.expected("the text of the comment")
    cursor.take()
    while cursor.here and cursor.here.kind is TokenKind.STRING:  # Spark joins texts
        need_line(cursor, (4, 1), "a comment of several texts", "write one text")
        cursor.take()


def _take(cursor: Cursor, depth: int) -> None:
    token = cursor.here
    if token is None or token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
        raise cursor.expected("a type")
    if depth > _MAX_DEPTH:
        raise cursor.error(f"types are nested more than {_MAX_DEPTH} deep here, which is the limit")
    name = token.text.upper()
    if token.kind is not TokenKind.WORD or name not in _NAMES:
        raise _unknown(cursor, name)
    need_line(cursor, _SINCE.get(name, OLDEST), f"type {name}", "write STRING")
    cursor.take()
    opening = cursor.here
    if name in _NESTED:
        if opening is None or not opening.is_symbol("<"):
            message = f"{name} needs the types of its elements, as in {_NESTED[name]}"
            raise cursor.error(message, token.start)
        cursor.take()
        _take_elements(cursor, name, depth)
        return
    if opening is not None and opening.is_symbol("("):
        if name not in _WITH_NUMBERS:
            raise cursor.error(f"type {name} has no parameter; write {name}", opening.start)
        _take_parameters(cursor, name)
    elif name in WITH_LENGTH:
        raise cursor.error(f"type {name} needs a length, as in {name}(10); STRING has no limit", token.start)
    elif name in _OF_PLACES:
        message = f"type {name} needs the number of a reference system, as in {name}(4326)"
        raise cursor.error(message, token.start)
    _take_rest(cursor, name)


def _take_rest(cursor: Cursor, name: str) -> None:
    """Skip the words that belong to a type behind its name and its parameters."""
    if name == "INTERVAL":
        _take_range(cursor)
    elif name in _TEXTS:
        _take_collation(cursor, name)
    elif _take_time_zone(cursor, name):
        return
    word = cursor.here.text.upper() if cursor.here else ""
    if hint := _BEHIND.get(name, {}).get(word):
        raise cursor.error(f"'{name} {word}' is no type of Spark; {hint}")


def _take_collation(cursor: Cursor, name: str) -> None:
    """Skip the collation of texts, if one comes next."""
    start = cursor.offset
    if not cursor.take_words("COLLATE"):
        return
    if name in WITH_LENGTH:
        need_line(cursor, (4, 2), f"{name} with a collation", "write STRING", start)
    cursor.name("collation")


def _take_time_zone(cursor: Cursor, name: str) -> bool:
    """Skip the words for the time zone of a TIME or TIMESTAMP; returns whether they came next."""
    start = cursor.offset
    for words in _TIME_ZONES.get(name, ()):
        if cursor.take_words(*words):
            if name == "TIMESTAMP":
                line, same = _TIME_ZONES_SINCE[words[0]]
                need_line(cursor, line, f"{name} {' '.join(words)}", f"write {same}", start)
            return True
    return False


def _take_range(cursor: Cursor) -> None:
    """Skip the units of an interval, as in INTERVAL DAY TO SECOND."""
    first = cursor.here
    if first is None or not first.is_word(*UNITS):
        return
    cursor.take()
    if not cursor.take_words("TO"):
        return
    last = cursor.take()
    if (first.text.upper(), last.text.upper()) not in RANGES:
        message = f"INTERVAL has no {cursor.written(first)} TO {cursor.written(last)}"
        raise cursor.error(f"{message}; write it like INTERVAL DAY TO SECOND", first.start)


def _take_elements(cursor: Cursor, name: str, depth: int) -> None:
    """Skip the types up to the closing `>`; those of a STRUCT follow the names of its fields."""
    count = 0
    while not cursor.take_symbol(">"):
        if count and not cursor.take_symbol(","):
            raise cursor.expected("',' or '>'")
        if name == "STRUCT":
            _take_field(cursor, depth)
        else:
            _take(cursor, depth + 1)
        count += 1
    wanted = {"ARRAY": 1, "MAP": 2}.get(name, count)
    if count != wanted:
        types = "one type" if wanted == 1 else "the types of its keys and values"
        raise cursor.error(f"{name} has {types}", cursor.tokens[cursor.index - 1].start)


def _take_field(cursor: Cursor, depth: int) -> None:
    """Skip a field of a STRUCT."""
    token = cursor.here
    if token and token.kind is TokenKind.NUMBER and not _LITERAL.fullmatch(token.text):
        cursor.take()  # 1a is a name for Spark
    else:
        cursor.name("field")
    cursor.take_symbol(":")
    _take(cursor, depth + 1)
    cursor.take_words("NOT", "NULL")
    take_comment(cursor)


def _take_parameters(cursor: Cursor, name: str) -> None:
    """Skip the parameters of a type; raises SqlError for one that Spark refuses."""
    cursor.need_symbol("(")
    if name in _OF_PLACES and cursor.take_words("ANY"):
        cursor.need_symbol(")")
        return
    start = cursor.offset
    first = _number(cursor)
    if name in _DECIMALS:
        if first > _MAX_PRECISION:
            raise cursor.error(f"a DECIMAL has up to {_MAX_PRECISION} digits", start)
        if cursor.take_symbol(","):
            start = cursor.offset
            if _number(cursor) > first:
                message = "a DECIMAL cannot have more digits behind the point than it has digits"
                raise cursor.error(message, start)
    elif name in _TIMESTAMPS or name == "TIME":
        _check_precision(cursor, name, first)
    elif first > _MAX_LENGTH:
        raise cursor.error(f"{first} is too large for {name}; the limit is {_MAX_LENGTH}", start)
    cursor.need_symbol(")")


def _number(cursor: Cursor) -> int:
    token = cursor.here
    if token and has_mark(token.text):
        message = f"{readable(token.text)} has no value yet when the script is checked"
        raise cursor.error(f"{message}; write a number")
    if token is None or token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
        raise cursor.expected("a number without sign and point")
    return int(cursor.take().text[:_MAX_DIGITS])


def _check_precision(cursor: Cursor, name: str, digits: int) -> None:
    """Check TIMESTAMP(digits), of the part of a second."""
    least = _MICROSECONDS if name in _TIMESTAMPS else 0
    if not least <= digits <= _MAX_DIGITS_OF_SECONDS:
        token = cursor.tokens[cursor.index - 1]
        hint = f"{name} has microseconds; write {name}" if least else f"{name} has up to 9 digits of a second"
        raise cursor.error(f"{name}({cursor.written(token)}) is no type of Spark: {hint}", token.start)
    if least or digits > _MICROSECONDS:
        token = cursor.tokens[cursor.index - 1]
        need_line(cursor, (4, 3), f"{name}({cursor.written(token)})", f"write {name}", token.start)


def _unknown(cursor: Cursor, name: str) -> SqlError:
    token = cursor.tokens[cursor.index]
    same = _SAME.get(name)
    hint = f"; write {same}" if same else did_you_mean(name, _NAMES)
    return cursor.error(f"unknown type '{cursor.written(token)}'{hint}", token.start)
