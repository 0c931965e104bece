"""The words of a warning: which are news, and how often they may be written anew."""

import re

from orchestrator.logs.record.redaction import REDACTOR

SAME_KIND_SECONDS = 60.0
OTHER_KIND_SECONDS = 5.0
"""Between two writes of the words of one warning: clusters put times, counters and ids into them."""

_VARIABLE = re.compile(r"\b(?=[\w.:-]*\d)[\w.:-]+")  # has a digit: times, sizes, ids, names of pods
_MAX_CHARACTERS = 1_000


def recordable_text(reason: str) -> str:
    """The words as a record may have them: they may be a whole page, no Unicode, or quote a secret."""
    return REDACTOR.mask(reason)[:_MAX_CHARACTERS].encode("utf-8", "replace").decode()


def is_other_kind(words: str, told: str) -> bool:
    """Whether these words tell something else than those that stand there, numbers and names apart."""
    return _VARIABLE.sub("#", words) != _VARIABLE.sub("#", told)


def rest_seconds(words: str, told: str) -> float:
    """For how long words that were told stay before these take their place."""
    return OTHER_KIND_SECONDS if is_other_kind(words, told) else SAME_KIND_SECONDS
