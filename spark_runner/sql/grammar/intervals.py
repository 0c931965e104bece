"""Reads intervals as Spark does: `INTERVAL '5' MINUTE` in an expression, and texts such as '5 minutes'.

What depends on a built-in variable has no length yet, and is not checked.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.text.built_ins import has_mark
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.literals import string_value
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import SqlToken, TokenKind

_MICROSECONDS = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_MONTHS = {"YEAR": 12, "MONTH": 1}
_MONTH = 31 * _MICROSECONDS["DAY"]  # where Spark compares an interval with zero
_UNITS = (*_MONTHS, *_MICROSECONDS)
_RANGES = {("YEAR", "MONTH"), ("DAY", "HOUR"), ("DAY", "MINUTE"), ("DAY", "SECOND")}
_RANGES |= {("HOUR", "MINUTE"), ("HOUR", "SECOND"), ("MINUTE", "SECOND")}
_DIGITS = r"[0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}"
_NUMBER = re.compile(rf"\s*([+-]?(?:{_DIGITS}))\s*")
_PART = re.compile(rf"\s*(?:([+-])\s*)?({_DIGITS})\s+([A-Za-z]+)")
_EXAMPLES = "; write it like INTERVAL '5' MINUTE, or '5 minutes'"
_HEAD = re.compile(r"\s*interval\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Interval:
    """A span of time; `microseconds` are those beside the months."""

    months: int = 0
    microseconds: Decimal = Decimal(0)

    @property
    def length(self) -> Decimal:
        """The microseconds, with months of 31 days."""
        return self.months * _MONTH + self.microseconds


def interval_in_text(passage: Passage, token: SqlToken) -> Interval | None:
    """The interval in a string such as '1 day 2 hours'; None if it is not known yet. Raises SqlError."""
    if has_mark(token.text):
        return None
    try:
        text = string_value(token.text)
    except ValueError as error:
        raise passage.error(str(error), token.start) from error
    text = text.rstrip()
    head = _HEAD.match(text)
    parts, end = list[tuple[str, str]](), head.end() if head else 0
    while end < len(text):
        found = _PART.match(text, end)
        if found is None:
            break
        parts.append(((found[1] or "") + found[2], found[3].upper()))
        end = found.end()
    if end < len(text) or not parts:
        raise _no_interval(passage, token)
    return _sum(passage, token, parts)


def interval_in(passage: Passage, start: int) -> Interval | None:
    """The interval from the token `start`, which is INTERVAL, to the end; None if it is not known yet.

    Raises SqlError.
    """
    tokens = passage.tokens[start + 1 :]
    if any(has_mark(token.text) for token in tokens):
        return None
    is_negative = bool(tokens) and tokens[0].is_symbol("-")
    if tokens and tokens[0].text in {"-", "+"}:
        tokens = tokens[1:]
    match tokens:
        case [value, first, to, second] if value.kind is TokenKind.STRING and to.is_word("TO"):
            if (_unit(first.text), _unit(second.text)) not in _RANGES:
                raise _no_interval(passage, first, f"INTERVAL has no {first.text} TO {second.text}")
            is_negative ^= value.text[1:].lstrip().startswith("-")
            return Interval(microseconds=Decimal(-1 if is_negative else 1))
        case [value] if value.kind is TokenKind.STRING:
            found = interval_in_text(passage, value)
        case _:
            found = _of_parts(passage, passage.tokens[start], tokens)
    if found is None or not is_negative:
        return found
    return Interval(-found.months, -found.microseconds)


def _of_parts(passage: Passage, at: SqlToken, tokens: Iterable[SqlToken]) -> Interval:
    """The interval in `'1' DAY 2 HOURS`."""
    parts, number, sign = list[tuple[str, str]](), "", ""
    for token in tokens:
        text = token.text[1:-1] if token.kind is TokenKind.STRING else token.text
        if not number and parts and token.text in {"-", "+"}:
            sign = token.text
        elif not number and (found := _NUMBER.fullmatch(text)) and not (sign and text[0] in "+-"):
            number, sign, at = sign + found[1], "", token
        elif number and token.kind is TokenKind.WORD:
            parts.append((number, token.text.upper()))
            _sum(passage, token, parts[-1:])
            number = ""
        else:
            raise _no_interval(passage, token)
    if number or sign or not parts:
        raise _no_interval(passage, at)
    if len({_unit(unit) in _MONTHS for _, unit in parts}) > 1:
        raise _no_interval(passage, at, "an interval has years and months, or shorter units")
    return _sum(passage, at, parts)


def _sum(passage: Passage, at: SqlToken, parts: Iterable[tuple[str, str]]) -> Interval:
    """The interval of numbers and units; raises SqlError at an unknown unit, and at a part of an unit."""
    months, microseconds = 0, Decimal(0)
    for number, written in parts:
        unit = _unit(written)
        if unit not in _UNITS:
            raise _no_interval(passage, at, hint=did_you_mean(written, _UNITS))
        if "." in number and unit != "SECOND":
            raise _no_interval(passage, at, "only SECOND has a decimal point in an interval")
        if unit in _MONTHS:
            months += int(number) * _MONTHS[unit]
        else:
            microseconds += Decimal(number) * _MICROSECONDS[unit]
    return Interval(months, microseconds)


def _unit(word: str) -> str:
    return word.upper().removesuffix("S")


def _no_interval(passage: Passage, at: SqlToken, message: str = "", hint: str = "") -> SqlError:
    written = passage.written(at.start, at.end)
    is_unit = bool(hint) and at.kind is TokenKind.WORD
    message = message or (f"unknown unit '{written}'" if is_unit else f"{written} is no interval")
    return passage.error(f"{message}{hint or _EXAMPLES}", at.start)
