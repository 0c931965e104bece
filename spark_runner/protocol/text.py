"""Text for people: long values shortened, and the name that a user probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice


def shortened(text: str, limit: int) -> str:
    """`text`, or its two ends with the number of characters left out between them."""
    if len(text) <= limit:
        return text
    kept = limit // 2
    return f"{text[:kept]} [... {len(text) - 2 * kept:,} characters ...] {text[-kept:]}"


def without_prefix(message: str) -> str:
    """A message of pydantic without what it puts before the words of a validator."""
    return message.removeprefix("Value error, ")


_MAX_NAMES, _MAX_CHARACTERS = 1_000, 100  # a comparison takes the product of both lengths


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The element of `known` nearest to `name`, ignoring case; None if none is near."""
    if len(name) > _MAX_CHARACTERS:
        return None
    by_lower = {one.lower(): one for one in islice(known, _MAX_NAMES) if len(one) <= _MAX_CHARACTERS}
    close = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message with the nearest of `known`; empty without one."""
    near = nearest(name, known)
    return f"; did you mean '{near}'?" if near is not None else ""
