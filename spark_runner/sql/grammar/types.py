"""Checks the names of types, without Spark: `ARRAY<STRNG>` has an unknown one.

Spark's own parser decides on the rest of a type.
"""

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.text.built_ins import has_mark
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import TokenKind

_PLAIN = (
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL"),
    *("DOUBLE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "STRING", "BINARY"),
    *("DECIMAL", "DEC", "NUMERIC", "VOID", "INTERVAL", "VARIANT"),
)
_WITH_LENGTH = ("CHAR", "CHARACTER", "VARCHAR")
_OF_PLACES = ("GEOMETRY", "GEOGRAPHY")
_NESTED = {"ARRAY": 1, "MAP": 2, "STRUCT": 0}
_NAMES = (*_PLAIN, *_WITH_LENGTH, *_OF_PLACES, *_NESTED)
_PLAIN_NAMES = frozenset(_PLAIN)
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_WITH_NUMBERS = (*_DECIMALS, *_WITH_LENGTH, *_OF_PLACES, *_TIMESTAMPS, "TIME")
_MAX_PRECISION = 38
_MICROSECONDS = 6  # digits behind the seconds of a TIMESTAMP, at least
_MAX_DIGITS_OF_SECONDS = 9
_MAX_DEPTH = 50  # of types in types; the parser of Spark is recursive, too
_SAME = {"TEXT": "STRING", "DATETIME": "TIMESTAMP", "BOOL": "BOOLEAN", "BYTES": "BINARY", "UUID": "STRING"}
"""Types of other systems, for which Spark has another name."""


def check_type(passage: Passage) -> None:
    """Raise SqlError at the first unknown name of a type, or at one whose parameters are wrong."""
    if passage.text.upper() not in _PLAIN_NAMES and not has_mark(passage.text):
        _check(Cursor(passage))


def _check(cursor: Cursor, depth: int = 0) -> None:
    """Check the type that comes next; what may follow its name and parameters is left to Spark."""
    token = cursor.take()
    if depth > _MAX_DEPTH:
        raise cursor.error(
            f"types are nested more than {_MAX_DEPTH} deep here, which is the limit", token.start
        )
    name = token.text.upper()
    if token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
        cursor.index -= 1
        raise cursor.expected("a type")
    if token.kind is not TokenKind.WORD or name not in _NAMES:
        raise _unknown(cursor, name)
    opening = cursor.here
    if name in _NESTED:
        if opening is None or not opening.is_symbol("<"):
            example = {"ARRAY": "ARRAY<INT>", "MAP": "MAP<STRING, INT>", "STRUCT": "STRUCT<name: STRING>"}[
                name
            ]
            raise cursor.error(f"{name} needs the types of its elements, as in {example}", token.start)
        cursor.take()
        _check_elements(cursor, name, depth)
    elif opening is not None and opening.is_symbol("("):
        if name not in _WITH_NUMBERS:
            raise cursor.error(f"type {name} has no parameter; write {name}", opening.start)
        _check_numbers(cursor, name)
    elif name in _WITH_LENGTH:
        raise cursor.error(f"type {name} needs a length, as in {name}(10); STRING has no limit", token.start)


def _check_elements(cursor: Cursor, name: str, depth: int) -> None:
    """Check the types up to the closing `>`; those of a STRUCT follow the names of its fields."""
    count = 0
    while not cursor.take_symbol(">"):
        if count and not cursor.take_symbol(","):
            return  # COLLATE and other parts, for Spark
        if name == "STRUCT":
            cursor.take()
            cursor.take_symbol(":")
        _check(cursor, depth + 1)
        count += 1
        _skip_rest(cursor)
    if _NESTED[name] and count != _NESTED[name]:
        types = "one type" if _NESTED[name] == 1 else "the types of its keys and values"
        raise cursor.error(f"{name} has {types}", cursor.tokens[cursor.index - 1].start)


def _skip_rest(cursor: Cursor) -> None:
    """Skip to the comma or `>` behind an element: parameters, NOT NULL, COMMENT, COLLATE."""
    depth = 0
    while token := cursor.here:
        if depth == 0 and token.text in {",", ">"} and token.kind is TokenKind.SYMBOL:
            return
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == "(") - (token.text == ")")
        cursor.take()


def _check_numbers(cursor: Cursor, name: str) -> None:
    """Check the parameters of a type."""
    if name in _DECIMALS:
        _check_decimal(cursor)
    elif name in _TIMESTAMPS or name == "TIME":
        _check_precision(cursor, name)


def _check_decimal(cursor: Cursor) -> None:
    """Check DECIMAL(precision, scale)."""
    start = cursor.index
    numbers = [token.text for token in cursor.tokens[start + 1 : start + 5] if token.kind is TokenKind.NUMBER]
    behind = [token.text for token in cursor.tokens[start : start + 2 * len(numbers) + 1]]
    if not numbers or not all(map(str.isdecimal, numbers)) or "".join(behind) != f"({','.join(numbers)})":
        return
    precision, scale = (*map(int, numbers), 0)[:2]
    if precision > _MAX_PRECISION:
        message = f"a DECIMAL has up to {_MAX_PRECISION} digits"
        raise cursor.error(message, cursor.tokens[start + 1].start)
    if scale > precision:
        message = "a DECIMAL cannot have more digits behind the point than it has digits"
        raise cursor.error(message, cursor.tokens[start + 3].start)


def _check_precision(cursor: Cursor, name: str) -> None:
    """Check TIMESTAMP(digits), of the part of a second."""
    digits = cursor.tokens[cursor.index + 1 : cursor.index + 2]
    if not digits or not digits[0].text.isdecimal():
        return
    least = _MICROSECONDS if name in _TIMESTAMPS else 0
    if not least <= int(digits[0].text) <= _MAX_DIGITS_OF_SECONDS:
        hint = f"{name} has microseconds; write {name}" if least else f"{name} has up to 9 digits of a second"
        raise cursor.error(
            f"{name}({cursor.written(digits[0])}) is no type of Spark: {hint}", digits[0].start
        )


def _unknown(cursor: Cursor, name: str) -> SqlError:
    token = cursor.tokens[cursor.index - 1]
    same = _SAME.get(name)
    hint = f"; write {same}" if same else did_you_mean(name, _NAMES)
    return cursor.error(f"unknown type '{cursor.written(token)}'{hint}", token.start)
