"""Finds what a user probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message that names the nearest of `known`, or nothing."""
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean '{by_lower[close[0]]}'?" if close else ""
