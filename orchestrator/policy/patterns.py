"""Patterns of allow-lists: text in which `*` matches any characters."""

from collections.abc import Iterable

_BOUNDARIES = frozenset(
    "/@?#,\\ "
)  # a `*` inside a pattern never crosses from one part of a name to the next
_ENDS = frozenset("@\\ ,")  # nor does one at the end bring in another host, or another item of a list


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text; takes linear time for any input."""
    first, *pieces = pattern.split("*")
    if not pieces:
        return text == pattern
    *middle, last = pieces
    start, end = len(first), len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last) and start <= end):
        return False
    for piece in middle:
        found = text.find(piece, start, end)
        if found < 0 or not _BOUNDARIES.isdisjoint(text[start:found]):
            return False
        start = found + len(piece)
    forbidden = _BOUNDARIES if last else _ENDS
    return forbidden.isdisjoint(text[start:end])


def matches_any(patterns: Iterable[str], text: str) -> bool:
    """Whether one of the patterns matches.

    None matches a path with `..`, which servers resolve, or a reference that Spark fills in, `${...}`.
    """
    is_clear = "/../" not in f"{text}/" and "%2e" not in text.lower() and "${" not in text
    return is_clear and any(matches(pattern, text) for pattern in patterns)
