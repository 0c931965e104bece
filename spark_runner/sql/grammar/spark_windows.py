"""Checks the durations of Spark's own group windows, as in window(ts, '10 minutes', '5 minutes')."""

from collections.abc import Sequence

from spark_runner.sql.grammar.intervals import Interval, interval_in_text
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import TokenKind

_TO_MOVE = 2  # durations of a window that slides
_TO_SHIFT = 3  # and one that begins later
_BEHIND_NAMES = frozenset({".", "[", "(", "+", "*", "/"})


def check_window(name: str, arguments: Sequence[Passage]) -> None:
    """Raise SqlError for a duration that Spark refuses, or without which a session has no rows.

    `arguments` are those of window() or session_window(); what is no text, only Spark knows.
    """
    durations = list[Interval]()
    for each in arguments[1 : _TO_SHIFT + 1]:
        if _is_interval(each):
            raise _error(each, f"{name.lower()}() takes this length as a text, such as '5 minutes'")
        if len(each.tokens) != 1 or each.tokens[0].kind is not TokenKind.STRING:
            return
        found = interval_in_text(each, each.tokens[0])
        if found is None:
            return
        durations.append(found)
        _check_duration(name, each, found, is_start=len(durations) == _TO_SHIFT)
    if len(durations) >= _TO_MOVE:
        size, slide, *start = (each.microseconds for each in durations)
        if slide > size:
            message = "the slide of a window is longer than its size; write window(column, size, slide)"
            raise _error(arguments[_TO_MOVE], message)
        if start and abs(start[0]) >= slide:
            raise _error(arguments[_TO_SHIFT], "the start of a window must be less than its slide")


def _is_interval(argument: Passage) -> bool:
    """Whether an argument is `INTERVAL '5' MINUTE`, in place of a column of that name."""
    tokens = argument.tokens
    return len(tokens) > 1 and tokens[0].is_word("INTERVAL") and tokens[1].text not in _BEHIND_NAMES


def _check_duration(name: str, argument: Passage, found: Interval, *, is_start: bool) -> None:
    if found.months and name == "WINDOW":
        raise _error(argument, "a window has a fixed length; months and years have none")
    if found.length <= 0 and not is_start:
        raise _error(argument, "the length of a window must be more than 0")


def _error(argument: Passage, message: str) -> SqlError:
    return argument.error(message, argument.tokens[0].start)
