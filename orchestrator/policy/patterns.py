"""Patterns of allow-lists: text in which `*` stands for any characters."""

from collections.abc import Iterable

_BOUNDARIES = frozenset(
    "/@?#,\\ "
)  # a `*` inside a pattern never crosses from one part of a name to the next
_ENDS = frozenset("@\\ ,")  # nor does one at the end bring in another host, or another item of a list


def matches(pattern: str, text: str) -> bool:
    """Whether all of the text fits; in linear time, whatever both hold."""
    first, *pieces = pattern.split("*")
    if not pieces:
        return text == pattern
    *middle, last = pieces
    place, end = len(first), len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last) and place <= end):
        return False
    for piece in middle:
        found = text.find(piece, place, end)
        if found < 0 or not _BOUNDARIES.isdisjoint(text[place:found]):
            return False
        place = found + len(piece)
    forbidden = _BOUNDARIES if last else _ENDS
    return forbidden.isdisjoint(text[place:end])


def matches_any(patterns: Iterable[str], text: str) -> bool:
    """Whether one of them fits.

    None fits a path that climbs, as servers resolve it, nor what Spark fills in: `${...}`.
    """
    is_clear = "/../" not in f"{text}/" and "%2e" not in text.lower() and "${" not in text
    return is_clear and any(matches(pattern, text) for pattern in patterns)
