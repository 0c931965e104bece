"""The text of a warning: whether it is news, and how often a record may be rewritten for it."""

import re

from orchestrator.logs.record.redaction import REDACTOR

SAME_KIND_SECONDS = 60.0
OTHER_KIND_SECONDS = 5.0
"""Between two writes of a warning: clusters put times, counters and ids into their messages."""

_VARIABLE = re.compile(r"\b(?=[\w.:-]*\d)[\w.:-]+")  # has a digit: times, sizes, ids, names of pods
_MAX_CHARACTERS = 1_000


def recordable_text(reason: str) -> str:
    """The text as a record may store it: secrets masked, cut to 1,000 characters, valid Unicode."""
    return REDACTOR.mask(reason)[:_MAX_CHARACTERS].encode("utf-8", "replace").decode()


def is_other_kind(text: str, stored: str) -> bool:
    """Whether the text differs from the stored one in more than numbers and ids."""
    return text != stored and _VARIABLE.sub("#", text) != _VARIABLE.sub("#", stored)


def rest_seconds(text: str, stored: str) -> float:
    """The minimum time between the write of the stored text and of this one."""
    return OTHER_KIND_SECONDS if is_other_kind(text, stored) else SAME_KIND_SECONDS
