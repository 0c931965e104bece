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
UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
"""Units of the types of intervals."""
_SECONDS = r":\d{1,2}(?:\.\d{1,9})?"
_RANGES = {
    ("YEAR", "MONTH"): (r"\d+-(?:0?\d|1[01])", "'1-2'"),
    ("DAY", "HOUR"): (r"\d+ \d{1,2}", "'1 2'"),
    ("DAY", "MINUTE"): (r"\d+ \d{1,2}:\d{1,2}", "'1 2:03'"),
    ("DAY", "SECOND"): (rf"\d+ \d{{1,2}}:\d{{1,2}}{_SECONDS}", "'1 2:03:04'"),
    ("HOUR", "MINUTE"): (r"\d+:\d{1,2}", "'2:03'"),
    ("HOUR", "SECOND"): (rf"\d+:\d{{1,2}}{_SECONDS}", "'2:03:04'"),
    ("MINUTE", "SECOND"): (rf"\d+{_SECONDS}", "'3:04'"),
}
RANGES = frozenset(_RANGES)
"""Units of intervals with several of them, as in DAY TO SECOND."""
_DIGITS = r"[0-9]{1,20}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}"
_NUMBER = re.compile(rf"\s*([+-]?(?:{_DIGITS}))\s*")
_PART = re.compile(rf"\s*(?:([+-])\s*)?({_DIGITS})\s+([A-Za-z]+)")
_MIXED = "an interval has years and months, or shorter units"
_MAX_MONTHS = 2**31 - 1
_MAX_MICROSECONDS = 2**63 - 1
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
            is_negative ^= _is_negative_range(passage, value, (first, second))
            return Interval(microseconds=Decimal(-1 if is_negative else 1))
        case [value] if value.kind is TokenKind.STRING:
            found = interval_in_text(passage, value)
            if found and found.months and found.microseconds:
                raise _no_interval(passage, value, _MIXED)
        case _:
            found = _of_parts(passage, passage.tokens[start], tokens)
    if found is None or not is_negative:
        return found
    return Interval(-found.months, -found.microseconds)


def _is_negative_range(passage: Passage, value: SqlToken, units: tuple[SqlToken, SqlToken]) -> bool:
    """Whether `'-1 2' DAY TO HOUR` is negative; raises SqlError for a text that does not fit its units."""
    first, last = (unit.text.upper() for unit in units)
    if (first, last) not in _RANGES:
        raise _no_interval(passage, units[0], f"INTERVAL has no {first} TO {last}")
    pattern, example = _RANGES[first, last]
    found = re.fullmatch(rf"([+-]?){pattern}", value.text[1:-1].strip(), re.ASCII)
    if found is None:
        hint = f"; write it like INTERVAL {example} {first} TO {last}"
        raise _no_interval(passage, value, hint=hint)
    return found[1] == "-"


def _of_parts(passage: Passage, at: SqlToken, tokens: Iterable[SqlToken]) -> Interval:
    """The interval in `'1' DAY 2 HOURS`."""
    parts, number, sign = list[tuple[str, str]](), "", ""
    for token in tokens:
        text = token.text[1:-1] if token.kind is TokenKind.STRING else token.text
        if not number and parts and token.text in {"-", "+"}:
            sign = token.text
        elif not number and token.text == ".":
            sign += token.text  # of .5, which is two tokens
        elif not number and (found := _NUMBER.fullmatch(text)) and not (sign and text[0] in "+-."):
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
        raise _no_interval(passage, at, _MIXED)
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
    found = Interval(months, microseconds)
    if abs(months) > _MAX_MONTHS or abs(found.length) > _MAX_MICROSECONDS:
        raise _no_interval(passage, at, "this interval is too long for Spark", hint="; write a shorter one")
    return found


def _unit(word: str) -> str:
    return word.upper().removesuffix("S")


def _no_interval(passage: Passage, at: SqlToken, message: str = "", hint: str = "") -> SqlError:
    written = passage.written(at.start, at.end)
    is_unit = bool(hint) and at.kind is TokenKind.WORD
    message = message or (f"unknown unit '{written}'" if is_unit else f"{written} is no interval")
    return passage.error(f"{message}{hint or _EXAMPLES}", at.start)
