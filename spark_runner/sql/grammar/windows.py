"""Rewrites functions of streaming SQL engines to those of Spark: group windows, and PROCTIME().

`GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)` with TUMBLE_START, TUMBLE_END and TUMBLE_ROWTIME, likewise HOP and
SESSION. The window functions of newer versions, TABLE(TUMBLE(TABLE t, ...)), have no counterpart in Spark.

Windows of Spark begin at multiples of their length since 1970 in UTC. Those of a day begin at midnight
UTC, in every time zone of the session.
"""

import re
from collections.abc import Sequence
from decimal import Decimal

from spark_runner.sql.grammar.spark_windows import check_window
from spark_runner.sql.text.cursor import CLOSING
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import SqlToken, TokenKind

PROCESSING_TIME = "current_timestamp()"
"""What PROCTIME() is in Spark: the start of the micro-batch."""

_ARGUMENTS = {"TUMBLE": "column, size", "HOP": "column, slide, size", "SESSION": "column, gap"}
_PARTS = {
    "": "",
    "_START": ".start",
    "_END": ".end",
    # The last moment that belongs to the window, as those engines define it.
    "_ROWTIME": ".end - INTERVAL '0.001' SECOND",
}
_NAMES = frozenset(kind + ending for kind in _ARGUMENTS for ending in (*_PARTS, "_PROCTIME"))
_OF_SPARK = ("WINDOW", "SESSION_WINDOW")
_UNIT_MILLISECONDS = {
    "WEEK": 604_800_000,
    "DAY": 86_400_000,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1_000,
    "MILLISECOND": 1,
}
_UNITS = frozenset({*_UNIT_MILLISECONDS, *(f"{unit}S" for unit in _UNIT_MILLISECONDS)})
_NUMBER = re.compile(r"""(?P<quote>['"]?)(?P<number>[0-9]{1,18}(\.[0-9]{1,18})?)(?P=quote)""")
_CLOSING = frozenset(CLOSING.values())


def with_spark_functions(passage: Passage) -> Passage:
    """The passage with functions of Spark; raises SqlError at a window that Spark does not have."""
    tokens = passage.tokens
    pieces: list[Passage | str] = []
    done = 0
    for index, token in enumerate(tokens):
        if index + 1 == len(tokens) or tokens[index + 1].text != "(" or token.kind is not TokenKind.WORD:
            continue
        if token.start < done or not is_call(tokens, index):
            continue
        name = token.text.upper()
        if name == "PROCTIME":
            end, arguments = call_arguments(passage, index)
            if arguments:
                raise passage.error("PROCTIME() has no arguments", token.start)
            words = list[Passage | str]([PROCESSING_TIME])
        elif name in _NAMES:
            end, words = _window(passage, index, name)
        else:
            if name in _OF_SPARK:
                check_window(name, call_arguments(passage, index)[1])
            continue
        pieces += (passage.part(done, token.start), *words) if token.start > done else words
        done = end
    if not pieces:
        return passage
    if done < len(passage.text):
        pieces.append(passage.part(done, len(passage.text)))
    return passage.rebuilt(pieces)


def is_call(tokens: Sequence[SqlToken], index: int) -> bool:
    """Whether the word at this index calls a function."""
    behind = tokens[index + 1] if index + 1 < len(tokens) else None
    before = tokens[index - 1] if index else None
    # Behind AS, WITH or a parenthesis a name with columns is that of a table.
    is_name = before is not None and (
        before.is_symbol(".") or before.is_symbol(")") or before.is_word("AS", "WITH", "RECURSIVE")
    )
    return behind is not None and behind.is_symbol("(") and not is_name


def _window(passage: Passage, index: int, name: str) -> tuple[int, list[Passage | str]]:
    """The end of a call, and what Spark reads in its place."""
    kind, _, suffix = name.partition("_")
    start = passage.tokens[index].start
    part = _PARTS.get(f"_{suffix}" if suffix else "")
    if part is None:
        raise passage.error(f"Spark has no {name}; use current_timestamp()", start)
    end, arguments = call_arguments(passage, index)
    if arguments and arguments[0].tokens[0].is_word("TABLE"):
        message = f"Spark has no table function {kind}; write GROUP BY {kind}({_ARGUMENTS[kind]})"
        raise passage.error(message, start)
    if len(arguments) != len(_ARGUMENTS[kind].split(",")):
        raise passage.error(f"write {name}({_ARGUMENTS[kind]})", start)
    column, *durations = arguments
    texts = [f"'{_duration(each)}'" for each in durations]
    if kind == "HOP":
        slide, size = map(_milliseconds, durations)
        if slide > size:
            message = (
                "the slide of HOP is longer than its size, so rows would be in no window;"
                " write HOP(column, slide, size)"
            )
            raise passage.error(message, start)
        texts.reverse()  # Spark expects the size before the slide
    function = "session_window" if kind == "SESSION" else "window"
    opening, closing = ("(", ")") if " " in part else ("", "")
    return end, [f"{opening}{function}(", column, f", {', '.join(texts)}){part}{closing}"]


def _duration(argument: Passage) -> str:
    """The length of an interval with one unit, as Spark's windows take it."""
    number, unit = _number_and_unit(argument)
    if not Decimal(number):
        raise argument.error("the length of a window must be more than 0", argument.tokens[0].start)
    return f"{number} {unit.lower()}"


def _milliseconds(argument: Passage) -> Decimal:
    number, unit = _number_and_unit(argument)
    return Decimal(number) * _UNIT_MILLISECONDS[unit.removesuffix("S")]


def _number_and_unit(argument: Passage) -> tuple[str, str]:
    match [token.text.upper() for token in argument.tokens]:
        case ["INTERVAL", number, unit] if unit in _UNITS and (match := _NUMBER.fullmatch(number)):
            return match["number"], unit
    message = "the length of a window is an interval with one unit, like INTERVAL '90' SECOND"
    raise argument.error(message, argument.tokens[0].start)


def call_arguments(passage: Passage, index: int) -> tuple[int, list[Passage]]:
    """The offset behind the call of the token `index`, and its arguments."""
    opening = passage.tokens[index + 1]
    arguments, start, depth = list[Passage](), opening.end, 0
    for number in range(index + 1, len(passage.tokens)):
        token = passage.tokens[number]
        if token.kind is not TokenKind.SYMBOL:
            continue
        if token.text in CLOSING:
            depth += 1
        elif token.text in _CLOSING:
            depth -= 1
        if (depth == 1 and token.text == ",") or depth == 0:
            argument = passage.part(start, token.start)
            if argument.tokens:
                arguments.append(argument)
            start = token.end
        if depth == 0:
            return token.end, arguments
    raise passage.error("this parenthesis is never closed", opening.start)
